"""An operation with bodies in two parts: the known one, and the rest, which takes residuals.

A residual that a body computes leaves the known part as ``out`` and enters the rest as ``each``. One that the body did
not make, an operand, is passed on as what it is, and one that leaves anyhow, as a result, leaves once. In a loop, one
that is the same in every run is computed once, before the loop, and is ``shared``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects.arrays import scalar
from ..effects.columns import zeros_like
from ..effects.comparison import gt
from ..effects.control import Call, HigherOrder
from ..effects.dtypes import int32
from ..effects.errors import CannotCross
from ..effects.policies import Policy, everything_saveable, settled
from ..effects.programs import Program, interpret
from ..effects.shapes import BroadcastInDim
from ..effects.sources import Sites
from ..effects.stack import BASE, inside, perform
from ..effects.types import ArrayType, array_type
from .dependence import dependent_inputs, dependent_test, dependent_values, entirely_dependent, results_by_inputs
from .record import Record, record
from .simplify import is_root, prune_operation

# (True, k) is input ``k`` of a body, (False, s) the residual in slot ``s``, (False, -1 - p) known result ``p``
Key = tuple[bool, int]
SHARED, CARRY, EACH = range(3)
COUNTER = array_type((), int32)


class Halves(NamedTuple):
    """A program in two parts, as ``partial_eval.Split`` says."""

    known: Program
    rest: Program
    residuals: tuple[tuple[bool, int], ...]
    unknown: tuple[bool, ...]


class Parts(NamedTuple):
    """An operation in two parts: the known operations, and the rest, each with the numbers of the values that it takes.

    Values are the operands, then what the known operations give. ``results``: for each result its number among the
    values, or None, and among those of the rest.
    """

    known: tuple[tuple[Any, tuple[int, ...]], ...]
    rest: Any
    sources: tuple[int, ...]
    results: tuple[tuple[int | None, Any], ...]


def split(op: HigherOrder, unknown: Sequence[bool], policy: Policy | None, halve: Callable[..., Halves]) -> Parts:
    """The two parts, by which operands are unknown; ``halve`` does the same for programs.

    Under a policy from outside the rest gives every result, known ones too, for those that may not take them. Under the
    operation's own it gives the unknown ones: what lies outside keeps all that it needs.
    """
    again = policy is not None or (op.saves is not None and op.loops)
    policy = op.saves if policy is None else policy
    if not op.prunes or any(unknown[: op.selects]):
        return _whole(op, len(unknown))
    if op.runs == "until":
        return _until(op, unknown, policy)
    inner = dependent_inputs(op, unknown)
    if policy is None and not op.effects and entirely_dependent(op, inner):
        return _whole(op, len(unknown))
    wanted = results_by_inputs(op, inner)
    halves = [halve(body, inner, wanted, policy, again) for body in op.bodies]
    return _Assembly(op, inner, wanted, halves, again, halve).parts()


def _whole(op: HigherOrder, count: int) -> Parts:
    """Everything is unknown."""
    results = len(op.main[0].outs)
    return Parts((), op, tuple(range(count)), tuple([(None, i) for i in range(results)]))


def _until(op: Any, unknown: Sequence[bool], policy: Policy | None) -> Parts:
    """The carries that are known go round alone. The rest is the whole loop, since nothing stacks what it needs.

    Where the loop has slots its runs are counted on the way, and the rest runs so many times: its reverse mode need not
    find out again. Effects are performed by the known part alone.
    """
    if dependent_test(op, unknown):
        return _whole(op, len(unknown))
    moving = dependent_inputs(op, unknown)[op.shared :]
    known, used, operands = prune_operation(op, tuple([not yes for yes in moving]), len(unknown))
    rest = op.with_bodies([_silent(body) for body in op.bodies]) if is_root(op) else op
    if is_root(rest) or (rest is not op and any([a and b for a, b in zip(operands, unknown)])):
        raise CannotCross(
            f"{op.name}: what it performs, {', '.join(sorted(map(str, op.effects)))}, would be performed a second time "
            "by the linear part: nothing bounds how much of it there would be to keep.",
            hint="handle it inside: grad(hx.handle(h)(f)); or use scan, or fori_loop with constant bounds.",
        )
    performed = any(used) or is_root(known)
    sources = [i for i, yes in enumerate(operands) if yes]
    places = {i: k for k, i in enumerate([i for i, yes in enumerate(used) if yes], len(unknown))}
    again = policy is not None
    results = tuple([(None, i) if yes else (places[i], i if again else None) for i, yes in enumerate(moving)])
    parts = ((known, tuple(sources)),) if performed else ()
    if rest is not op and not again and not any(moving):
        return Parts(parts, None, (), results)
    everything = list(range(len(unknown)))
    if op.slots and not again and any(used):
        with inside(BASE):
            parts, rest = ((_counted(known), tuple(sources)),), _countdown(rest)
        everything.append(len(unknown) + len(places))
    return Parts(parts, rest, tuple(everything), results)


def _silent(program: Program) -> Program:
    """The program without effects that give nothing, in its sub-programs too; those whose results are used stay."""
    if not program.effects:
        return program
    found = program._cache.get("silent")
    if found is None:
        found = program._cache["silent"] = _silenced(program)
    return found


def _silenced(program: Program) -> Program:
    ops, args, types, sites = [], [], [], Sites()
    for op, operands, made, site in zip(program.ops, program.args, program.types, program.sites):
        if op.effectful and op.multiple and not made:
            continue  # what has no results has no number either
        inner = op.bodied and not op.late and is_root(op)
        ops.append(op.with_bodies([_silent(body) for body in op.bodies]) if inner else op)  # type: ignore[attr-defined]
        args.append(operands)
        types.append(made)
        sites.append(site)
    return Program(program.in_types, ops, args, types, program.outs, program.consts, sites, program.name)


def _counted(op: Any) -> Call:
    """The loop, which gives the number of its runs too."""
    test, body = op.bodies
    tested = record(lambda *xs: interpret(test, xs[:-1]), [*test.in_types, COUNTER], test.name)
    step = record(lambda *xs: [*interpret(body, xs[:-1]), xs[-1] + 1], [*body.in_types, COUNTER], body.name)
    loop = op.with_bodies((tested, step), carry=op.carry + 1)
    return Call((record(lambda *xs: perform(loop, *xs, scalar(0, int32)), body.in_types, "counted"),), "counted")


def _countdown(op: Any) -> Any:
    """The same loop for a known number of runs, its last operand."""
    body = op.bodies[1]
    types = [*body.in_types, COUNTER]
    test = record(lambda *xs: [gt(xs[-1], 0)], types, "countdown")
    step = record(lambda *xs: [*interpret(body, xs[:-1]), xs[-1] - 1], types, body.name)
    return op.with_bodies((test, step), carry=op.carry + 1)


def _has_invariants(body: Program, moving: Sequence[bool]) -> bool:
    """Whether a body computes anything without the inputs marked, but broadcasts: these are cheaper to repeat."""
    values, at = dependent_values(body, moving), len(body.in_types)
    for op, made in zip(body.ops, body.types):
        if not values[at] and not isinstance(op, BroadcastInDim):
            return True
        at += len(made) if op.multiple else 1
    return False


class _Assembly:
    """Puts the halves of all bodies together again as two operations."""

    def __init__(
        self,
        op: HigherOrder,
        unknown: Sequence[bool],
        wanted: Sequence[bool],
        halves: Sequence[Halves],
        again: bool,
        halve: Callable[..., Halves],
    ):
        self.op = op
        self.unknown = unknown
        self.wanted = wanted
        self.halves = halves
        self.again = again
        self.halve = halve
        self.hoisted: dict[int, int] = {}  # slot -> result of ``before``
        self.kept: dict[int, int] = {}  # slot -> its place among those that still leave the loop
        self.inputs = [k for k, yes in enumerate(unknown) if not yes]  # numbers of the known inputs of a body
        self.outs = len(wanted) - sum(wanted)  # known results
        self.slots: list[ArrayType] = []  # types of the residuals that leave the bodies
        self.before: tuple[Any, tuple[int, ...]] | None = None
        self.count = op.selects + len(unknown)  # operands: what the known part gives is numbered behind them
        counts = (op.shared, op.carry, len(unknown) - op.shared - op.carry)
        self.group = [group for group, count in enumerate(counts) for _ in range(count)]  # of each input of a body

    def parts(self) -> Parts:
        op = self.op
        known, rests = [], []
        for half in self.halves:
            leaving, keys = self.residual_keys(half)
            keys += [(True, k) for k, yes in enumerate(self.unknown) if yes]
            known.append((half.known, leaving))
            rests.append((half.rest, keys))
        first = [k + op.selects for k in self.inputs]
        bodies = [self.known_body(program, leaving) for program, leaving in known]
        counts = self.counts(self.inputs)
        if op.runs == "loop" and not any(map(is_root, bodies[0].ops)):
            bodies, first, counts = self.hoist(bodies[0], first, counts)
        shift = self.count if self.before is None else self.count + len(self.before[0].bodies[0].outs)
        selects = list(range(op.selects))
        operations = [] if self.before is None else [self.before]
        known_op = op.with_bodies(bodies, **counts)
        if bodies[0].outs or is_root(known_op):
            operations.append((known_op, (*selects, *first)))
        rest, sources = self.rest_operation(rests, shift)
        found, later = iter(range(shift, shift + len(self.wanted))), iter(range(len(self.wanted)))
        results = [(None if yes else next(found), next(later) if yes or self.again else None) for yes in self.wanted]
        return Parts(tuple(operations), rest, (*selects, *sources) if rest is not None else (), tuple(results))

    def counts(self, inputs: Sequence[int]) -> dict[str, int]:
        groups = [self.group[k] for k in inputs]
        return {"shared": groups.count(SHARED), "carry": groups.count(CARRY)}

    def residual_keys(self, half: Halves) -> tuple[dict[int, int], list[Key]]:
        """What leaves the body, slot -> number in the known half, and for each residual where the rest finds it."""
        leaving: dict[int, int] = {}
        keys: list[Key] = []
        for given, n in half.residuals:
            if given and (self.group[self.inputs[n]] != CARRY or self.again):
                keys.append((True, self.inputs[n]))
                continue
            if not given and self.leaves(n):
                keys.append((False, -1 - n))
                continue
            number = n if given else half.known.outs[n]
            slot = self.slot(half.known.type_of(number), leaving)
            leaving[slot] = number
            keys.append((False, slot))
        return leaving, keys

    def leaves(self, n: int) -> bool:
        """Whether result ``n`` of the only known body is one of the operation, and the rest may take it from there."""
        carried = self.op.carry - sum(self.wanted[: self.op.carry])
        return len(self.halves) == 1 and carried <= n < self.outs

    def slot(self, type: ArrayType, taken: dict[int, int]) -> int:
        """A place for a residual of this type; branches, of which one runs, share them."""
        for slot, kind in enumerate(self.slots):
            if kind is type and slot not in taken:
                return slot
        self.slots.append(type)
        return len(self.slots) - 1

    def known_body(self, program: Program, leaving: dict[int, int]) -> Program:
        """Known results, then what is in the slots; zeros in those of other branches."""
        outs = program.outs[: self.outs]
        if len(leaving) == len(self.slots):
            return program.with_outs([*outs, *[leaving[slot] for slot in range(len(self.slots))]])
        whole = program.with_outs([*outs, *leaving.values()])
        recorder = Record(BASE, "")
        inputs = [recorder.input(t) for t in whole.in_types]
        with inside(recorder):
            results = interpret(whole, inputs)
            filled = dict(zip(leaving, results[len(outs) :]))
            made = [filled[s] if s in filled else zeros_like(t) for s, t in enumerate(self.slots)]
        return recorder.freeze([*results[: len(outs)], *made], program.name)

    def hoist(self, body: Program, sources: list[int], counts: dict[str, int]) -> Any:
        """What a loop's body computes from shared operands alone is computed once, before it."""
        shared = counts["shared"]
        moving = [k >= shared for k in range(len(body.in_types))]
        if not _has_invariants(body, moving):
            return [body], sources, counts
        forced = [True] * self.outs + [False] * len(self.slots)
        half = self.halve(body, moving, forced, everything_saveable, False)
        kept = [n for n, yes in enumerate(half.unknown[self.outs :]) if yes]  # slots that still leave the loop
        gone = [n for n, yes in enumerate(half.unknown[self.outs :]) if not yes]
        self.hoisted = {slot: j for j, slot in enumerate(gone)}
        self.kept = {slot: j for j, slot in enumerate(kept)}
        if not half.known.outs:
            return [body], sources, counts
        self.before = (Call((half.known,), "invariant", False), tuple(sources[:shared]))
        inner = [sources[n] if given else self.count + n for given, n in half.residuals]
        return [half.rest], [*inner, *sources[shared:]], {**counts, "shared": len(inner)}

    def rest_operation(self, rests: Sequence[tuple[Program, list[Key]]], shift: int) -> tuple[Any, list[int]]:
        """The rest, over its operands in their groups."""
        op, group = self.op, self.group
        groups: tuple[dict[Key, ArrayType], ...] = ({}, {}, {})
        for k, (yes, t) in enumerate(zip(self.unknown, op.bodies[0].in_types)):
            if yes or (self.again and group[k] == CARRY):
                groups[group[k]][True, k] = t
        for program, keys in rests:
            for key, t in zip(keys, program.in_types):
                given, n = key
                groups[group[n] if given else SHARED if n in self.hoisted else EACH].setdefault(key, t)
        if not rests[0][0].outs and not any([is_root(inner) for program, _ in rests for inner in program.ops]):
            return None, []
        whole = {**groups[SHARED], **groups[CARRY], **groups[EACH]}
        types, order = tuple(whole.values()), {key: i for i, key in enumerate(whole)}
        bodies = [program.rewired(types, [order[key] for key in keys]) for program, keys in rests]
        fields = {} if op.saves is None else {"policy": settled(op.saves, op.bodies[0], self.unknown)}
        made = op.with_bodies(bodies, shared=len(groups[SHARED]), carry=len(groups[CARRY]), **fields)
        return made, [self.source(key, shift) for key in whole]

    def source(self, key: Key, shift: int) -> int:
        given, n = key
        if given:
            return n + self.op.selects
        if n < 0:
            return shift - 1 - n
        if n in self.hoisted:
            return self.count + self.hoisted[n]
        return shift + self.outs + (self.kept[n] if self.hoisted else n)
