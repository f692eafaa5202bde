"""Ragged rules of loops along the ragged axis: as many iterations as the longest lane has rows."""

from __future__ import annotations

from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import BASE, inside
from ...effects.control.loops import Scan
from ...effects.operations.elementwise.comparison import select
from ...effects.programs.program import interpret
from ...effects.types.array_type import BOOL, array_type
from ..core.body_transform import cross
from ..core.record import Record
from .ragged_batch import RAGGED, RaggedBatch, RowsMark, ragged_axes


@RAGGED.rule(Scan)
def scan_along(run: RaggedBatch, op: Any, types: Any, *operands: Any) -> Any:
    """The loop over the longest lane; a lane that has ended keeps its carry, and what it makes then is padding."""
    extent = op.length
    n = run.lanes.of(extent)
    _, shared, carry, each = op.groups(operands)
    partition = run.lanes.whole
    columns = [run.box(0, run.padded(_along(x), partition)) for x in each]
    with inside(n.place):
        mask = run.lanes.mask(extent, partition, 0)
    guarded = type(op)(
        (_guarded(op),), op.shared, op.carry, n.longest, op.backwards, op.unroll
    )
    results = cross(run, guarded, (*shared, *carry, run.box(0, (mask,)), *columns))
    return (*results[: op.carry], *[_rows(run, y, extent, partition) for y in results[op.carry :]])


def _along(x: Any) -> Any:
    """A stacked operand, whose first axis is its only ragged one."""
    if [axis for axis, _ in ragged_axes(x.type.shape)] != [0]:
        raise CannotCross(f"scan: its slices have a ragged axis too, got {x.type}.")
    return x


def _rows(run: RaggedBatch, y: Any, extent: Any, partition: Any) -> Any:
    """The rows of a stacked result, of a value for each iteration."""
    (value,) = run.force(y, 0)
    return run.box(RowsMark(0, extent), (run.joined_rows([value], 0, extent, partition),))


def _guarded(op: Any) -> Any:
    """The body with one more slice, the first: whether the lane goes on."""
    body = op.bodies[0]
    recorder = Record(BASE, "")
    first = op.shared + op.carry
    inputs = recorder.inputs(body.in_types[:first])
    more = recorder.input(array_type((), BOOL))
    inputs += recorder.inputs(body.in_types[first:])
    with inside(recorder):
        ys = interpret(body, inputs)
        ends = [select(more, new, old) for new, old in zip(ys, inputs[op.shared : first])]
        program = recorder.freeze([*ends, *ys[op.carry :]], body.name)
    return program
