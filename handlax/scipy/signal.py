"""``handlax.scipy.signal``: convolution, correlation, trends and spectra of signals, under JAX's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.errors import BadArgument, ShapeMismatch, need_one_of, whole_number
from ..effects.base.lazy_module import late_module
from ..effects.base.source_locations import warn_user
from ..effects.core.arrays import Array
from ..effects.operations.elementwise.arithmetic import div, mul, sqrt, sub
from ..effects.operations.elementwise.complex_parts import complex as complex_number
from ..effects.operations.elementwise.complex_parts import conj, imag, real
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations import shapes
from ..effects.operations.manipulation.operand_promotion import promote, together
from ..effects.operations.manipulation.slicing import concatenate, rev, slice, slice_in_dim
from ..effects.operations.windows.convolution_functions import conv_general_dilated
from ..effects.types import dtypes
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.argument_conversion import array_of, choose, inexact
from ..numpy.arrays.creation import array, zeros
from ..numpy.arrays.indexing_operations import take
from ..numpy.arrays.padding import pad
from ..numpy.fft import fft, fftfreq, fftn, ifft, ifftn, irfft, irfftn, rfft, rfftfreq, rfftn
from ..numpy.mathematics.arithmetic import conjugate
from ..numpy.mathematics.reductions import sum as total
from ..numpy.statistics.averages import mean
from ..numpy.statistics.order_statistics import median

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]

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
    x, y = [shapes.reshape(v, (1, 1, *v.shape)) for v in (x, rev(y, range(y.ndim)))]
    z = conv_general_dilated(x, y, (1,) * len(second), padding, precision=precision)
    return shapes.reshape(z, z.shape[2:])


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
    along = range(x.ndim) if axes is None else shapes.axes_listed(axes)
    dims = sorted({shapes.canonical_axis(axis, x.ndim, "fftconvolve") for axis in along})
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


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: None = None) -> Array:
    """``data`` minus its trend along an axis: the mean, or in each segment the least-squares line.

    Args:
        type: "linear" or "constant".
        bp: the starts of segments, besides 0.
    Raises: BadArgument: there is no such type, or a start is out of range.
    Source: SciPy, ``signal.detrend``.

    >>> detrend(np.array([1.0, 3.0, 5.0]), type="constant")
    Array([-2.,  0.,  2.], dtype=float64)
    """
    if overwrite_data is not None:
        raise BadArgument(f"detrend: overwrite_data must be None, got {overwrite_data!r}.")
    x = inexact(data)
    axis = shapes.canonical_axis(axis, x.ndim, "detrend")
    need_one_of("detrend: type", type, ("linear", "constant"))
    if type == "constant":
        return sub(x, shapes.broadcast(mean(x, axis, keepdims=True), x.type.shape))
    size = x.shape[axis]
    bounds = np.unique(np.r_[0, np.asarray(bp), size])
    if bounds[0] < 0 or bounds[-1] > size:
        raise BadArgument(f"detrend: pieces must begin between 0 and {size}, got {bp}.")
    pieces = [_level(slice_in_dim(x, first, last, axis=axis), axis) for first, last in pairwise(bounds.tolist())]
    return concatenate(pieces, axis) if pieces else x


def _level(x: Any, axis: int) -> Any:
    """``x`` minus its least-squares line along an axis."""
    size = x.shape[axis]
    x = sub(x, shapes.broadcast(mean(x, axis, keepdims=True), x.type.shape))
    if size < 2:
        return x
    times = np.arange(size) - (size - 1) / 2
    line = shapes.broadcast_in_dim(array(times / np.sqrt(times @ times), dtype=x.type.dtype), x.type.shape, (axis,))
    slope = total(mul(x, line), axis, keepdims=True)
    return sub(x, mul(shapes.broadcast(slope, x.type.shape), line))


class SignalDivision(NamedTuple):
    """How a signal is segmented: the window, the step between segments, and the size of the transform."""

    window: Any
    step: int
    nfft: int

    @property
    def size(self) -> int:
        return int(self.window.shape[0])


def _window(window: Any, size: int, dtype: Any) -> Any:
    """The window as a vector, from a name or values. Raises ShapeMismatch: it is no vector of this size."""
    if not isinstance(window, (str, tuple)):
        vector = array(window, dtype=dtype)
        if vector.shape != (size,):
            raise ShapeMismatch(f"signal: the window must be a vector of {size} elements, got {vector.type}.")
        return vector
    if window == "hann":
        values = np.sin(np.pi * np.arange(size) / size) ** 2 if size > 1 else np.ones(1)
    else:
        values = late_module("scipy.signal").get_window(window, size)
    return array(values, dtype=dtype)


def _segments(
    name: str, length: int, dtype: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any
) -> SignalDivision:
    """The segmentation of a signal of this length, from arguments as ``stft`` takes them.

    Raises: BadArgument: a segment is empty, longer than the transform, or not longer than the overlap of two.
    """
    named = isinstance(window, (str, tuple))
    size = (length if named else len(window)) if nperseg is None else whole_number(f"{name}: nperseg", nperseg)
    if size < 1:
        raise BadArgument(f"{name}: nperseg must be positive, got {size}.")
    if size > length:
        if not named:
            raise BadArgument(f"{name}: the window must not be longer than the signal, got {size} and {length}.")
        warn_user(f"{name}: nperseg is {size}, greater than the signal's {length} elements, which is used.")
        size = length
    overlap = size // 2 if noverlap is None else whole_number(f"{name}: noverlap", noverlap)
    transform = size if nfft is None else whole_number(f"{name}: nfft", nfft)
    if overlap >= size or transform < size:
        raise BadArgument(
            f"{name}: noverlap must be less than nperseg, and nfft at least nperseg, got {overlap}, {transform} and "
            f"{size}."
        )
    return SignalDivision(_window(window, size, dtype), size - overlap, transform)


_EXTENSIONS: dict[Any, dict[str, Any]] = {
    "even": {"mode": "reflect"}, "odd": {"mode": "reflect", "reflect_type": "odd"}, "constant": {"mode": "edge"},
    "zeros": {"mode": "constant"},
}


def _extended(name: str, x: Any, boundary: Any, padded: bool, segments: SignalDivision) -> Any:
    """The signal extended by half a segment on either side, and if ``padded`` by zeros to whole segments."""
    before: list[tuple[int, int]] = [(0, 0)] * (x.ndim - 1)
    if boundary is not None:
        if boundary not in _EXTENSIONS:
            raise BadArgument(f"{name}: boundary must be one of {', '.join(_EXTENSIONS)} or None, got {boundary!r}.")
        x = pad(x, [*before, (segments.size // 2,) * 2], **_EXTENSIONS[boundary])
    if padded:
        missing = (-(x.shape[-1] - segments.size) % segments.step) % segments.size
        x = pad(x, [*before, (0, missing)])
    return x


def _leveler(name: str, trend: Any, axis: int) -> Callable[[Any], Any]:
    """The function that removes the trend from segments along the last axis; a user's function has it at ``axis``."""
    if isinstance(trend, str):
        return lambda x: detrend(x, type=trend)
    if callable(trend):
        return lambda x: shapes.move_axis(array_of(trend(shapes.move_axis(x, x.ndim - 1, axis))), axis, x.ndim - 1)
    if trend:
        raise BadArgument(f"{name}: detrend must be a name, a function or False, got {trend!r}.")
    return lambda x: x


def _times(x: Any, v: Any) -> Any:
    """``x * v`` in the dtype of ``x`` and with its shape, whatever the settings of promotion."""
    return mul(x, shapes.broadcast(convert(v, x.type.dtype), x.type.shape))


def _transforms(x: Any, segments: SignalDivision, level: Callable[[Any], Any], onesided: bool) -> Any:
    """The Fourier transforms of a signal's windowed segments: [..., segment, frequency]."""
    count = max(0, (x.shape[-1] - segments.size) // segments.step + 1)
    index = np.arange(count)[:, None] * segments.step + np.arange(segments.size)
    windows = _times(level(take(x, index, axis=-1)), segments.window)
    return rfft(windows, segments.nfft) if onesided else fft(windows, segments.nfft)


def _scale(name: str, scaling: str, window: Any, fs: Any) -> Any:
    """The factor of squared transforms. Raises BadArgument: ``scaling`` is unknown."""
    need_one_of(f"{name}: scaling", scaling, ("density", "spectrum"))
    return 1.0 / (fs * total(window * window)) if scaling == "density" else 1.0 / total(window) ** 2


def _signals(name: str, x: Any, y: Any, axis: Any) -> tuple[int, Any, Any]:
    """The axis, and both signals with it as the last one, of equal dtype and length; None for a missing one."""
    x = inexact(x)
    axis = shapes.canonical_axis(axis, x.ndim, name)
    if y is None:
        return axis, shapes.move_axis(x, axis, x.ndim - 1), None
    x, y = promote(x, inexact(y))
    if x.ndim != y.ndim:
        raise ShapeMismatch(f"{name}: the signals must have one rank, got {x.type} and {y.type}.")
    x, y = [shapes.move_axis(v, axis, v.ndim - 1) for v in (x, y)]
    length = max(x.shape[-1], y.shape[-1])
    x, y = [pad(v, [*[(0, 0)] * (v.ndim - 1), (0, length - v.shape[-1])]) for v in (x, y)]
    return axis, x, y


def _spectrum(
    name: str, x: Any, y: Any, *, fs: Any, division: tuple[Any, ...], trend: Any, onesided: bool, scaling: str,
    axis: Any, power: bool, boundary: Any = None, padded: bool = False,
) -> tuple[Any, Any, Any]:
    """Frequencies, times, and the segments' transforms; with ``power``, their products x conj(y)."""
    axis, x, y = _signals(name, x, y, axis)
    result = dtypes.to_complex(x.type.dtype)
    real_dtype = dtypes.to_real(result)
    if not x.size or (y is not None and not y.size):
        empty = zeros(shapes.move_axis(x, x.ndim - 1, axis).shape, real_dtype)
        return empty, empty, convert(empty, result)
    segments = _segments(name, x.shape[-1], x.type.dtype, *division)
    x, y = [v if v is None else _extended(name, v, boundary, padded, segments) for v in (x, y)]
    if onesided and dtypes.is_complex(x.type.dtype):
        warn_user(f"{name}: the signal is complex, so that the result has both sides.")
        onesided = False
    level, scale = _leveler(name, trend, axis), _scale(name, scaling, segments.window, fs)
    z = _transforms(x, segments, level, onesided)
    if not power:
        z = _times(z, sqrt(scale))
    else:
        w = z if y is None else _transforms(y, segments, level, onesided)
        z, w = together(name, conj(z), w)
        z = _times(mul(z, w), scale)
        if onesided:  # negative frequencies have the power of positive ones
            sides = np.ones(z.shape[-1], real_dtype)
            sides[1 : None if segments.nfft % 2 else -1] = 2
            z = _times(z, array(sides))
        z = real(z) if y is None else z
    frequencies = (rfftfreq if onesided else fftfreq)(segments.nfft, 1 / fs, dtype=real_dtype)
    half = segments.size / 2
    times = np.arange(half, x.shape[-1] - half + 1, segments.step) - (0 if boundary is None else half)
    z = convert(z, result if dtypes.is_complex(z.type.dtype) else real_dtype)
    return frequencies, array(times, dtype=real_dtype) / fs, shapes.move_axis(z, z.ndim - 1, axis)


def stft(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int = 256, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = False, return_onesided: bool = True, boundary: str | None = "zeros",
    padded: bool = True, axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: frequencies, times, and the transform of each segment.

    Shapes: the axis of ``x`` becomes that of frequencies; segments are along a new last one.

    Args:
        fs: the number of samples in a unit of time.
        window: a vector, or a name or tuple that ``scipy.signal.get_window`` knows.
        nperseg: the size of a segment; ``noverlap`` elements are in the next one too, by default half of them.
        nfft: the size of the transforms, for which segments are padded with zeros.
        boundary: how the signal is extended by half a segment on either side: "zeros", "even", "odd", "constant".
        padded: whether the signal is zero-padded to a whole number of segments.
    Raises: BadArgument: sizes do not fit, or there is no such window or boundary.
    Source: SciPy, ``signal.stft``.

    >>> stft(np.ones(8), nperseg=4)[2].shape
    (3, 5)
    """
    return _spectrum(
        "stft", x, None, fs=fs, division=(window, nperseg, noverlap, nfft), trend=detrend, onesided=return_onesided,
        scaling="spectrum", axis=axis, power=False, boundary=boundary, padded=padded,
    )


def csd(
    x: Any, y: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals by Welch's method: frequencies and densities.

    The arguments are those of ``stft``; ``y=None`` is ``x``, with real densities. Segments are averaged by "mean" or
    "median".
    Source: P. Welch, The use of the fast Fourier transform for the estimation of power spectra (1967).

    >>> csd(np.arange(8.0), np.ones(8), nperseg=4)[1].shape
    (3,)
    """
    frequencies, _, z = _spectrum(
        "csd", x, y, fs=fs, division=(window, nperseg, noverlap, nfft), trend=detrend, onesided=return_onesided,
        scaling=scaling, axis=axis, power=True,
    )
    if z.ndim < 2 or not z.size:
        return frequencies, z
    need_one_of("csd: average", average, ("mean", "median"))
    if average == "mean":
        return frequencies, mean(z, -1)
    even = np.arange(2.0, z.shape[-1], 2)
    bias = 1 + np.sum(1 / (even + 1) - 1 / even)
    if not dtypes.is_complex(z.type.dtype):
        return frequencies, median(z, -1) / bias
    return frequencies, complex_number(median(real(z), -1), median(imag(z), -1)) / bias


def welch(
    x: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1, average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal by Welch's method: ``csd(x, None)``.

    >>> welch(np.arange(8.0), nperseg=4)[1].dtype
    dtype('float64')
    """
    return csd(
        x, None, fs=fs, window=window, nperseg=nperseg, noverlap=noverlap, nfft=nfft, detrend=detrend,
        return_onesided=return_onesided, scaling=scaling, axis=axis, average=average,
    )


def _overlapped(frames: Any, step: int) -> Any:
    """Overlap-add: the sum of the frames (last axis) shifted by ``step`` each along the axis before."""
    *outer, count, size = frames.shape
    parts = -(-size // step)
    around: list[tuple[int, int]] = [(0, 0)] * len(outer)
    frames = pad(frames, [*around, (0, 0), (0, parts * step - size)])
    whole = None
    for k in range(parts):
        part = slice_in_dim(frames, k * step, (k + 1) * step, axis=-1)
        row = pad(shapes.reshape(part, (*outer, count * step)), [*around, (k * step, (parts - 1 - k) * step)])
        whole = row if whole is None else whole + row
    return slice_in_dim(whole, 0, step * (count - 1) + size, axis=-1)


def istft(
    Zxx: Any, fs: Any = 1.0, window: Any = "hann", nperseg: int | None = None, noverlap: int | None = None,
    nfft: int | None = None, input_onesided: bool = True, boundary: bool = True, time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The inverse of ``stft``: times, and the signal.

    The arguments are those of ``stft``; ``boundary`` says whether it extended the signal.
    Raises: BadArgument, ShapeMismatch: axes are equal, or sizes do not fit.
    Source: D. Griffin & J. Lim, Signal estimation from modified short-time Fourier transform (1984).

    >>> istft(stft(np.arange(8.0), nperseg=4)[2])[1].round(6)
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float64)
    """
    z = array_of(Zxx)
    if z.ndim < 2:
        raise ShapeMismatch(f"istft: there must be axes of times and of frequencies, got {z.type}.")
    times, bins = [shapes.canonical_axis(axis, z.ndim, "istft") for axis in (time_axis, freq_axis)]
    if times == bins:
        raise BadArgument(f"istft: the axes of times and of frequencies must differ, got {time_axis} and {freq_axis}.")
    z = convert(z, dtypes.to_complex(inexact(z).type.dtype))
    default = 2 * (z.shape[bins] - 1) if input_onesided else z.shape[bins]
    size = whole_number("istft: nperseg", nperseg or default)
    longer = default + (input_onesided and size == default + 1)
    transform = longer if nfft is None else whole_number("istft: nfft", nfft)
    overlap = size // 2 if noverlap is None else whole_number("istft: noverlap", noverlap)
    if size < 1 or transform < size or overlap >= size:
        raise BadArgument(
            f"istft: nperseg must be positive, nfft at least nperseg and noverlap less, got {size}, {transform} and "
            f"{overlap}."
        )
    outer = [d for d in range(z.ndim) if d not in (times, bins)]
    frames = (irfft if input_onesided else ifft)(z.transpose(*outer, times, bins), transform)
    win = _window(window, size, frames.type.dtype)
    frames = _times(_times(slice_in_dim(frames, 0, size, axis=-1), total(win)), win)
    x = _overlapped(frames, size - overlap)
    norm = _overlapped(shapes.broadcast(mul(win, win), (z.shape[times], size)), size - overlap)
    if boundary and size > 1:
        x, norm = [slice_in_dim(v, size // 2, -(size // 2), axis=-1) for v in (x, norm)]
    known = (real(norm) if dtypes.is_complex(norm.type.dtype) else norm) > 1e-10
    x = div(x, shapes.broadcast(choose(known, norm, 1.0), x.type.shape))
    if x.ndim > 1:
        x = shapes.move_axis(x, x.ndim - 1, times - (bins < times))
    clock = np.arange(x.shape[0])  # of a batch of signals too, as SciPy has it
    return array(clock, dtype=dtypes.to_real(dtypes.to_complex(x.type.dtype))) / fs, x


programs(globals())
