"""Ragged rules of loops along the ragged axis, with as many iterations as the longest lane has rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import BASE, inside
from ...effects.control.branches import execute_if
from ...effects.control.loops import Scan
from ...effects.core.named_axes import is_root
from ...effects.operations.elementwise.comparison import max as maximum
from ...effects.operations.elementwise.comparison import min as minimum
from ...effects.operations.elementwise.comparison import select
from ...effects.operations.foundations.shapes import broadcast_in_dim, reshape, zeros
from ...effects.operations.indexing.relocation import take_rows
from ...effects.operations.manipulation.slicing import concatenate, slice_in_dim
from ...effects.programs.program import interpret
from ...effects.types.array_type import BOOL, array_type
from ...effects.types.sized import extents_in
from ..batching.taken_lanes import where_taken
from ..core.body_transform import cross
from ..core.record import Record
from .lane_lengths import LaneLengths, line
from .ragged_batch import RAGGED, PaddedMark, RaggedBatch, RowsMark


@RAGGED.rule(Scan)
def scan_along(op: Any, run: RaggedBatch, types: Any, *operands: Any) -> Any:
    """Scan for the length of the longest lane; a lane that has ended keeps its carry, and its further outputs are
    padding.
    """
    extent = op.length
    if not run.lanes.owns(extents_in(extent)):
        return cross(run, op, operands)
    n = run.lanes.of(extent)
    _, shared, carry, each = op.groups(operands)
    with inside(n.level):
        mask = run.lanes.mask(extent, run.lanes.whole, 0)
    body = _guarded(op, _share(run, n), [run.split(x)[0] is not None for x in shared])
    guarded = type(op)((body,), op.shared, op.carry, n.longest, op.backwards, op.unroll)
    columns = [_columns(run, x, n.longest) for x in each]
    results = cross(run, guarded, (*shared, *carry, run.box(0, (mask,)), *columns))
    return (*results[: op.carry], *[_rows(run, y, extent) for y in results[op.carry :]])


def _columns(run: RaggedBatch, x: Any, longest: int) -> Any:
    """A stacked operand whose first axis is ragged, padded to the longest lane."""
    if not run.size:
        return run.of_no_lanes(x.type.update(shape=(longest, *x.type.shape[1:])))
    axes = tuple(run.ragged_axes(x.type.shape)[1:])
    if not axes:
        x = run.box(RowsMark(0, x.type.shape[0]), (run.rows(x),))
        return run.box(0, run.padded(x, run.lanes.whole))
    partition = run.lanes.rounded
    parts = [_repeated(part, longest) for part in run.padded(x, partition)]
    return run.from_buckets(parts, (longest, *x.type.shape[1:]), partition)


def _repeated(part: Any, size: int) -> Any:
    """Lanes first, then rows, padded to ``size`` rows by copies of the last row."""
    count, own = part.type.shape[:2]
    if own == size:
        return part
    last = slice_in_dim(part, own - 1, own, axis=1)
    shape = (count, size - own, *part.type.shape[2:])
    return concatenate([part, broadcast_in_dim(last, shape, tuple(range(part.ndim)))], 1)


def _rows(run: RaggedBatch, y: Any, extent: Any) -> Any:
    """A stacked result: of each lane, the outputs of its own iterations."""
    if not run.size:
        return run.of_no_lanes(y.type.update(shape=(extent, *y.type.shape[1:])))
    axes = run.ragged_axes(y.type.shape)
    if not axes:
        rows = run.joined_rows(run.force(y, 0), 0, extent, run.lanes.whole)
        return run.box(RowsMark(0, extent), (rows,))
    mark = PaddedMark(0, ((0, extent), *axes))
    parts = [_ended(run, part, extent, k) for k, part in enumerate(run.padded(y, run.lanes.rounded))]
    return run.box(mark, run.guarded(parts, mark))


def _ended(run: RaggedBatch, part: Any, extent: Any, k: int) -> Any:
    """Bucket ``k`` of stacked outputs, in which those after a lane's end are copies of its last."""
    bucket = run.lanes.rounded.buckets[k]
    count, longest = part.type.shape[:2]
    shape = (count, bucket.padded(extent))
    n = run.lanes.counts(extent, run.lanes.rounded, k)
    last = maximum(broadcast_in_dim(n, shape, (0,)) - 1, 0)
    at = minimum(broadcast_in_dim(line(shape[1]), shape, (1,)), last)
    at = at + broadcast_in_dim(line(count), shape, (0,)) * longest
    flat = reshape(part, (count * longest, *part.type.shape[2:]))
    return reshape(take_rows(flat, reshape(at, (shape[0] * shape[1],))), (*shape, *part.type.shape[2:]))


def _share(run: RaggedBatch, n: LaneLengths) -> tuple[int, ...]:
    """The fraction of iterations in which a lane has not ended, as (numerator, denominator); () if lengths are not
    static.
    """
    return () if n.known is None else (int(n.known.sum()), max(run.size, 1) * n.longest)


def _guarded(op: Any, share: Any, mapped: Sequence[bool]) -> Any:
    """The loop's body with a further stacked input, first: a bool, whether the lane has not ended.

    ``mapped``: the shared operands that differ from lane to lane.
    """
    body = op.bodies[0]
    recorder = Record(BASE, "")
    first = op.shared + op.carry
    inputs = recorder.inputs(body.in_types[:first])
    more = recorder.input(array_type((), BOOL))
    inputs += recorder.inputs(body.in_types[first:])
    carry = inputs[op.shared : first]
    with inside(recorder):
        if is_root(op):
            nothing = [zeros(t) for t in body.out_types[op.carry :]]
            ends = execute_if(more, lambda: tuple(interpret(body, inputs)), lambda: (*carry, *nothing), share)
            return recorder.freeze(ends, body.name)
        step = where_taken(body, (*mapped, *[True] * (len(body.in_types) - op.shared)), False)
        ys = interpret(step, [more, *inputs])
        ends = [select(more, new, old) for new, old in zip(ys, carry)]
        return recorder.freeze([*ends, *ys[op.carry :]], body.name)
