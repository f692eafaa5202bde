"""Lowering of collectives over the axes of a mesh: one StableHLO operation each.

Devices are numbered row-major over the mesh, its first axis major. Replica groups along whole axes, or along sub-axes
such as blocks of neighbours, are written by axis names, which do not grow with the mesh. StableHLO has no such form for
source-target pairs and other groups: their tables list all devices, and are attributes that a module defines once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.named_axes import SizedAxis
from ...sharding.mesh import sdy_axis
from ...types.array_type import array_type
from ...types.dtype_families import ANY_FLOATING, ANY_SIGNED
from ...types.dtypes import float32, int8, int32, is_complex, itemsize_bits, uint8

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
NUMBER = array_type((), int32)


def rows(mesh: Any, axes: Sequence[SizedAxis]) -> np.ndarray[Any, Any]:
    """For each position along the other axes, the device numbers along ``axes``, in the order of lanes."""
    dims = [mesh.axis_names.index(name) for name, _ in axes]
    numbers = np.arange(mesh.size).reshape(mesh.axis_sizes)
    return np.moveaxis(numbers, dims, range(-len(dims), 0)).reshape(-1, prod([size for _, size in axes]))


def dense_numbers(emit: Any, numbers: np.ndarray[Any, Any]) -> str:
    """A table of integers as a dense attribute, defined once per module."""
    height, width = numbers.shape
    row = f"[{', '.join(['%d'] * width)}]"
    text = ", ".join([row] * height) % tuple(numbers.ravel().tolist())  # many lists would start a garbage collection
    return str(emit.table(f"dense<[{text}]> : tensor<{height}x{width}xi64>"))


class AxisPart(NamedTuple):
    """A sub-axis: the digit of ``size`` values of an axis's positions, below digits of product ``before``."""

    axis: SizedAxis
    before: int
    size: int

    def __str__(self) -> str:
        name, length = self.axis
        part = "" if self.size == length else f", sub_axis_info = ({self.before}){self.size}"
        return f"#stablehlo.axis_ref<name = {sdy_axis(name)}{part}>"


def axis_parts(op: Any) -> list[AxisPart] | None:
    """The sub-axes whose product is every group, in order; None if groups are no such product."""
    if op.groups is None:
        return [AxisPart(axis, 1, axis[1]) for axis in op.axes]
    size, lanes = len(op.groups[0]), np.arange(prod([n for _, n in op.axes]))
    stride = op.groups[0][1] - op.groups[0][0] if size > 1 else 0
    if stride <= 0 or len(lanes) % (size * stride):
        return None
    expected = lanes.reshape(-1, size, stride).swapaxes(1, 2).reshape(-1, size)
    if sorted(map(list, op.groups)) != expected.tolist():
        return None
    parts, weight = [], 1  # the number of lanes that one step along the axis skips
    for axis in reversed(op.axes):
        whole = weight * axis[1]
        low, high = max(stride, weight), min(stride * size, whole)
        if low < high:
            if low % weight or high % low or whole % high:
                return None
            parts.append(AxisPart(axis, whole // high, high // low))
        weight = whole
    return parts[::-1]


def replica_groups(op: Any, emit: Any) -> str:
    """The replica groups in StableHLO's syntax: by sub-axes if possible, else as a table.

    XLA looks axes up in the first mesh of the module, whichever is named.
    """
    mesh = emit.mesh(emit.manual.mesh)
    parts = axis_parts(op) if mesh == "@mesh" else None
    if parts is None:
        groups = op.groups or (range(prod([size for _, size in op.axes])),)
        lanes = np.array([*zip_longest(*groups, fillvalue=-1)]).T  # one line for each group, padded with -1
        numbers = np.where(lanes < 0, -1, rows(emit.manual.mesh, op.axes)[:, lanes])
        return f"replica_groups = {dense_numbers(emit, numbers.reshape(-1, lanes.shape[1]))}"
    return f"replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{', '.join(map(str, parts))}]>"


def between_lanes(lower: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering ``lower``, for elements of whole bytes; over a single lane it is the identity.

    Elements of 2 or 4 bits are sent as bytes: XLA's CPU runtime packs them, and copies past their ends.
    """

    def apply(op: Any, emit: Any, x: Any) -> Any:
        if prod([size for _, size in op.axes]) == 1:
            return emit.reshape(x, emit.made.shape)
        dtype = x.type.dtype
        if itemsize_bits(dtype) >= 8:
            return lower(op, emit, x)
        wide = float32 if dtype in ANY_FLOATING else int8 if dtype in ANY_SIGNED else uint8
        return emit.convert(lower(op, emit, emit.convert(x, wide)), dtype)

    return apply


def reduction(name: str) -> Callable[..., Any]:
    """The lowering of a reduction over lanes by a StableHLO operation."""

    @between_lanes
    def lower(op: Any, emit: Any, x: Any) -> Any:
        attributes = f"{replica_groups(op, emit)}, {CHANNEL}, use_global_device_ids"
        x = opaque(emit, x)
        return emit.op("all_reduce", x, attributes=attributes, type=x.type, regions=combiner(emit, name, x))

    return lower


def ordered_reduction(name: str) -> Callable[..., Any]:
    """``reduction`` for max and min; complex numbers, which StableHLO does not compare, are gathered and compared."""
    of_real = reduction(name)

    def lower(op: Any, emit: Any, x: Any) -> Any:
        return emit.decompose(op.gathered, x) if is_complex(x.type.dtype) else of_real(op, emit, x)

    return lower


def opaque(emit: Any, x: Any) -> Any:
    """``x``; if complex, behind an optimization barrier, since XLA's simplification of a sum of equal values fails for
    complex ones.
    """
    return emit.op("optimization_barrier", x, type=x.type) if is_complex(x.type.dtype) else x


def combiner(emit: Any, name: str, x: Any) -> str:
    """The region that combines two elements by a StableHLO operation; XLA accepts no other in all-reduces."""
    element = x.type.update(shape=())
    combine = lambda a, b: [emit.inline(name, f"{a.name}, {b.name}", type=element)]
    return emit.region([element, element], combine)


@between_lanes
def all_gather(op: Any, emit: Any, x: Any) -> Any:
    """The lowering of ``AllGather`` to StableHLO's operation along one new dimension."""
    d, shape = min(op.dims), x.type.shape
    size = prod(op.sizes)
    one = emit.reshape(x, (*shape[:d], 1, *shape[d:]))
    whole = x.type.update(shape=(*shape[:d], size, *shape[d:]))
    attributes = f"all_gather_dim = {d} : i64, {replica_groups(op, emit)}, {CHANNEL}, use_global_device_ids"
    return _apart(op, emit, emit.op("all_gather", one, attributes=attributes, type=whole), d)


@between_lanes
def reduce_scatter(op: Any, emit: Any, x: Any) -> Any:
    """The lowering of ``PsumScatter`` to StableHLO's operation along one merged dimension."""
    whole, d = _together(op, emit, x)
    shape = whole.type.shape
    piece = x.type.update(shape=(*shape[:d], 1, *shape[d + 1 :]))
    attributes = f"scatter_dimension = {d} : i64, {replica_groups(op, emit)}, {CHANNEL}, use_global_device_ids"
    whole = opaque(emit, whole)
    y = emit.op("reduce_scatter", whole, attributes=attributes, type=piece, regions=combiner(emit, "add", x))
    return emit.reshape(y, (*shape[:d], *shape[d + 1 :]))


@between_lanes
def all_to_all(op: Any, emit: Any, x: Any) -> Any:
    """The lowering of ``AllToAll`` to StableHLO's operation along one merged dimension."""
    whole, d = _together(op, emit, x)
    size = prod(op.sizes)
    attributes = (
        f"split_dimension = {d} : i64, concat_dimension = {d} : i64, split_count = {size} : i64, "
        f"{replica_groups(op, emit)}, {CHANNEL}"
    )
    return _apart(op, emit, emit.op("all_to_all", whole, attributes=attributes, type=whole.type), d)


def collective_permute(op: Any, emit: Any, x: Any) -> Any:
    """The lowering of ``Ppermute``; zeros if there is no pair."""
    return _permute(op, emit, x) if op.pairs else emit.full(0, emit.made)


@between_lanes
def _permute(op: Any, emit: Any, x: Any) -> Any:
    numbers = rows(emit.manual.mesh, op.axes)[:, np.array(op.pairs)].reshape(-1, 2)
    attributes = f"source_target_pairs = {dense_numbers(emit, numbers)}, {CHANNEL}"
    return emit.op("collective_permute", x, attributes=attributes, type=x.type)


def axis_index(op: Any, emit: Any) -> Any:
    """The position in the axes by Horner's rule, from the device's number, whose digits are positions along mesh axes.
    """
    device = emit.device_number()
    mesh = emit.manual.mesh
    total = emit.constant(0, NUMBER)
    for name, size in op.axes:
        stride = prod(mesh.axis_sizes[mesh.axis_names.index(name) + 1 :])
        digit = emit.binary("divide", device, emit.constant(stride, NUMBER))
        digit = emit.binary("remainder", digit, emit.constant(size, NUMBER))
        total = emit.binary("add", emit.binary("multiply", total, emit.constant(size, NUMBER)), digit)
    return total


def _together(op: Any, emit: Any, x: Any) -> tuple[Any, int]:
    """The operand with the operation's dimensions adjacent and merged into one, and its position."""
    shape, d = x.type.shape, min(op.dims)
    others = [e for e in range(len(shape)) if e not in op.dims]
    order = [*others[:d], *op.dims, *others[d:]]
    y = x if order == sorted(order) else emit.transpose(x, order)
    rest = [shape[e] for e in others]
    return emit.reshape(y, (*rest[:d], prod(op.sizes), *rest[d:])), d


def _apart(op: Any, emit: Any, y: Any, d: int) -> Any:
    """The inverse of ``_together``: the merged dimension split into the operation's dimensions, in their positions."""
    shape = y.type.shape
    z = emit.reshape(y, (*shape[:d], *op.sizes, *shape[d + 1 :]))
    others = [e for e in range(len(z.type.shape)) if e not in op.dims]
    order = [*others[:d], *op.dims, *others[d:]]
    return z if order == sorted(order) else emit.transpose(z, [order.index(e) for e in range(len(order))])
