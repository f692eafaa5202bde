"""Partial evaluation of operations with bodies: known operations, and a rest that takes residuals.

Each body is split by which of its inputs are unknown; in a loop an input is unknown if it is in any iteration. The
known halves form a known operation of the same kind, the others the rest. Where the rest finds its residuals:

- a residual that a body computes leaves the known operation as an ``out`` and enters the rest as an ``each``: a loop
  stacks it;
- one that is an input of the body is an operand of the operation already: the rest takes that operand;
- one that is a known result of the operation anyway is not stacked a second time;
- one that a loop computes from shared operands alone is the same in every iteration: it is hoisted, that is computed
  once before the loop, and enters the rest as ``shared``.

A ``while`` cannot stack: its known carries are computed by a loop of their own, and the rest is the entire loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import CannotCross
from ...effects.base.stack import BASE, inside, perform
from ...effects.control.branches import Cond
from ...effects.control.checkpoint_policies import (
    Policy,
    everything_saveable,
    nothing_saveable,
    resolved_policy,
)
from ...effects.control.recorded_bodies import may_part, shared_results
from ...effects.core.arrays import scalar
from ...effects.core.columns import zeros_like
from ...effects.core.named_axes import is_root
from ...effects.core.operation import effects_text
from ...effects.operations.elementwise.comparison import gt
from ...effects.programs.higher_order import Call, HigherOrder
from ...effects.programs.program import Program, interpret
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import int32
from ..analysis.dependence import body_dependence, computes_without
from ..analysis.simplify import prune_operation
from ..core.body_transform import transform_body
from ..core.record import Record, record
from .jvp_rules import EffectsPerformed, may_perform

SHARED, CARRY, EACH = range(3)
COUNTER = array_type((), int32)


# Where a residual comes from. ``kind`` makes tuples of different classes unequal.


class Operand(NamedTuple):
    """A residual that is an input, number ``number`` of the known part or operation, so that nothing need be stored."""

    number: int
    kind: str = "operand"


class KnownResult(NamedTuple):
    """A residual that is result ``number`` of the known part."""

    number: int
    kind: str = "known"


class Slot(NamedTuple):
    """A residual that leaves the known bodies as a result of its own, number ``number`` after the known results."""

    number: int
    kind: str = "slot"


class Hoisted(NamedTuple):
    """A residual computed once before the loop: result ``number`` of the operation that is performed there."""

    number: int
    kind: str = "hoisted"


Source = Operand | KnownResult | Slot | Hoisted


def sources_of(residuals: Sequence[int], inputs: int, outs: list[int]) -> tuple[Operand | KnownResult, ...]:
    """The source of each residual, given as a variable of a known part with ``inputs`` inputs and the results ``outs``.

    Residuals that are neither inputs nor results are appended to ``outs``.
    """
    positions = {own: i for i, own in enumerate(outs)}
    for own in residuals:
        if own >= inputs and own not in positions:
            positions[own] = len(outs)
            outs.append(own)
    return tuple([Operand(own) if own < inputs else KnownResult(positions[own]) for own in residuals])


class SplitProgram(NamedTuple):
    """A program in two parts.

    ``known``: from known inputs to known results, then the other residuals that it computes. ``rest``: from residuals,
    then unknown inputs, to unknown results. ``residuals``: the source of each; ``Operand(i)`` is known input ``i``.
    ``unknown``: for each result of the program, whether it is a result of ``rest`` only.
    """

    known: Program
    rest: Program
    residuals: tuple[Operand | KnownResult, ...]
    unknown: tuple[bool, ...]

    def residual_values(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The residuals, from the known inputs and the results of ``known`` on them."""
        return [(inputs if type(x) is Operand else results)[x.number] for x in self.residuals]


class SplitOperation(NamedTuple):
    """An operation in two parts: known operations and the rest, each with the numbers of the values it takes.

    The values are the operands, then the results of the known operations in order. ``rest`` is None if nothing is
    unknown; ``sources``: the values it takes. ``results``: for each result of the operation its number among the
    values, or None where it is unknown; and its number among the results of the rest, or None.
    """

    known: tuple[tuple[Any, tuple[int, ...]], ...]
    rest: Any
    sources: tuple[int, ...]
    results: tuple[tuple[int | None, Any], ...]


class BodyTypes(NamedTuple):
    """The types of the inputs of the bodies that are split; ``shared`` and ``carry`` count those of these groups."""

    inputs: tuple[ArrayType, ...]
    shared: int
    carry: int


def split_bodies(
    op: HigherOrder, unknown: Sequence[bool], policy: Policy | None, ordered: bool,
    split_program: Callable[..., SplitProgram],
) -> SplitOperation:
    """The two parts of an operation, by which operands are unknown; ``split_program`` does the same for a program.

    ``ordered``: effects of one class keep their order.

    Under a policy from outside, the rest has every result, known ones too, for consumers that may not save them. Under
    the operation's own policy (``checkpoint``) it has the unknown ones: consumers outside may save the others.

    Of branches in which lanes meet nothing is saved: residuals are those of the branch that a lane has chosen, and its
    derivative has a part in the collectives of the others too.
    """
    all_results = policy is not None or (op.saves is not None and op.loops)
    policy = op.saves if policy is None else policy
    if op.runs == "one" and may_part(op.bodies):
        policy = nothing_saveable
    if op.scopes:
        return _split_scoped(op, unknown, policy, ordered, split_program)
    if not op.prunes or any(unknown[: op.selects]):
        return _all_unknown(op, len(unknown))
    body = body_dependence(op, ordered)
    reached = body.reached(unknown)
    if op.runs == "until":
        return _all_unknown(op, len(unknown)) if reached.test else _split_while(op, unknown, reached.results, policy)
    if policy is None and not op.effects and body.entire(reached.inputs):
        return _all_unknown(op, len(unknown))
    late = body.late_effects(reached.inputs) if ordered else None
    halves = [split_program(body, reached.inputs, reached.results, policy, all_results, late) for body in op.bodies]
    types = BodyTypes(op.bodies[0].in_types, op.shared, op.carry)
    return Assembly(op, types, reached.inputs, reached.results, halves, all_results, split_program).parts()


def _all_unknown(op: HigherOrder, count: int) -> SplitOperation:
    """The partition in which nothing is known, the rest is the operation itself; ``count``: the number of operands."""
    results = len(op.main[0].outs)
    return SplitOperation((), op, tuple(range(count)), tuple([(None, i) for i in range(results)]))


def _split_scoped(
    op: Any, unknown: Sequence[bool], policy: Policy | None, ordered: bool, split_program: Callable[..., SplitProgram]
) -> SplitOperation:
    """A scoped effect is split as a branch whose index becomes known when it is performed.

    The known part is the effect over known bodies, each of which gives its number too; the rest is the branch of that
    number, and performs nothing. Where a clause may compute with what they return, the effect is not split.
    """
    count = len(unknown)
    if not op.passes_on:
        return _all_unknown(op, count)
    parts = split_bodies(Cond(op.bodies, op.shared), (False, *unknown), policy, ordered, split_program)
    if not parts.known or (parts.rest is not None and is_root(parts.rest)):
        return _all_unknown(op, count)
    ((branch, sources),) = parts.known
    index = count + len(branch.bodies[0].outs)
    known = op.with_bodies(list(map(_numbered, branch.bodies, range(op.scopes))), shared=branch.shared, tree=None)
    renumber = lambda n: index if n == 0 else n - 1  # the branch has one operand more
    results = tuple([(None if first is None else renumber(first), later) for first, later in parts.results])
    operands = tuple(map(renumber, sources[1:]))
    return SplitOperation(((known, operands),), parts.rest, tuple(map(renumber, parts.sources)), results)


def _numbered(body: Program, number: int) -> Program:
    """The body with one more result, last: its number."""
    return record(lambda *xs: [*interpret(body, xs), scalar(number, int32)], body.in_types, body.name)


def _split_while(
    op: Any, unknown: Sequence[bool], unknown_carry: Sequence[bool], policy: Policy | None
) -> SplitOperation:
    """A while loop whose test is known: a loop over the known carries; the rest is the entire loop.

    Where the loop has slots for its reverse mode, the known loop counts its iterations, and the rest is executed that
    many times, so that reverse mode need not count them. Effects are performed by the known loop alone.

    Raises: CannotCross: an effect depends on an unknown carry, or has results: the rest would perform it again.
    """
    known, used, operands = prune_operation(op, tuple([not yes for yes in unknown_carry]), len(unknown))
    rest = _without_effects(op) if may_perform(op) else op
    if is_root(op) and any([a and b for a, b in zip(operands, unknown)]):
        raise _performed_twice(op.name, *op.effects)
    performed = any(used) or is_root(known)
    sources = [i for i, yes in enumerate(operands) if yes]
    numbers = {i: k for k, i in enumerate([i for i, yes in enumerate(used) if yes], len(unknown))}
    all_results = policy is not None
    results = tuple(
        [(None, i) if yes else (numbers[i], i if all_results else None) for i, yes in enumerate(unknown_carry)]
    )
    parts = ((known, tuple(sources)),) if performed else ()
    if rest is not op and not all_results and not any(unknown_carry):
        return SplitOperation(parts, None, (), results)
    rest_sources = list(range(len(unknown)))
    if op.slots and not all_results and any(used):
        with inside(BASE):
            parts, rest = ((_counted(known), tuple(sources)),), _countdown(rest)
        rest_sources.append(len(unknown) + len(numbers))
    return SplitOperation(parts, rest, tuple(rest_sources), results)


class PerformedByKnownLoop(EffectsPerformed):
    """The handler of the rest of a while loop, whose effects the loop over the known carries has performed."""

    __slots__ = ()

    def lost(self, op: Any) -> CannotCross:
        return _performed_twice(self.label, op)


def _performed_twice(loop: str, *effects: Any) -> CannotCross:
    return CannotCross(
        f"{loop}: what it performs, {effects_text(effects)}, would be performed a second time "
        "by the linear part: the number of its results to save is unbounded.",
        hint="handle it inside, grad(hx.handle(h)(f)), and give while_loop max_steps=; or use scan, or fori_loop with "
        "constant bounds.",
    )


def _without_effects(op: Any) -> Any:
    """The loop without its effects, those of its functions with rules and of their rules included.

    Raises: CannotCross: an effect has results.
    """
    run = PerformedByKnownLoop(BASE, op.name)
    return op.with_bodies([transform_body(run, body, [None] * len(body.in_types)).program for body in op.bodies])


def _counted(op: Any) -> Call:
    """The loop with one more result: the number of its iterations."""
    test, body = op.bodies
    tested = record(lambda *xs: interpret(test, xs[:-1]), [*test.in_types, COUNTER], test.name)
    step = record(lambda *xs: [*interpret(body, xs[:-1]), xs[-1] + 1], [*body.in_types, COUNTER], body.name)
    loop = op.with_bodies((tested, step), carry=op.carry + 1)
    return Call((record(lambda *xs: perform(loop, *xs, scalar(0, int32)), body.in_types, "counted"),), "counted")


def _countdown(op: Any) -> Any:
    """The loop with the number of iterations as its last operand instead of a test."""
    body = op.bodies[1]
    types = [*body.in_types, COUNTER]
    test = record(lambda *xs: [gt(xs[-1], 0)], types, "countdown")
    step = record(lambda *xs: [*interpret(body, xs[:-1]), xs[-1] - 1], types, body.name)
    return op.with_bodies((test, step), carry=op.carry + 1)


class Assembly:
    """Assembles the split bodies of one operation into known operations and a rest.

    ``op``: an operation of the same kind. ``types``: of the inputs of the bodies; ``unknown``: which of them are
    unknown; ``unknown_results``: which results. ``halves``: the split bodies. ``all_results``: whether the rest has
    known results too.
    """

    def __init__(
        self,
        op: HigherOrder,
        types: BodyTypes,
        unknown: Sequence[bool],
        unknown_results: Sequence[bool],
        halves: Sequence[SplitProgram],
        all_results: bool,
        split_program: Callable[..., SplitProgram],
    ):
        self.op = op
        self.types = types
        self.unknown = unknown
        self.unknown_results = unknown_results
        self.halves = halves
        self.all_results = all_results
        self.split_program = split_program
        self.inputs = [k for k, yes in enumerate(unknown) if not yes]  # the known inputs of a body
        self.outs = len(unknown_results) - sum(unknown_results)  # the number of known results
        self.results = range(types.carry - sum(unknown_results[: types.carry]), self.outs)  # known results not carried
        self.slots: list[ArrayType] = []  # types of the residuals that leave the bodies: branches share slots
        self.hoisted: Any = None  # the operation performed before a loop, and its operands
        self.renamed: dict[Source, Source] = {}  # slot -> its source after hoisting
        counts = (types.shared, types.carry, len(unknown) - types.shared - types.carry)
        self.group = [group for group, count in enumerate(counts) for _ in range(count)]  # of each input of a body

    def parts(self) -> SplitOperation:
        """The known operations and the rest."""
        op = self.op
        found = [self.residual_sources(half) for half in self.halves]
        self.slots, numbers_of = shared_results([[t for t, _ in residuals] for _, residuals in found])
        leaving, rests = [], []
        for half, (origins, residuals), slot_numbers in zip(self.halves, found, numbers_of):
            slots = {Slot(k): number for k, (_, number) in zip(slot_numbers, residuals)}
            leaving.append(slots)
            filled = iter(slots)
            inputs: list[Source] = [next(filled) if x is None else x for x in origins]
            rests.append((half.rest, [*inputs, *[Operand(k) for k, yes in enumerate(self.unknown) if yes]]))
        bodies = [self.known_body(half.known, slots) for half, slots in zip(self.halves, leaving)]
        known_sources, counts = [k + op.selects for k in self.inputs], self.counts(self.inputs)
        operands = op.selects + len(self.unknown)  # the results of known operations are numbered after the operands
        operations: list[tuple[Any, tuple[int, ...]]] = []
        if op.runs == "loop" and not any(map(is_root, bodies[0].ops)):
            bodies, known_sources, counts = self.hoist(bodies[0], known_sources, counts, operands)
        start = operands
        if self.hoisted is not None:
            operations.append(self.hoisted)
            start += len(self.hoisted[0].bodies[0].outs)
        selects = tuple(range(op.selects))
        known_op = op.with_bodies(bodies, **counts)
        if bodies[0].outs or is_root(known_op):
            operations.append((known_op, (*selects, *known_sources)))
        starts = {Operand: op.selects, Hoisted: operands, KnownResult: start, Slot: start + self.outs}
        if self.renamed:
            rests = [(program, [self.renamed.get(x, x) for x in xs]) for program, xs in rests]
        rest, sources = self.rest_operation(rests)
        numbers = () if rest is None else (*selects, *[starts[type(x)] + x.number for x in sources])
        known_numbers, rest_numbers = iter(range(start, start + self.outs)), iter(range(len(self.unknown_results)))
        results = [
            (None if yes else next(known_numbers), next(rest_numbers) if yes or self.all_results else None)
            for yes in self.unknown_results
        ]
        return SplitOperation(tuple(operations), rest, numbers, tuple(results))

    def counts(self, inputs: Sequence[int]) -> dict[str, int]:
        """The fields ``shared`` and ``carry`` of an operation whose bodies take exactly these inputs."""
        groups = [self.group[k] for k in inputs]
        return {"shared": groups.count(SHARED), "carry": groups.count(CARRY)}

    def residual_sources(self, half: SplitProgram) -> tuple[list[Source | None], list[tuple[ArrayType, int]]]:
        """The source of each residual of a body, None for a slot; and for each slot the type and the variable.

        A known carry is a residual that differs from iteration to iteration: it leaves by a slot, unless the rest
        carries it again.
        """
        leaving: list[tuple[ArrayType, int]] = []
        sources: list[Source | None] = []
        known = half.known
        for residual in half.residuals:
            is_input, n = type(residual) is Operand, residual.number
            if is_input and (self.group[self.inputs[n]] != CARRY or self.all_results):
                sources.append(Operand(self.inputs[n]))
            elif not is_input and self.is_result(n):
                sources.append(residual)
            else:
                leaving.append((known.in_types[n], n) if is_input else (known.out_types[n], known.outs[n]))
                sources.append(None)
        return sources, leaving

    def is_result(self, n: int) -> bool:
        """Whether result ``n`` of the only known body is an ``out`` of the operation, so that it needs no slot."""
        return len(self.halves) == 1 and n in self.results

    def known_body(self, program: Program, leaving: dict[Slot, int]) -> Program:
        """The known half of a body with its known results, then the slots: zeros in those of other branches."""
        outs = program.outs[: self.outs]
        if len(leaving) == len(self.slots):
            return program.with_outs([*outs, *[leaving[slot] for slot in sorted(leaving)]])
        with_residuals = program.with_outs([*outs, *leaving.values()])
        recorder = Record(BASE, "")
        inputs = recorder.inputs(with_residuals.in_types)
        with inside(recorder):
            results = interpret(with_residuals, inputs)
            filled = dict(zip(leaving, results[len(outs) :]))
            slots = map(Slot, range(len(self.slots)))
            slot_values = [filled[slot] if slot in filled else zeros_like(t) for slot, t in zip(slots, self.slots)]
        return recorder.freeze([*results[: len(outs)], *slot_values], program.name)

    def hoist(self, body: Program, sources: list[int], counts: dict[str, int], operands: int) -> Any:
        """Loop-invariant code motion: compute once, before the loop, what the body computes from shared operands alone.

        The known body is split again, its shared inputs known. Returns the bodies, the numbers of their operands and
        their counts; sets ``hoisted`` and ``renamed``. ``operands``: the number of the first hoisted result.
        """
        shared = counts["shared"]
        varying = [k >= shared for k in range(len(body.in_types))]
        if not computes_without(body, varying):
            return [body], sources, counts
        forced = [True] * self.outs + [False] * len(self.slots)
        half = self.split_program(body, varying, forced, everything_saveable, False)
        in_loop = half.unknown[self.outs :]  # which slots still leave the loop
        slot_numbers, hoisted_numbers = (iter(range(len(in_loop))) for _ in range(2))
        moved = [Slot(next(slot_numbers)) if yes else Hoisted(next(hoisted_numbers)) for yes in in_loop]
        self.renamed = {Slot(i): source for i, source in enumerate(moved)}
        if not half.known.outs:
            return [body], sources, counts
        self.hoisted = (Call((half.known,), "invariant", False), tuple(sources[:shared]))
        inner = [sources[x.number] if type(x) is Operand else operands + x.number for x in half.residuals]
        return [half.rest], [*inner, *sources[shared:]], {**counts, "shared": len(inner)}

    def rest_operation(self, rests: Sequence[tuple[Program, list[Source]]]) -> tuple[Any, list[Source]]:
        """The rest and the sources of its operands, in the order of their groups; None where it computes nothing."""
        op, group = self.op, self.group
        groups: tuple[dict[Source, ArrayType], ...] = ({}, {}, {})
        for k, (yes, t) in enumerate(zip(self.unknown, self.types.inputs)):
            if group[k] == CARRY and (yes or self.all_results):  # in the order of the results
                groups[CARRY][Operand(k)] = t
        for program, sources in rests:
            for x, t in zip(sources, program.in_types):
                source_group = group[x.number] if type(x) is Operand else SHARED if type(x) is Hoisted else EACH
                groups[source_group].setdefault(x, t)
        if not rests[0][0].outs and not any([is_root(inner) for program, _ in rests for inner in program.ops]):
            return None, []
        all_sources = {**groups[SHARED], **groups[CARRY], **groups[EACH]}
        types, order = tuple(all_sources.values()), {x: i for i, x in enumerate(all_sources)}
        bodies = [program.rewired(types, [order[x] for x in sources]) for program, sources in rests]
        fields = {} if op.saves is None else {"policy": resolved_policy(op.saves, op.bodies[0], self.unknown)}
        rest = op.with_bodies(bodies, shared=len(groups[SHARED]), carry=len(groups[CARRY]), **fields)
        return rest, list(all_sources)
