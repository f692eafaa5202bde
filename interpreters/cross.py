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
from ..effects.caches import Cache
from ..effects.closing import close_all
from ..effects.control import HigherOrder
from ..effects.conversion import convert
from ..effects.errors import CannotCross, StateTypeError
from ..effects.programs import Program, interpret
from ..effects.promotion import promote
from ..effects.stack import BASE, Run, inside
from ..effects.types import ArrayType
from .record import Record

Mark = Any  # what a handler knows of one value of its own statically: None for a value of somebody else
_LIFTED = Cache("lifted bodies")


class Lifted(NamedTuple):
    """A body as a handler makes it, which of its results are the handler's own, and what becomes of the state."""

    program: Program
    marks: tuple[Mark, ...]
    state: tuple[ArrayType, ...] = ()
    structure: Any = None


class Wanted(NamedTuple):
    """What all bodies of an operation have to give: results with these marks, states of these types."""

    marks: Sequence[Mark]
    state: Sequence[ArrayType]


class Crossing(Run):
    """A run that crosses higher-order operations by the law."""

    __slots__ = ()

    def fresh(self, outer: Run) -> Any:
        """This handler once more, over ``outer``."""
        return type(self)(outer, self.label)

    def key(self) -> Hashable:
        """What, beside a body and its marks, the lifted body depends on; None where it is not to be remembered."""
        return None

    def state(self) -> tuple[Sequence[Any], Any]:
        """The leaves of the current state, and its structure."""
        return (), None

    def set_state(self, leaves: Sequence[Any], structure: Any) -> None:
        """Go on from another state."""

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
    state: Sequence[ArrayType] = (),
    at: tuple[int, int] | None = None,
) -> Lifted:
    """The body as ``run`` makes it: from the parts of its inputs to those of its results.

    The state enters and leaves behind the input and the result of the numbers ``at``, by default behind all.
    """
    places = at or (len(body.in_types), len(body.outs))
    key = run.key()
    if key is None or (body.effects and run.outer is not BASE):
        return _lift(run, body, marks, wanted, state, places, run.outer)
    want = None if wanted is None else (tuple(wanted.marks), tuple(wanted.state))
    whole = (key, body, tuple(marks), want, tuple(state), places, config.current())
    return _LIFTED.get(whole, lambda: _lift(run, body, marks, wanted, state, places, BASE))


def _lift(
    run: Crossing,
    body: Program,
    marks: Sequence[Mark],
    wanted: Wanted | None,
    state: Sequence[ArrayType],
    places: tuple[int, int],
    outer: Run,
) -> Lifted:
    recorder = Record(outer, "")
    inner = run.fresh(recorder)
    enters, leaves = places
    _, structure = run.state()
    inputs = []
    given: list[Any] = []
    try:
        for i, (mark, t) in enumerate([*zip(marks, body.in_types), (None, None)]):
            if i == enters:
                given = [recorder.input(kind) for kind in state]
            if t is not None:
                inputs.append(inner.box(mark, [recorder.input(part) for part in inner.part_types(mark, t)]))
        if state:
            inner.set_state(given, structure)
        with inside(inner):
            results = interpret(body, inputs)
        with inside(recorder):
            ends, structure = inner.state()
            found = [inner.split(y)[0] for y in results] if wanted is None else wanted.marks
            if wanted is not None:
                ends = [convert(x, t.dtype, t.weak) for x, t in zip(ends, wanted.state)]
            groups = [_typed(inner, y, mark, t) for y, mark, t in zip(results, found, body.out_types)]
            groups.insert(leaves, ends)
            program = recorder.freeze([part for parts in groups for part in parts], body.name)
            return Lifted(program, tuple(found), tuple([x.type for x in ends]), structure)
    finally:
        inner.ended = recorder.ended = True


def _typed(run: Crossing, y: Any, mark: Mark, type: ArrayType) -> Sequence[Any]:
    """The parts of a result, with exactly the types that its own type implies."""
    return [convert(x, t.dtype, t.weak) for x, t in zip(run.force(y, mark), run.part_types(mark, type))]


def cross(run: Crossing, op: HigherOrder, operands: tuple[Any, ...]) -> Any:
    """Answer a higher-order operation: the same operation, outside, over bodies as the handler makes them."""
    selects, shared, carry, each = op.groups(operands)
    if any([run.split(x)[0] is not None for x in selects]):
        return run.choose(op, operands)
    fixed = [run.split(x) for x in shared]
    sliced = [run.slice(*run.split(x)) if op.stacks else run.split(x) for x in each]
    before, after = [mark for mark, _ in fixed], [mark for mark, _ in sliced]
    moving = [run.carried(run.split(x)[0]) for x in carry]
    start, structure = run.state()
    state: Sequence[ArrayType] = [x.type for x in start]
    at = (op.shared + op.carry, op.carry) if op.loops else None
    while True:
        marks = [*before, *moving, *after]
        lifted = [lift(run, body, marks, None, state, at) for body in op.main]
        found = [run.join(column) for column in zip(*[made.marks for made in lifted])]
        grown = [run.carried(run.join(pair)) for pair in zip(moving, found)]
        ends = joined_state(run, op, lifted, state, structure)
        if not op.loops or (grown == moving and ends == state):
            break
        moving, state = grown, ends
    wanted = Wanted([*moving, *found[op.carry :]] if op.loops else found, ends)
    tests = [lift(run, test, [*before, *moving], None, state) for test in op.tests]
    if any([test.marks[0] is not None for test in tests]):
        return run.choose(op, operands)
    bodies = [
        made.program
        if list(made.marks) == wanted.marks and made.state == tuple(ends)
        else lift(run, body, marks, wanted, state, at).program
        for body, made in zip(op.main, lifted)
    ]
    whole, captured = close_all([*[test.program.with_outs(test.program.outs[:1]) for test in tests], *bodies])
    fixed_parts = [*captured, *[part for _, parts in fixed for part in parts]]
    carried = [part for x, mark in zip(carry, moving) for part in run.force(x, mark)]
    entering = [convert(x, t.dtype, t.weak) for x, t in zip(start, state)]
    last = [part for _, parts in sliced for part in parts]
    loose = [*entering, *last] if op.loops else [*last, *entering]
    count = len(carried) + (len(entering) if op.loops else 0)
    made = op.with_bodies(whole, shared=len(fixed_parts), carry=count)
    results = run.outer.answer(made, (*selects, *fixed_parts, *carried, *loose))
    return boxed(run, op, wanted, lifted[0].structure, results)


def joined_state(
    run: Crossing, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType], structure: Any
) -> list[ArrayType]:
    """The types of the state after the bodies: one for all branches, and for all runs of a loop."""
    ends = [(made.state, made.structure) for made in lifted]
    if op.loops:
        ends.append((tuple(before), structure))
    for _, other in ends[1:]:
        if other != ends[0][1]:
            where = "in a loop" if op.loops else "in all branches"
            raise StateTypeError(
                f"{op.name}: the state of {run.label} must keep its structure {where}, got {other} and {ends[0][1]}.",
                hint="start from a state of the final structure.",
            )
    return [_joined_type(run, op, types) for types in zip(*[types for types, _ in ends])]


def _joined_type(run: Crossing, op: HigherOrder, types: Sequence[ArrayType]) -> ArrayType:
    """One type for a leaf of the state: a weak one may become strong, nothing else may change."""
    found = types[0]
    for t in types[1:]:
        if t is found:
            continue
        if t.shape != found.shape or not (t.weak or found.weak):
            raise StateTypeError(
                f"{op.name}: a leaf of the state of {run.label} must keep one type, got {found} and {t}.",
                hint=f"start from a value of type {found if t.weak else t}.",
            )
        dtype, weak = promote(found.dtype, found.weak, t.dtype, t.weak)
        found = found.update(dtype=dtype, weak=weak)
    return found


def boxed(run: Crossing, op: HigherOrder, wanted: Wanted, structure: Any, results: Sequence[Any]) -> tuple[Any, ...]:
    """The results of the operation from the parts that the crossed one gave; the run goes on from the new state."""
    values = iter(results)
    made = []
    state: list[Any] = []
    last = op.carry if op.loops else len(wanted.marks)
    for i, (mark, t) in enumerate([*zip(wanted.marks, op.main[0].out_types), (None, None)]):
        if i == last:
            state = [next(values) for _ in wanted.state]
        if t is not None:
            parts = [next(values) for _ in run.part_types(mark, t)]
            made.append(run.box(run.stack(mark) if op.stacks and i >= op.carry else mark, parts))
    if wanted.state:
        run.set_state(state, structure)
    return tuple(made)
