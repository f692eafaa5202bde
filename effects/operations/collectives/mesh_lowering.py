"""Collectives on the devices of a mesh: one operation of StableHLO each.

Devices are numbered as in the mesh, row-major, its first axis major. ``rows`` has a row of these numbers for each
product of the named axes; replica groups and pairs of devices are read off it. Devices that meet along axes, or along
parts of axes such as blocks of neighbours, are told by the names of these: a text that does not grow with the mesh. For
pairs, and for other groups, StableHLO has no such form: their table has all devices, and stands once in the module for
all operations that have it.
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
    """The numbers of the devices, a row for each product of ``axes``, in the order in which lanes are counted."""
    places = [mesh.axis_names.index(name) for name, _ in axes]
    numbers = np.arange(mesh.size).reshape(mesh.axis_sizes)
    return np.moveaxis(numbers, places, range(-len(places), 0)).reshape(-1, prod([size for _, size in axes]))


def device_groups(mesh: Any, op: Any) -> np.ndarray[Any, Any]:
    """The numbers of the devices that meet, a row for each group; shorter groups are filled with -1."""
    lanes = np.array([*zip_longest(*op.groups, fillvalue=-1)]).T
    return np.where(lanes < 0, -1, rows(mesh, op.axes)[:, lanes]).reshape(-1, lanes.shape[1])


def device_pairs(mesh: Any, op: Any) -> np.ndarray[Any, Any]:
    """The numbers of devices that send and that receive, a row for each pair."""
    return rows(mesh, op.axes)[:, np.array(op.pairs)].reshape(-1, 2)


def dense_numbers(emit: Any, numbers: np.ndarray[Any, Any]) -> str:
    """A table of integers as an attribute, which the module has once."""
    height, width = numbers.shape
    row = f"[{', '.join(['%d'] * width)}]"
    text = ", ".join([row] * height) % tuple(numbers.ravel().tolist())  # thousands of lists would wake the collector
    return str(emit.table(f"dense<[{text}]> : tensor<{height}x{width}xi64>"))


class AxisPart(NamedTuple):
    """The ``size`` positions along an axis that are one digit of its numbers, and the product of the digits before."""

    axis: SizedAxis
    before: int
    size: int

    def __str__(self) -> str:
        name, length = self.axis
        part = "" if self.size == length else f", sub_axis_info = ({self.before}){self.size}"
        return f"#stablehlo.axis_ref<name = {sdy_axis(name)}{part}>"


def axis_parts(op: Any) -> list[AxisPart] | None:
    """Along which parts of axes all groups meet, in their order; None where groups are no such products."""
    if op.groups is None:
        return [AxisPart(axis, 1, axis[1]) for axis in op.axes]
    size, lanes = len(op.groups[0]), np.arange(prod([n for _, n in op.axes]))
    stride = op.groups[0][1] - op.groups[0][0] if size > 1 else 0
    if stride <= 0 or len(lanes) % (size * stride):
        return None
    expected = lanes.reshape(-1, size, stride).swapaxes(1, 2).reshape(-1, size)
    if sorted(map(list, op.groups)) != expected.tolist():
        return None
    parts, weight = [], 1  # of one step along an axis, in lanes
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
    """The devices that meet: by axes and parts of axes, whose text does not grow with the mesh, or group by group."""
    parts = axis_parts(op)
    if parts is None:
        return f"replica_groups = {dense_numbers(emit, device_groups(emit.manual.mesh, op))}"
    mesh = emit.mesh(emit.manual.mesh)
    return f"replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{', '.join(map(str, parts))}]>"


def between_lanes(lower: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering ``lower`` of elements of whole bytes; one lane keeps its own, and devices do not meet.

    Elements of two or four bits are sent as bytes: XLA's CPU runtime packs them, and copies past their ends.
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
    """The lowering of a reduction over lanes by an operation of StableHLO."""

    @between_lanes
    def lower(op: Any, emit: Any, x: Any) -> Any:
        attributes = f"{replica_groups(op, emit)}, {CHANNEL}, use_global_device_ids"
        x = opaque(emit, x)
        return emit.op("all_reduce", x, attributes=attributes, type=x.type, regions=combiner(emit, name, x))

    return lower


def ordered_reduction(name: str) -> Callable[..., Any]:
    """The same of a largest or smallest value: complex numbers, which no device compares, are gathered and compared."""
    of_real = reduction(name)

    def lower(op: Any, emit: Any, x: Any) -> Any:
        return emit.decompose(op.gathered, x) if is_complex(x.type.dtype) else of_real(op, emit, x)

    return lower


def opaque(emit: Any, x: Any) -> Any:
    """``x``, where it is complex as a value of which XLA knows nothing: it fails to simplify a sum of equal ones."""
    return emit.op("optimization_barrier", x, type=x.type) if is_complex(x.type.dtype) else x


def combiner(emit: Any, name: str, x: Any) -> str:
    """The region that combines two elements, by StableHLO's operation: between devices XLA knows no other words."""
    element = x.type.update(shape=())
    combine = lambda a, b: [emit.inline(name, f"{a.name}, {b.name}", type=element)]
    return emit.region([element, element], combine)


@between_lanes
def all_gather(op: Any, emit: Any, x: Any) -> Any:
    d, shape = min(op.dims), x.type.shape
    size = prod(op.sizes)
    one = emit.reshape(x, (*shape[:d], 1, *shape[d:]))
    whole = x.type.update(shape=(*shape[:d], size, *shape[d:]))
    attributes = f"all_gather_dim = {d} : i64, {replica_groups(op, emit)}, {CHANNEL}, use_global_device_ids"
    return _apart(op, emit, emit.op("all_gather", one, attributes=attributes, type=whole), d)


@between_lanes
def reduce_scatter(op: Any, emit: Any, x: Any) -> Any:
    whole, d = _together(op, emit, x)
    shape = whole.type.shape
    piece = x.type.update(shape=(*shape[:d], 1, *shape[d + 1 :]))
    attributes = f"scatter_dimension = {d} : i64, {replica_groups(op, emit)}, {CHANNEL}, use_global_device_ids"
    whole = opaque(emit, whole)
    y = emit.op("reduce_scatter", whole, attributes=attributes, type=piece, regions=combiner(emit, "add", x))
    return emit.reshape(y, (*shape[:d], *shape[d + 1 :]))


@between_lanes
def all_to_all(op: Any, emit: Any, x: Any) -> Any:
    whole, d = _together(op, emit, x)
    size = prod(op.sizes)
    attributes = (
        f"split_dimension = {d} : i64, concat_dimension = {d} : i64, split_count = {size} : i64, "
        f"{replica_groups(op, emit)}, {CHANNEL}"
    )
    return _apart(op, emit, emit.op("all_to_all", whole, attributes=attributes, type=whole.type), d)


def collective_permute(op: Any, emit: Any, x: Any) -> Any:
    return _permute(op, emit, x) if op.pairs else emit.full(0, emit.made)


@between_lanes
def _permute(op: Any, emit: Any, x: Any) -> Any:
    pairs = dense_numbers(emit, device_pairs(emit.manual.mesh, op))
    attributes = f"source_target_pairs = {pairs}, {CHANNEL}"
    return emit.op("collective_permute", x, attributes=attributes, type=x.type)


def axis_index(op: Any, emit: Any) -> Any:
    """By Horner's rule from the positions along the axes, which are digits of the device's number."""
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
    """The operand with the dimensions of the operation side by side, as one."""
    shape, d = x.type.shape, min(op.dims)
    others = [e for e in range(len(shape)) if e not in op.dims]
    order = [*others[:d], *op.dims, *others[d:]]
    y = x if order == sorted(order) else emit.transpose(x, order)
    rest = [shape[e] for e in others]
    return emit.reshape(y, (*rest[:d], prod(op.sizes), *rest[d:])), d


def _apart(op: Any, emit: Any, y: Any, d: int) -> Any:
    """One dimension as those of the operation, each at its place: the inverse of ``_together``."""
    shape = y.type.shape
    z = emit.reshape(y, (*shape[:d], *op.sizes, *shape[d + 1 :]))
    others = [e for e in range(len(z.type.shape)) if e not in op.dims]
    order = [*others[:d], *op.dims, *others[d:]]
    return z if order == sorted(order) else emit.transpose(z, [order.index(e) for e in range(len(order))])
