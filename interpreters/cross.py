"""Cross: one law by which every handler crosses every higher-order operation.

    operands = selects + shared + carry + each,   body : shared + carry + each -> carry + out

The handler runs anew inside each body, over a record; what it makes of the body is the body of the new operation. Which
carried values are its own, and the types of its state, are the least fix-point over the loop. It says of itself what a
box of its own consists of (``split``, ``box``, ``force``) and nothing about operations; an operation says where its
operands go (``effects.control``) and nothing about handlers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ..effects import config
from ..effects.axes import Axis
from ..effects.caches import Cache
from ..effects.closing import close_all
from ..effects.columns import zeros_like
from ..effects.control import HigherOrder, bodies
from ..effects.conversion import convert
from ..effects.errors import CannotCross
from ..effects.operations import standing
from ..effects.programs import Program, interpret
from ..effects.slicing import axis_at
from ..effects.stack import BASE, Run, inside
from ..effects.types import ArrayType
from .record import Record

Mark = Any  # what a handler knows of one value of its own statically: None for a value of somebody else
_LIFTED = Cache("lift")
_CROSSED = Cache("cross")
_HANDLED = Cache("handle", 128)  # smaller: handlers are often made anew, and hold what their clauses hold


class Lifted(NamedTuple):
    """A body as a handler makes it, which of its results are the handler's own, and what leaves with the state."""

    program: Program
    marks: tuple[Mark, ...]
    state: tuple[ArrayType, ...] = ()
    structure: Any = None


class Wanted(NamedTuple):
    """What a body has to give: results with these marks; of the state these types, its own from ``offset`` on."""

    marks: Sequence[Mark]
    state: Sequence[ArrayType] = ()
    offset: int = 0


class Flow:
    """How a handler's state crosses one operation. Here: there is none.

    ``operands`` enter, and what ``end`` gives leaves: with the carry where the flow ``turns`` in a loop, else with
    ``each`` and ``out``.
    """

    turns: bool = False
    operands: Sequence[Any] = ()

    def key(self) -> Hashable:
        """What, beside the types, a lifted body depends on; None where it is not to be remembered."""
        return () if self is NO_FLOW else None

    def inner_types(self) -> list[ArrayType]:
        """The types of what enters, as one body sees it."""
        return [x.type for x in self.operands]

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        """Set the state at the start of a body."""

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        """What leaves at the end of a body, and its structure."""
        return (), None

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        """What leaves, for all bodies."""
        return Joined((), None, (0,) * len(lifted))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        """Set the state after the operation, from what left."""


class Joined(NamedTuple):
    """What leaves with the state: types, structure, and where each body's own part begins."""

    types: Sequence[ArrayType]
    structure: Any
    offsets: Sequence[int]


NO_FLOW = Flow()


class Lift(NamedTuple):
    """How a handler lifted an operation, for its late rules.

    The operands of the lifted operation are ``extra`` captured values, the parts of the former operands, and the state.
    """

    run: Any
    flow: Flow
    extra: int
    body: Program  # as it was
    marks: Sequence[Mark]
    wanted: Sequence[Mark]
    joined: Joined


class Crossing(Run):
    """A run that crosses higher-order operations by the law."""

    __slots__ = ()

    def fresh(self, outer: Run) -> Any:
        """This handler once more, over ``outer``."""
        return type(self)(outer, self.label)

    def key(self) -> Hashable:
        """What, beside a body and its marks, the lifted body depends on; None where it is not to be remembered."""
        return None

    def flow(self, op: HigherOrder) -> Flow:
        """How the state crosses ``op``."""
        return NO_FLOW

    def split(self, x: Any) -> tuple[Mark, Sequence[Any]]:
        """The mark of a value and the values of the enclosing run that it consists of."""
        return None, (x,)

    def box(self, mark: Mark, parts: Sequence[Any]) -> Any:
        """The value with this mark and these parts."""
        return parts[0]

    def part_types(self, mark: Mark, type: ArrayType) -> Sequence[ArrayType]:
        return (type,)

    def force(self, x: Any, mark: Mark) -> Sequence[Any]:
        """The parts of any value as if it had this mark."""
        return self.split(x)[1]

    def join(self, marks: Sequence[Mark]) -> Mark:
        """The mark that values with these marks can all be forced to."""
        return next((mark for mark in marks if mark is not None), None)

    def carried(self, mark: Mark) -> Mark:
        """The mark of what goes round in a loop."""
        return mark

    def slice(self, mark: Mark, parts: Sequence[Any]) -> tuple[Mark, Sequence[Any]]:
        """A stacked operand as its slices are in the body: their mark, and the parts with the loop's axis first."""
        return mark, parts

    def stack(self, mark: Mark) -> Mark:
        """The mark of a stacked result whose slices have this one."""
        return mark

    def choose(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Answer an operation that chooses by a value of this handler, or whose test is one."""
        raise CannotCross(f"{op.name}: it chooses by a value of {self.label}, which only lanes can answer.")


def lift(
    run: Crossing,
    body: Program,
    marks: Sequence[Mark],
    wanted: Wanted | None = None,
    flow: Flow = NO_FLOW,
    state: Sequence[ArrayType] = (),
    at: tuple[int, int] | None = None,
) -> Lifted:
    """The body as ``run`` makes it: from the parts of its inputs to those of its results.

    The state enters and leaves behind the input and the result of the numbers ``at``, by default behind all.
    """
    places = at or (len(body.in_types), len(body.outs))
    key = run.key()
    way = flow.key()
    if key is None or way is None or (body.effects and run.outer is not BASE):
        return _lift(run, body, marks, wanted, flow, state, places, run.outer)
    want = None if wanted is None else (tuple(wanted.marks), tuple(wanted.state), wanted.offset)
    whole = (key, body, tuple(marks), want, way, tuple(state), places, config.current())
    store = _LIFTED if flow is NO_FLOW else _HANDLED
    return store.get(whole, lambda: _lift(run, body, marks, wanted, flow, state, places, BASE))


def _lift(
    run: Crossing,
    body: Program,
    marks: Sequence[Mark],
    wanted: Wanted | None,
    flow: Flow,
    state: Sequence[ArrayType],
    places: tuple[int, int],
    outer: Run,
) -> Lifted:
    recorder = Record(outer, "")
    inner = run.fresh(recorder)
    enters, leaves = places
    inputs = []
    try:
        for i, (mark, t) in enumerate([*zip(marks, body.in_types), (None, None)]):
            if i == enters:
                with inside(recorder):
                    flow.begin(inner, [recorder.input(kind) for kind in state])
            if t is not None:
                inputs.append(inner.box(mark, [recorder.input(part) for part in inner.part_types(mark, t)]))
        with inside(inner):
            results = interpret(body, inputs)
        with inside(recorder):
            ends, structure = flow.end(inner)
            found = [inner.split(y)[0] for y in results] if wanted is None else wanted.marks
            groups = [_typed(inner, y, mark, t) for y, mark, t in zip(results, found, body.out_types)]
            groups.insert(leaves, ends if wanted is None else _padded(ends, wanted))
            program = recorder.freeze([part for parts in groups for part in parts], body.name)
            return Lifted(program, tuple(found), tuple([x.type for x in ends]), structure)
    finally:
        inner.ended = recorder.ended = True


def _typed(run: Crossing, y: Any, mark: Mark, type: ArrayType) -> Sequence[Any]:
    """The parts of a result, with exactly the types that its own type implies."""
    return [convert(x, t.dtype, t.weak) for x, t in zip(run.force(y, mark), run.part_types(mark, type))]


def _padded(ends: Sequence[Any], wanted: Wanted) -> list[Any]:
    """What leaves a body, among zeros for what leaves the others."""
    first, last = wanted.offset, wanted.offset + len(ends)
    return [
        convert(ends[i - first], t.dtype, t.weak) if first <= i < last else zeros_like(t)
        for i, t in enumerate(wanted.state)
    ]


class Crossed(NamedTuple):
    """An operation as a handler crosses it, before it meets its operands.

    ``op`` runs the lifted bodies over the ``captured`` values and what is given. ``grown`` are the numbers of operands
    that are the handler's own from the second run on, and their marks; ``state`` the types of what enters with the
    state, as operand ``enters``, by default behind all. Each of the ``results`` has a mark and a number of parts;
    before the part of number ``leaves`` comes what leaves with the state, as ``joined`` says.
    """

    op: HigherOrder
    captured: Sequence[Any]
    grown: Sequence[tuple[int, Mark]]
    state: Sequence[ArrayType]
    enters: int | None
    results: Sequence[tuple[Mark, int]]
    leaves: int
    joined: Joined


def cross(run: Crossing, op: HigherOrder, operands: tuple[Any, ...]) -> Any:
    """Answer a higher-order operation: the same operation, outside, over bodies as the handler makes them."""
    flow = run.flow(op)
    if op.runs == "lanes" and flow.turns:  # one lane hands the state to the next
        op = op.as_loop()  # type: ignore[attr-defined]
    given = [run.split(x) for x in operands]
    if op.stacks:
        first = op.selects + op.shared + op.carry
        given[first:] = [run.slice(mark, parts) for mark, parts in given[first:]]
    crossed = _crossed(run, op, flow, tuple([mark for mark, _ in given]))
    if crossed is None:
        return run.choose(op, operands)
    for i, mark in crossed.grown:
        given[i] = mark, run.force(operands[i], mark)
    parts = [part for _, parts in given for part in parts]
    parts[op.selects : op.selects] = crossed.captured
    if crossed.state:
        at = len(parts) if crossed.enters is None else crossed.enters
        parts[at:at] = [convert(x, t.dtype, t.weak) for x, t in zip(flow.operands, crossed.state)]
    return boxed(run, crossed, flow, performed(run.outer, crossed.op, tuple(parts)))


def _crossed(run: Crossing, op: HigherOrder, flow: Flow, marks: tuple[Mark, ...]) -> Crossed | None:
    """The operation over lifted bodies; None where the handler's own values choose. Remembered where its bodies are."""
    key = run.key()
    if key is None or flow is not NO_FLOW or op.late or (op.effects and run.outer is not BASE):
        return _cross(run, op, flow, marks)
    return _CROSSED.get((key, op, marks, config.current()), lambda: _kept(_cross(run, op, flow, marks)))


def _kept(crossed: Crossed | None) -> Crossed | None:
    """What is remembered is one object for all who ask."""
    if crossed is not None:
        standing(crossed.op)
    return crossed


def _cross(run: Crossing, op: HigherOrder, flow: Flow, given: tuple[Mark, ...]) -> Crossed | None:
    """Least fix-point over what goes round: whether it is the handler's own, and the types of the state."""
    selects, before, carry, after = op.groups(given)
    if any([mark is not None for mark in selects]):
        return None
    moving = [*map(run.carried, carry)]
    turns = flow.turns and op.loops
    state = flow.inner_types()
    at = (op.shared + op.carry, op.carry) if turns else None
    while True:
        marks = [*before, *moving, *after]
        lifted = [lift(run, body, marks, None, flow, state, at) for body in op.main]
        found = [run.join(column) for column in zip(*[made.marks for made in lifted])]
        grown = [run.carried(run.join(pair)) for pair in zip(moving, found)]
        joined = flow.join(run, op, lifted, state)
        if not op.loops or (grown == moving and (not turns or list(joined.types) == state)):
            break
        moving, state = grown, list(joined.types) if turns else state
    tests = [lift(run, test, [*before, *moving], None, flow, state) for test in op.tests]
    if any([test.marks[0] is not None for test in tests]):
        return None
    if op.late:  # a rule may give its own where the body gives nobody's
        found = [run.carried(run.join(marks)) if mark is None else mark for mark in found]
    wanted = [*moving, *found[op.carry :]] if op.loops else found
    programs = [
        made.program
        if list(made.marks) == wanted and made.state == tuple(joined.types)
        else lift(run, body, marks, Wanted(wanted, joined.types, offset), flow, state, at).program
        for body, made, offset in zip(op.main, lifted, joined.offsets)
    ]
    whole, captured = close_all([*[test.program.with_outs(test.program.outs[:1]) for test in tests], *programs])
    late = {}
    for name in op.late:
        how = Lift(run, flow, len(captured), op.bodies[0], [*before, *after], wanted, joined)
        late[name] = getattr(op, name).lifted(how)
    types = op.groups((None,) * op.selects + op.bodies[0].in_types)
    fixed = [part for mark, t in zip(before, types.shared) for part in run.part_types(mark, t)]
    carried = [part for mark, t in zip(moving, types.carry) for part in run.part_types(mark, t)]
    count = len(carried) + (len(state) if turns else 0)
    made = op.with_bodies(whole, shared=len(captured) + len(fixed), carry=count, **late)
    parts = [len(run.part_types(mark, t)) for mark, t in zip(wanted, op.main[0].out_types)]
    stacked = [run.stack(mark) if op.stacks and i >= op.carry else mark for i, mark in enumerate(wanted)]
    leaves = sum(parts[: op.carry] if turns else parts)
    grown = [(i, mark) for i, mark in enumerate(moving, op.selects + op.shared) if mark != given[i]]
    enters = made.selects + made.shared + len(carried) if turns else None
    return Crossed(made, captured, grown, state, enters, list(zip(stacked, parts)), leaves, joined)


def performed(outer: Run, op: HigherOrder, operands: tuple[Any, ...]) -> Any:
    """Perform the crossed operation; lanes that no effect keeps apart any more are one batch."""
    if op.runs != "lanes" or any([not isinstance(effect, Axis) for effect in op.effects]):
        return outer.answer(op, operands)
    dims = [None] * op.shared + [0] * (len(operands) - op.shared)
    program, found = bodies().batch(op.bodies[0], dims, op.length)
    with inside(outer):
        return [axis_at(y, d, 0, op.length) for y, d in zip(interpret(program, operands), found)]


def boxed(run: Crossing, crossed: Crossed, flow: Flow, results: Sequence[Any]) -> tuple[Any, ...]:
    """The results of the operation from the parts that the crossed one gave; the run goes on from the new state."""
    made = []
    at = 0
    first, last = crossed.leaves, crossed.leaves + len(crossed.joined.types)
    for mark, count in crossed.results:
        at = last if at == first else at
        made.append(run.box(mark, results[at : at + count]))
        at += count
    flow.after(run, results[first:last], crossed.joined.structure)
    return tuple(made)
