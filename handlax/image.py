"""``handlax.image``, under JAX's names: images scaled and moved.

Every element of the result is a weighted mean of elements of the image, axis by axis.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import numpy as np

from .effects.base.errors import BadArgument, ShapeMismatch, whole_numbers
from .effects.core.arrays import Array
from .effects.operations.dot_general import Precision, dot_general
from .effects.operations.elementwise.arithmetic import abs
from .effects.operations.elementwise.comparison import max as larger
from .effects.operations.elementwise.comparison import min as smaller
from .effects.operations.elementwise.conversion import convert
from .effects.operations.elementwise.transcendental import sin
from .effects.operations.foundations.shapes import canonical_axis, canonical_shape, move_axis
from .effects.operations.manipulation.creation import broadcasted_iota
from .effects.operations.manipulation.slicing import concatenate
from .effects.types.dtypes import float32, float64, to_real
from .interpreters.core.eager_programs import programs
from .numpy.arrays.argument_conversion import array_of, choose, inexact
from .numpy.arrays.creation import array
from .numpy.arrays.indexing_operations import take
from .numpy.mathematics.arithmetic import clip
from .numpy.mathematics.reductions import sum as total

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How the value between elements of an image is computed; ``from_string`` gives the method of a name.

    ``NEAREST`` takes the nearest element, ``AREA`` the mean over the area of the new one; the others interpolate:
    ``LINEAR``, ``CUBIC`` (Keys), ``CUBIC_PYTORCH`` (as PyTorch does it) and ``LANCZOS3``, ``LANCZOS5`` by their radius.
    Source: R. Keys, Cubic convolution interpolation for digital image processing (1981).
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name. Raises BadArgument: there is none.

        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        for method, names in _NAMES.items():
            if s in names:
                return method
        known = [name for names in _NAMES.values() for name in names]
        raise BadArgument(f"image: the method must be one of {', '.join(known)}, got {s!r}.")


_NAMES = {
    ResizeMethod.NEAREST: ("nearest",),
    ResizeMethod.LINEAR: ("linear", "bilinear", "trilinear", "triangle"),
    ResizeMethod.LANCZOS3: ("lanczos3",),
    ResizeMethod.LANCZOS5: ("lanczos5",),
    ResizeMethod.CUBIC: ("cubic", "bicubic", "tricubic"),
    ResizeMethod.CUBIC_PYTORCH: ("cubic-pytorch", "bicubic-pytorch"),
    ResizeMethod.AREA: ("area",),
}


def _cubic(a: float) -> Callable[[Any], Any]:
    """The cubic kernel of slope ``a`` at 1: it is 1 at 0, and 0 at other integers and from 2 on."""

    def kernel(x: Any) -> Any:
        inner = ((a + 2) * x - (a + 3)) * x * x + 1
        outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return choose(x >= 2, 0.0, choose(x >= 1, outer, inner))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    """sinc(x) sinc(x / radius) up to the radius."""

    def kernel(x: Any) -> Any:
        y = radius * sin(pi * x) * sin(pi * x / radius)
        return choose(x > radius, 0.0, choose(x > 1e-3, y / choose(x == 0, 1.0, (pi * x) ** 2), 1.0))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: lambda x: clip(1 - x, 0), ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75), ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
}
_EDGE = 2  # elements outside of the image that the kernel of CUBIC_PYTORCH reaches, whose weights are those of the edge


def _resampler(size: int, count: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool, dtype: Any) -> Any:
    """The matrix ``weights[size, count]`` that resamples an axis of ``size`` elements to ``count``: ``x @ weights``."""
    step = 1 / scale
    edge = _EDGE if method is ResizeMethod.CUBIC_PYTORCH else 0
    rows = broadcasted_iota(dtype, (size + 2 * edge, 1), 0)
    rows = rows - edge if edge else rows
    columns = broadcasted_iota(dtype, (1, count), 1)
    centres = (columns + 0.5 - shift) * step - 0.5
    if method is ResizeMethod.AREA:  # what the areas of two elements have in common
        first = (columns - shift) * step
        weights = clip(smaller(first + step, rows + 1) - larger(first, rows), 0)
    else:
        width = clip(step, 1.0) if antialias else 1.0
        weights = _KERNELS[method](abs(centres - rows) / width)
    if edge:
        low, high = [total(part, 0, keepdims=True) for part in (weights[: edge + 1], weights[-edge - 1 :])]
        middle = weights[edge + 1 : -edge - 1]
        weights = concatenate([low, middle, high], 0) if size > 1 else total(weights, 0, keepdims=True)
    sums = total(weights, 0, keepdims=True)
    known = abs(sums) > 1000 * float(np.finfo(np.float32).eps)
    weights = choose(known, weights / choose(known, sums, 1.0), 0.0)
    return weights if edge else choose((centres >= -0.5) & (centres <= size - 0.5), weights, 0.0)


def _resampled(
    x: Any, shape: tuple[int, ...], axes: Sequence[int], scales: Any, shifts: Any, method: ResizeMethod,
    antialias: bool, precision: Any,
) -> Any:
    """An image of floats with the axes ``axes`` scaled and moved."""
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    dtype = float64 if to_real(x.type.dtype) == float64 else float32
    for axis, scale, shift in zip(axes, scales, shifts):
        by, to = array(scale, dtype=dtype), array(shift, dtype=dtype)
        weights = convert(_resampler(x.shape[axis], shape[axis], by, to, method, antialias, dtype), x.type.dtype)
        x = move_axis(dot_general(x, weights, (((axis,), (0,)), ((), ())), precision), x.ndim - 1, axis)
    return x


def _method(method: Any) -> ResizeMethod:
    """The method with this name or number. Raises BadArgument: there is none."""
    return ResizeMethod.from_string(method) if isinstance(method, str) else ResizeMethod(method)


def _shape_for(name: str, image: Any, shape: Any) -> tuple[int, ...]:
    """The shape of the result. Raises ShapeMismatch: its rank is not that of the image."""
    sizes = canonical_shape(shape, name)
    if len(sizes) != image.ndim:
        raise ShapeMismatch(f"{name}: the shape must have a size for each axis of {image.type}, got {sizes}.")
    return sizes


def scale_and_translate(
    image: Any, shape: Any, spatial_dims: Sequence[int], scale: Any, translation: Any, method: Any,
    antialias: bool = True, precision: Any = Precision.HIGHEST,
) -> Array:
    """An image of this shape, in which a point ``p`` of the given one is at ``p * scale + translation``.

    Points of element ``i`` are from ``i`` to ``i + 1``. Elements that are outside of the given image are 0.

    Args:
        spatial_dims: the axes that ``scale`` and ``translation`` have a number for; these may be traced.
        method: a ``ResizeMethod`` or its name; there is no "nearest".
        antialias: whether kernels are wider where the result is smaller.
    Raises: ShapeMismatch, BadArgument: there is not one size for each axis, or no such method.

    >>> from handlax.numpy import array
    >>> scale_and_translate(array([1.0, 2.0, 4.0]), (3,), (0,), array([1.0]), array([1.0]), "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    x = inexact(image)
    size = _shape_for("scale_and_translate", x, shape)
    kind = _method(method)
    if kind is ResizeMethod.NEAREST:
        raise BadArgument("scale_and_translate: the method must interpolate, got 'nearest'.")
    axes = [canonical_axis(axis, x.ndim, "scale_and_translate") for axis in spatial_dims]
    numbers = [array_of(part) for part in (scale, translation)]
    for part in numbers:
        if part.shape != (len(axes),):
            raise ShapeMismatch(
                f"scale_and_translate: scale and translation must have a number for each of {axes}, got {part.type}."
            )
    scales, shifts = [[part[i] for i in range(len(axes))] for part in numbers]
    return _resampled(x, size, axes, scales, shifts, kind, antialias, precision)


def resize(
    image: Any, shape: Any, method: Any, antialias: bool = True, precision: Any = Precision.HIGHEST
) -> Array:
    """An image with other sizes, of all axes together; an axis whose size stays is not touched.

    Dtypes: integers become floats, but for "nearest".

    Args:
        method: a ``ResizeMethod`` or its name, such as "linear", "cubic", "nearest".
        antialias: whether kernels are wider where the result is smaller.
    Raises: ShapeMismatch, BadArgument: there is not one size for each axis, or no such method.

    >>> from handlax.numpy import array
    >>> resize(array([0.0, 4.0]), (4,), "linear")
    Array([0., 1., 3., 4.], dtype=float32)
    """
    x, kind = array_of(image), _method(method)
    sizes = _shape_for("resize", x, shape)
    axes = [d for d, (m, n) in enumerate(zip(x.shape, sizes)) if m != n]
    if any([not x.shape[d] for d in axes]):
        raise ShapeMismatch(f"resize: an axis without elements must stay as it is, got {x.type} for {sizes}.")
    if kind is not ResizeMethod.NEAREST:
        scales = [sizes[d] / x.shape[d] if sizes[d] else 1.0 for d in axes]
        return _resampled(inexact(x), sizes, axes, scales, [0.0] * len(axes), kind, antialias, precision)
    for d in axes:
        size, count = whole_numbers("resize: a size by the method 'nearest'", (x.shape[d], sizes[d]))
        centres = (np.arange(count, dtype=np.float32) + np.float32(0.5)) * size / count
        x = take(x, np.floor(centres.astype(np.float32)).astype(np.int32), axis=d)
    return x


programs(globals())
