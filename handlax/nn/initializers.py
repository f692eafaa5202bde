"""Initializers of parameters: functions ``init(key, shape, dtype)`` that draw an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..effects.base.errors import BadArgument, ShapeMismatch
from ..effects.base.wrapping import renamed
from ..effects.functions.out_shardings import cut
from ..effects.operations.elementwise.arithmetic import sqrt
from ..effects.operations.elementwise.complex_parts import complex as _complex
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import cos, log1p, sin
from ..effects.operations.foundations import shapes
from ..effects.operations.manipulation.slicing import pad
from ..effects.types import dtypes
from ..effects.types.dtypes import canonical, default_float
from ..numpy.arrays.argument_conversion import like
from ..random import normal as _normal
from ..random import orthogonal as _orthogonal
from ..random import split
from ..random import truncated_normal as _truncated_normal
from ..random import uniform as _uniform

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]

Initializer = Callable[..., Any]
"""``init(key, shape, dtype=None)``, an array of random or given parameters."""


def _initializer(name: str, default: Any, values: Callable[..., Any]) -> Initializer:
    """The initializer that returns ``values(key, shape, dtype)``, of dtype ``default`` where the call gives none."""

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        made = default if dtype is None else dtype
        kind = default_float() if made is None else canonical(made)
        return cut(name, values(key, shapes.canonical_shape(shape, name), kind), out_sharding)

    return init


def zeros(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """The initializer that returns zeros.

    >>> zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return constant(0)(key, shape, dtype, out_sharding)


def ones(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
    """The initializer that returns ones.

    >>> ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    return constant(1)(key, shape, dtype, out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An initializer that returns ``value`` for every element.

    >>> constant(3)(None, (2,))
    Array([3., 3.], dtype=float32)
    """
    return _initializer("constant", dtype, lambda _, shape, made: shapes.broadcast(convert(value, made), shape))


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer that draws from the uniform distribution over [0, scale).

    >>> from handlax import random
    >>> uniform(1.0)(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return _scaled("uniform", _uniform, scale, dtype)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer that draws from the normal distribution of mean 0 and standard deviation ``stddev``.

    >>> from handlax import random
    >>> normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return _scaled("normal", _normal, stddev, dtype)


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """``stddev`` times standard normal numbers between ``lower`` and ``upper``; their own deviation is smaller.

    >>> from handlax import random
    >>> truncated_normal()(random.key(0), (2, 3)).shape
    (2, 3)
    """

    def draw(key: Any, shape: tuple[int, ...], made: Any) -> Any:
        return _truncated_normal(key, lower, upper, shape, made)

    return _scaled("truncated_normal", draw, stddev, dtype)


def _scaled(name: str, draw: Callable[..., Any], factor: Any, default: Any) -> Initializer:
    """The initializer that returns ``factor`` times what ``draw(key, shape, dtype)`` gives."""
    return _initializer(name, default, lambda key, shape, made: draw(key, shape, made) * convert(factor, made))


def _fans(
    name: str, shape: tuple[int, ...], in_axis: Any, out_axis: Any, batch_axis: Any
) -> tuple[float, float]:
    """Fan-in and fan-out of a parameter; axes that are neither input nor output are a convolution's receptive field."""
    if len(shape) <= 1 and in_axis == -2:
        raise ShapeMismatch(f"{name}: the shape must have two dimensions, or in_axis be named, got {shape}.")

    def size(axes: Any) -> int:
        return math.prod([shape[d] for d in shapes.axes_listed(axes)])

    inputs, outputs = size(in_axis), size(out_axis)
    field = math.prod(shape) / inputs / outputs / size(batch_axis)
    return inputs * field, outputs * field


def _disc(key: Any, shape: tuple[int, ...], dtype: Any, radius: Callable[[Any], Any]) -> Any:
    """Complex numbers of uniform angle, whose magnitude is a function of a uniform number."""
    kind = dtypes.to_real(dtype)
    first, second = split(key)
    r = radius(_uniform(first, shape, kind))
    angle = _uniform(second, shape, kind)
    angle = angle * (2 * math.pi)
    return _complex(r * cos(angle), r * sin(angle))


def _truncated_disc(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    reach = 1 - math.exp(-4.0)
    return _disc(key, shape, dtype, lambda u: sqrt(-log1p(-(u * like(u, reach)))))


def variance_scaling(
    scale: Any, mode: str, distribution: str, in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (),
    dtype: Any = None,
) -> Initializer:
    """Mean 0 and variance ``scale / n``, n the number of inputs ("fan_in"), outputs ("fan_out") or their mean.

    Args:
        mode: "fan_in", "fan_out", "fan_avg", or "fan_geo_avg" for the geometric mean.
        distribution: "normal", "uniform", or "truncated_normal" between two standard deviations.
    Raises: BadArgument: unknown mode or distribution. Source: He et al., 2015; Glorot & Bengio, 2010.

    >>> from handlax import random
    >>> variance_scaling(1.0, "fan_in", "normal")(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return _scaled_by_fan("variance_scaling", scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)


def _scaled_by_fan(
    name: str, scale: Any, mode: str, distribution: str, in_axis: Any, out_axis: Any, batch_axis: Any, dtype: Any
) -> Initializer:
    """``variance_scaling`` for the function ``name``."""

    def values(key: Any, sizes: tuple[int, ...], made: Any) -> Any:
        inputs, outputs = _fans(name, sizes, in_axis, out_axis, batch_axis)
        means = {
            "fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2,
            "fan_geo_avg": math.sqrt(inputs * outputs),
        }
        if mode not in means:
            raise BadArgument(f"variance_scaling: mode must be one of {', '.join(means)}, got {mode!r}.")
        variance = scale / means[mode]
        whole = dtypes.is_complex(made)
        if distribution == "normal":
            x, factor = _normal(key, sizes, made), math.sqrt(variance)
        elif distribution == "uniform":
            x = _disc(key, sizes, made, sqrt) if whole else _uniform(key, sizes, made, -1.0)
            factor = math.sqrt(variance if whole else 3 * variance)
        elif distribution == "truncated_normal":
            x = _truncated_disc(key, sizes, made) if whole else _truncated_normal(key, -2.0, 2.0, sizes, made)
            # the standard deviation of what is left between the bounds
            factor = math.sqrt(variance) / (0.95311164380491208 if whole else 0.87962566103423978)
        else:
            raise BadArgument(
                f"variance_scaling: distribution must be normal, uniform or truncated_normal, got {distribution!r}."
            )
        return x * like(x, factor)

    return _initializer(name, dtype, values)


def _family(name: str, scale: float, mode: str, distribution: str, doc: str) -> Callable[..., Initializer]:
    def make(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
        return _scaled_by_fan(name, scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    renamed(make, name)
    make.__doc__ = doc
    return make


glorot_uniform = _family("glorot_uniform", 1.0, "fan_avg", "uniform", "Variance 2 / (inputs + outputs), uniform.")
glorot_normal = _family("glorot_normal", 1.0, "fan_avg", "truncated_normal", "Variance 2 / (inputs + outputs), normal.")
lecun_uniform = _family("lecun_uniform", 1.0, "fan_in", "uniform", "Variance 1 / inputs, uniform.")
lecun_normal = _family("lecun_normal", 1.0, "fan_in", "truncated_normal", "Variance 1 / inputs, normal.")
he_uniform = _family("he_uniform", 2.0, "fan_in", "uniform", "Variance 2 / inputs, uniform.")
he_normal = _family("he_normal", 2.0, "fan_in", "truncated_normal", "Variance 2 / inputs, normal.")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Matrices with orthonormal rows or columns, whichever are fewer, times ``scale``.

    The columns are along ``column_axis``, the rows along all other dimensions.

    Source: Saxe, McClelland and Ganguli, Exact solutions to the nonlinear dynamics of learning (2014).

    >>> from handlax import random
    >>> w = orthogonal()(random.key(0), (4, 2))
    >>> bool(abs((w.T @ w)[0, 1]) < 1e-6)
    True
    """

    def values(key: Any, sizes: tuple[int, ...], made: Any) -> Any:
        if len(sizes) < 2:
            raise ShapeMismatch(f"orthogonal: the shape must have two dimensions or more, got {sizes}.")
        axis = shapes.canonical_axis(column_axis, len(sizes), "orthogonal")
        rest = (*sizes[:axis], *sizes[axis + 1 :])
        x = _orthogonal(key, math.prod(rest), (), made, sizes[axis])
        return shapes.move_axis(shapes.reshape(x, (*rest, sizes[axis])), len(rest), axis) * like(x, scale)

    return _initializer("orthogonal", dtype, values)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Kernels of convolutions of one to three dimensions: an orthogonal matrix in the middle, zeros around it.

    Shapes: ``[*window, inputs, outputs]``, with at least as many outputs as inputs.

    Source: Xiao et al., Dynamical isometry and a mean field theory of CNNs (2018).
    """

    def values(key: Any, sizes: tuple[int, ...], made: Any) -> Any:
        if len(sizes) not in (3, 4, 5) or sizes[-1] < sizes[-2]:
            raise ShapeMismatch(
                "delta_orthogonal: the shape must have one to three dimensions, inputs, and at least as many outputs, "
                f"got {sizes}."
            )
        q = orthogonal(scale, column_axis, made)(key, sizes[-2:])
        around = [((n - 1) // 2, n - 1 - (n - 1) // 2, 0) for n in sizes[:-2]]
        single = shapes.reshape(q, (*(1,) * len(around), *sizes[-2:]))
        return pad(single, like(single, 0), [*around, (0, 0, 0), (0, 0, 0)])

    return _initializer("delta_orthogonal", dtype, values)
