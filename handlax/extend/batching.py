"""``handlax.extend.batching``: primitives over one more axis, as JAX has them in ``jax.interpreters.batching``.

    primitive_batchers[p] = rule            (y, dim) = rule(operands, dims, **params)
    fancy_primitive_batchers[p] = rule      (y, dim) = rule(axis_data, operands, dims, **params)
    axis_primitive_batchers[p] = rule       (y, dim) = rule(size, name, None, operands, dims, **params)

``dims[i]`` is the mapped dimension of operand ``i``, or ``not_mapped``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

from ..effects.core.arrays import as_array
from ..effects.core.columns import BATCH, Rule
from ..effects.operations.foundations.shapes import move_axis
from ..effects.operations.manipulation.rearranging import expand_dims
from ..effects.operations.manipulation.slicing import axis_at, lane_count, lanes_first
from ..effects.programs.primitives import Primitive
from ..interpreters.batching.batch import by_batch_rule
from ..interpreters.core.rule_results import pair_of
from .checked_results import checked_results, list_of, types_of_results
from .rule_registries import RuleRegistry

__all__ = [
    "AxisData", "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer",
    "defvectorized", "fancy_primitive_batchers", "moveaxis", "not_mapped", "primitive_batchers",
]

not_mapped = None
"""The mapped dimension of an operand that is the same in all lanes."""


class AxisData(NamedTuple):
    """The mapped axis: its name, None where it has none, and its size."""

    name: Hashable
    size: Any
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


def _checked(op: Any, xs: Sequence[Any], dims: Sequence[Any], size: Any, given: Any) -> Any:
    """What a rule gives, as a cell gives it. Raises: as ``checked_results``; TreeMismatch: it gives no dimensions."""
    shown = f"{op.name}, primitive_batchers"
    y, out_dims = pair_of(shown, "results, dims", given)
    lanes = [x.type if d is None else x.type.without_dimension(d) for x, d in zip(xs, dims)]
    types = types_of_results(op, lanes)
    each = list_of(shown, "dims", out_dims, len(types)) if isinstance(out_dims, (list, tuple)) else [out_dims]
    full = [t if d is None else t.with_dimension(d, size) for t, d in zip(types, cycle(each))]
    return checked_results(op, "primitive_batchers", y, full), out_dims


def _of_operands(rule: Rule) -> Rule:
    def batch(op: Any, dims: Sequence[Any], *xs: Any) -> Any:
        return _checked(op, xs, dims, lane_count(xs, dims), rule(xs, dims, **op.as_params()))

    return batch


def _of_axis_data(rule: Rule) -> Rule:
    def batch(op: Any, dims: Sequence[Any], *xs: Any, axis: tuple[Any, Any]) -> Any:
        return _checked(op, xs, dims, axis[1], rule(AxisData(*axis), xs, dims, **op.as_params()))

    return batch


def _of_axis(rule: Rule) -> Rule:
    def batch(op: Any, dims: Sequence[Any], *xs: Any, axis: tuple[Any, Any]) -> Any:
        name, size = axis
        return _checked(op, xs, dims, size, rule(size, name, None, xs, dims, **op.as_params()))

    return batch


def _batched(primitive: Primitive, xs: Sequence[Any], dims: Sequence[Any], name: Any, size: Any, params: Any) -> Any:
    """What the cell of a primitive gives, as rules give it."""
    op = primitive.operation.from_params(params)
    y, out_dims = by_batch_rule(op, tuple(dims), [*map(as_array, xs)], name, size)
    if not op.multiple_results:
        return y, out_dims
    return list(y), list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims] * len(y)


primitive_batchers = RuleRegistry(
    BATCH, _of_operands,
    lambda p: lambda xs, dims, **params: _batched(p, xs, dims, None, lane_count(xs, dims), params),
)
"""The rule of each primitive in the column ``batch``: ``rule(operands, dims, **params)``."""
fancy_primitive_batchers = RuleRegistry(
    BATCH, _of_axis_data,
    lambda p: lambda axis, xs, dims, **params: _batched(p, xs, dims, axis.name, axis.size, params),
)
"""The rule of each primitive in the column ``batch``, with the axis: ``rule(axis_data, operands, dims, **params)``."""
axis_primitive_batchers = RuleRegistry(
    BATCH, _of_axis,
    lambda p: lambda size, name, _, xs, dims, **params: _batched(p, xs, dims, name, size, params),
)
"""The rule of each collective in the column ``batch``: ``rule(size, name, main, operands, dims, **params)``."""


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """``x`` with one dimension moved to another place."""
    return move_axis(as_array(x), source, destination)


def broadcast(x: Any, size: int, axis: int) -> Any:
    """``x`` repeated ``size`` times along a new ``axis``."""
    return axis_at(as_array(x), None, axis, size)


def bdim_at_front(x: Any, dim: int | None, size: int) -> Any:
    """``x`` with its mapped dimension first; one that is not mapped is repeated ``size`` times."""
    return axis_at(as_array(x), dim, 0, size)


def _along(primitive: Primitive, dim: int, xs: Sequence[Any], params: Any) -> Any:
    """The primitive on operands that are mapped along ``dim``, as its results are."""
    y = primitive.bind(*xs, **params)
    return y, [dim] * len(y) if primitive.multiple_results else dim


def defvectorized(primitive: Primitive) -> None:
    """Declare that a primitive computes each element from those at the same place of its operands."""
    primitive_batchers[primitive] = partial(_vectorized, primitive)


def _vectorized(primitive: Primitive, xs: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    if len({*dims}) == 1:
        return _along(primitive, dims[0], xs, params)
    return _along(primitive, 0, lanes_first(xs, dims), params)


def defbroadcasting(primitive: Primitive) -> None:
    """``defvectorized`` of a primitive that repeats operands of rank 0, and dimensions of size 1."""
    primitive_batchers[primitive] = partial(_broadcasting, primitive)


def _broadcasting(primitive: Primitive, xs: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    if len({(x.shape, dim) for x, dim in zip(xs, dims) if x.ndim}) == 1:
        return _along(primitive, next(dim for dim in dims if dim is not None), xs, params)
    rows = [bdim_at_front(x, dim, 1) if x.ndim else x for x, dim in zip(xs, dims)]
    rank = max([x.ndim for x in rows])
    wide = [expand_dims(x, range(x.ndim, rank)) if dim is not None else x for x, dim in zip(rows, dims)]
    return _along(primitive, 0, wide, params)


def defreducer(primitive: Primitive) -> None:
    """Declare that a primitive of one operand reduces the dimensions in its parameter ``axes``."""
    primitive_batchers[primitive] = partial(_reducing, primitive)


def _reducing(primitive: Primitive, xs: Sequence[Any], dims: Sequence[Any], axes: Sequence[int], **params: Any) -> Any:
    (dim,) = dims
    moved = tuple([axis + (axis >= dim) for axis in axes])
    return _along(primitive, dim - sum([axis < dim for axis in moved]), xs, {**params, "axes": moved})
