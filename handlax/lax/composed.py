"""Functions that other operations compose: full, log2, polynomial, tokens, unstack, shape_as_value, top k, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..effects.control.checkpoint import optimization_barrier
from ..effects.control.loops import scan
from ..effects.core.arrays import Array, as_array, is_number, scalar
from ..effects.operations.dot_general import DotAlgorithm, DotAlgorithmPreset, Precision
from ..effects.operations.elementwise import transcendental
from ..effects.operations.elementwise.arithmetic import add, mul
from ..effects.operations.elementwise.conversion import as_type, convert
from ..effects.operations.foundations.shapes import broadcast, canonical_axis, canonical_shape, zeros
from ..effects.operations.manipulation import creation
from ..effects.operations.manipulation.operand_promotion import broadcast_shapes, together
from ..effects.operations.manipulation.slicing import index_in_dim, slice_in_dim
from ..effects.operations.reductions.sorting import top_k
from ..effects.types.array_type import array_type
from ..effects.types.casting import cast
from ..effects.types.dtypes import ANY_FLOATING, bool_, dtype_of
from ..interpreters.core.eager_programs import evaluated_at_once
from ..interpreters.custom.custom_jvp import custom_jvp
from ..lowering.arrays.device_put import put_like
from ..numpy.arrays import joining_splitting

__all__ = [
    "DotDimensionNumbers", "PrecisionLike", "after_all", "approx_max_k", "approx_min_k", "broadcast_like",
    "create_token", "dtype", "full", "full_like", "log2", "one_minus_square", "polynomial", "shape_as_value", "stage",
    "unstack",
]

dtype = dtype_of
TOKEN = array_type((0,), bool_)
DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""The dimensions of both operands that are summed over, and those that both share."""
PrecisionLike: TypeAlias = (
    str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset | None
)
"""How accurate a product of matrices is: a word, one for each operand, or an algorithm."""


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Array:
    """The array of this shape whose elements are all ``fill_value``, a number or an array of rank 0.

    Without ``dtype`` it has the dtype of ``fill_value``, weak where that is; with ``sharding`` it is there.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    return put_like(creation.full(shape, fill_value, dtype), None, sharding)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None) -> Array:
    """``full`` of the shape and dtype of ``x``, an array or anything with ``shape`` and ``dtype``.

    Without ``sharding`` it is where ``x`` is, if that is an array committed to devices, of this shape or whole on them.

    >>> full_like(np.zeros((2,), "int8"), 7)
    Array([7, 7], dtype=int8)
    """
    return put_like(creation.full_like(x, fill_value, dtype, shape), x, sharding)


def log2(x: Any, *, accuracy: Any = None) -> Array:
    """The logarithm to base 2 of floats or complex numbers: ``2**log2(x) == x``.

    >>> log2(8.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return transcendental.divided_log(transcendental.log(x, accuracy=accuracy), 2.0)


@custom_jvp
def one_minus_square(x: Any) -> Array:
    """``1 - x**2`` as ``(1 + x) * (1 - x)``, exact near 1 and -1; the derivative is ``-2 x``, exact near 0.

    >>> one_minus_square(0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    x = as_array(x)
    one = scalar(1, x.type.dtype, x.type.weak)
    return (one + x) * (one - x)


@one_minus_square.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return one_minus_square(x), x * scalar(-2, x.type.dtype, x.type.weak) * dx


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """``arr`` repeated along new leading dimensions and along dimensions of size 1, to the shape of ``like_arr``.

    Raises: ShapeMismatch: it cannot be.

    >>> broadcast_like(np.int32([1, 2]), np.zeros((2, 2)))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x, shape = as_array(arr), as_array(like_arr).type.shape
    if broadcast_shapes(x.type.shape, shape) != shape:
        raise ShapeMismatch(f"broadcast_like: {x.type} has no place in the shape {shape}.")
    return broadcast(x, shape)


def stage(x: Any, /) -> Any:
    """``x`` as an array, a constant where a program is recorded.

    >>> stage(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return as_array(x)


def create_token(_: Any = None) -> Array:
    """A token: an array without elements that depends on nothing. An operation that takes a token is executed after
    what the token depends on.

    >>> create_token()
    Array([], dtype=bool)
    """
    return zeros(TOKEN)


def after_all(*operands: Any) -> Array:
    """A token that is there once these tokens are: the sequence of what has no other order.

    Raises: DTypeMismatch: an operand is no token.

    Source: the StableHLO specification, ``after_all``.

    >>> after_all(create_token(), create_token())
    Array([], dtype=bool)
    """
    for token in operands:
        if as_array(token).type != TOKEN:
            raise DTypeMismatch(f"after_all: operands must be tokens, got {as_array(token).type}.")
    return optimization_barrier(operands)[0] if operands else create_token()


def polynomial(x: Any, coeffs: Sequence[Any], *, unroll: int | None = None) -> Array:
    """``coeffs[0] + coeffs[1] x + ... + coeffs[n] x**n``, by Horner's rule, in the dtype of ``x``; 0 without any.

    Args:
        unroll: more numbers than this, 16 unless given, are a loop, of which one iteration takes so many.

    >>> polynomial(3.0, [1.0, 5.0, 2.0])
    Array(34., dtype=float32, weak_type=True)
    """
    x = as_array(x)
    unroll = 16 if unroll is None else max(unroll, 1)
    if len(coeffs) > unroll + 1 and all(map(is_number, coeffs)) and not evaluated_at_once():
        return _horner(x, as_array(cast(np.array(coeffs), x.type.dtype)), unroll)
    terms = [convert(c, x.type.dtype, x.type.weak) for c in coeffs]
    if len(terms) < 2:
        return add(*together("polynomial", zeros(x.type), terms[0])) if terms else zeros(x.type)
    y = terms[-1]
    for c in terms[-2::-1]:
        y = add(*together("polynomial", mul(*together("polynomial", y, x)), c))
    return y


def _horner(x: Any, coefficients: Any, unroll: int) -> Any:
    """The polynomial by a loop over a vector of coefficients, the lowest power first."""

    def step(y: Any, c: Any) -> tuple[Any, None]:
        return y * x + broadcast(as_type(c, x.type), x.type.shape), None

    last = broadcast(as_type(index_in_dim(coefficients, -1, keepdims=False), x.type), x.type.shape)
    return scan(step, last, slice_in_dim(coefficients, 0, -1), reverse=True, unroll=unroll)[0]


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """The slices of ``x`` along ``axis``, without it.

    >>> from handlax.numpy import array
    >>> unstack(array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    return joining_splitting.unstack(x, axis=axis)


def _approximate(name: str, operand: Any, k: int, axis: int) -> tuple[Any, int, int]:
    x = as_array(operand)
    if x.type.dtype not in ANY_FLOATING:
        raise DTypeMismatch(f"{name}: floats are needed, got {x.type}.")
    axis = canonical_axis(axis, len(x.type.shape), name)
    if k > x.type.shape[axis]:
        raise BadArgument(f"{name}: k must be at most the size of axis {axis}, got {k} for {x.type}.")
    return x, k, axis


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` largest floats along a dimension in descending order, and their indices: those of ``top_k``.

    Args:
        recall_target, reduction_input_size_override, aggregate_to_topk: ignored, as the result is exact.

    >>> from handlax.numpy import array
    >>> approx_max_k(array([1.0, 3.0, 2.0]), 2)
    (Array([3., 2.], dtype=float32), Array([1, 2], dtype=int32))
    """
    x, k, axis = _approximate("approx_max_k", operand, k, reduction_dimension)
    return top_k(x, k, axis=axis)


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` smallest floats along a dimension in ascending order, and their indices.

    Args:
        recall_target, reduction_input_size_override, aggregate_to_topk: ignored, as the result is exact.

    >>> from handlax.numpy import array
    >>> approx_min_k(array([1.0, 3.0, 2.0]), 2)
    (Array([1., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    x, k, axis = _approximate("approx_min_k", operand, k, reduction_dimension)
    largest, indices = top_k(-x, k, axis=axis)
    return -largest, indices


def shape_as_value(shape: Sequence[int]) -> Array:
    """The sizes of a shape as a vector of ``int32``.

    >>> shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return as_array(np.array(canonical_shape(shape, "shape_as_value"), np.int32))
