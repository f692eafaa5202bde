"""Simplification of programs: dead code elimination and common subexpression elimination.

    dead_code_elimination(p)[0] computes what p computes        effects are kept, in their order
    common_subexpressions(p)    computes what p computes        equal pure equations are performed once

Each is one pass, linear in the size of the program; both enter sub-programs, merge equal constants, and are memoised on
the program. A program that nothing can be removed from is returned itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import BadArgument
from ...effects.core.named_axes import is_root
from ...effects.core.operation import Operation
from ...effects.programs.program import Program, derived_once
from .dependence import Marks, body_dependence


class SimplifiedProgram(NamedTuple):
    """A simplified program, and which inputs of the original one it takes."""

    program: Program
    used_inputs: Marks


class RetainedEquation(NamedTuple):
    """An equation that is kept; operands and results are variable indices of the original program."""

    op: Operation
    args: tuple[int, ...]
    results: tuple[int, ...]
    types: Any
    site: Any


def dead_code_elimination(
    program: Program,
    used_outputs: Sequence[bool] | None = None,
    *,
    instantiate: bool | Sequence[bool] = False,
    whole: Callable[[Any], bool] | None = None,
) -> SimplifiedProgram:
    """The program of the used outputs alone, without the equations, constants and inputs that they do not need.

        q, used = dead_code_elimination(p, used_outputs)
        q(*[x for x, yes in zip(xs, used) if yes]) == tuple(y for y, yes in zip(p(*xs), used_outputs) if yes)

    Effects are performed all the same, in their order.

    Args:
        used_outputs: which outputs are live; all by default.
        instantiate: which inputs to keep though they are dead; True keeps all.
        whole: which operations to keep as they are, though nothing needs their results.

    Raises: BadArgument: ``used_outputs`` has not one entry for each output, or ``instantiate`` not for each input.
    """
    outs = _marks(used_outputs, True, len(program.outs), "used_outputs")
    inputs = (instantiate,) * len(program.in_types) if isinstance(instantiate, bool) else instantiate
    keep = _marks(inputs, False, len(program.in_types), "instantiate")
    return _eliminate(program, outs, keep, whole)


def _marks(marked: Sequence[bool] | None, default: bool, count: int, name: str) -> Marks:
    """A sequence of ``count`` bools; all ``default`` for None. Raises BadArgument: it has another length."""
    marks = (default,) * count if marked is None else tuple(map(bool, marked))
    if len(marks) != count:
        raise BadArgument(f"dead_code_elimination: {name} must have {count} entries, got {len(marks)}.")
    return marks


@derived_once
def _eliminate(
    program: Program, used_outputs: Marks, keep: Marks, whole: Callable[[Any], bool] | None
) -> SimplifiedProgram:
    """``dead_code_elimination`` by a backward pass: ``live[n]`` says whether variable ``n`` is needed."""
    inputs, count = len(program.in_types), program.count
    if all(used_outputs) and len(program.consts) < 2 and _all_needed(program, keep):
        return SimplifiedProgram(program, (True,) * inputs)  # nothing is dead, and there are no two constants to merge
    live = bytearray(count + len(program.consts))  # constants at the end, by their negative numbers
    for n, yes in zip(program.outs, used_outputs):
        live[n] |= yes
    retained: list[RetainedEquation] = []
    end = count
    columns: tuple[Any, ...] = (program.ops, program.args, program.types, program.sites)
    for op, args, types, site in zip(*map(reversed, columns)):
        start = end - (len(types) if op.multiple_results else 1)
        results = tuple(range(start, end))
        end = start
        used = tuple([bool(live[n]) for n in results])
        entire = whole is not None and whole(op)
        if not (any(used) or entire or is_root(op)):
            continue
        if op.bodied and not entire:
            op, used, used_operands = prune_operation(op, used, len(args))
            results, types = _only(results, used), _only(types, used)
            args = _only(args, used_operands)
        for n in args:
            live[n] = 1
        retained.append(RetainedEquation(op, args, results, types, site))
    used_inputs = tuple([bool(live[n]) or keep[n] for n in range(inputs)])
    outs = _only(program.outs, used_outputs)
    return SimplifiedProgram(assemble(program, retained[::-1], outs, used_inputs), used_inputs)


def _all_needed(program: Program, keep: Marks) -> bool:
    """Whether every input, equation and constant is live; False where an operation has several results or bodies."""
    live = bytearray(program.count + len(program.consts))
    for n in program.outs:
        live[n] = 1
    end = program.count
    for op, args in zip(reversed(program.ops), reversed(program.args)):
        end -= 1
        if op.multiple_results or not live[end]:
            return False
        for n in args:
            live[n] = 1
    return all([live[n] or yes for n, yes in enumerate(keep)]) and all(live[program.count :])


def _only(items: Sequence[Any], marks: Sequence[bool]) -> tuple[Any, ...]:
    """The items whose mark is True."""
    return tuple([item for item, yes in zip(items, marks) if yes])


def assemble(
    program: Program, retained: Sequence[RetainedEquation], outs: Sequence[int], used_inputs: Marks | None = None
) -> Program:
    """The program of these equations, with variables renumbered and equal constants merged by first use.

    Its inputs are those that are used, all by default. ``program`` itself where nothing has changed.
    """
    used_inputs = used_inputs or (True,) * len(program.in_types)
    numbers = {n: i for i, n in enumerate(_only(range(len(used_inputs)), used_inputs))}
    consts: list[Any] = []
    const_numbers: dict[Hashable, int] = {}

    def number(n: int) -> int:
        known = numbers.get(n)
        if known is None:  # a constant, seen for the first time
            key = program.const_key(n)
            known = const_numbers.get(key)
            if known is None:
                consts.append(program.consts[-1 - n])
                known = const_numbers[key] = -len(consts)
            numbers[n] = known
        return known

    count = sum(used_inputs)
    args = []
    for equation in retained:
        args.append(tuple([number(n) for n in equation.args]))
        for n in equation.results:
            numbers[n] = count
            count += 1
    new_outs = tuple([number(n) for n in outs])
    ops = tuple([equation.op for equation in retained])
    same = ops == program.ops and tuple(args) == program.args and new_outs == program.outs
    if same and all(used_inputs) and len(consts) == len(program.consts):
        return program
    in_types = _only(program.in_types, used_inputs)
    types, sites = [equation.types for equation in retained], [equation.site for equation in retained]
    return Program(in_types, ops, args, types, new_outs, consts, sites, program.name)


class PrunedOperation(NamedTuple):
    """A simplified higher-order operation, and which results and operands of the original one it has."""

    op: Operation
    used_results: Marks
    used_operands: Marks


def prune_operation(op: Any, used: Marks, operands: int) -> PrunedOperation:
    """A higher-order operation reduced to the used results, and to those that a loop carries for them.

    Where its fields refer to single operands (``prunes`` is false) its signature stays, and only dead code inside the
    bodies is removed. ``operands`` is their number.
    """
    if not op.prunes:
        pruned = op.map_bodies(lambda body: dead_code_elimination(body, instantiate=True).program)
        return PrunedOperation(pruned, (True,) * len(used), (True,) * operands)
    used_inputs, used = body_dependence(op).needed(used)
    new = [dead_code_elimination(test, instantiate=used_inputs).program for test in op.tests]
    new += [dead_code_elimination(body, used, instantiate=used_inputs).program for body in op.main]
    shared, carry = sum(used_inputs[: op.shared]), sum(used[: op.carry])
    fields: dict[str, Any] = {"bodies": tuple(new), "shared": shared, "carry": carry}
    pruned = type(op)(*[fields.get(name, getattr(op, name)) for name in op._names])
    return PrunedOperation(op if pruned == op else pruned, used, ((True,) * op.selects) + used_inputs)


@derived_once
def common_subexpressions(program: Program) -> Program:
    """The program in which equal pure equations on equal operands are performed once, sub-programs too.

        common_subexpressions(p)(*xs) == p(*xs)

    Effects are neither merged nor moved. Value numbering: equations are equal by operation, types, and the numbers of
    their operands, equal ones of which have been replaced by the first.
    """
    same: dict[int, int] = {}  # variable -> the first variable with an equal value
    const_numbers: dict[Hashable, int] = {}
    for k in range(len(program.consts)):
        same[-1 - k] = const_numbers.setdefault(program.const_key(-1 - k), -1 - k)
    first: dict[Hashable, range] = {}
    retained: list[RetainedEquation] = []
    for (op, args, results, _), types, site in zip(program.steps(), program.types, program.sites):
        args = tuple([same.get(n, n) for n in args])
        if op.bodied:
            op = op.map_bodies(common_subexpressions)  # type: ignore[attr-defined]
        if not is_root(op):
            earlier = first.setdefault((op, args, types), results)
            if earlier is not results:
                same.update(zip(results, earlier))
                continue
        retained.append(RetainedEquation(op, args, tuple(results), types, site))
    outs = [same.get(n, n) for n in program.outs]
    return assemble(program, retained, outs)
