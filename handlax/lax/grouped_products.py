"""Products whose rows belong to groups, ``ragged_dot``, and products of scaled blocks, ``scaled_dot``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..effects.base.errors import BadArgument, BadAxis, DTypeMismatch, ShapeMismatch
from ..effects.core.arrays import Array, as_array, as_arrays
from ..effects.functions.out_shardings import cuts_result
from ..effects.operations.dot_general import canonical_numbers, dot_general
from ..effects.operations.elementwise.comparison import select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations.shapes import broadcast, broadcast_in_dim, move_axis, permute, reshape, zeros
from ..effects.operations.indexing.dynamic_slicing import dynamic_slice_in_dim
from ..effects.operations.manipulation.creation import broadcasted_iota
from ..effects.operations.reductions.cumulative import cumsum
from ..effects.operations.reductions.reductions import reduce_or
from ..effects.types.array_type import ArrayType, array_type
from ..effects.types.dtypes import bfloat16, canonical, is_integer

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot"]


class RaggedDotDimensionNumbers(NamedTuple):
    """The dimensions of ``ragged_dot_general``.

    ``dot_dimension_numbers`` are those of ``dot_general``, without the dimension of groups in ``rhs``;
    ``lhs_ragged_dimensions`` the one dimension of ``lhs`` that groups divide, ``rhs_group_dimensions`` that of ``rhs``
    along which each group has a matrix, none where the ragged dimension is contracting or batch.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


class _Roles(NamedTuple):
    """The dimensions of a ragged product by their roles; each index along ``before`` has groups of its own."""

    inner: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]]
    ragged: int
    group: int | None
    before: tuple[int, ...]


@cuts_result
def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Products of the rows of a matrix with the matrix of the group to which each belongs.

        ragged_dot(x, ys, sizes)[i] == x[i] @ ys[g],  where the rows of group g follow those of g - 1

    Shapes: ``[m, k], [g, k, n], [g]`` gives ``[m, n]``. Rows behind the last group are 0.
    The product is one of all rows with all groups, of which those that do not meet are masked.

    Args: as of ``ragged_dot_general``.

    >>> from handlax import numpy as hnp
    >>> ragged_dot(hnp.ones((3, 1)), hnp.array([[[2.0]], [[5.0]]]), hnp.array([1, 2]))
    Array([[2.],
           [5.],
           [5.]], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset)


@cuts_result
def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """``dot_general`` whose sums or rows are divided into groups along one dimension of ``lhs``, the ragged one.

    Three cases, by the role of the ragged dimension: a free one, of which each group has a part of ``rhs``; a
    contracting one, where each group has a sum of its own, along a new first dimension; a batch dimension, where
    products of no group are 0.

    Args:
        group_sizes: how long each group is, for each index of the batch dimensions and those of the ragged one's role
            before it; or one row of sizes for all of them.
        precision, preferred_element_type: as of ``dot_general``.
        group_offset: the group of the first matrix in ``rhs``, where that has those of some groups only.

    Raises: BadAxis: dimensions that are none, or have two roles. ShapeMismatch: sizes do not fit.
    DTypeMismatch: ``group_sizes`` are no integers.

    Source: Gale et al., MegaBlocks: efficient sparse training with mixture-of-experts (2022).

    >>> from handlax.numpy import array, ones
    >>> numbers = RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())
    >>> ragged_dot_general(array([[1.0, 2.0, 3.0]]), ones((3, 1)), array([1, 2]), numbers).tolist()
    [[[1.0]], [[5.0]]]
    """
    x, y, sizes = as_array(lhs), as_array(rhs), as_array(group_sizes)
    roles = _roles(ragged_dot_dimension_numbers, x.type, y.type)
    starts, ends = _bounds(roles, x.type, y.type, sizes, group_offset)
    member = _members(roles, x.type, starts, ends)
    if roles.ragged in roles.batch[0]:
        member = reduce_or(member, (0,))
        kept, inner, batch = select(broadcast(member, x.type.shape), x, zeros(x.type)), *roles[:2]
    else:
        stacked = broadcast_in_dim(x, (member.type.shape[0], *x.type.shape), tuple(range(1, len(x.type.shape) + 1)))
        kept = select(broadcast(member, stacked.type.shape), stacked, zeros(stacked.type))
        behind = [tuple([d + 1 for d in dims]) for dims in (roles.inner[0], roles.batch[0])]
        inner, batch = (behind[0], roles.inner[1]), (behind[1], roles.batch[1])
        if roles.group is not None:
            inner = ((0, *inner[0]), (roles.group, *inner[1]))
    z = dot_general(kept, y, (inner, batch), precision, preferred_element_type)
    return move_axis(z, len(batch[0]), 0) if roles.ragged in roles.inner[0] else z


def _roles(numbers: Any, x: ArrayType, y: ArrayType) -> _Roles:
    """The roles of dimensions. Raises: BadAxis: they are none, or do not go together."""
    where = "ragged_dot_general"
    inner, batch = canonical_numbers(numbers.dot_dimension_numbers, len(x.shape), len(y.shape))
    ragged, groups = tuple(numbers.lhs_ragged_dimensions), tuple(numbers.rhs_group_dimensions)
    if len(ragged) != 1 or not 0 <= ragged[0] < len(x.shape):
        raise BadAxis(f"{where}: there must be one ragged dimension, of lhs {x}, got {ragged}.")
    at = ragged[0]
    free = at not in inner[0] and at not in batch[0]
    if len(groups) != free or not all(0 <= d < len(y.shape) for d in groups):
        needed = "one group dimension" if free else "no group dimension, as the ragged one is contracting or batch"
        raise BadAxis(f"{where}: rhs {y} must have {needed}, got {groups}.")
    if free and groups[0] in inner[1] + batch[1]:
        raise BadAxis(f"{where}: the group dimension of rhs must be neither contracting nor batch, got {groups[0]}.")
    if at in batch[0]:
        before = batch[0][: batch[0].index(at)]
    elif free:
        before = (*batch[0], *[d for d in range(at) if d not in inner[0] and d not in batch[0]])
    else:
        before = (*batch[0], *inner[0][: inner[0].index(at)])
    return _Roles(inner, batch, at, groups[0] if free else None, before)


def _bounds(roles: _Roles, x: ArrayType, y: ArrayType, sizes: Array, offset: Any) -> tuple[Array, Array]:
    """Where each group starts and ends along the ragged dimension, of shape ``[*before, groups]``.

    Raises: ShapeMismatch, DTypeMismatch: the sizes of groups are of other shapes, or no integers. BadArgument: an
    offset where ``rhs`` has no groups.
    """
    where, kind = "ragged_dot_general", sizes.type
    outer = tuple([x.shape[d] for d in roles.before])
    if not is_integer(kind.dtype):
        raise DTypeMismatch(f"{where}: the sizes of groups must be integers, got {kind}.")
    if not kind.shape or kind.shape[:-1] not in ((), outer):
        wanted = array_type((*outer, *kind.shape[-1:]), kind.dtype)
        raise ShapeMismatch(f"{where}: the sizes of groups must be {wanted}, got {kind}.")
    sizes = broadcast(sizes, (*outer, kind.shape[-1]))
    ends = cumsum(sizes, len(outer))
    starts = ends - sizes
    matrices = None if roles.group is None else y.shape[roles.group]
    if offset is not None:
        if matrices is None:
            raise BadArgument(f"{where}: group_offset must be None where rhs has no group dimension, got {offset}.")
        first = reshape(as_array(offset), ())
        starts, ends = [dynamic_slice_in_dim(v, first, matrices, len(outer)) for v in (starts, ends)]
    elif matrices not in (None, kind.shape[-1]):
        raise ShapeMismatch(f"{where}: rhs must have {kind.shape[-1]} groups, got {y}, dimension {roles.group}.")
    return starts, ends


def _members(roles: _Roles, x: ArrayType, starts: Array, ends: Array) -> Array:
    """Whether an index of ``lhs`` belongs to a group: booleans of ``[groups, *sizes]``, size 1 where any index does."""
    sizes = [x.shape[d] if d in (*roles.before, roles.ragged) else 1 for d in range(len(x.shape))]
    shape = (starts.type.shape[-1], *sizes)
    place = broadcasted_iota(starts.type.dtype, shape, roles.ragged + 1)
    order = sorted(range(len(roles.before)), key=roles.before.__getitem__)
    spread = (0, *[roles.before[i] + 1 for i in order])
    first, last = [broadcast_in_dim(permute(v, (len(order), *order)), shape, spread) for v in (starts, ends)]
    return (place >= first) & (place < last)


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The contraction of arrays of which each block has a scale.

        scaled_dot(x, y, lhs_scale=s, rhs_scale=t) == (x * s) @ (y * t),  each element of s and t for a block

    A scale has the dimensions of its operand, of which the contracting ones may be shorter by a whole factor: the
    length of blocks.

    Args:
        dimension_numbers: as of ``dot_general``; by default the product of matrices, or of a batch of them.
        preferred_element_type: the dtype of sums and of the result, by default ``bfloat16``.

    Raises: ShapeMismatch: the size of a scale does not divide that of its operand.

    Source: Rouhani et al., Microscaling data formats for deep learning (2023).

    >>> from handlax import numpy as hnp
    >>> x, s = hnp.ones((1, 4)), hnp.array([[2.0, 10.0]])
    >>> scaled_dot(x, hnp.ones((4, 1)), lhs_scale=s, preferred_element_type="float32")
    Array([[24.]], dtype=float32)
    """
    x, y = as_arrays(lhs, rhs)
    dtype = bfloat16 if preferred_element_type is None else canonical(preferred_element_type)
    if dimension_numbers is None:
        if len(x.type.shape) != len(y.type.shape) or len(x.type.shape) not in (2, 3):
            raise ShapeMismatch(f"scaled_dot: matrices, or batches of them, are needed, got {x.type} and {y.type}.")
        head = tuple(range(len(x.type.shape) - 2))
        dimension_numbers = ((len(head) + 1,), (len(head),)), (head, head)
    numbers = canonical_numbers(dimension_numbers, len(x.type.shape), len(y.type.shape))
    x, y = [
        _scaled(name, convert(v, dtype), scale, dims)
        for name, v, scale, dims in zip(("lhs", "rhs"), (x, y), (lhs_scale, rhs_scale), numbers[0])
    ]
    return dot_general(x, y, numbers, preferred_element_type=dtype)


def _scaled(name: str, x: Array, scale: Any, contracting: tuple[int, ...]) -> Array:
    """The array times the scale of each element's block. Raises: ShapeMismatch: blocks do not divide the array."""
    if scale is None:
        return x
    s = convert(as_array(scale), x.type.dtype)
    shape, blocks = x.type.shape, s.type.shape
    fits = len(shape) == len(blocks) and all(
        n % k == 0 if d in contracting and k else n == k for d, (n, k) in enumerate(zip(shape, blocks))
    )
    if not fits:
        raise ShapeMismatch(
            f"scaled_dot: {name}_scale must be {x.type}, with a divisor of each contracting size, got {s.type}."
        )
    for d in contracting:
        if shape[d] != blocks[d]:
            inner = (*s.type.shape[: d + 1], 1, *s.type.shape[d + 1 :])
            wide = (*s.type.shape[: d + 1], shape[d] // blocks[d], *s.type.shape[d + 1 :])
            s = reshape(broadcast(reshape(s, inner), wide), (*s.type.shape[:d], shape[d], *s.type.shape[d + 1 :]))
    return x * s
