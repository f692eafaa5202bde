"""``handlax.numpy.fft``: Fourier transforms along any axes, their frequencies, and shifts, under JAX's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..effects.base.errors import BadArgument, need_one_of, whole_numbers
from ..effects.core.arrays import Array
from ..effects.operations.elementwise.complex_parts import conj
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.fft import FftType
from ..effects.operations.fft import fft as transformed
from ..effects.operations.foundations import shapes
from ..effects.operations.foundations.shapes import axes_listed, canonical_axis
from ..effects.operations.manipulation.creation import iota
from ..effects.operations.manipulation.slicing import pad
from ..effects.types import dtypes
from ..effects.types.extent import as_size, positive
from ..interpreters.core.eager_programs import programs
from .arrays.argument_conversion import array_of, inexact, like
from .arrays.creation import array, placed
from .arrays.shape_manipulation import moveaxis, roll

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _transform(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Array:
    """The Fourier transform of ``a`` along ``axes``, the last of which is the one that RFFT halves and IRFFT restores.

    By default it is along all axes, or along the last ``len(s)`` if ``s`` is given. ``s``: the lengths to which ``a``
    is cut or padded with zeros, by default its own.
    """
    x = array_of(a)
    rank = x.ndim
    need_one_of(f"{name}: the norm", norm, _SWAPPED)
    sizes = None if s is None else _lengths(name, s)
    last = rank if sizes is None else len(sizes)
    along = range(rank - last, rank) if axes is None else axes_listed(axes)
    positions = [canonical_axis(axis, rank, name) for axis in along]
    at_end = list(range(rank - len(positions), rank))
    if len(set(positions)) != len(positions):
        raise BadArgument(f"{name}: axes must be distinct, got {axes}.")
    if sizes is None:
        sizes = [x.shape[axis] for axis in positions]
        if kind is FftType.IRFFT and sizes:
            sizes[-1] = positive(2 * (sizes[-1] - 1))
    elif len(sizes) != len(positions):
        raise BadArgument(f"{name}: there must be a length for each axis, got {len(sizes)} and {len(positions)}.")
    read = [*sizes[:-1], sizes[-1] // 2 + 1] if kind is FftType.IRFFT and sizes else sizes
    missing = [dict(zip(positions, read)).get(d, n) - n for d, n in enumerate(x.shape)]
    x = pad(x, like(x, 0), [(0, n, 0) for n in missing]) if any(missing) else x
    if positions == at_end:
        return _scaled(transformed(x, kind, tuple(sizes)), kind, sizes, norm)
    y = transformed(moveaxis(x, positions, at_end), kind, tuple(sizes))
    return moveaxis(_scaled(y, kind, sizes, norm), at_end, positions)


def _lengths(name: str, s: Any) -> list[int]:
    """``s``, one length or several, as a list. Raises BadArgument: a length is not positive."""
    sizes = list(whole_numbers(f"{name}: a length", s))
    if any(n <= 0 for n in sizes):
        raise BadArgument(f"{name}: lengths must be positive, got {tuple(sizes)}.")
    return sizes


def _scaled(y: Any, kind: FftType, sizes: Sequence[Any], norm: str | None) -> Array:
    """``y``, a transform of this kind and these lengths in the norm "backward", rescaled to the norm ``norm``."""
    if norm in (None, "backward"):
        return y
    n = math.prod(sizes)
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    factor = math.sqrt(n) if norm == "ortho" else n
    return y * like(y, factor if inverse else 1 / factor if factor else math.inf)


def _along_one_axis(name: str, kind: FftType, a: Any, n: int | None, axis: Any, norm: str | None) -> Array:
    """The transform along ``axis`` at length ``n``; ``axis=None``: along the last axis with ``n``, else along all."""
    if isinstance(axis, (tuple, list)):
        raise BadArgument(f"{name}: one axis is needed, got {axis}.", hint=f"{name}n takes several.")
    if n is None and norm is None and axis == -1 and kind is not FftType.IRFFT:  # as for most calls
        x = array_of(a)
        if x.type.shape:
            return transformed(x, kind, x.type.shape[-1:])
    return _transform(name, kind, a, None if n is None else (n,), None if axis is None else (axis,), norm)


def _along_two_axes(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Array:
    """The transform along exactly two axes at lengths ``s``. Raises BadArgument: ``axes`` are not two."""
    if len(axes) != 2:
        raise BadArgument(f"{name}: two axes are needed, got {axes}.", hint=f"{name[:-1]}n takes any number.")
    return _transform(name, kind, a, s, axes, norm)


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """``fft(a)[k] == sum(a[j] * exp(-2j * pi * j * k / n) for j in range(n))`` along an axis.

    Args:
        n: the length, to which ``a`` is cut or padded with zeros; by default its own.
        norm: "backward" divides the inverse by ``n``; "forward" the transform itself; "ortho" both by ``sqrt(n)``.

    >>> from handlax.numpy import array
    >>> fft(array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    return _along_one_axis("fft", FftType.FFT, a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``fft``: ``ifft(fft(a)) == a``.

    >>> from handlax.numpy import array
    >>> ifft(array([4.0, 0.0]))
    Array([2.+0.j, 2.+0.j], dtype=complex64)
    """
    return _along_one_axis("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """``rfft(a) == fft(a)[: n // 2 + 1]`` of reals, whose other elements are the conjugates of these.

    Raises: BadArgument: complex numbers.

    >>> from handlax.numpy import array
    >>> rfft(array([1.0, 2.0, 3.0, 4.0]))
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _along_one_axis("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``rfft``: ``irfft(rfft(a), len(a)) == a``; ``n`` is ``2 * (len - 1)`` unless it is given.

    >>> from handlax.numpy import array
    >>> irfft(array([10.0, -2 + 2j, -2.0]))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    return _along_one_axis("irfft", FftType.IRFFT, a, n, axis, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real transform of a Hermitian-symmetric sequence, which is given by its first half.

    ``hfft(a, n) == n * irfft(conj(a), n)``

    >>> from handlax.numpy import array
    >>> hfft(array([1.0, 1j]))
    Array([1., 1.], dtype=float32)
    """
    return _along_one_axis("hfft", FftType.IRFFT, conj(inexact(a)), n, axis, _SWAPPED.get(norm, norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``hfft``: ``ihfft(a, n) == conj(rfft(a, n)) / n``.

    >>> from handlax.numpy import array
    >>> ihfft(array([3.0, 1.0]))
    Array([2.-0.j, 1.-0.j], dtype=complex64)
    """
    return conj(_along_one_axis("ihfft", FftType.RFFT, a, n, axis, _SWAPPED.get(norm, norm)))


def fftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """``fft`` along each of the axes, by default along all, or the last ones where lengths ``s`` are given.

    >>> from handlax.numpy import ones
    >>> fftn(ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of ``fftn``: ``ifftn(fftn(a)) == a``.

    >>> from handlax.numpy import array
    >>> ifftn(array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """``rfft`` along the last of the axes, then ``fft`` along the others.

    >>> from handlax.numpy import ones
    >>> rfftn(ones((2, 2))).shape
    (2, 2)
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Array:
    """The inverse of ``rfftn``: ``irfftn(rfftn(a), a.shape) == a``.

    ``ifft`` along all of the axes but the last, then ``irfft`` along that.

    >>> from handlax.numpy import array
    >>> irfftn(rfftn(array([[1.0, 2.0], [3.0, 4.0]])))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """``fftn`` along two axes.

    >>> from handlax.numpy import ones
    >>> fft2(ones((3, 2, 2)))[0, 0, 0]
    Array(4.+0.j, dtype=complex64)
    """
    return _along_two_axes("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """The inverse of ``fft2``: ``ifft2(fft2(a)) == a``.

    >>> from handlax.numpy import array
    >>> ifft2(array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _along_two_axes("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """``rfftn`` along two axes.

    >>> from handlax.numpy import ones
    >>> rfft2(ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _along_two_axes("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(a: Any, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Array:
    """The inverse of ``rfft2``: ``irfft2(rfft2(a), a.shape[-2:]) == a``.

    >>> from handlax.numpy import array
    >>> irfft2(rfft2(array([[1.0, 2.0], [3.0, 4.0]])))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _along_two_axes("irfft2", FftType.IRFFT, a, s, axes, norm)


def _frequencies(name: str, k: Any, n: int, d: Any, dtype: Any, device: Any) -> Array:
    """``k / (d * n)``, computed in floats."""
    if isinstance(d, (tuple, list)):
        raise BadArgument(f"{name}: d must be a number, got {d}.")
    kind = dtypes.default_float() if dtype is None else dtypes.canonical(dtype)
    wide = dtypes.to_real(dtypes.to_inexact(kind))
    return placed(convert(convert(k, wide) / shapes.broadcast(array(d * n, wide), k.shape), kind), device)


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of ``fft`` of ``n`` samples at distance ``d``: ``0, 1, ..., -2, -1`` over ``d * n``.

    >>> fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    n = as_size(n, "fftfreq: n")
    k = iota(np.dtype("int32"), n)
    return _frequencies("fftfreq", roll(k - like(k, n // 2), -(n // 2)) if n else k, n, d, dtype, device)


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of ``rfft`` of ``n`` samples at distance ``d``: ``0, 1, ..., n // 2`` over ``d * n``.

    >>> rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    n = as_size(n, "rfftfreq: n")
    return _frequencies("rfftfreq", iota(np.dtype("int32"), n // 2 + 1), n, d, dtype, device)


def _rolled(name: str, x: Any, axes: Any, sign: int) -> Array:
    """``x`` with each of ``axes`` (None: all) rolled by half of its size: forwards for sign 1, back for -1."""
    along = range(x.ndim) if axes is None else [canonical_axis(d, x.ndim, name) for d in axes_listed(axes)]
    return roll(x, [sign * (x.shape[axis] // 2) for axis in along], tuple(along))


def fftshift(x: Any, axes: Any = None) -> Array:
    """Each axis rolled by half of its size, so that frequency 0 of a transform comes to the middle.

    >>> fftshift(fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)
    """
    return _rolled("fftshift", array_of(x), axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Array:
    """The inverse of ``fftshift``.

    >>> ifftshift(fftshift(fftfreq(3)))
    Array([ 0.        ,  0.33333334, -0.33333334], dtype=float32)
    """
    return _rolled("ifftshift", array_of(x), axes, -1)


programs(globals())
