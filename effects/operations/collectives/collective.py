"""Collectives: operations over named axes, and the rules by which the handler that binds an axis answers them.

The axes in scope span *lanes*; a value is one array per lane. A collective names axes, whose product has N lanes,
indexed row-major, the first named axis major. ``groups`` is a partition of these lanes into ordered lists; None is one
list of all. Every collective has the form

    y(lane) = f(x of the lanes of my group, my position in it)

Three rules answer it at the handler that binds one axis:

    one axis at a time   ungrouped, and separable or over that axis alone: the rule ``collective`` of the block answers
                         this axis, and performs what remains over the others
    by group             groups over that axis alone: a lane is indexed by (group, position), and the ungrouped
    operation
                         along the positions is that of all groups at once
    gathered             anything else: all lanes are gathered, the operation is applied to the stacked array, and each
                         lane takes its own slice. A gather under ``vmap`` exposes the mapped dimension: nothing is
                         copied

In derivatives, the inner product of two values sums over all lanes and elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from ...base.errors import ShardingTypeError
from ...base.stack import perform
from ...core import columns
from ...core.arrays import scalar
from ...core.columns import COLLECTIVE, data_movement, linear, per_operand
from ...core.named_axes import Axis, SizedAxis, tracked
from ...core.operation import Operation, operation
from ...core.varying import LaneOperations, vary
from ...sharding.sharding_rules import Sums, alike, shown
from ...types.array_type import array_type
from ...types.dtype_families import ANY_FLOATING, COMPLEX, ExtendedDType
from ...types.dtypes import int32, itemsize_bits
from ..elementwise.arithmetic import add, div, integer_pow, mul
from ..elementwise.comparison import eq, select
from ..elementwise.complex_parts import complex, imag, real
from ..elementwise.conversion import bitcast_convert_type, convert
from ..foundations.shapes import ReduceSum, broadcast, move_axis, need_dtype, reduce_sum, reshape, zeros
from ..foundations.sharding_constraint import hide, reveal
from ..indexing.dynamic_slicing import dynamic_index_in_dim
from ..manipulation.creation import iota
from ..manipulation.slicing import axis_at, index_in_dim, insert
from ..reductions.cumulative import cumprod
from ..reductions.reductions import (
    ReduceMax,
    ReduceMin,
    ReduceProd,
    highest,
    lowest,
    reduce_max,
    reduce_min,
    reduce_prod,
)
from .lane_groups import Groups, GroupTable, along_groups, rows
from .mesh_lowering import (
    all_gather,
    all_to_all,
    axis_index,
    collective_permute,
    ordered_reduction,
    reduce_scatter,
    reduction,
)
from .traffic import exchange, permutation, ring


class Collective(Operation):
    """An operation that communicates over the product of the named ``axes``, the first one major.

    ``dims[k]`` is the dimension of operand or result that the lanes of ``axes[k]`` are exchanged with; with groups
    there is a single one for all axes.
    """

    __slots__ = ()
    named = True
    separable: ClassVar[bool] = True  # over several axes it equals one axis after the other, in any order
    reads_dims: ClassVar[bool] = False  # its operand has ``dims``
    makes_dims: ClassVar[bool] = False  # its result has ``dims``
    meets: ClassVar[bool] = True  # lanes receive other lanes' values
    meets_all: ClassVar[bool] = False  # all devices of the mesh execute it together, not each group separately
    makes_equal: ClassVar[bool] = False  # without groups all lanes get the same result
    adds: ClassVar[bool] = False  # without groups it sums the lanes' values, so that of summands the result is whole
    unit: ClassVar[Callable[[Any], Any]] = lambda dtype: 0  # pads the smaller groups, where groups differ in size
    axes: tuple[SizedAxis, ...]
    groups: Groups | None = None
    dims: tuple[int, ...] = ()
    sharding_rule = alike
    flops = data_movement
    exempt = dict.fromkeys(
        ("evaluate", "lower", "batch", "jvp", "transpose"),
        "outside its axes it has no meaning; tests of named axes cover it under vmap",
    )

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return tuple([name for name, _ in self.axes])

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset(map(Axis, self.axis_names))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each dimension of ``dims``: those of the axes, or that of a group."""
        return tuple([size for _, size in self.axes]) if self.groups is None else (len(self.groups[0]),)

    def varies(self, operands: frozenset[SizedAxis]) -> frozenset[SizedAxis]:
        return operands - frozenset(self.axes) if self.makes_equal and self.groups is None else operands

    def partial_sums(self, types: Sequence[Any]) -> Sums:
        names = frozenset(self.axis_names).intersection(*[t.manual for t in types])
        ends = self.adds and self.groups is None
        if any([names & (t.mat.reduced if ends else t.mat.reduced | t.mat.unreduced) for t in types]):
            raise ShardingTypeError(
                f"{self.name}: along its axes an operand must vary, got {shown(types)}.",
                hint="lax.psum sums what is unreduced; lax.pcast(x, axes, to='varying') takes copies as values.",
            )
        others = [t.cut and t.cut.with_spec(t.cut.spec.without_sums(names)) for t in types]
        return super().partial_sums([t.cut_by(cut) for t, cut in zip(types, others)])

    @property
    def needs_all_lanes(self) -> bool:
        """Whether the handler of one of its axes cannot answer for that axis alone, and all lanes must be gathered."""
        return len(self.axes) > 1 and (self.groups is not None or not self.separable)

    def renumbered(self, axis: Hashable, y: Any, shift: Any) -> Any:
        """The result where lane ``i`` of an axis has the index ``i + shift[i]``; ``y`` has the lanes first."""
        return y

    def result_type(self, *types: Any) -> Any:
        need_dtype(self, types[0])
        return types[0]

    def batch(self, dims: Sequence[Any], x: Any) -> tuple[Any, Any]:
        """The batch rule for an axis that it does not name: the same operation with its dimensions shifted."""
        return beside(self, x, dims[0])

    def shifted(self: Any, d: int) -> tuple[Any, int]:
        """The operation for an operand with a further dimension ``d``, and the position of this dimension in the
        result.
        """
        at = out = d
        if self.makes_dims and not self.reads_dims:
            kept = [e for e in range(d + len(self.dims)) if e not in self.dims]
            at = out = kept[d - 1] + 1 if d else 0
        elif self.reads_dims and not self.makes_dims:
            out = d - sum([e < d for e in self.dims])
        return (replace(self, dims=tuple([e + (e >= at) for e in self.dims])) if self.dims else self), out

    def without(self: Any, axis: Hashable) -> tuple[Any, int]:
        """The collective over the other axes, and this axis's dimension; the others are renumbered as if it were
        removed.
        """
        at = self.axis_names.index(axis)
        rest = replace(self, axes=self.axes[:at] + self.axes[at + 1 :])
        if not self.dims:
            return rest, -1
        d, others = self.dims[at], self.dims[:at] + self.dims[at + 1 :]
        stays = self.reads_dims and self.makes_dims
        return replace(rest, dims=others if stays else tuple([e - (e > d) for e in others])), d

    def in_one_place(self: Any, x: Any) -> Any:
        """The operation on the stacked values of all lanes, of whose result each lane takes its own slice."""
        name, rule = "table", COLLECTIVE.find(type(self))

        def of_table(table: Any) -> Any:
            total = table.type.shape[0]
            y, dim = rule(replace(self, axes=((name, total),)), name, total, (0,), table)
            return axis_at(y, dim, 0, total)

        return on_table(of_table, x, self.axes)

    @classmethod
    def adapt(cls, column: str, cell: Any) -> Any:
        """The block's rule ``collective`` for ungrouped operations, extended to groups."""
        if column != "collective":
            return cell

        def rule(op: Any, axis: Hashable, size: int, dims: Sequence[Any], *xs: Any) -> tuple[Any, Any]:
            return cell(op, axis, size, dims, *xs) if op.groups is None else _by_rows(cell, op, axis, size, dims, *xs)

        return rule


def beside(op: Collective, x: Any, dim: int | None) -> tuple[Any, int | None]:
    """Perform an operation on a value with lanes along ``dim``, an axis that it does not name; the result, and its
    dimension.
    """
    if dim is None or not op.axes:
        return (perform(op, x) if op.axes else x), dim
    mapped, out = op.shifted(dim)
    return perform(mapped, x), out


def _by_rows(rule: Any, op: Any, axis: Hashable, size: int, dims: Sequence[int | None], x: Any) -> tuple[Any, int]:
    """The rule ``collective`` with groups, by the rule without: a group is a row of a table of lanes."""
    members = GroupTable.of(op.groups or ())
    table = members.by_group(axis_at(x, dims[0], 0, size), type(op).unit)
    width = members.lanes.shape[1]
    along, _ = replace(op, axes=((axis, width),), groups=None).shifted(0)
    y, dim = rule(along, axis, width, (1,), table)
    return members.by_lane(move_axis(axis_at(y, dim, 0, width), 1, 0)), 0


def on_table(f: Callable[[Any], Any], x: Any, axes: tuple[SizedAxis, ...]) -> Any:
    """``f(a[lanes, ...])[axis_index]``: a function of the stacked values of all lanes, of which each lane takes its own
    slice.
    """
    whole = perform(AllGather(axes, None, tuple(range(len(axes)))), x) if axes else x
    total = prod([size for _, size in axes])
    y = f(reshape(whole, (total, *whole.type.shape[len(axes) :])))
    return dynamic_index_in_dim(y, lane_number(axes, x.type.varying), 0, keepdims=False)


def collect(op: Collective, x: Any) -> Any:
    """Perform a collective on a value that may be the same in all lanes, and then is not mapped; over no axis, ``x``.
    """
    return perform(op, vary(x, tracked(op.axes))) if op.axes else x


def lane_number(axes: tuple[SizedAxis, ...], varying: frozenset[SizedAxis]) -> Any:
    """The index of the current lane in the product of the axes, typed as varying along those of them in ``varying``."""
    if not axes:
        return scalar(0, int32)
    return vary(perform(AxisIndex(axes)), varying & frozenset(axes))


def lane_position(axes: tuple[SizedAxis, ...], groups: Groups | None, varying: frozenset[SizedAxis]) -> Any:
    """The position of the current lane in its group; ``varying`` as in ``lane_number``."""
    lane = lane_number(axes, varying)
    return lane if groups is None else dynamic_index_in_dim(GroupTable.of(groups).position, lane, 0, keepdims=False)


class LaneReduction(Collective):
    """y = x_1 o ... o x_n over the lanes of a group, for a commutative and associative o."""

    __slots__ = ()
    reduce: ClassVar[Callable[..., Any]]  # along dimensions of an array
    repeat: ClassVar[Callable[[Any, int], Any]]  # x o x o ... o x
    makes_equal = True
    flops = per_operand
    traffic = ring(2)

    def gathered(self, x: Any) -> Any:
        """The reduction by gathering all lanes."""
        if self.groups is not None:
            return self.in_one_place(x)
        dims = tuple(range(len(self.axes)))
        return type(self).reduce(perform(AllGather(self.axes, None, dims), x), dims)

    def collective(self, axis: Hashable, size: int, dims: Sequence[int | None], x: Any) -> tuple[Any, int | None]:
        (d,), (rest, _) = dims, self.without(axis)
        kind = type(self)
        return beside(rest, kind.repeat(x, size) if d is None else kind.reduce(x, (d,)), None)


def _times(x: Any, n: int) -> Any:
    """n x; as a sum where the dtype may be too narrow to hold n."""
    if x.type.dtype.itemsize < 4 or n > 1 << 24:
        return reduce_sum(axis_at(x, None, 0, n), (0,))
    return mul(x, broadcast(scalar(n, x.type.dtype), x.type.shape))


# y = sum of x over the lanes
@operation
class Psum(LaneReduction):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None = None
    reduce = reduce_sum
    repeat = _times
    adds = True
    dtypes = ReduceSum.dtypes
    lower = reduction("add")
    jvp = linear

    def transpose(op, ct, x):
        """The adjoint: the cotangent itself if the result is one value for all lanes; the sum over lanes if each has a
        copy.
        """
        if op.groups is not None:
            return perform(op, ct)
        copies = tuple([axis for axis in op.axes if axis not in x.varying])
        return vary(perform(Psum(copies), ct) if copies else ct, x.varying)


# y = product of x over the lanes
@operation
class Pprod(LaneReduction):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None = None
    unit = lambda dtype: 1
    reduce = reduce_prod
    repeat = integer_pow
    dtypes = ReduceProd.dtypes
    lower = reduction("multiply")

    def jvp(op, primals, tangents):
        """dy = sum of dx times the product of all other factors, by prefix and suffix products, without division."""
        (x,), (dx,) = primals, tangents
        before, after = [exclusive_products(x, op.axes, op.groups, reverse) for reverse in (False, True)]
        return perform(op, x), perform(Psum(op.axes, op.groups), mul(dx, mul(before, after)))


class LaneExtreme(LaneReduction):
    """The largest or smallest value of all lanes; lanes that attain it share the tangent equally."""

    __slots__ = ()
    repeat = lambda x, n: x

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        y = perform(self, x)
        chosen = convert(eq(x, y), x.type.dtype)
        total = Psum(self.axes, self.groups)
        return y, div(perform(total, mul(dx, chosen)), perform(total, chosen))


# y = max of x over the lanes
@operation
class Pmax(LaneExtreme):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None = None
    unit = lowest
    reduce = reduce_max
    dtypes = ReduceMax.dtypes
    lower = ordered_reduction("maximum")


# y = min of x over the lanes
@operation
class Pmin(LaneExtreme):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None = None
    unit = highest
    reduce = reduce_min
    dtypes = ReduceMin.dtypes
    lower = ordered_reduction("minimum")


def exclusive_products(x: Any, axes: tuple[SizedAxis, ...], groups: Groups | None, reverse: bool) -> Any:
    """The product of x over the lanes of the group before the current one; after it if ``reverse``."""
    return on_table(lambda table: along_groups(cumprod, table, groups, reverse, True, Pprod.unit), x, axes)


# y[k_1 at dims[0], k_2 at dims[1], ...] = x of the lane (k_1, k_2, ...)
@operation
class AllGather(Collective):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None
    dims: tuple[int, ...]
    makes_dims = True

    def result_type(op, x):
        shape = x.shape
        for d, size in sorted(zip(op.dims, op.sizes)):
            shape = insert(shape, d, size)
        return x.update(shape=shape)

    jvp = linear

    def transpose(op, ct, x):
        return perform(PsumScatter(op.axes, op.groups, op.dims), ct)

    def collective(op, axis, size, dims, x):
        rest, d = op.without(axis)
        y, dim = beside(rest, x, dims[0])
        return axis_at(y, dim, d, size), None

    lower = all_gather
    traffic = ring(1, gathers=True)


# y = (sum of x over the lanes)[k_1 at dims[0], k_2 at dims[1], ...] in the lane (k_1, k_2, ...)
@operation
class PsumScatter(Collective):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None
    dims: tuple[int, ...]
    reads_dims = True
    adds = True
    dtypes = ReduceSum.dtypes

    def result_type(op, x):
        need_dtype(op, x)
        return x.update(shape=tuple([n for d, n in enumerate(x.shape) if d not in op.dims]))

    jvp = linear

    def transpose(op, ct, x):
        return perform(AllGather(op.axes, op.groups, op.dims), ct)

    def collective(op, axis, size, dims, x):
        rest, d = op.without(axis)
        return beside(rest, _times(x, size) if dims[0] is None else reduce_sum(x, (dims[0],)), d)

    lower = reduce_scatter
    flops = per_operand
    traffic = ring(1)


# y[k at dims] = (x of the lane k)[my lane at dims]: lanes and dimensions change places
@operation
class AllToAll(Collective):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None
    dims: tuple[int, ...]
    reads_dims = True
    makes_dims = True

    jvp = linear

    def transpose(op, ct, x):
        return perform(op, ct)

    def collective(op, axis, size, dims, x):
        rest, d = op.without(axis)
        return beside(rest, axis_at(x, dims[0], d, size), d + 1)

    lower = all_to_all
    traffic = exchange


# y = x of the lane ``source``
@operation
class Pbroadcast(Collective):
    axes: tuple[SizedAxis, ...]
    groups: Groups | None
    source: int

    jvp = linear

    def transpose(op, ct, x):
        total = perform(Psum(op.axes, op.groups), ct)
        mine = eq(lane_position(op.axes, op.groups, ct.type.varying), scalar(op.source, int32))
        return select(broadcast(mine, total.type.shape), total, zeros(total.type))

    def collective(op, axis, size, dims, x):
        digits = np.unravel_index(op.source, op.sizes)
        rest, _ = op.without(axis)
        at = op.axis_names.index(axis)
        others = (*digits[:at], *digits[at + 1 :])
        y = x if dims[0] is None else index_in_dim(x, int(digits[at]), dims[0], keepdims=False)
        if not rest.axes:
            return y, None
        return perform(replace(rest, source=int(np.ravel_multi_index(others, rest.sizes))), y), None

    traffic = ring(2)

    def lower(op, emit, x):
        """Broadcast as an all-reduce of bit patterns, zero on all devices but the root."""
        dtype = x.type.dtype
        if isinstance(dtype, ExtendedDType):
            x = x._replace(type=x.type.update(shape=(*x.type.shape, *dtype.shape), dtype=dtype.base))
        return emit.decompose(lambda x: _sum_of_one(op, x), x)._replace(type=emit.made)


def _sum_of_one(op: Any, x: Any) -> Any:
    """The root's value of a ``Pbroadcast`` as a sum of bit patterns, since a sum of floats would lose the sign of zero.
    """
    dtype = x.type.dtype
    if dtype in COMPLEX:
        return complex(_sum_of_one(op, real(x)), _sum_of_one(op, imag(x)))
    if dtype in ANY_FLOATING:
        return bitcast_convert_type(_sum_of_one(op, bitcast_convert_type(x, f"uint{itemsize_bits(dtype)}")), dtype)
    if dtype not in Psum.dtypes:
        return convert(_sum_of_one(op, convert(x, int32)), dtype)
    mine = eq(lane_position(op.axes, op.groups, x.type.varying), scalar(op.source, int32))
    return perform(Psum(op.axes, op.groups), select(broadcast(mine, x.type.shape), x, zeros(x.type)))


# y = x of the lane s, in the lane t, for each pair (s, t); 0 in lanes that no pair leads to
@operation
class Ppermute(Collective):
    axes: tuple[SizedAxis, ...]
    pairs: tuple[tuple[int, int], ...]
    separable = False

    jvp = linear

    def transpose(op, ct, x):
        return perform(Ppermute(op.axes, tuple([(t, s) for s, t in op.pairs])), ct)

    def collective(op, axis, size, dims, x):
        source = np.full(size, size)
        source[[t for _, t in op.pairs]] = [s for s, _ in op.pairs]
        lanes = axis_at(x, dims[0], 0, size)
        return reveal(rows(hide(lanes), source, mode="fill", fill_value=0), lanes.type.cut), 0

    meets_all = True
    lower = collective_permute
    traffic = permutation


# y = the index of the current lane
@operation
class AxisIndex(Collective):
    meets = False
    axes: tuple[SizedAxis, ...]

    def result_type(op):
        return array_type((), int32)

    jvp = columns.zero

    def collective(op, axis, size, dims):
        lane = broadcast(scalar(0, int32), (size,))
        for k, (name, _) in enumerate(op.axes):
            stride = prod([n for _, n in op.axes[k + 1 :]])
            own = iota(int32, size) if name == axis else broadcast(perform(AxisIndex(op.axes[k : k + 1])), (size,))
            lane = add(lane, mul(own, broadcast(scalar(stride, int32), (size,))))
        return lane, 0

    def renumbered(op, axis, y, shift):
        stride = prod([n for _, n in op.axes[[name for name, _ in op.axes].index(axis) + 1 :]])
        return add(y, mul(shift, broadcast(scalar(stride, int32), shift.type.shape)))

    lower = axis_index


# y = x, with a type that varies along the axes: each lane has a copy
@operation
class Pvary(Collective):
    meets = False
    axes: tuple[SizedAxis, ...]

    jvp = linear

    def varies(self, operands: frozenset[SizedAxis]) -> frozenset[SizedAxis]:
        return operands | frozenset(self.axes)

    def transpose(op, ct, x):
        return ct  # unreduced along the axes

    def collective(op, axis, size, dims, x):
        return beside(op.without(axis)[0], x, dims[0])

    def lower(op, emit, x):
        return x


# y = x of lane 0, for a value that is the same in all lanes
@operation
class Punvary(Collective):
    meets = False
    axes: tuple[SizedAxis, ...]
    makes_equal = True

    jvp = linear

    def transpose(op, ct, x):
        mine = eq(lane_number(op.axes, x.varying), scalar(0, int32))
        return select(broadcast(mine, x.shape), vary(ct, x.varying), zeros(ct.type))

    def collective(op, axis, size, dims, x):
        y = x if dims[0] is None else index_in_dim(x, 0, dims[0], keepdims=False)
        return beside(op.without(axis)[0], y, None)

    def lower(op, emit, x):
        return x


LaneOperations.copy, LaneOperations.sum, LaneOperations.highest, LaneOperations.lowest = Pvary, Psum, Pmax, Pmin
