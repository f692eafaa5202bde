"""Body transformation: the default law by which a handler crosses a higher-order operation.

    operands = selects + shared + carry + each,   body : shared + carry + each -> carry + out

A handler crosses an operation by performing the same operation, outside, over transformed bodies. Each body is
interpreted under a fresh run of the handler over a record; what is recorded is the transformed body. A value of the
handler enters and leaves a body as its parts: a jvp box, for example, as primal and tangent. Values are classified by
marks, static descriptions of how a value is partitioned. In a loop the marks of the carries, and the types of a state
that travels with them, are the least fixed point of the body: from the marks of the operands upwards, until no carry's
mark changes.

The two sides are independent. An operation declares the groups of its operands (``effects.programs.higher_order``) and
names no handler; a handler defines marks and parts (``split``, ``box``, ``force`` of ``BodyTransformer``) and how its
state moves (``StateFlow``), and names no operation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ...effects.base import config
from ...effects.base.caches import AttachedCache, Part
from ...effects.base.errors import CannotCross, MissingRule
from ...effects.base.later_layers import LaterLayers
from ...effects.base.source_locations import labels_of
from ...effects.base.stack import BASE, Run, at_site, inside
from ...effects.core.arrays import as_array
from ...effects.core.columns import DECOMPOSE, zeros_like
from ...effects.core.named_axes import Bound, is_root, under
from ...effects.core.operation import with_memo
from ...effects.operations.elementwise.conversion import as_type
from ...effects.operations.manipulation.slicing import axis_at
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program, interpret
from ...effects.programs.program_cache import ProgramCache
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from .record import Record
from .state_flow import STATELESS, Mark, RequiredSignature, StateFlow, StateLayout, TransformedBody

_ROUNDS = 64  # within which the marks of a loop's carries reach their fixed point; the package's own need five
_BODIES = ProgramCache("transform_body")
"""Bodies as a handler transforms them, by handler, body, marks of inputs and wanted results, and settings."""
_OPERATIONS = ProgramCache("cross")
"""Operations with the bodies that a handler transformed, by handler, operation, marks and settings."""
INNER_BODIES = AttachedCache("bodies within a body", None)
"""Transformed bodies whose effects an outer handler may answer, kept while the outermost body is transformed."""


class BodyTransformContext(NamedTuple):
    """How a handler transformed the body of an operation, so that the operation's deferred rules are transformed alike.

    The operands of the transformed operation are ``extra`` captured values, the parts of the original operands, and
    the state. ``body``: the original body; ``marks``, ``result_marks``: the marks of its inputs and of its results.
    """

    run: Any
    flow: StateFlow
    extra: int
    body: Program
    marks: Sequence[Mark]
    result_marks: Sequence[Mark]
    state_layout: StateLayout


class BodyTransformer(Run):
    """A run that crosses higher-order operations by ``cross``.

    Subclasses define marks and parts. Laws: ``box(*split(x))`` is ``x``; ``force(x, m)`` has types
    ``part_types(m, x.type)``; ``join`` and ``carried`` only move up in a finite order of marks, so that the fixed point
    of a loop exists, and is reached in few rounds.
    """

    __slots__ = ("bodies", "reader")
    bodies: Part  # those in the body that this run transforms; unset at the outermost body
    reader: Any  # its ``flow`` lets a deferred rule read this run's state, but not change it; unset elsewhere

    def fresh(self, outer: Run) -> Any:
        """A new run of the same handler over ``outer``."""
        return type(self)(outer, self.label)

    def again(self, outer: Run) -> Any:
        """``fresh``, in the same rule, if any."""
        run = self.fresh(outer)
        if hasattr(self, "reader"):
            run.reader = self.reader
        return run

    @property
    def lifts(self) -> bool:
        """Whether constants that it brings into a body become operands, so that bodies with others are equal."""
        return False

    def restrict(self, rule: str, body: Program | None) -> None:
        """Raise if the deferred rule named ``rule`` performed what cannot leave it, unless ``body`` performs it too."""

    def key(self) -> Hashable:
        """The cache key of the handler: all that a transformed body depends on beside the body and its marks.

        None: do not cache.
        """
        return None

    def flow(self, op: HigherOrder) -> StateFlow:
        """How this handler's state crosses ``op``."""
        return STATELESS

    def flow_through(self, op: HigherOrder) -> StateFlow:
        """``flow``, without results where the state may only be read, and an operation would not forward it visibly.

        What a body forwards is a result of its deferred rule, or of the solution of its equation, nevertheless.
        """
        flow = self.flow(op)
        if flow.fixed or not (op.deferred or op.solves) or not hasattr(self, "reader"):
            return flow
        return self.reader.flow(flow)

    def split(self, x: Any) -> tuple[Mark, Sequence[Any]]:
        """The mark of a value and its parts, which are values of the enclosing run."""
        return None, (x,)

    def box(self, mark: Mark, parts: Sequence[Any]) -> Any:
        """The value with this mark and these parts."""
        return parts[0]

    def part_types(self, mark: Mark, type: ArrayType) -> Sequence[ArrayType]:
        """The types of the parts of a value with this mark and type."""
        return (type,)

    def force(self, x: Any, mark: Mark) -> Sequence[Any]:
        """The parts of ``x`` converted to this mark, such as a zero tangent for a value without one."""
        return self.split(x)[1]

    def linear_marks(self, op: Any) -> Sequence[Mark]:
        """Further marks to join with those of the operands and results of a linear map with a deferred rule."""
        return ()

    def mark_of_type(self, mark: Mark, type: ArrayType) -> Mark:
        """``mark``, which belongs to a value of another type, as the mark of a value of this type."""
        return mark

    def tangent(self, x: Any, mark: Mark) -> Any:
        """``x``, a tangent that a user's rule gave to a value with this mark, in a form that ``force`` accepts."""
        return x

    def join(self, marks: Sequence[Mark]) -> Mark:
        """The least mark that values with these marks can all be forced to."""
        return next((mark for mark in marks if mark is not None), None)

    def carried(self, mark: Mark) -> Mark:
        """The mark of a carry of a loop whose initial value, or next value, has this mark."""
        return mark

    def slice(self, mark: Mark, parts: Sequence[Any]) -> tuple[Mark, Sequence[Any]]:
        """For an operand that a loop slices: the mark of its slices, and its parts with the loop's axis first."""
        return mark, parts

    def stack(self, mark: Mark) -> Mark:
        """The mark of a stacked result whose slices have this mark."""
        return mark

    def settle(self, values: Sequence[Any]) -> None:
        """Compute what the handler has deferred of these values, before ``split`` is called on each."""

    def decompose(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Answer an operation by its decomposition into others, which are offered to this handler in turn.

        Raises: MissingRule: its block has no ``decompose``.
        """
        if not DECOMPOSE.has(type(op)):
            raise MissingRule(
                f"{self.label}: {op.name} has neither a rule nor a decomposition.", hint=op.how_to_add("decompose")
            )
        with inside(self):
            return DECOMPOSE.find(type(op))(op, *operands)

    def takes_bodies(self, op: Any) -> bool:
        """Whether a scoped effect may be performed over bodies of parts of this handler's values, or with its state.

        Its clause must not compute with what they return then, as the effect declares by ``bodies``.
        """
        return bool(op.passes_on)

    def crosses(self, op: Any) -> bool:
        """Whether this handler answers an operation without a rule by ``cross``: it has bodies, and may take them."""
        return bool(op.bodied) and (not op.scopes or self.takes_bodies(op))

    def choose(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Answer a conditional or loop whose branch index or test is a value of this handler."""
        raise CannotCross(
            f"{op.name}: it chooses by a value of {self.label}, which only an interpreter with choose can answer.",
            hint=f"stop the value before the choice, or define {type(self).__name__}.choose(self, op, operands), which "
            "gives the results: of all branches together, or of as many iterations as any value takes.",
        )


def transform_body(
    run: BodyTransformer,
    body: Program,
    marks: Sequence[Mark],
    required: RequiredSignature | None = None,
    flow: StateFlow = STATELESS,
    state: Sequence[ArrayType] = (),
    at: tuple[int, int] | None = None,
    binds: Any = None,
) -> TransformedBody:
    """The body under the handler of ``run``: a program from the parts of inputs with these marks to parts of results.

    Results have the marks and state that are ``required``, by default those that the body computes. The state's inputs
    stand before input ``at[0]``, its results before result ``at[1]``; by default both stand last. ``binds``: the axes
    of a mesh that the operation binds in the body.

    Cached unless the handler or its state has no key, or the body performs effects that an outer handler may answer.
    In the latter case the body is cached while the outermost body is transformed, since outer handlers stay the same.
    """
    positions = at or (len(body.in_types), len(body.outs))
    key = run.key()
    flow_key = flow.key()
    signature = None if required is None else (tuple(required.marks), tuple(required.state), *required[2:])
    scope = run.outer.scope
    place = (positions, binds, getattr(run, "reader", None), scope)
    entry = (key, body, tuple(marks), signature, flow_key, tuple(state), place, config.current())
    if key is None or flow_key is None or (body.effects and run.outer is not BASE):
        kept = None if flow_key is None else getattr(run, "bodies", None)
        here = (entry, id(body), *_labels(run))  # equal bodies differ in the lines and scopes that a clause may ask for
        transformed = None if kept is None else kept.get(entry) or kept.get(here)
        if transformed is not None:
            return transformed
        transformed = _transform(run, body, marks, required, flow, state, positions, binds, run.outer)
        found_by = here if transformed.located else entry
        return transformed if kept is None else INNER_BODIES.add(kept, found_by, transformed)
    outer = under(BASE, scope)
    return _BODIES.get(entry, lambda: _transform(run, body, marks, required, flow, state, positions, binds, outer))


def _labels(run: Run) -> tuple[str, ...]:
    """The labels that surround the body of the operation that ``run`` answers."""
    at = run.cell.site
    return (() if at is None else labels_of(at)) + run.outer.surroundings


def _transform(
    run: BodyTransformer,
    body: Program,
    marks: Sequence[Mark],
    required: RequiredSignature | None,
    flow: StateFlow,
    state: Sequence[ArrayType],
    positions: tuple[int, int],
    binds: Any,
    outer: Run,
) -> TransformedBody:
    """``transform_body``, uncached: interprets the body under a new run of the handler, over a new record."""
    recorder = Record(outer if binds is None else Bound(outer, binds), "", run.site, run)
    inner = run.again(recorder)
    inner.site = run.site
    shared = getattr(run, "bodies", None) if outer is run.outer else None
    inner.bodies = INNER_BODIES.new_part() if shared is None else shared
    state_input, state_result = positions
    inputs = []
    if run.lifts:
        body = recorder.apart(body)
    try:
        for i, (mark, t) in enumerate([*zip(marks, body.in_types), (None, None)]):
            if i == state_input:
                with inside(recorder):
                    flow.begin(inner, recorder.inputs(state))
            if t is not None:
                inputs.append(inner.box(mark, recorder.inputs(inner.part_types(mark, t))))
        with inside(inner), at_site(None, recorder.cell):
            results = interpret(body, inputs)
        with inside(recorder):
            ends, structure = flow.end(inner)
            inner.settle(results)
            out_marks = [inner.split(y)[0] for y in results] if required is None else required.marks
            groups = [_typed(inner, y, mark, t) for y, mark, t in zip(results, out_marks, body.out_types)]
            groups.insert(state_result, ends if required is None else _padded(ends, required))
            program = recorder.freeze([part for parts in groups for part in parts], body.name)
            ends_with = tuple([x.type for x in ends])
            brought = recorder.brought(program)
            return TransformedBody(program, tuple(out_marks), ends_with, structure, recorder.located, brought)
    finally:
        inner.ended = recorder.ended = True


def _typed(run: BodyTransformer, y: Any, mark: Mark, type: ArrayType) -> Sequence[Any]:
    """The parts of a result under ``mark``, converted to ``run.part_types(mark, type)``."""
    return [as_type(x, t) for x, t in zip(run.force(y, mark), run.part_types(mark, type))]


def _padded(ends: Sequence[Any], required: RequiredSignature) -> list[Any]:
    """The state's results of one body in the layout of all branches: its own values, and zeros for all others."""
    values = dict(enumerate(ends) if required.positions is None else zip(required.positions, ends))
    if required.number is not None:
        values[len(required.state) - 1] = as_array(required.number)
    return [
        as_type(values[i], t) if i in values else zeros_like(t) for i, t in enumerate(required.state)
    ]


class TransformedOperation(NamedTuple):
    """An operation transformed for operands with certain marks, independent of the operands' values.

    ``op``: the operation over transformed bodies. ``captured``: values that the bodies captured, its first operands
    after ``selects``. ``raised``: pairs (operand, mark) of the carries that have another mark after some iteration, to
    which the operand is forced. ``state``: types of the state's operands, which begin at operand ``state_operand``, or
    stand last where that is None. ``results``: for each result its mark and its number of parts; the results of the
    state, laid out as ``state_layout``, stand before part ``state_result``. ``forwarded``: pairs (result, operand) of
    flat parts that the bodies pass on unchanged, except inexact ones that a deferred rule gives a value or derivative.
    """

    op: HigherOrder
    captured: Sequence[Any]
    raised: Sequence[tuple[int, Mark]]
    state: Sequence[ArrayType]
    state_operand: int | None
    results: Sequence[tuple[Mark, int]]
    state_result: int
    state_layout: StateLayout
    forwarded: Sequence[tuple[int, int]]


def cross(run: BodyTransformer, op: HigherOrder, operands: tuple[Any, ...]) -> Any:
    """Answer a higher-order operation: perform it outside over transformed bodies, and box its results.

    Where a value of the handler selects the branch or decides the test, the answer is ``run.choose(op, operands)``.

    Raises: CannotCross: the clause of a scoped effect may compute with what its functions return.
    """
    if op.scopes and not run.takes_bodies(op):
        raise op.computed_with(run.label or "a reference")  # type: ignore[attr-defined]
    flow = run.flow_through(op)
    if op.runs == "lanes" and flow.in_carry:  # lanes in index order: each one takes the state that the last one left
        op = op.in_order()
    values = [run.split(x) for x in operands]
    if op.stacks:
        moving = op.shared + op.carry
        types, first = op.bodies[0].in_types[moving:], op.selects + moving
        values[first:] = [run.slice(*x) if op.slices(t) else x for x, t in zip(values[first:], types)]
    crossed = _transformed_operation(run, op, flow, tuple([mark for mark, _ in values]))
    if crossed is None:
        return run.choose(op, operands)
    for i, mark in crossed.raised:
        values[i] = mark, run.force(operands[i], mark)
    parts = [part for _, parts in values for part in parts]
    parts[op.selects : op.selects] = crossed.captured
    if crossed.state:
        at = len(parts) if crossed.state_operand is None else crossed.state_operand
        stacked = op.stacks and not flow.in_carry
        entering = [op.stacked(t) if stacked else t for t in crossed.state]
        parts[at:at] = [as_type(x, t) for x, t in zip(flow.operands, entering)]
    results = list(perform_transformed(run.outer, crossed.op, tuple(parts)))
    if op.own_results:  # its bodies give what they gave before
        return tuple(results)
    for i, source in crossed.forwarded:
        results[i] = parts[source]
    return _boxed(run, crossed, flow, results)


def _transformed_operation(
    run: BodyTransformer, op: HigherOrder, flow: StateFlow, marks: tuple[Mark, ...]
) -> TransformedOperation | None:
    """The transformed operation for operands with these marks; None if the branch index or test is the handler's value.

    Cached if handler and state have a key, no outer handler may answer an effect, and no rule is deferred.
    """
    key = run.key()
    if key is None or not flow.fixed or op.deferred or (op.effects and run.outer is not BASE):
        return _transform_operation(run, op, flow, marks)
    entry = (key, op, marks, run.outer.scope, config.current())
    return _OPERATIONS.get(entry, lambda: _memoised(_transform_operation(run, op, flow, marks)))


def _memoised(crossed: TransformedOperation | None) -> TransformedOperation | None:
    """``crossed`` itself, after giving its operation a memo, on which later transformations are cached."""
    if crossed is not None:
        with_memo(crossed.op)
    return crossed


class _FixedPoint(NamedTuple):
    """Main bodies transformed under marks of their carries that an iteration does not change.

    ``carry``, ``results``: marks of the carries and of the results. ``state``: types of the state's inputs; ``at``:
    their position among the inputs, and that of the state's results, as in ``transform_body``.
    """

    bodies: list[TransformedBody]
    carry: list[Mark]
    results: list[Mark]
    state: list[ArrayType]
    state_layout: StateLayout
    at: tuple[int, int] | None


def _fixed_point(run: BodyTransformer, op: HigherOrder, flow: StateFlow, groups: Any) -> _FixedPoint:
    """The least fixed point over the carries: their marks, and the types of a state that travels with them.

    Raises: CannotCross: there is none after many rounds.
    """
    _, shared, carry, each = groups
    moving = [*map(run.carried, carry)]
    in_carry = flow.in_carry and op.loops
    state = flow.inner_types()
    at = (op.shared + op.carry, op.carry) if in_carry else None
    for _ in range(_ROUNDS + 4 * len(moving)):  # a mark may have to pass through all carries, one in each round
        marks = [*shared, *moving, *each]
        bodies = [transform_body(run, body, marks, None, flow, state, at, op.binds) for body in op.main]
        results = [run.join(column) for column in zip(*[body.marks for body in bodies])]
        layout = flow.join(run, op, bodies, state)
        grown = [run.carried(run.join(pair)) for pair in zip(moving, results)]
        if not op.loops or (grown == moving and (not in_carry or list(layout.types) == state)):
            return _FixedPoint(bodies, moving, results, state, layout, at)
        before, moving, state = moving, grown, list(layout.types) if in_carry else state
    raise _no_fixed_point(run, op, before, moving)


def _no_fixed_point(run: BodyTransformer, op: HigherOrder, before: list[Mark], after: list[Mark]) -> CannotCross:
    changed = next((pair for pair in zip(before, after) if pair[0] != pair[1]), ("of its state", "of its state"))
    return CannotCross(
        f"{op.name}: the marks of {run.label} must reach a fixed point over its iterations, got {changed[1]!r} after "
        f"{changed[0]!r} in round {_ROUNDS + 4 * len(after)}.",
        hint=f"let {type(run).__name__}.carried(mark) give a mark that no iteration changes, such as that of any "
        "value: join and carried move up in a finite order.",
    )


def _transform_operation(
    run: BodyTransformer, op: HigherOrder, flow: StateFlow, operand_marks: tuple[Mark, ...]
) -> TransformedOperation | None:
    """``_transformed_operation``, uncached.

    First the fixed point over the main bodies, then the tests under the marks of the fixed point, then those main
    bodies again whose results differ from the marks and the state that all of them must agree on.
    """
    selects, shared, _, each = groups = op.groups(operand_marks)
    if any([mark is not None for mark in selects]):
        return None
    bodies, moving, joined, state, layout, at = _fixed_point(run, op, flow, groups)
    in_carry = at is not None
    tests = [transform_body(run, test, [*shared, *moving], None, flow, state, None, op.binds) for test in op.tests]
    if any([test.marks[0] is not None for test in tests]):
        return None
    marks = [*shared, *moving, *each]
    rule = op.rule if op.deferred else None  # None also where the program is compiled: nothing asks for rules then
    if rule is not None:  # a deferred rule may return a value of the handler where the body returns none
        given = run.carried(run.join(marks))
        pairs = zip(joined, op.main[0].out_types)
        joined = [run.mark_of_type(given, t) if mark is None else mark for mark, t in pairs]
    result_marks = [*moving, *joined[op.carry :]] if op.loops else joined
    agreeing = [
        new if list(new.marks) == result_marks and new.state == tuple(layout.types)
        else transform_body(run, body, marks, layout.required(result_marks, i), flow, state, at, op.binds)
        for i, (body, new) in enumerate(zip(op.main, bodies))
    ]
    lifted = [const for new in (*tests, *agreeing) for const in new.brought] if op.captures else ()
    programs = [*[test.program.with_outs(test.program.outs[:1]) for test in tests], *[new.program for new in agreeing]]
    closed, captured = close_all(programs, lifted)
    rules = {}
    if rule is not None:
        context = BodyTransformContext(run, flow, len(captured), op.bodies[0], marks, result_marks, layout)
        rules["rule"] = rule.transformed(context)
    types = op.groups((None,) * op.selects + op.bodies[0].in_types)
    shared_parts = sum([len(run.part_types(mark, t)) for mark, t in zip(shared, types.shared)])
    carry_parts = sum([len(run.part_types(mark, t)) for mark, t in zip(moving, types.carry)])
    carry = carry_parts + (len(state) if in_carry else 0)
    new = op.with_bodies(closed, shared=len(captured) + shared_parts, carry=carry, **rules)
    counts = [len(run.part_types(mark, t)) for mark, t in zip(result_marks, op.main[0].out_types)]
    sliced = [i >= op.carry and op.slices(t) for i, t in enumerate(op.main[0].out_types)]
    stacked = [run.stack(mark) if yes else mark for mark, yes in zip(result_marks, sliced)]
    raised = [(i, mark) for i, mark in enumerate(moving, op.selects + op.shared) if mark != operand_marks[i]]
    state_operand = new.selects + new.shared + carry_parts if in_carry else None
    state_result = sum(counts[: op.carry] if in_carry else counts)
    read = range(0 if new.derives else len(layout.types))  # results of the state, which a rule for lanes only reads
    forwarded = [
        (i, source) for i, t in enumerate(new.main[0].out_types)
        if (not new.deferred or i - state_result in read or not is_inexact(t.dtype))
        and (source := new.forwards(i)) is not None
    ]
    return TransformedOperation(
        new, captured, raised, state, state_operand, list(zip(stacked, counts)), state_result, layout, forwarded
    )


def perform_transformed(outer: Run, op: HigherOrder, operands: tuple[Any, ...]) -> Any:
    """The flat results of a transformed operation performed under ``outer``.

    A map over lanes whose body performs no effect but axes has independent lanes: its body is batched and inlined.
    """
    if op.runs != "lanes" or is_root(op):
        return outer.answer(op, operands)
    dims = [None] * op.shared + [0] * (len(operands) - op.shared)
    program, result_dims = LaterLayers.batch_program(op.bodies[0], dims, op.length)
    with inside(outer):
        return [axis_at(y, d, 0, op.length) for y, d in zip(interpret(program, operands), result_dims)]


def _boxed(
    run: BodyTransformer, crossed: TransformedOperation, flow: StateFlow, results: Sequence[Any]
) -> tuple[Any, ...]:
    """The results of the original operation from those of the transformed one; sets the run's state after it."""
    boxes = []
    at = 0
    first, last = crossed.state_result, crossed.state_result + len(crossed.state_layout.types)
    for mark, count in crossed.results:
        at = last if at == first else at
        boxes.append(run.box(mark, results[at : at + count]))
        at += count
    flow.after(run, results[first:last], crossed.state_layout.structure)
    return tuple(boxes)
