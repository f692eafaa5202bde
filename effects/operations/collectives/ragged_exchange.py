"""``ragged_all_to_all``: slices of any size from every lane to every lane."""

from __future__ import annotations

from typing import Any

from ...base.errors import ShapeMismatch
from ...core.arrays import as_array
from ...core.named_axes import tracked
from ...types.dtypes import int32
from ..elementwise.comparison import clamp, select
from ..elementwise.conversion import convert
from ..foundations.shapes import broadcast_in_dim, reshape
from ..indexing.dynamic_slicing import dynamic_index_in_dim
from ..indexing.scatter_functions import index_take
from ..manipulation.creation import iota
from ..manipulation.slicing import rev
from ..reductions.reductions import argmax, reduce_or
from .collective import AllGather, collect, lane_position
from .lane_reductions import equal_groups


def ragged_all_to_all(
    operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any, recv_sizes: Any, *,
    axis_name: Any, axis_index_groups: Any = None,
) -> Any:
    """Every lane sends slices of rows of ``operand`` to lanes, which write them into their ``output``.

        output of lane i [output_offsets[i] + k] = operand[input_offsets[i] + k]    for k < send_sizes[i]

    The offsets and sizes are the sender's. There may be several slices for each receiver, consecutive in these arrays;
    where slices overlap, the last sender's last slice wins.

    Shapes: ``operand: a[m, *s], output: a[n, *s]``, offsets and sizes ``i32[lanes * slices]`` give ``a[n, *s]``.

    Args:
        recv_sizes: the sizes of the slices that a lane receives. They follow from ``send_sizes``, and are not read.
    Raises: ShapeMismatch: shapes do not fit. UnboundAxis: nothing binds a name. BadArgument: groups differ in size.
    """
    axes, groups, size = equal_groups("ragged_all_to_all", axis_name, axis_index_groups)
    x, out = as_array(operand), as_array(output)
    tables = [convert(as_array(table), int32) for table in (input_offsets, send_sizes, output_offsets)]
    _check(x, out, tables, size)
    dims = tuple(range(len(axes) if groups is None else 1))

    def gathered(v: Any) -> Any:
        return reshape(collect(AllGather(axes, groups, dims), v), (size, *v.type.shape))

    me = lane_position(axes, groups, tracked(axes))

    def sent_to_me(table: Any) -> Any:
        """``i32[senders * slices]`` of a table with the slices for all lanes."""
        each = table.type.shape[0] // size
        mine = dynamic_index_in_dim(reshape(gathered(table), (size, size, each)), me, 1, keepdims=False)
        return reshape(mine, (size * each,))

    start, count, to = map(sent_to_me, tables)
    slices, length = to.type.shape[0], out.type.shape[0]
    row = iota(int32, length)
    across = (length, slices)
    row_of, to_of, end_of = [broadcast_in_dim(v, across, (d,)) for v, d in ((row, 0), (to, 1), (to + count, 1))]
    inside = (to_of <= row_of) & (row_of < end_of)
    last = slices - 1 - argmax(rev(inside, (1,)), 1, int32)
    sender = last // (slices // size)
    first, written = [index_take(v, [last], (0,)) for v in (start, to)]
    rows = x.type.shape[0]
    source = sender * rows + clamp(0, first + row - written, max(rows - 1, 0))
    received = index_take(reshape(gathered(x), (size * rows, *x.type.shape[1:])), [source], (0,))
    return select(broadcast_in_dim(reduce_or(inside, (1,)), out.type.shape, (0,)), received, out)


def _check(x: Any, out: Any, tables: list[Any], size: int) -> None:
    """Raise ShapeMismatch unless rows of operand and output agree, and each table has a part for every lane."""
    if x.type.dtype != out.type.dtype or x.type.shape[1:] != out.type.shape[1:] or not x.type.shape:
        raise ShapeMismatch(f"ragged_all_to_all: rows of operand and output must agree, got {x.type} and {out.type}.")
    shapes = {table.type.shape for table in tables}
    if len(shapes) > 1 or any([len(shape) != 1 or shape[0] % size or not shape[0] for shape in shapes]):
        listed = ", ".join([str(table.type) for table in tables])
        raise ShapeMismatch(
            f"ragged_all_to_all: offsets and sizes must be vectors with equal parts for {size} lanes, got {listed}."
        )
