"""How the state of a handler moves through the bodies of a higher-order operation. A handler declares one of these.

    carry           one iteration hands it to the next; lanes are evaluated one after the other, in index order; it does
                    not cross the devices of a mesh, which are the lanes of the others
    append          a log, a tuple that clauses append to: stacked by loops and lanes as a result is, the outermost axis
                    first; branches add masked entries
    merge(op, unit) commutative: each lane starts at the unit, their states are merged later; elsewhere as carry
    split(f)        a key: each lane gets one of the n keys ``f(key, n)``; elsewhere as carry
    tally(...)      a static value, computed from the body and multiplied by the trip count; nothing is rewritten
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, CannotCross, NotAnArray, StateTypeError, need_function
from ...effects.base.frozen_values import Value
from ...effects.control.recorded_bodies import at_path, common_type, shared_results
from ...effects.core.arrays import as_array
from ...effects.core.columns import zeros_like
from ...effects.operations.elementwise.bitwise import bitwise_or
from ...effects.operations.elementwise.comparison import eq, select, select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations.shapes import broadcast_in_dim, move_axis
from ...effects.operations.manipulation.slicing import slice_in_dim
from ...effects.programs.higher_order import HigherOrder
from ...effects.trees import pytrees
from ...effects.trees.registration import register_dataclass
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import int32
from ..core.state_flow import StateFlow, StateLayout, TransformedBody
from .log_axes import LogAxes, outside, place, taken_mask
from .merged_lanes import UnmergedLanes
from .open_log import OpenLog, known_entries, with_entries


@register_dataclass
class When(Value):
    """An entry of a log from a branch: ``value`` if the branch was ``taken``, else zeros. A pytree.

    In loops and lanes both are stacked: the axes of ``taken`` are the leading ones of ``value``.
    """

    taken: Any
    value: Any

    def masked(self, otherwise: Any = 0) -> Any:
        """The value where the branch was taken, elsewhere the number ``otherwise``; of a branch in another too."""

        def choose(x: Any) -> Any:
            y = as_array(x)
            other = broadcast_in_dim(convert(as_array(otherwise), y.type.dtype, y.type.weak), y.type.shape, ())
            return select(broadcast_mask(as_array(self.taken), y.type.shape), y, other)

        return pytrees.map(choose, self.value.masked(otherwise) if isinstance(self.value, When) else self.value)


def broadcast_mask(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask over leading axes, broadcast to a shape."""
    return broadcast_in_dim(mask, shape, range(len(mask.type.shape))) if mask.type.shape != shape else mask


def either_mask(a: Any, b: Any) -> Any:
    """``a`` or ``b``, masks over leading axes, of which one may have more."""
    shape = max(a.type.shape, b.type.shape, key=len)
    return bitwise_or(broadcast_mask(a, shape), broadcast_mask(b, shape))


class Movement:
    """How a handler's state moves through bodies; a value. ``flow`` is its meaning for one operation."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return CarriedState(run)

    def __repr__(self) -> str:
        return type(self).__name__.removesuffix("Movement").lower()


class CarryMovement(Movement):
    """Each iteration hands the state to the next. Lanes become a loop in index order, one for each effect performed.

    No loop serves two effects: the first lane performs the second one after the last lane performed the first.
    """

    __slots__ = ()


class AppendMovement(Movement):
    """The state is a log, a tuple. What a body appends is stacked over the iterations of a loop, or over lanes.

        the entry of x  ==  x as a result from there

    as far as loops and ``vmap`` stack results: the axis of the outermost stands first.
    A clause returns ``(*log, entry)``; in a body it cannot read the log, whose earlier entries are not known there.
    After a branch the log has the entries of all branches, each as ``When(taken, value)``.
    """

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return UnstackableLog(op) if op.runs == "until" else AppendedState(op)


class merge(Movement, Value):
    """A commutative state: each lane starts at ``unit``; ``op(state, other)`` merges their final states.

    They are merged when the state is read next: ``op`` is associative and commutative, and ``unit`` is its unit.
    """

    op: Callable[[Any, Any], Any]
    unit: Any

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        need_function("merge", self.op)

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return MergedState(self, op) if op.runs in PARALLEL else CarriedState(run)


class split(Movement, Value):
    """A key: ``f(key, n + 1)`` gives keys along the first axis, one for each of n lanes and the next state."""

    f: Callable[[Any, int], Any]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        need_function("split", self.f)

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return SplitState(self, run, op) if op.runs in PARALLEL else CarriedState(run)


class tally(Movement, Value):
    """A static value, such as a count of operations, computed from the bodies; operations are forwarded unchanged.

    ``empty`` is the value of no operation, ``then(a, b)`` of two in sequence, ``choose(a, b)`` of one of two branches,
    ``repeat(a, n)`` of ``n`` iterations, None for an unknown number.
    """

    empty: Any
    then: Callable[[Any, Any], Any]
    choose: Callable[[Any, Any], Any]
    repeat: Callable[[Any, Any], Any]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for f in (self.then, self.choose, self.repeat):
            need_function("tally", f)


carry = CarryMovement()
"""The state goes from one iteration to the next, and through lanes in the order of their index."""
append = AppendMovement()
"""The state is a log, whose entries are stacked over the iterations of a loop and over lanes."""
PARALLEL = ("lanes", "mesh")  # how bodies run that have no order


def leaves_of(state: Any) -> tuple[list[Any], Any]:
    """The leaves of a state as arrays, and its tree structure. Raises: StateTypeError: a leaf is no array."""
    leaves, structure = pytrees.flatten(state)
    try:
        return [as_array(x) for x in leaves], structure
    except NotAnArray as error:
        raise StateTypeError(
            f"handle: the state of a handler must be a tree of arrays, got {state!r:.60}.",
            hint="what is no array is a field of an operation, or is closed over by the clause.",
        ) from error


class CarriedState(StateFlow):
    """The flow of a state that enters each body as operands and leaves as results; loops carry it."""

    in_carry = True

    def __init__(self, run: Any):
        self.operands, self.structure = leaves_of(run.merged_state())

    def key(self) -> Any:
        return ("carried", self.structure)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = pytrees.unflatten(self.structure, values)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        return leaves_of(run.merged_state())

    def join(
        self, run: Any, op: HigherOrder, transformed: Sequence[TransformedBody], before: Sequence[ArrayType]
    ) -> StateLayout:
        ends = [(body.state, body.structure) for body in transformed]
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
        return StateLayout(types, ends[0][1])

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = pytrees.unflatten(structure, values)


def _joined_type(run: Any, op: HigherOrder, structure: Any, i: int, types: Sequence[ArrayType]) -> ArrayType:
    """The common type of a leaf of the state, which varies along an axis of a mesh where one of them does.

    Raises: StateTypeError: more than weak to strong would change.
    """
    varying = types[0].varying.union(*[t.varying for t in types])
    joined, *others = [t.along(varying) for t in types]
    for t in others:
        both = common_type(joined, t)
        if both is None:
            where = f"start from a value of type {types[0]}, or " if op.loops else ""
            raise StateTypeError(
                f"{op.name}: the state of {run.label} must keep its type, got {joined} and {t}{at_path(structure, i)}.",
                hint=f"{where}convert in the clause with astype.",
            )
        joined = both
    return joined


class AppendedState(StateFlow):
    """The flow of a log: a body starts with an open log, and the entries that it appends leave as results.

    Branches share results for their entries, and the number of the branch that was executed tells whose they are: n
    branches with one entry each need as many results as one branch.
    """

    def __init__(self, op: HigherOrder):
        self.op = op
        self.branches = op.runs == "one"
        self.varying = frozenset(op.lanes_of_all)

    def key(self) -> Any:
        return (type(self), self.branches)

    def axes(self, run: Any) -> Sequence[LogAxes]:
        """The leading axes of each entry that was appended in the body."""
        return run.current.axes

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = OpenLog(run.label)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        entries, axes = known_entries(run.current), tuple(self.axes(run))
        if self.branches:
            entries = tuple(map(self.in_branch, entries, axes))
        leaves, tree = leaves_of(entries)
        return self.vary(leaves), (tree, axes)

    def in_branch(self, entry: Any, axes: LogAxes) -> Any:
        """An entry as the branch that appended it returns it; a branch not taken returns zeros in its place."""
        return When(taken_mask(axes), entry)

    def extend(self, run: Any, bodies: Sequence[Sequence[Any]], axes: Sequence[Sequence[LogAxes]]) -> None:
        """Append the entries of each body, which have these axes, to the log of ``run``."""
        run.current = with_entries(run.current, _joined(bodies), _joined(axes))

    def join(
        self, run: Any, op: HigherOrder, transformed: Sequence[TransformedBody], before: Sequence[ArrayType]
    ) -> StateLayout:
        types, positions = shared_results([body.state for body in transformed])
        uses = Counter([n for own in positions for n in own])
        shared = frozenset([n for n, count in uses.items() if count > 1])
        structure = [(body.structure, own, shared) for body, own in zip(transformed, positions)]
        return StateLayout([*types, *[_NUMBER] * bool(shared)], structure, positions, bool(shared))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        bodies, axes = [], []
        for i, ((tree, inner), own, shared) in enumerate(structure):
            taken = eq(values[-1], i) if shared.intersection(own) else None
            leaves = [select_n(taken, zeros_like(values[n].type), values[n]) if n in shared else values[n] for n in own]
            bodies.append(list(map(self.placed, pytrees.unflatten(tree, leaves), inner)))
            axes.append([outside(each, self.op) for each in inner])
        self.extend(run, bodies, axes)

    def placed(self, entry: Any, axes: LogAxes) -> Any:
        """An entry that left a loop or lanes, its new first axis moved to that axis's position."""
        at = place(axes, self.op) if self.op.stacks else 0
        return pytrees.map(lambda x: move_axis(x, 0, at), entry) if at else entry


def _joined(lists: Sequence[Sequence[Any]]) -> list[Any]:
    return [item for items in lists for item in items]


_NUMBER = array_type((), int32)


class UnstackableLog(StateFlow):
    """The flow of a log through a loop of unknown length, in which nothing may be appended."""

    def __init__(self, op: HigherOrder):
        self.name = op.name

    def key(self) -> Any:
        return ("unstackable", self.name)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = OpenLog(run.label)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        if known_entries(run.current):
            raise CannotCross(
                f"{self.name}: the log of {run.label} cannot cross a loop of unknown length: the number of "
                "its entries must be known when it is traced.",
                hint="use scan or fori_loop with constant bounds, or a state with an array of fixed size.",
            )
        return (), None


class MergedState(StateFlow):
    """The flow of a commutative state: each lane starts at the unit; ``UnmergedLanes`` keeps the final states."""

    def __init__(self, movement: merge, op: HigherOrder):
        self.movement = movement
        self.size = op.length
        self.varying = frozenset(op.lanes_of_all)

    def key(self) -> Any:
        return ("merged",)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = self.movement.unit

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        leaves, structure = leaves_of(run.merged_state())
        return self.vary(leaves), structure

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        lanes = pytrees.unflatten(structure, values)
        before = run.current
        if type(before) is UnmergedLanes and before.size == self.size:
            run.current = before.with_lanes(lanes)
        else:
            run.current = UnmergedLanes(self.movement.op, run.merged_state(), lanes, self.size)


class SplitState(StateFlow):
    """The flow of a key: each lane gets one of the split keys, and the last one is the state afterwards."""

    stacked = True

    def __init__(self, movement: split, run: Any, op: HigherOrder):
        length, self.varying = op.length, frozenset(op.lanes_of_all)
        keys: Any = as_array(movement.f(run.current, length + 1))
        if keys.type.shape[:1] != (length + 1,):
            raise BadArgument(f"split: f(key, n) must give n keys along the first axis, got {keys.type}.")
        self.operands = (slice_in_dim(keys, 0, length),)
        self.last = keys[length]

    def key(self) -> Any:
        return ("split",)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        (run.current,) = values

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        run.current = self.last
