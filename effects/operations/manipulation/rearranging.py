"""Functions that give the same elements another shape or order: composed of broadcast, reshape and transpose."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...base.errors import BadArgument, ShapeMismatch, TracerBoolConversionError, as_tuple, whole_number
from ...core.arrays import Array, as_array
from ...functions.out_shardings import cuts_result
from ...types.array_type import ArrayType
from ...types.extent import as_size, is_size
from ..foundations import shapes
from ..foundations.shapes import axes_listed, canonical_axes, canonical_axis, canonical_shape, permute
from .slicing import concatenate


@cuts_result
def broadcast_in_dim(
    operand: Any, shape: Any, broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """``y[i] = operand[i[d] for d in broadcast_dimensions]``, for every index ``i`` of ``shape``.

    Raises: ShapeMismatch: a size of ``operand`` is neither 1 nor the size in ``shape``, or there is not one dimension
    for each of the operand's.

    >>> broadcast_in_dim(1.0, (2, 3), ()).shape
    (2, 3)
    """
    x = as_array(operand)
    sizes = canonical_shape(shape, "broadcast_in_dim")
    dims = [canonical_axis(d, len(sizes), "broadcast_in_dim") for d in axes_listed(broadcast_dimensions)]
    if len({*dims}) != x.ndim or len(dims) != x.ndim:
        raise ShapeMismatch(f"broadcast_in_dim: there must be one dimension for each of {x.type}, got {dims}.")
    order = sorted(range(x.ndim), key=dims.__getitem__)
    return shapes.broadcast_in_dim(shapes.permute(x, order), sizes, sorted(dims))


@cuts_result
def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """``operand`` repeated along new dimensions of these sizes in front.

    Shapes: ``a[*s] -> a[*sizes, *s]``.

    >>> broadcast(1.0, (2, 3)).shape
    (2, 3)
    """
    x = as_array(operand)
    sizes = canonical_shape(sizes, "broadcast")
    return shapes.broadcast(x, (*sizes, *x.type.shape))


_MOST_AXES = 1 << 16  # with which XLA, whose time is that of their square, is busy for minutes


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """``x`` with dimensions of size 1 in front, until it has this rank.

    >>> broadcast_to_rank(1.0, 2).shape
    (1, 1)
    """
    x, rank = as_array(x), whole_number("broadcast_to_rank: rank", rank)
    if x.ndim > rank:
        raise ShapeMismatch(f"broadcast_to_rank: the rank must be at most {rank}, got {x.type}.")
    if rank > _MOST_AXES:
        raise ShapeMismatch(f"broadcast_to_rank: the rank must be at most {_MOST_AXES}, got {rank}.")
    return expand_dims(x, range(rank - x.ndim))


@cuts_result
def reshape(
    operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Array:
    """``operand`` in row-major order, its dimensions first permuted to the order ``dimensions``, with another shape.

    One size may be -1: it is inferred from the number of elements.
    Raises: ShapeMismatch: the numbers of elements differ.

    >>> reshape(2.0, (1, 1)).shape
    (1, 1)
    """
    x = as_array(operand)
    if dimensions is not None:
        x = permute(x, canonical_permutation(dimensions, x.ndim, "reshape"))
    sizes = (new_sizes,) if is_size(new_sizes) else as_tuple(new_sizes, "reshape", "a shape")
    return shapes.reshape(x, completed(sizes, x.type))


def completed(shape: Any, of: ArrayType) -> tuple[int, ...]:
    """``shape`` as a tuple, its -1 replaced by what remains of the elements of an array of type ``of``."""
    if not (shape.__class__ is tuple or shape.__class__ is list):
        shape = (shape,) if not hasattr(shape, "__len__") or not getattr(shape, "ndim", 1) else tuple(shape)
    try:
        if -1 not in shape:
            return canonical_shape(shape, "reshape")
    except TracerBoolConversionError:
        return canonical_shape(shape, "reshape")  # which names the size that is not known
    sizes = [as_size(size, "reshape: a size") for size in shape]
    if sizes.count(-1) > 1:
        raise BadArgument(f"reshape: one size at most may be -1, got {tuple(sizes)}.")
    at = sizes.index(-1)
    known = prod(canonical_shape(sizes[:at] + sizes[at + 1 :], "reshape"))
    rest = of.size % known if known else None
    if not isinstance(rest, int) or rest:
        raise ShapeMismatch(
            f"reshape: {of} with {of.size} elements does not divide into {tuple(sizes)}.",
            hint=f"the product of the sizes beside -1 must divide {of.size}, it is {known}.",
        )
    sizes[at] = of.size // known
    return tuple(sizes)


def transpose(operand: Any, permutation: Any) -> Array:
    """Dimension ``d`` of the result is dimension ``permutation[d]`` of ``operand``.

    Shapes: ``a[s[0], s[1], ...] -> a[s[p[0]], s[p[1]], ...]``.

    >>> transpose(broadcast(1.0, (2, 3)), (1, 0)).shape
    (3, 2)
    """
    x = as_array(operand)
    return permute(x, canonical_permutation(permutation, x.ndim, "transpose"))


def canonical_permutation(permutation: Any, rank: int, name: str) -> tuple[int, ...]:
    """A permutation of dimensions as a tuple of ints counted from the front. Raises BadArgument: it is none."""
    order = tuple([canonical_axis(axis, rank, name) for axis in as_tuple(permutation, name, "a permutation")])
    if sorted(order) != list(range(rank)):
        raise BadArgument(f"{name}: {tuple(permutation)} is no permutation of {rank} dimensions.")
    return order


def squeeze(array: Any, dimensions: Any) -> Array:
    """``array`` without these dimensions, which have size 1.

    Raises: ShapeMismatch: one of them has another size.

    >>> squeeze(broadcast(1.0, (1, 3)), (0,)).shape
    (3,)
    """
    x = as_array(array)
    removed = canonical_axes(dimensions, x.ndim, "squeeze")
    if any(x.type.shape[d] != 1 for d in removed):
        raise ShapeMismatch(f"squeeze: dimensions {removed} of {x.type} must have size 1.")
    return shapes.reshape(x, tuple([n for d, n in enumerate(x.type.shape) if d not in removed]))


def expand_dims(array: Any, dimensions: Any) -> Array:
    """``array`` with dimensions of size 1 inserted, at these positions of the result.

    >>> expand_dims(broadcast(1.0, (3,)), (0, 2)).shape
    (1, 3, 1)
    """
    x = as_array(array)
    dims = axes_listed(dimensions)
    if not dims:
        return x
    rank = x.ndim + len(dims)
    new = canonical_axes(dims, rank, "expand_dims")
    remaining = [d for d in range(rank) if d not in new]
    sizes = iter(x.type.shape)
    return shapes.broadcast_in_dim(x, tuple([1 if d in new else next(sizes) for d in range(rank)]), remaining)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The dimensions from ``start_dimension`` to before ``stop_dimension`` merged into one, in row-major order.

    >>> collapse(broadcast(1.0, (2, 3, 4)), 1, 3).shape
    (2, 12)
    """
    x = as_array(operand)
    dims = (start_dimension, stop_dimension)
    ends = [None if d is None else whole_number("collapse: a dimension", d) for d in dims]
    start, stop, _ = slice(*ends).indices(x.ndim)
    if stop < start:
        raise BadArgument(f"collapse: dimension {start_dimension} must not come after {stop_dimension}, got {x.type}.")
    shape = x.type.shape
    return shapes.reshape(x, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


def stack(operands: Any, axis: int = 0) -> Array:
    """The operands, of one shape, along a new dimension ``axis``.

    Shapes: ``k`` times ``a[*s]`` gives ``a[k, *s]`` for ``axis=0``.

    >>> stack([broadcast(1.0, (3,)), broadcast(2.0, (3,))], 1).shape
    (3, 2)
    """
    xs = [as_array(x) for x in operands]
    if not xs:
        raise BadArgument("stack: needs at least one operand, got none.")
    axis = canonical_axis(axis, xs[0].ndim + 1, "stack", of_list=True)
    return concatenate([expand_dims(x, (axis,)) for x in xs], axis)


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """``operand`` repeated ``reps[d]`` times along dimension ``d``: ``tile(x, [k])[i] == x[i % n]``.

    >>> tile(broadcast(1.0, (2,)), (3,)).shape
    (6,)
    """
    x = as_array(operand)
    counts = canonical_shape(reps, "tile")
    if len(counts) != x.ndim:
        raise ShapeMismatch(f"tile: needs one count for each dimension of {x.type}, got {counts}.")
    shape = x.type.shape
    pairs = tuple([size for pair in zip(counts, shape) for size in pair])
    repeated = shapes.broadcast_in_dim(x, pairs, tuple(range(1, 2 * x.ndim, 2)))
    return shapes.reshape(repeated, tuple([k * n for k, n in zip(counts, shape)]))
