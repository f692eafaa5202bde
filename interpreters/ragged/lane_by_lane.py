"""``LaneByLane``: the ragged vmap handler that computes values with two ragged axes, such as attention scores, one lane
at a time.

It is used where lengths are values of a program: padded, such a value takes the square of the longest lane in every
lane. An operation on such a value, and all that depend on it, are therefore deferred until a result is needed outside
of the lanes, or by an operation that cannot be deferred. Then the deferred equations are partitioned: those connected
by values with two ragged axes, and those between them, become one ``RaggedLoop``; the others are evaluated on packed
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ...effects.base.stack import BASE, at_site, inside
from ...effects.core.arrays import ConcreteArray
from ...effects.core.operation import Operation, is_pure, result_type
from ...effects.operations.foundations.shapes import move_axis
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...effects.types.sized import extents_in
from ..batching.batch import BatchBox, lane_box
from ..core.record import Record
from .ragged_batch import PaddedMark, RaggedBatch, RowsMark, ragged_axes
from .ragged_loop import RaggedLoop

PAYS = 128  # bound of lane lengths below which a loop iteration costs more than padding
MOST_LOOPS = 2  # loops that may recompute one equation, for results needed one after another; then it is padded


class _Equation:
    """A deferred operation with its operands; ``number``: its position in program order; ``loops``: how many loops have
    computed it.
    """

    __slots__ = ("op", "operands", "types", "site", "number", "loops")

    def __init__(self, op: Operation, operands: tuple[Any, ...], types: Sequence[ArrayType], site: Any, number: int):
        self.op, self.operands, self.types, self.site, self.number = op, operands, types, site, number
        self.loops = 0

    @property
    def relates(self) -> bool:
        """Whether an operand or a result has two ragged axes."""
        return any([relates_rows(t) for t in (*[x.type for x in self.operands], *self.types)])


class _Waiting:
    """The mark of a value that is the result of a deferred equation."""

    __slots__ = ("equation", "result")

    def __init__(self, equation: _Equation, result: int):
        self.equation, self.result = equation, result


def relates_rows(type: ArrayType) -> bool:
    """Whether a value has two ragged axes."""
    return len(ragged_axes(type.shape)) > 1


def waits(x: Any) -> bool:
    return type(x) is BatchBox and isinstance(x.dim, _Waiting)


class LaneByLane(RaggedBatch):
    """The ragged vmap handler that defers operations on values with two ragged axes."""

    __slots__ = ("count",)
    count: int  # the number of equations so far

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.count = 0

    def split(self, x: Any) -> tuple[Any, Sequence[Any]]:
        self.settle((x,))
        return super().split(x)

    def settle(self, values: Sequence[Any]) -> None:
        waiting = [x for x in values if x.run is self and type(x.dim) is _Waiting]
        if waiting:
            with inside(self.outer):
                self._compute(waiting)

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        lanes = self.lanes
        if lanes.divided or lanes.first or not lanes.count or max([n.longest for n in lanes.lengths.values()]) < PAYS:
            return super().answer(op, operands)
        own = [x for x in operands if x.run is self]
        waiting = any([type(x.dim) is _Waiting for x in own])
        if not is_pure(op) or not (waiting or self._relates(op, operands, own)):
            self.settle(own)
            return super().answer(op, operands)
        types = op.as_results(result_type(op, tuple([x.type for x in operands])))
        self.count += 1
        equation = _Equation(op, operands, types, self.cell.site or self.labelled_site(), self.count)
        boxes = [lane_box(self, None, _Waiting(equation, k), t, equation.site) for k, t in enumerate(types)]
        return op.from_results(boxes)

    def _relates(self, op: Any, operands: Sequence[Any], own: Sequence[Any]) -> bool:
        """Whether an operation on ragged operands has a result with two ragged axes."""
        marks = [type(x.dim) for x in own]
        if op.bodied or PaddedMark in marks:
            return False
        if RowsMark not in marks and not self.lanes.owns(extents_in(op.fields)):
            return False
        types = op.as_results(result_type(op, tuple([x.type for x in operands])))
        return any([relates_rows(t) for t in types])

    def _compute(self, wanted: Sequence[Any]) -> None:
        """Compute the deferred boxes ``wanted``."""
        equations, boxes = _reached(wanted)
        goals = {_key(x) for x in wanted}
        users = [(id(equation), _key(x)) for equation in equations for x in equation.operands if waits(x)]
        for group in _groups(equations):
            inner = {id(equation) for equation in group}
            needed = goals.union([key for user, key in users if user not in inner])
            outside = {key: x for key, x in boxes.items() if key in needed and key[0] in inner}
            if (len(group) == 1 and not group[0].relates) or not self._loop(group, outside):
                for equation in group:
                    self._perform(equation, boxes)

    def _perform(self, equation: _Equation, boxes: dict[Any, Any]) -> None:
        """Evaluate one deferred equation as ``RaggedBatch`` does."""
        op = equation.op
        with at_site(equation.site, self.cell):
            for k, y in enumerate(op.as_results(RaggedBatch.answer(self, op, equation.operands))):
                if (id(equation), k) in boxes:
                    self._set(boxes[id(equation), k], y)

    def _set(self, box: Any, y: Any) -> None:
        mark, parts = RaggedBatch.split(self, y)
        if mark is None:
            mark, parts = 0, self.force(y, 0)
        box.dim, box.value = mark, tuple(parts) if type(mark) is PaddedMark else parts[0]

    def _loop(self, group: Sequence[_Equation], outside: dict[Any, Any]) -> bool:
        """Evaluate these equations in one loop over the lanes, if its inputs and outputs have at most one ragged axis
        each.

        Returns False otherwise, and where too many loops have computed them, since loops do not share results.
        """
        inner = {id(equation) for equation in group}
        again = max([equation.loops for equation in group]) == MOST_LOOPS
        if again or any([relates_rows(x.type) for x in outside.values()]):
            return False
        given: dict[int, Any] = {}
        for equation in group:
            for x in equation.operands:
                if not (waits(x) and id(x.dim.equation) in inner):
                    given[id(x)] = x
        if any([x.run is self and type(x.dim) is PaddedMark for x in given.values()]):
            return False
        _Region(self, given, group, outside).perform()
        for equation in group:
            equation.loops += 1
        return True


class _Region:
    """Equations that become the body of one ``RaggedLoop``, with its inputs and outputs."""

    def __init__(self, run: LaneByLane, given: dict[int, Any], group: Sequence[_Equation], outside: dict[Any, Any]):
        self.run, self.given, self.group, self.outside = run, given, group, outside

    def perform(self) -> None:
        run = self.run
        own = [x for x in self.given.values() if x.run is run]
        shared = [x for x in self.given.values() if x.run is not run and not isinstance(x, ConcreteArray)]
        entering = [self.enter(x) for x in own]
        axes = [ragged_axes(x.type.shape) for x in self.outside.values()]
        body = self.body(shared, own, [axis for _, axis in entering], axes)
        lengths = run.lanes.lengths
        bounds = tuple([(number, n.total, n.longest) for number, n in lengths.items()])
        op = RaggedLoop((body,), len(shared), 0, run.size, bounds)
        selects = [n.values for n in lengths.values()]
        results = run.outer.answer(op, (*selects, *shared, *[value for value, _ in entering]))
        for x, y, a in zip(self.outside.values(), results, axes):
            self.leave(x, y, a)

    def body(self, shared: Sequence[Any], own: Sequence[Any], moved: Sequence[Any], axes: Sequence[Any]) -> Program:
        """The program of one lane. ``moved`` and ``axes``: the ragged axes of inputs and outputs, which the body has
        first.
        """
        recorder = Record(BASE, "")
        shapes = [x.type.shape if axis is None else _first(x.type.shape, axis) for x, axis in zip(own, moved)]
        inputs = recorder.inputs([*[x.type for x in shared], *[x.type.update(shape=s) for x, s in zip(own, shapes)]])
        env: dict[int, Any] = {id(x): x for x in self.given.values() if isinstance(x, ConcreteArray)}
        env.update([(id(x), y) for x, y in zip(shared, inputs)])
        values: dict[Any, Any] = {}
        with inside(recorder):
            for x, y, axis in zip(own, inputs[len(shared) :], moved):
                env[id(x)] = y if axis is None else move_axis(y, 0, axis)
            for equation in self.group:
                recorder.cell.site = equation.site
                operands = [env[id(x)] if id(x) in env else values[_key(x)] for x in equation.operands]
                for k, y in enumerate(equation.op.as_results(recorder.answer(equation.op, tuple(operands)))):
                    values[id(equation), k] = y
            recorder.cell.site = None
            outs = [move_axis(values[key], a[0][0], 0) if a else values[key] for key, a in zip(self.outside, axes)]
            return recorder.freeze(outs, "lane")

    def enter(self, x: Any) -> tuple[Any, int | None]:
        """The loop operand for a value, with lanes or rows first, and the axis of the value that is ragged."""
        if type(x.dim) is RowsMark:
            return move_axis(x.value, x.dim.axis, 0), x.dim.axis
        return self.run.force(x, 0)[0], None

    def leave(self, x: Any, y: Any, axes: Any) -> None:
        """Replace a deferred box by the loop's result."""
        if not axes:
            x.dim, x.value = 0, y
            return
        ((axis, extent),) = axes
        x.dim, x.value = RowsMark(axis, extent), move_axis(self.run.enter(y, extent).value, 0, axis)


def _first(shape: Sequence[Any], axis: int) -> tuple[Any, ...]:
    """The shape with this axis first."""
    return (shape[axis], *shape[:axis], *shape[axis + 1 :])


def _key(x: Any) -> tuple[int, int]:
    """The equation, by identity, and the result of it that a deferred box stands for."""
    return id(x.dim.equation), x.dim.result


def _reached(wanted: Sequence[Any]) -> tuple[list[_Equation], dict[Any, Any]]:
    """The deferred equations on which these boxes depend, in program order; and the boxes of their results."""
    reached: dict[int, _Equation] = {}
    boxes: dict[Any, Any] = {}
    left = list(wanted)
    while left:
        x = left.pop()
        equation = x.dim.equation
        boxes[_key(x)] = x
        if id(equation) not in reached:
            reached[id(equation)] = equation
            left += [y for y in equation.operands if waits(y)]
    return sorted(reached.values(), key=lambda equation: equation.number), boxes


def _groups(equations: Sequence[_Equation]) -> list[list[_Equation]]:
    """The equations partitioned into groups, in order: equations connected by a value with two ragged axes share a
    group, as do those between two equations of one group.
    """
    group = {id(equation): k for k, equation in enumerate(equations)}

    def merge(members: Sequence[int]) -> None:
        for key, k in group.items():
            if k in members:
                group[key] = min(members)

    edges = [
        (id(x.dim.equation), id(equation), relates_rows(x.type))
        for equation in equations
        for x in equation.operands
        if waits(x)
    ]
    for source, target, joined in edges:
        if joined and group[source] != group[target]:
            merge((group[source], group[target]))
    while True:
        graph: dict[int, set[int]] = {k: set() for k in group.values()}
        for source, target, _ in edges:
            if group[source] != group[target]:
                graph[group[target]].add(group[source])
        try:
            order = list(TopologicalSorter(graph).static_order())
            break
        except CycleError as error:
            merge(error.args[1])
    members: dict[int, list[_Equation]] = {k: [] for k in order}
    for equation in equations:
        members[group[id(equation)]].append(equation)
    return list(members.values())
