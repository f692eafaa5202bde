"""Normalizations along axes, and one-hot codes: softmax, log_softmax, logsumexp, logmeanexp, standardize, one_hot."""

from __future__ import annotations

from typing import Any, Literal, overload

from ..effects.base.errors import BadArgument, need_one_of
from ..effects.base.stack import perform
from ..effects.core.arrays import Array, is_number
from ..effects.core.operation import shared
from ..effects.operations.elementwise.arithmetic import abs as _abs
from ..effects.operations.elementwise.arithmetic import add, mul, rsqrt, sign, square, stop_gradient, sub
from ..effects.operations.elementwise.comparison import max as _max
from ..effects.operations.elementwise.comparison import select_n
from ..effects.operations.elementwise.complex_parts import complex as _complex
from ..effects.operations.elementwise.complex_parts import real
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp, log
from ..effects.operations.foundations import shapes
from ..effects.operations.foundations.half_precision import HALF
from ..effects.operations.foundations.shapes import canonical_axis
from ..effects.operations.indexing.dynamic_slicing import index_holding
from ..effects.operations.manipulation.creation import iota
from ..effects.operations.manipulation.operand_promotion import promote
from ..effects.operations.reductions.reductions import ReduceMax
from ..effects.operations.reductions.softmax import Softmax
from ..effects.types import dtypes
from ..effects.types.dtypes import canonical, default_float
from ..effects.types.extent import as_size
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.argument_conversion import axes_of, choose, inexact, inexact_together, kept_shape, like
from ..numpy.arrays.creation import asarray
from ..numpy.mathematics import reductions
from ..numpy.mathematics.logic import isfinite
from ..numpy.statistics import averages

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]


def _constant_maximum(x: Any, axes: tuple[int, ...]) -> Any:
    """The maximum along the axes, with size 1 along them and no derivative; NaN may be ignored, since ``x`` has it too.

    Of complex numbers that of their real parts.
    """
    x = real(x) if dtypes.is_complex(x.type.dtype) else x
    top = perform(shared(ReduceMax, axes, False), x) if axes else x
    return stop_gradient(shapes.reshape(top, kept_shape(x.type.shape, axes)))


def _below(x: Any, top: Any) -> Any:
    """``x - top`` in the dtype of ``x``; ``top`` is broadcast to its shape."""
    return x - shapes.broadcast(convert(top, x.type.dtype, x.type.weak), x.type.shape)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """``e**x / sum(e**x)`` along the axes; elements where ``where`` is false are left out and give 0.

    >>> from handlax.numpy import array
    >>> softmax(array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    x = inexact(x)
    op = Softmax(axes_of(axis, len(x.type.shape), "softmax"))
    if where is None:
        return perform(op, x)
    return choose(where, perform(op, choose(where, x, like(x, -float("inf")))), like(x, 0))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """``log(softmax(x))``, without overflow; -inf where ``where`` is false.

    >>> from handlax.numpy import array
    >>> log_softmax(array([0.0, 0.0]))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    x = inexact(x)
    axes = axes_of(axis, len(x.type.shape), "log_softmax")
    if where is not None:
        x = choose(where, x, like(x, -float("inf")))
    top = _constant_maximum(x, axes)
    if where is not None:
        top = select_n(top == -float("inf"), top, like(top, 0))
    away = _below(x, top)
    powers = exp(away)
    if powers.type.dtype in HALF:  # whose sum may overflow
        powers = convert(powers, dtypes.float32)
    total = convert(log(reductions.sum(powers, axes, keepdims=True)), away.type.dtype)
    if where is not None:
        total = select_n(total == -float("inf"), total, like(total, 0))
    return _below(away, total)


@overload
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: Literal[False] = False,
    where: Any = None,
) -> Array: ...
@overload
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, *, return_sign: Literal[True], where: Any = None
) -> tuple[Array, Array]: ...
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """``log(sum(b * e**a))`` along the axes, without overflow; -inf for no elements, with derivative 0.

    With ``return_sign``, ``(log(abs(s)), sign(s))`` of the sum s; without it NaN where s is negative.

    >>> from handlax.numpy import array
    >>> logsumexp(array([0.0, 0.0]))
    Array(0.6931472, dtype=float32)
    """
    x, weights = inexact(a), None
    if b is not None:
        x, weights = inexact_together("logsumexp", x, b if is_number(b) else inexact(b))
        x = choose(weights != 0, x, like(x, -float("inf")))
        weights = shapes.broadcast(weights, x.type.shape)
    if where is not None:
        x = choose(where, x, like(x, -float("inf")))
    kind = x.type
    if kind.dtype in HALF:  # whose sum may overflow
        x = convert(x, dtypes.float32, kind.weak)
        weights = None if weights is None else convert(weights, dtypes.float32)
    axes = axes_of(axis, len(x.type.shape), "logsumexp")
    if axes and 0 in [x.type.shape[d] for d in axes]:
        kept = convert(reductions.sum(x, axes, keepdims=keepdims), kind.dtype)
        return (log(kept), kept) if return_sign else log(kept)
    top = _constant_maximum(x, axes)
    top = select_n(isfinite(top), like(top, 0), top)
    if dtypes.is_complex(x.type.dtype):
        top = _complex(top, like(top, 0))
    powers = exp(_below(x, top))
    if weights is not None:
        powers = powers * weights
    total = reductions.sum(powers, axes, keepdims=True)
    none = total == 0
    signs = sign(total) if b is not None or return_sign else None
    plain = dtypes.is_complex(x.type.dtype) and not return_sign
    size = total if signs is None or plain else _abs(total)
    y = add(log(select_n(none, size, like(size, 1))), real(top) if size.type.dtype != top.type.dtype else top)
    y = select_n(none, y, like(y, -float("inf")))
    if signs is not None and not return_sign and not plain:
        y = select_n(signs < 0, y, like(y, float("nan")))
    if not keepdims:
        left = tuple([n for d, n in enumerate(x.type.shape) if d not in axes])
        y = shapes.reshape(y, left)
        signs = shapes.reshape(signs, left) if return_sign else None
    y = convert(y, kind.dtype if kind.dtype in HALF else y.type.dtype)
    signs = convert(signs, y.type.dtype) if return_sign and kind.dtype in HALF else signs
    return (y, signs) if return_sign else y


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Array:
    """``log(mean(e**x))`` along the axes, without overflow.

    >>> from handlax.numpy import array
    >>> logmeanexp(array([1.0, 1.0]))
    Array(1., dtype=float32)
    """
    x = inexact(x)
    mask = shapes.full(x.type.update(dtype=dtypes.bool_, weak=False), True) if where is None else where
    count = reductions.sum(choose(mask, like(x, 1), shapes.zeros(x.type)), axis, keepdims=keepdims)
    return logsumexp(x, axis, where=where, keepdims=keepdims) - log(convert(count, x.type.dtype))


def standardize(
    x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5, where: Any = None, *,
    algorithm: str = "fast",
) -> Array:
    """``(x - mean) / sqrt(variance + epsilon)`` along the axes.

    Args:
        mean, variance: those of the axes, of size 1 there; computed where they are not given.
        algorithm: "fast" takes ``mean(x**2) - mean(x)**2`` for the variance, "stable" ``mean((x - mean(x))**2)``.

    >>> from handlax.numpy import array
    >>> standardize(array([1.0, 1.0]))
    Array([0., 0.], dtype=float32)
    """
    need_one_of("standardize: algorithm", algorithm, ("fast", "stable"))
    x = inexact(x)
    axes = axes_of(axis, len(x.type.shape), "standardize")
    if mean is None:
        mean = averages.mean(x, axes, keepdims=True, where=where)
    x, mean = promote(x, mean)
    if variance is None:
        if algorithm == "stable":
            variance = averages.var(x, axes, keepdims=True, where=where, mean=mean)
        else:
            variance = averages.mean(square(x), axes, keepdims=True, where=where) - square(mean)
            variance = _max(variance, like(variance, 0))  # rounding may make it negative
    x, mean, variance = promote(x, mean, variance)
    centred = inexact_together("standardize", x, mean)
    spread = inexact_together("standardize", variance, epsilon)
    return mul(*inexact_together("standardize", sub(*centred), rsqrt(add(*spread))))


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Array:
    """``one_hot(x, n)[..., k] == (x[...] == k)``: zeros where ``x`` is not in [0, n).

    Shapes: a dimension of size ``num_classes`` at ``axis`` of the result.

    >>> from handlax.numpy import array
    >>> one_hot(array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    x = asarray(x)
    made = default_float() if dtype is None else canonical(dtype)
    rank = len(x.type.shape) + 1
    axis = canonical_axis(axis, rank, "one_hot")
    count = as_size(num_classes, "one_hot: num_classes")
    if isinstance(count, int) and count < 0:
        raise BadArgument(f"one_hot: num_classes must not be negative, got {count}.")
    shape = (*x.type.shape[:axis], count, *x.type.shape[axis:])
    if not dtypes.is_inexact(x.type.dtype):
        x = index_holding(x if dtypes.is_integer(x.type.dtype) else convert(x, dtypes.default_int()), count)
    kind = x.type.dtype
    codes = shapes.broadcast_in_dim(x, shape, tuple([d for d in range(rank) if d != axis]))
    return convert(codes == shapes.broadcast_in_dim(iota(kind, count), shape, (axis,)), made)


programs(globals())
