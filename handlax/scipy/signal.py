"""``handlax.scipy.signal``: convolution, correlation, trends and spectra of signals, under JAX's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.base.errors import BadArgument, ShapeMismatch, need_one_of
from ..effects.core.arrays import Array
from ..effects.operations.foundations.shapes import axes_listed, canonical_axis, reshape
from ..effects.operations.manipulation.operand_promotion import promote
from ..effects.operations.manipulation.slicing import rev, slice
from ..effects.operations.windows.convolution_functions import conv_general_dilated
from ..effects.types import dtypes
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.argument_conversion import array_of, inexact
from ..numpy.fft import fftn, ifftn, irfftn, rfftn
from ..numpy.mathematics.arithmetic import conjugate
from .spectra import csd as csd
from .spectra import detrend as detrend
from .spectra import istft as istft
from .spectra import stft as stft
from .spectra import welch as welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]  # fmt: skip

_MODES = ("full", "same", "valid")


def _operands(name: str, in1: Any, in2: Any, mode: str) -> tuple[Array, Array]:
    """Two arrays of one rank and dtype. Raises BadArgument, ShapeMismatch: ranks differ, or the mode is unknown."""
    if mode not in _MODES:
        raise BadArgument(f"{name}: mode must be one of 'full', 'same' and 'valid', got {mode!r}.")
    x, y = array_of(in1), array_of(in2)
    if x.ndim != y.ndim:
        raise ShapeMismatch(f"{name}: operands must have the same number of dimensions, got {x.type} and {y.type}.")
    x, y = promote(x, y)
    return inexact(x), inexact(y)


def _swapped(name: str, m: Sequence[int], n: Sequence[int]) -> bool:
    """Whether the second of two shapes is the larger one, for mode "valid".

    Raises: ShapeMismatch: neither is at least as large as the other in every dimension.
    """
    if all([a >= b for a, b in zip(m, n)]):
        return False
    if all([a <= b for a, b in zip(m, n)]):
        return True
    raise ShapeMismatch(f"{name}: one operand must be smaller in every dimension, got sizes {tuple(m)} and {tuple(n)}.")


def _direct(name: str, in1: Any, in2: Any, mode: str, precision: Any) -> Array:
    """The convolution by its definition."""
    x, y = _operands(name, in1, in2, mode)
    if not x.size or not y.size:
        raise ShapeMismatch(f"{name}: zero-size arrays have no convolution, got {x.type} and {y.type}.")
    second = y.shape
    if _swapped(name, x.shape, y.shape):
        x, y = y, x
    padding = {
        "valid": [(0, 0) for _ in y.shape],
        "same": [(s - 1 - (o - 1) // 2, s - o + (o - 1) // 2) for s, o in zip(y.shape, second)],
        "full": [(s - 1, s - 1) for s in y.shape],
    }[mode]
    x, y = [reshape(v, (1, 1, *v.shape)) for v in (x, rev(y, range(y.ndim)))]
    z = conv_general_dilated(x, y, (1,) * len(second), padding, precision=precision)
    return reshape(z, z.shape[2:])


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """``convolve(x, y)[k] == sum over j of x[j] * y[k - j]``, of arrays of any rank; integers become floats.

    Args:
        mode: "full" is all of it, "same" its middle of the size of ``in1``, "valid" the elements without padding.
        method: "direct", which "auto" is, or "fft".
    Raises: ShapeMismatch: ranks differ, an operand is empty, or neither is the smaller one in all dimensions.
    Source: SciPy, ``signal.convolve``.

    >>> from handlax.numpy import array
    >>> convolve(array([1.0, 2.0, 3.0]), array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    need_one_of("convolve: method", method, ("auto", "direct", "fft"))
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _direct("convolve", in1, in2, mode, precision)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """Cross-correlation: ``convolve(in1, rev(conj(in2)))``.

    >>> from handlax.numpy import array
    >>> correlate(array([1.0, 2.0, 3.0]), array([0.0, 1.0]))
    Array([1., 2., 3., 0.], dtype=float32)
    """
    y = array_of(in2)
    return convolve(in1, rev(conjugate(y), range(y.ndim)), mode, method, precision)


def _need_planes(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> tuple[Array, Array]:
    """Two matrices. Raises BadArgument, ShapeMismatch: ranks differ from 2, or the boundary is not zero."""
    if boundary != "fill" or fillvalue != 0:
        raise BadArgument(
            f"{name}: boundary must be 'fill' with fillvalue 0, got {boundary!r} with {fillvalue!r}.",
            hint="numpy.pad extends an array in other ways; mode='valid' reads no padding.",
        )
    x, y = array_of(in1), array_of(in2)
    if x.ndim != 2 or y.ndim != 2:
        raise ShapeMismatch(f"{name}: operands must be matrices, got {x.type} and {y.type}.")
    return x, y


def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Array:
    """``convolve`` of two matrices.

    >>> from handlax.numpy import eye, ones
    >>> convolve2d(eye(2), ones((2, 2)), "same")
    Array([[1., 1.],
           [1., 2.]], dtype=float32)
    """
    return _direct("convolve2d", *_need_planes("convolve2d", in1, in2, boundary, fillvalue), mode, precision)


def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0, precision: Any = None
) -> Array:
    """``correlate`` of two matrices; modes "same" and "valid" are SciPy's, which differ from those of ``correlate``.

    >>> from handlax.numpy import eye, ones
    >>> correlate2d(eye(2), ones((2, 2)), "valid")
    Array([[2.]], dtype=float32)
    """
    x, y = _need_planes("correlate2d", in1, in2, boundary, fillvalue)
    smaller = all([m <= n for m, n in zip(x.shape, y.shape)])
    turned = lambda v: rev(v, (0, 1))
    if mode != "same" and smaller and (mode != "valid" or x.shape != y.shape):
        z = _direct("correlate2d", turned(y), conjugate(x), mode, precision)
        return z if mode == "valid" else conjugate(z)
    return turned(_direct("correlate2d", turned(x), conjugate(y), mode, precision))


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Sequence[int] | None = None) -> Array:
    """``convolve`` as a product of Fourier transforms, along ``axes``, or all.

    Raises: ShapeMismatch: ranks differ, or sizes along other axes.
    Source: SciPy, ``signal.fftconvolve``.

    >>> from handlax.numpy import array
    >>> fftconvolve(array([1.0, 2.0, 3.0]), array([1.0, 1.0])).round(6)
    Array([1., 3., 5., 3.], dtype=float32)
    """
    x, y = _operands("fftconvolve", in1, in2, mode)
    along = range(x.ndim) if axes is None else axes_listed(axes)
    dims = sorted({canonical_axis(axis, x.ndim, "fftconvolve") for axis in along})
    if any([x.shape[d] != y.shape[d] for d in range(x.ndim) if d not in dims]):
        raise ShapeMismatch(f"fftconvolve: sizes must agree along other axes than {dims}, got {x.type} and {y.type}.")
    m, n = [[v.shape[d] for d in dims] for v in (x, y)]
    if mode == "valid" and _swapped("fftconvolve", m, n):
        x, y, m, n = y, x, n, m
    whole = [a + b - 1 for a, b in zip(m, n)]
    sizes = {"full": whole, "same": m, "valid": [a - b + 1 for a, b in zip(m, n)]}[mode]
    forward, back = (fftn, ifftn) if dtypes.is_complex(x.type.dtype) else (rfftn, irfftn)
    z = back(forward(x, whole, dims) * forward(y, whole, dims), whole, dims)
    start, limit = [0] * x.ndim, list(z.shape)
    for d, length, size in zip(dims, whole, sizes):
        start[d] = (length - size) // 2
        limit[d] = start[d] + size
    return slice(z, start, limit)


programs(globals())
