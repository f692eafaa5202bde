"""Simplify: the same program with less in it.

    dead_code_elimination(p)[0] computes what p computes        effects are kept, in their order
    common_subexpressions(p)    computes what p computes        equal pure equations are performed once

Both are linear in the size of the program, enter sub-programs, merge equal constants, and are remembered by it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ..effects.axes import Axis
from ..effects.errors import BadArgument
from ..effects.operations import Operation
from ..effects.programs import Program

Marks = tuple[bool, ...]


class Simplified(NamedTuple):
    """A program, and which inputs of the one that it was are its own."""

    program: Program
    used_inputs: Marks


class Kept(NamedTuple):
    """An equation that stays: operands and results under the numbers of the program that it comes from."""

    op: Operation
    args: tuple[int, ...]
    results: tuple[int, ...]
    made: Any
    site: Any


def is_root(op: Operation) -> bool:
    """Whether ``op`` has an effect beyond speaking of an axis: then it is performed whoever uses its results."""
    if not (op.effectful or op.bodied or op.named):
        return False
    return any([not isinstance(effect, Axis) for effect in op.effects])


def dead_code_elimination(
    program: Program, used_outputs: Sequence[bool] | None = None, *, instantiate: bool | Sequence[bool] = False
) -> Simplified:
    """The program of the used outputs alone, without the equations, constants and inputs that they do not need.

        q, used = dead_code_elimination(p, used_outputs)
        q(*[x for x, yes in zip(xs, used) if yes]) == tuple(y for y, yes in zip(p(*xs), used_outputs) if yes)

    Effects are performed all the same, in their order.

    Args:
        used_outputs: which outputs are wanted; all by default.
        instantiate: which inputs to keep in any case; True keeps all.
    """
    outs = _marks(used_outputs, True, len(program.outs), "used_outputs")
    given = (instantiate,) * len(program.in_types) if isinstance(instantiate, bool) else instantiate
    keep = _marks(given, False, len(program.in_types), "instantiate")
    key = ("dead_code_elimination", outs, keep)
    found = program._cache.get(key)
    if found is None:
        found = program._cache[key] = _eliminate(program, outs, keep)
    return found


def _marks(given: Sequence[bool] | None, default: bool, count: int, name: str) -> Marks:
    marks = (default,) * count if given is None else tuple(map(bool, given))
    if len(marks) != count:
        raise BadArgument(f"dead_code_elimination: {name} must have {count} entries, got {len(marks)}.")
    return marks


def _eliminate(program: Program, used_outputs: Marks, keep: Marks) -> Simplified:
    inputs, count = len(program.in_types), program.count
    if all(used_outputs) and len(program.consts) < 2 and _all_needed(program, keep):
        return Simplified(program, (True,) * inputs)  # nothing goes, and there are no two constants to merge
    live = bytearray(count + len(program.consts))  # constants at the end, by their negative numbers
    for n, wanted in zip(program.outs, used_outputs):
        live[n] |= wanted
    kept: list[Kept] = []
    end = count
    columns: tuple[Any, ...] = (program.ops, program.args, program.types, program.sites)
    for op, args, made, site in zip(*map(reversed, columns)):
        start = end - (len(made) if op.multiple else 1)
        results = tuple(range(start, end))
        end = start
        used = tuple([bool(live[n]) for n in results])
        if not any(used) and not is_root(op):
            continue
        if op.bodied:
            op, used, used_operands = prune_operation(op, used, len(args))
            results, made = _only(results, used), _only(made, used)
            args = _only(args, used_operands)
        for n in args:
            live[n] = 1
        kept.append(Kept(op, args, results, made, site))
    used_inputs = tuple([bool(live[n]) or keep[n] for n in range(inputs)])
    outs = _only(program.outs, used_outputs)
    return Simplified(_assemble(program, used_inputs, kept[::-1], outs), used_inputs)


def _all_needed(program: Program, keep: Marks) -> bool:
    """Whether every input, equation and constant is needed; False too where that takes a look into bodies."""
    live = bytearray(program.count + len(program.consts))
    for n in program.outs:
        live[n] = 1
    end = program.count
    for op, args in zip(reversed(program.ops), reversed(program.args)):
        end -= 1
        if op.multiple or not live[end]:
            return False
        for n in args:
            live[n] = 1
    return all([live[n] or yes for n, yes in enumerate(keep)]) and all(live[program.count :])


def _only(items: Sequence[Any], marks: Sequence[bool]) -> tuple[Any, ...]:
    return tuple([item for item, yes in zip(items, marks) if yes])


def _assemble(program: Program, used_inputs: Marks, kept: Sequence[Kept], outs: Sequence[int]) -> Program:
    """The program of these inputs and equations, itself if nothing went; constants by first use, each value once."""
    numbers = {n: i for i, n in enumerate(_only(range(len(used_inputs)), used_inputs))}
    consts: list[Any] = []
    places: dict[Hashable, int] = {}

    def number(n: int) -> int:
        known = numbers.get(n)
        if known is None:  # a constant, seen for the first time
            key = program.const_key(n)
            known = places.get(key)
            if known is None:
                consts.append(program.consts[-1 - n])
                known = places[key] = -len(consts)
            numbers[n] = known
        return known

    count = sum(used_inputs)
    args = []
    for equation in kept:
        args.append(tuple([number(n) for n in equation.args]))
        for n in equation.results:
            numbers[n] = count
            count += 1
    new_outs = tuple([number(n) for n in outs])
    ops = tuple([equation.op for equation in kept])
    same = ops == program.ops and tuple(args) == program.args and new_outs == program.outs
    if same and all(used_inputs) and len(consts) == len(program.consts):
        return program
    in_types = _only(program.in_types, used_inputs)
    types, sites = [equation.made for equation in kept], [equation.site for equation in kept]
    return Program(in_types, ops, args, types, new_outs, consts, sites, program.name)


class Pruned(NamedTuple):
    """A higher-order operation with less in it, and which results and operands of the former one it has."""

    op: Operation
    used_results: Marks
    used_operands: Marks


def prune_operation(op: Any, used: Marks, operands: int) -> Pruned:
    """A higher-order operation that gives the used results, more where a loop carries them.

    Where its fields speak of single operands (``prunes`` is false) its signature stays; bodies lose dead code alone.
    """
    if not op.prunes:
        bodies = tuple([dead_code_elimination(body, instantiate=True).program for body in op.bodies])
        changed = any([new is not old for new, old in zip(bodies, op.bodies)])
        return Pruned(op.with_bodies(bodies) if changed else op, (True,) * len(used), (True,) * operands)
    loops = op.runs in ("loop", "until")
    shared, carry = op.shared, op.carry if loops else 0
    tests = op.bodies[:1] if op.runs == "until" else ()
    bodies = op.bodies[len(tests) :]
    while True:  # what a loop carries is used if the next run uses it: at most one round for each carried value
        needed = [dead_code_elimination(body, used).used_inputs for body in bodies]
        needed += [(*dead_code_elimination(test).used_inputs,) for test in tests]
        inputs = [any(marks) for marks in zip(*needed)]
        carried = [a or b for a, b in zip(used[:carry], inputs[shared : shared + carry])]
        if used[:carry] == tuple(carried):
            break
        used = (*carried, *used[carry:])
    inputs[shared : shared + carry] = used[:carry]
    used_inputs = tuple(inputs)
    new = [dead_code_elimination(test, instantiate=used_inputs).program for test in tests]
    new += [dead_code_elimination(body, used, instantiate=used_inputs).program for body in bodies]
    fields: dict[str, Any] = {"bodies": tuple(new), "shared": sum(used_inputs[:shared]), "carry": sum(used[:carry])}
    made = type(op)(*[fields.get(name, getattr(op, name)) for name in op._names])
    return Pruned(op if made == op else made, used, ((True,) * op.selects) + used_inputs)


def common_subexpressions(program: Program) -> Program:
    """The program in which equal pure equations on equal operands are performed once, sub-programs too.

        common_subexpressions(p)(*xs) == p(*xs)

    Effects are neither merged nor moved.
    """
    found = program._cache.get("common_subexpressions")
    if found is None:
        found = program._cache["common_subexpressions"] = _merge(program)
    return found


def _merge(program: Program) -> Program:
    same: dict[int, int] = {}  # number -> the number of the first value equal to it
    places: dict[Hashable, int] = {}
    for k in range(len(program.consts)):
        same[-1 - k] = places.setdefault(program.const_key(-1 - k), -1 - k)
    first: dict[Hashable, int] = {}
    kept: list[Kept] = []
    end = len(program.in_types)
    for op, args, made, site in zip(program.ops, program.args, program.types, program.sites):
        start, end = end, end + (len(made) if op.multiple else 1)
        args = tuple([same.get(n, n) for n in args])
        if op.bodied:
            bodies = tuple([common_subexpressions(body) for body in op.bodies])  # type: ignore[attr-defined]
            if any([new is not old for new, old in zip(bodies, op.bodies)]):  # type: ignore[attr-defined]
                op = op.with_bodies(bodies)  # type: ignore[attr-defined]
        if not is_root(op):
            earlier = first.setdefault((op, args, made), start)
            if earlier != start:
                same.update({start + k: earlier + k for k in range(end - start)})
                continue
        kept.append(Kept(op, args, tuple(range(start, end)), made, site))
    outs = [same.get(n, n) for n in program.outs]
    return _assemble(program, (True,) * len(program.in_types), kept, outs)
