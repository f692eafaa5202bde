"""How the state of a handler moves through the bodies of an operation. A handler declares one of these.

    carry           one run hands it to the next; lanes run in index order
    append          a log, a tuple that clauses append to: stacked by loops and lanes; of branches, all with a mask
    merge(op, unit) commutative: each lane starts at the unit, then they are merged; elsewhere as carry
    split(f)        a key: lanes get one each, ``f(key, n)`` giving n; elsewhere as carry
    tally(...)      a static value, read off the body and multiplied by the number of runs; nothing is rewritten
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects import trees
from ..effects.arrays import lift
from ..effects.bodies import holds, place
from ..effects.control import HigherOrder
from ..effects.errors import BadArgument, CannotCross, StateTypeError
from ..effects.loops import scan
from ..effects.promotion import promote
from ..effects.slicing import slice_in_dim
from ..effects.treenodes import register_dataclass
from ..effects.types import ArrayType
from ..effects.values import Value
from .cross import Flow, Joined, Lifted


@register_dataclass
class When(Value):
    """An entry of a log from a branch: ``value`` where the branch was ``taken``, zeros where it was not."""

    taken: Any
    value: Any


class Movement:
    """How a state moves; a value."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        return Carried(run)

    def __repr__(self) -> str:
        return type(self).__name__.lower()


class Carry(Movement):
    """One run hands the state to the next. Lanes run in index order, as a loop."""

    __slots__ = ()


class Append(Movement):
    """The state is a log, a tuple. What a body appends is stacked over the runs of a loop or of lanes.

    Across a branch the log takes the entries of every branch, each as ``When(taken, value)``.
    """

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        if op.runs == "until":
            raise CannotCross(
                f"{op.name}: the log of {run.label} cannot cross a loop of unknown length: nothing says how much it "
                "will hold.",
                hint="use scan or fori_loop with constant bounds, or a state with an array of fixed size.",
            )
        return Appended(op)


class Merge(Movement, Value):
    """A commutative state: each lane starts at ``unit``, and ``op(state, other)`` joins what they end with."""

    op: Callable[[Any, Any], Any]
    unit: Any = None

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        return Merged(self) if op.runs == "lanes" else Carried(run)


class Split(Movement, Value):
    """A key: ``f(key, n)`` gives ``n`` keys along the first axis, one for each lane, and one to go on with."""

    f: Callable[[Any, int], Any]

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        return Divided(self, run, op.length) if op.runs == "lanes" else Carried(run)


class Tally(Movement, Value):
    """A static value, such as a count of operations, that is read off the bodies; operations pass as they are.

    ``then(a, b)``: one after the other. ``choose(a, b)``: one of two. ``repeat(a, n)``: ``n`` times, None where the
    number is not known. ``empty``: nothing.
    """

    empty: Any
    then: Callable[[Any, Any], Any]
    choose: Callable[[Any, Any], Any]
    repeat: Callable[[Any, Any], Any]


carry = Carry()
append = Append()


def merge(op: Callable[[Any, Any], Any], unit: Any) -> Movement:
    """A commutative state. See ``Merge``."""
    return Merge(op, unit)


def split(f: Callable[[Any, int], Any]) -> Movement:
    """A key. See ``Split``."""
    return Split(f)


def tally(
    empty: Any, then: Callable[[Any, Any], Any], choose: Callable[[Any, Any], Any], repeat: Callable[[Any, Any], Any]
) -> Movement:
    """A static value. See ``Tally``."""
    return Tally(empty, then, choose, repeat)


def leaves_of(state: Any) -> tuple[list[Any], Any]:
    leaves, structure = trees.flatten(state)
    return [lift(x) for x in leaves], structure


class Carried(Flow):
    """The state goes in and comes out."""

    turns = True

    def __init__(self, run: Any):
        self.operands, self.structure = leaves_of(run.current)

    def key(self) -> Any:
        return ("carried", self.structure)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = trees.unflatten(self.structure, values)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        return leaves_of(run.current)

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        ends = [(made.state, made.structure) for made in lifted]
        if op.loops:
            ends.append((tuple(before), self.structure))
        for _, other in ends[1:]:
            if other != ends[0][1]:
                where = "in a loop" if op.loops else "in all branches"
                raise StateTypeError(
                    f"{op.name}: the state of {run.label} must keep one structure {where}, got {other} and "
                    f"{ends[0][1]}.",
                    hint="start from a state of the final structure, or declare moves=hx.append for a log.",
                )
        columns = list(zip(*[types for types, _ in ends]))
        types = [_joined_type(run, op, ends[0][1], i, column) for i, column in enumerate(columns)]
        return Joined(types, ends[0][1], (0,) * len(lifted))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = trees.unflatten(structure, values)


def _joined_type(run: Any, op: HigherOrder, structure: Any, i: int, types: Sequence[ArrayType]) -> ArrayType:
    """One type for a leaf of the state: a weak one may become strong, nothing else may change."""
    found = types[0]
    for t in types[1:]:
        if t is found:
            continue
        strong, weak = (found, t) if t.weak else (t, found)
        if t.shape != found.shape or not weak.weak or not (strong.weak or holds(strong, weak)):
            where = f"start from a value of type {types[0]}, or " if op.loops else ""
            raise StateTypeError(
                f"{op.name}: the state of {run.label} must keep its type, got {found} and {t}{place(structure, i)}.",
                hint=f"{where}convert in the clause with astype.",
            )
        dtype, stays_weak = promote(found.dtype, found.weak, t.dtype, t.weak)
        found = found.update(dtype=dtype, weak=stays_weak)
    return found


class Appended(Flow):
    """What the bodies append comes out."""

    def __init__(self, op: HigherOrder):
        self.branches = op.runs == "one"

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = ()

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        entries = run.current
        return leaves_of(tuple(map(self.in_branch, entries)) if self.branches else entries)

    def in_branch(self, entry: Any) -> Any:
        """An entry as it leaves the branch that made it; where the branch is not taken all of it is zero."""
        return When(True, entry)

    def take(self, run: Any, bodies: Sequence[Sequence[Any]]) -> None:
        """Go on from the log with what each body appended."""
        for entries in bodies:
            run.current = (*run.current, *entries)

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        offsets: list[int] = []
        types: list[ArrayType] = []
        for made in lifted:
            offsets.append(len(types))
            types += made.state
        return Joined(types, [made.structure for made in lifted], offsets)

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        first = 0
        bodies = []
        for part in structure:
            last = first + part.num_leaves
            bodies.append(trees.unflatten(part, values[first:last]))
            first = last
        self.take(run, bodies)


class Merged(Flow):
    """Each lane starts at the unit; what they end with is merged into the state."""

    def __init__(self, movement: Merge):
        self.movement = movement

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = self.movement.unit

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        return leaves_of(run.current)

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        return Joined(lifted[0].state, lifted[0].structure, (0,))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        ends = trees.unflatten(structure, values)
        run.current = scan(lambda state, other: (self.movement.op(state, other), None), run.current, ends)[0]


class Divided(Flow):
    """Each lane gets a key of its own; the last one is the state afterwards."""

    def __init__(self, movement: Split, run: Any, length: int):
        keys: Any = lift(movement.f(run.current, length + 1))
        if keys.type.shape[:1] != (length + 1,):
            raise BadArgument(f"split: f(key, n) must give n keys along the first axis, got {keys.type}.")
        self.operands = (slice_in_dim(keys, 0, length),)
        self.last = keys[length]

    def inner_types(self) -> list[ArrayType]:
        t = self.operands[0].type
        return [t.update(shape=t.shape[1:])]

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        (run.current,) = values

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = self.last
