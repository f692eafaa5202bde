"""Window functions, convolution, correlation, and linear interpolation of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..effects.base.errors import BadArgument, DTypeMismatch, ShapeMismatch, need_one_of, whole_number
from ..effects.base.lazy_module import LazyModule
from ..effects.core.arrays import Array, from_numpy
from ..effects.operations.elementwise.arithmetic import abs as _abs
from ..effects.operations.elementwise.arithmetic import sqrt, square
from ..effects.operations.elementwise.comparison import clamp, gt, lt, select_n
from ..effects.operations.elementwise.complex_parts import conj
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.foundations import shapes
from ..effects.operations.manipulation.operand_promotion import promote, together
from ..effects.operations.manipulation.slicing import concatenate, pad, rev, slice, slice_in_dim
from ..effects.operators.numpy_arithmetic import remainder
from ..effects.types import dtypes
from ..effects.types.dtypes import canonical, default_float
from ..effects.types.extent import Extent, positive
from ..interpreters.core.eager_programs import programs
from .arrays.argument_conversion import array_of, inexact, like
from .arrays.indexing_operations import take
from .mathematics.elementary_functions import i0
from .mathematics.matrix_products import contract
from .statistics.sorting_searching import argsort, searchsorted

if TYPE_CHECKING:
    from ..effects.operations.windows import convolution_functions
else:
    convolution_functions = LazyModule("handlax.effects.operations.windows.convolution_functions")

__all__ = ["bartlett", "blackman", "convolve", "correlate", "hamming", "hanning", "interp", "kaiser"]


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """The piecewise linear interpolant of the points ``(xp, fp)``, ``xp`` increasing, evaluated at ``x``.

    Outside it is ``left`` and ``right``: a number, by default the first and last of ``fp``, or "extrapolate". With
    ``period``, ``x`` and ``xp`` are taken modulo the period, and ``xp`` need not increase.
    Source: NumPy, ``interp``.

    >>> from handlax.numpy import array
    >>> interp(1.5, array([1.0, 2.0]), array([10.0, 20.0]))
    Array(15., dtype=float32)
    """
    at, xs = promote(x, xp)
    ys = inexact(fp)
    at, xs = inexact(at), inexact(xs)
    if dtypes.is_complex(at.type.dtype):
        raise DTypeMismatch(f"interp: x and xp must be real, got {at.type} and {xs.type}.")
    if xs.ndim != 1 or xs.type.shape != ys.type.shape or not xs.size:
        raise ShapeMismatch(f"interp: xp and fp must be vectors of one size, got {xs.type} and {ys.type}.")
    if period is not None:
        at, xs, ys = _periodic(at, xs, ys, period)
        left = right = None
    size = xs.type.shape[0]
    last = max(1, size - 1) if isinstance(size, int) else 1 + convert(positive(size - 2), np.dtype("int32"))
    upper = clamp(1, searchsorted(xs, at, "right"), last)
    x1, y1 = take(xs, upper, mode="clip"), take(ys, upper, mode="clip")
    x0, y0 = (take(v, upper - 1, mode="clip") for v in (xs, ys))
    width = x1 - x0
    flat = _abs(width) <= 0
    part = (at - x0) / select_n(flat, width, like(width, 1))
    part, y0, y1 = together("interp", part, y0, y1)
    y = select_n(flat, y0 + part * (y1 - y0), y0)
    for side, compare, i in ((left, lt, 0), (right, gt, -1)):
        if isinstance(side, str):
            if side != "extrapolate":
                raise BadArgument(f"interp: outside is a number or 'extrapolate', got {side!r}.")
            continue
        end = ys[i] if side is None else convert(side, y.type.dtype)
        edge = shapes.broadcast(xs[i], at.type.shape)
        y = select_n(compare(at, edge), y, shapes.broadcast(convert(end, y.type.dtype, y.type.weak), y.type.shape))
    return convert(y, y.type.dtype)


def _periodic(at: Any, xs: Any, ys: Any, period: Any) -> tuple[Any, Any, Any]:
    """``at`` and ``xs`` modulo the period; ``xs`` and ``ys`` sorted by ``xs`` and extended by a point at either end."""
    from_period = _abs(convert(period, xs.type.dtype))
    at, xs = remainder(at, from_period), remainder(xs, from_period)
    order = argsort(xs)
    xs, ys = take(xs, order), take(ys, order)
    first, last = slice_in_dim(xs, 0, 1), slice_in_dim(xs, -1, None)
    xs = concatenate([last - from_period, xs, first + from_period], 0)
    return at, xs, concatenate([slice_in_dim(ys, -1, None), ys, slice_in_dim(ys, 0, 1)], 0)


def _convolved(name: str, x: Any, y: Any, mode: str, precision: Any, preferred: Any) -> Any:
    """``z[k] = sum over j of x[k + j - m + 1] * y[j]``, ``m`` the size of ``y``, for the ``k`` that ``mode`` keeps.

    ``x`` is at least as long as ``y``; elements outside ``x`` are zeros.
    """
    n, m = x.type.shape[0], y.type.shape[0]
    need_one_of(f"{name}: mode", mode, ("full", "same", "valid"))
    if mode == "valid":
        around, count = (0, 0), positive(n - m + 1)
    elif mode == "same":
        around, count = (m // 2, m - m // 2 - 1), n
    else:
        around, count = (m - 1, m - 1), n + m - 1
    if isinstance(n, Extent) or isinstance(m, Extent):
        base = pad(x, like(x, 0), [(*around, 0)])
        rows = concatenate([shapes.reshape(slice(base, (j,), (j + count,)), (1, count)) for j in range(m)], 0)
        return contract(y, rows, (((0,), (0,)), ((), ())), precision, preferred)
    a, b = [shapes.reshape(v, (1, 1, v.type.shape[0])) for v in (x, y)]
    z = convolution_functions.conv_general_dilated(
        a, b, (1,), (around,), precision=precision, preferred_element_type=preferred
    )
    return shapes.reshape(z, (count,))


def _vectors(name: str, a: Any, v: Any, preferred: Any) -> list[Any]:
    """Both as vectors of one dtype: floats, unless they and the dtype ``preferred`` of the result are integers."""
    x, y = promote(a, v)
    for part in (x, y):
        if part.ndim != 1 or not part.size:
            raise ShapeMismatch(f"{name}: operands must be vectors with elements, got {x.type} and {y.type}.")
    whole = preferred is not None and dtypes.is_integer(canonical(preferred))
    return [x, y] if whole and dtypes.is_integer(x.type.dtype) else [inexact(x), inexact(y)]


def _is_longer(x: Any, y: Any) -> bool:
    """Whether ``x`` is longer than ``y``; a symbolic dimension counts as longer than an int, two as equal."""
    ragged = [isinstance(size, Extent) for size in (x.type.shape[0], y.type.shape[0])]
    return ragged[0] and not ragged[1] if any(ragged) else x.size > y.size


def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """``convolve(a, v)[k] == sum over j of a[j] * v[k - j]``; "same": the longer size, "valid": full overlaps.

    As in JAX the results of integers are floats, unless ``preferred_element_type`` is an integer dtype.

    >>> from handlax.numpy import array
    >>> convolve(array([1, 2, 3]), array([1, 1]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    x, y = _vectors("convolve", a, v, preferred_element_type)
    if _is_longer(y, x):
        x, y = y, x
    return _convolved("convolve", x, rev(y, (0,)), mode, precision, preferred_element_type)


def correlate(
    a: Any, v: Any, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """``correlate(a, v)[k] == sum over j of a[j + k] * conj(v[j])``, k from the first overlap. Source: NumPy.

    As in JAX the results of integers are floats, unless ``preferred_element_type`` is an integer dtype.

    >>> from handlax.numpy import array
    >>> correlate(array([1, 2, 3]), array([1, 1]))
    Array([3., 5.], dtype=float32)
    """
    x, y = _vectors("correlate", a, v, preferred_element_type)
    if dtypes.is_complex(y.type.dtype):
        y = conj(y)
    if not _is_longer(y, x):
        return _convolved("correlate", x, y, mode, precision, preferred_element_type)
    return rev(_convolved("correlate", y, x, mode, precision, preferred_element_type), (0,))


def _window(function: Callable[[Any], np.ndarray[Any, Any]], M: Any) -> Any:
    """NumPy's window of ``M`` points as an array of the default float dtype."""
    size = whole_number(f"{function.__name__}: M", M) if type(M) is Extent else M  # NumPy takes fractions too
    return from_numpy(function(size).astype(default_float()), copy=False)


def hanning(M: int) -> Array:
    """``0.5 - 0.5 cos(2 pi i / (M - 1))``. Source: NumPy, ``hanning``.

    >>> hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window(np.hanning, M)


def hamming(M: int) -> Array:
    """``0.54 - 0.46 cos(2 pi i / (M - 1))``. Source: NumPy, ``hamming``.

    >>> hamming(3).shape
    (3,)
    """
    return _window(np.hamming, M)


def blackman(M: int) -> Array:
    """``0.42 - 0.5 cos(2 pi i / (M - 1)) + 0.08 cos(4 pi i / (M - 1))``. Source: NumPy, ``blackman``.

    >>> blackman(3).shape
    (3,)
    """
    return _window(np.blackman, M)


def bartlett(M: int) -> Array:
    """The triangle that is 0 at both ends and 1 in the middle. Source: NumPy, ``bartlett``.

    >>> bartlett(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window(np.bartlett, M)


def kaiser(M: int, beta: Any) -> Array:
    """``i0(beta sqrt(1 - (2 i / (M - 1) - 1)**2)) / i0(beta)``. Source: NumPy, ``kaiser``.

    >>> kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    b = inexact(array_of(beta))
    b = convert(b, default_float() if b.type.weak else b.type.dtype)
    M = whole_number("kaiser: M", M)
    if M == 1:
        return shapes.full(b.type.update(shape=(1,)), 1)
    at = from_numpy(np.linspace(-1, 1, M).astype(b.type.dtype), copy=False)
    height = sqrt(1 - square(at))
    return i0(shapes.broadcast(b, (M,)) * height) / i0(b)


programs(globals())
