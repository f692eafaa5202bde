"""``handlax.scipy.fft``: discrete cosine transforms of type II and their inverses, under JAX's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, need_one_of, whole_numbers
from ..effects.core.arrays import Array
from ..effects.operations.elementwise.arithmetic import div, like, mul, neg
from ..effects.operations.elementwise.comparison import eq, select_n
from ..effects.operations.elementwise.complex_parts import complex as complex_number
from ..effects.operations.elementwise.complex_parts import imag, real
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import cos, sin
from ..effects.operations.fft import FftType, fft
from ..effects.operations.foundations.shapes import (
    axes_listed,
    broadcast_in_dim,
    canonical_axis,
    move_axis,
    reshape,
)
from ..effects.operations.manipulation.creation import iota
from ..effects.operations.manipulation.rearranging import stack
from ..effects.operations.manipulation.slicing import concatenate, pad, rev, slice_in_dim
from ..effects.types import dtypes
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.argument_conversion import array_of

__all__ = ["dct", "dctn", "idct", "idctn"]

_NORMS = (None, "backward", "ortho", "forward")


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform along an axis.

        y[k] == 2 * sum(x[j] * cos(pi * k * (2 * j + 1) / (2 * n)) for j in range(n))

    Args:
        type: only 2 is supported.
        n: the length, to which ``x`` is truncated or zero-padded.
        norm: "backward" leaves the sum as it is; "forward" divides it by ``2 * n``; "ortho" makes the map orthogonal.
    Raises: BadArgument: another type or norm.
    Source: J. Makhoul, A fast cosine transform in one and two dimensions (1980).

    >>> dct(np.array([1.0, 1.0]))
    Array([4., 0.], dtype=float64)
    """
    return _along("dct", _forward, x, type, None if n is None else (n,), (axis,), norm)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``dct``: ``idct(dct(x)) == x``, each with the same norm.

    >>> idct(np.array([4.0, 0.0]))
    Array([1., 1.], dtype=float64)
    """
    return _along("idct", _inverse, x, type, None if n is None else (n,), (axis,), norm)


def dctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """``dct`` along each of the axes; by default all, or the last ones if lengths ``s`` are given.

    >>> dctn(np.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float64)
    """
    return _along("dctn", _forward, x, type, s, axes, norm)


def idctn(
    x: Any, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of ``dctn``.

    >>> idctn(dctn(np.ones((2, 2))))
    Array([[1., 1.],
           [1., 1.]], dtype=float64)
    """
    return _along("idctn", _inverse, x, type, s, axes, norm)


def _along(name: str, f: Callable[[Any, Any], Any], x: Any, type: int, s: Any, axes: Any, norm: Any) -> Array:
    """``f`` along each of the axes; for complex numbers, of real and imaginary parts separately."""
    x = array_of(x)
    if type != 2:
        raise BadArgument(f"{name}: the type must be 2, the one that there is, got {type!r}.")
    need_one_of(f"{name}: the norm", norm, _NORMS)
    if dtypes.is_complex(x.dtype):
        return complex_number(*[_along(name, f, part(x), type, s, axes, norm) for part in (real, imag)])
    x = convert(x, dtypes.to_real(dtypes.to_complex(x.dtype)))
    sizes = None if s is None else whole_numbers(f"{name}: a length", axes_listed(s))
    if sizes is not None and min(sizes, default=0) < 0:
        raise BadArgument(f"{name}: lengths must not be negative, got {tuple(sizes)}.")
    last = x.ndim if sizes is None else len(sizes)
    if last > x.ndim:
        raise BadArgument(f"{name}: there must be an axis for each length, got {sizes} and {x.type}.")
    along = range(x.ndim - last, x.ndim) if axes is None else axes_listed(axes)
    dims = [canonical_axis(axis, x.ndim, name) for axis in along]
    if sizes is not None:
        if len(sizes) != len(dims):
            raise BadArgument(f"{name}: there must be a length for each axis, got {sizes} and {axes}.")
        wanted = dict(zip(dims, sizes))
        x = pad(x, like(x, 0), [(0, wanted.get(d, n) - n, 0) for d, n in enumerate(x.shape)])
    for axis in dims:
        x = move_axis(f(move_axis(x, axis, x.ndim - 1), norm), x.ndim - 1, axis)
    return x


def _forward(x: Any, norm: str | None) -> Array:
    """The cosine transform along the last axis: 2 Re(exp(-i pi k / 2n) FFT(v)), with v a permutation of x.

    v is x[0], x[2], ..., x[3], x[1]; of its transform the second half, the conjugate of the first, gives imaginary
    parts.
    """
    last, n = x.ndim - 1, x.shape[-1]
    if not n:
        return x
    v = concatenate([slice_in_dim(x, 0, n, 2, last), rev(slice_in_dim(x, 1, n, 2, last), (last,))], last)
    z = mul(fft(v, FftType.RFFT, (n,)), _turn(x, n // 2 + 1, -1))
    y = concatenate([real(z), -rev(slice_in_dim(imag(z), 1, (n + 1) // 2, 1, last), (last,))], last)
    return mul(y, _weights(y, norm))


def _inverse(y: Any, norm: str | None) -> Array:
    """The inverse of ``_forward``, step by step, along the last axis."""
    last, n = y.ndim - 1, y.shape[-1]
    if not n:
        return y
    y = div(y, _weights(y, norm))
    first = slice_in_dim(y, 0, n // 2 + 1, 1, last)
    second = rev(slice_in_dim(y, n - n // 2, n, 1, last), (last,))
    second = pad(second, like(y, 0), [*[(0, 0, 0)] * last, (1, 0, 0)])  # y[n] is 0
    v = fft(mul(complex_number(first, neg(second)), _turn(y, n // 2 + 1, 1)), FftType.IRFFT, (n,))
    even = slice_in_dim(v, 0, (n + 1) // 2, 1, last)
    odd = pad(rev(slice_in_dim(v, (n + 1) // 2, n, 1, last), (last,)), like(v, 0), [*[(0, 0, 0)] * last, (0, n % 2, 0)])
    both = stack([even, odd], last + 1)
    return slice_in_dim(reshape(both, (*y.shape[:-1], n + n % 2)), 0, n, 1, last)


def _turn(x: Any, size: int, sign: int) -> Array:
    """``exp(sign * i pi k / 2n)`` for k along the last axis of ``x``, which has n elements, in the shape of ``x``."""
    angle = mul(iota(x.dtype, size), like(x, sign * math.pi / (2 * x.shape[-1])))
    return broadcast_in_dim(complex_number(cos(angle), sin(angle)), (*x.shape[:-1], size), (x.ndim - 1,))


def _weights(y: Any, norm: str | None) -> Array:
    """The normalisation factors of the elements along the last axis."""
    n = y.shape[-1]
    if norm != "ortho":
        return like(y, 1 / n if norm == "forward" else 2)
    k = iota(np.dtype("int32"), n)
    row = select_n(eq(k, like(k, 0)), broadcast_in_dim(like(y, math.sqrt(2 / n)), (n,), ()), like(y, math.sqrt(1 / n)))
    return broadcast_in_dim(row, y.shape, (y.ndim - 1,))


programs(globals())
