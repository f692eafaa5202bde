"""Activations: elementwise functions of neural networks, with the derivatives that JAX gives them at kinks."""

from __future__ import annotations

import math
from typing import Any

from ..effects.base.errors import ShapeMismatch
from ..effects.core.arrays import Array
from ..effects.operations.elementwise import transcendental
from ..effects.operations.elementwise.arithmetic import abs as _abs
from ..effects.operations.elementwise.arithmetic import add, integer_pow, sqrt, square
from ..effects.operations.elementwise.comparison import select_n
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp, expm1, log1p
from ..effects.operations.foundations.shapes import canonical_axis
from ..effects.operations.manipulation.slicing import slice_in_dim
from ..effects.types.dtypes import finfo
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.argument_conversion import array_of, in_32_bits, inexact, inexact_together, like, numeric
from ..numpy.mathematics.arithmetic import logaddexp, maximum, minimum
from ..numpy.mathematics.elementary_functions import tanh

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu",
    "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh",
]

_SATURATED = 30.0  # from here on tanh is 1 in every dtype, and its derivatives are 0 beside that


def identity(x: Any) -> Array:
    """``x`` as an array.

    >>> identity(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return array_of(x)


def relu(x: Any) -> Array:
    """``max(x, 0)``; the derivative at 0 is 0.

    >>> relu(-2.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = numeric(x)
    nothing = like(x, 0)
    return select_n(x <= nothing, x, nothing)  # NaN is not below 0 and stays


def relu6(x: Any) -> Array:
    """``min(max(x, 0), 6)``; the derivatives at 0 and 6 are 0.

    >>> relu6(8.0)
    Array(6., dtype=float32, weak_type=True)
    """
    x, top = inexact_together("relu6", x, 6.0)
    nothing = like(x, 0)
    return select_n(x <= nothing, select_n(x >= top, x, top), nothing)


def squareplus(x: Any, b: Any = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2``.

    >>> squareplus(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return in_32_bits(_squareplus, *inexact_together("squareplus", x, b))


def _squareplus(x: Any, b: Any) -> Any:
    """(x + sqrt(x^2 + b)) / 2; for negative x, where the terms cancel, as a quotient; max(x, 0) of infinities."""
    infinite, limit = _abs(x) == math.inf, maximum(x, like(x, 0))
    x = select_n(infinite, x, like(x, 0))
    root, negative = _root_of_squares(x, b), x < 0
    size = select_n(negative, x, -x)
    mean = size + (root - size) * 0.5  # XLA computes half of each as half of their sum, which overflows
    return select_n(infinite, select_n(negative, mean, b * 0.25 / mean), limit)


def _root_of_squares(x: Any, b: Any) -> Any:
    """``sqrt(x**2 + b)``, scaled by a power of two where the square would overflow."""
    half = finfo(x.type.dtype).maxexp // 2
    scale = select_n(_abs(x) > 2.0 ** (half - 1), like(x, 1), like(x, 2.0 ** -(half + 1)))
    return sqrt(square(x * scale) + b * scale * scale) / scale


def softplus(x: Any) -> Array:
    """``log(1 + e**x)``, without overflow.

    >>> softplus(0.0)
    Array(0.6931472, dtype=float32, weak_type=True)
    """
    return logaddexp(x, 0)


def sparse_plus(x: Any) -> Array:
    """0 where ``x <= -1``, ``x`` where ``x >= 1``, ``(x + 1)**2 / 4`` between.

    >>> sparse_plus(0.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    x = inexact(x)
    one = like(x, 1)
    inner = select_n(_abs(x) < one, -one, x)
    return select_n(x >= one, square(inner + one) * 0.25, x)


def sparse_sigmoid(x: Any) -> Array:
    """The derivative of ``sparse_plus``: 0 where ``x <= -1``, 1 where ``x >= 1``, ``(x + 1) / 2`` between.

    >>> sparse_sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x = inexact(x)
    return minimum(maximum(x + 1, 0.0), 2.0) * 0.5


def soft_sign(x: Any) -> Array:
    """``x / (|x| + 1)``.

    >>> soft_sign(1.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x = inexact(x)
    return x / add(_abs(x), like(x, 1))  # strict in dtype: refuses complex numbers


def sigmoid(x: Any) -> Array:
    """``1 / (1 + e**-x)``.

    >>> sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return transcendental.logistic(inexact(x))


def silu(x: Any) -> Array:
    """``x * sigmoid(x)``, also called swish.

    >>> silu(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = inexact(x)
    return x * transcendental.logistic(x)


swish = silu


def log_sigmoid(x: Any) -> Array:
    """``log(sigmoid(x))``, without overflow.

    >>> log_sigmoid(0.0)
    Array(-0.6931472, dtype=float32, weak_type=True)
    """
    return -softplus(-inexact(x))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """``x`` where ``x >= 0``, else ``negative_slope * x``.

    >>> leaky_relu(-1.0)
    Array(-0.01, dtype=float32, weak_type=True)
    """
    x, slope = inexact_together("leaky_relu", x, negative_slope)
    return select_n(x >= 0, x * slope, x)


def hard_tanh(x: Any) -> Array:
    """``x`` clipped to [-1, 1].

    >>> hard_tanh(3.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = numeric(x)
    one, minus = like(x, 1), like(x, -1)
    return select_n(x > one, select_n(x < minus, x, minus), one)


def hard_sigmoid(x: Any) -> Array:
    """``relu6(x + 3) / 6``.

    >>> hard_sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    x = inexact(x)
    y = relu6(x + 3)
    return y / 6


def hard_silu(x: Any) -> Array:
    """``x * hard_sigmoid(x)``, also called hard swish.

    >>> hard_silu(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    x = inexact(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def elu(x: Any, alpha: Any = 1.0) -> Array:
    """``x`` above 0, ``alpha * (e**x - 1)`` below.

    >>> elu(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    x, alpha = inexact_together("elu", x, alpha)
    above = x > 0
    return select_n(above, alpha * expm1(select_n(above, x, like(x, 0))), x)


def celu(x: Any, alpha: Any = 1.0) -> Array:
    """``max(x, 0) + alpha * (e**(min(x, 0) / alpha) - 1)``.

    >>> celu(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    x, alpha = inexact_together("celu", x, alpha)
    return maximum(x, 0.0) + alpha * expm1(minimum(x, 0.0) / alpha)


def selu(x: Any) -> Array:
    """``1.0507 * elu(x, 1.6733)``: it keeps mean 0 and variance 1. Source: Klambauer et al., 2017.

    >>> selu(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    y = elu(x, 1.6732632423543772848170429916717)
    return y * 1.0507009873554804934193349852946


def gelu(x: Any, approximate: bool = True) -> Array:
    """``x * P(Z <= x)`` for a standard normal Z; by ``tanh`` if ``approximate``. Source: Hendrycks & Gimpel, 2016.

    >>> gelu(0.0)
    Array(0., dtype=float32)
    """
    x = inexact(x)
    if not approximate:
        half = 0.5 * x
        return convert(half * transcendental.erfc(-x * math.sqrt(0.5)), x.type.dtype)
    near = minimum(maximum(x, -_SATURATED), _SATURATED)
    inner = near + 0.044715 * integer_pow(near, 3)
    part = 0.5 * (1 + transcendental.tanh(math.sqrt(2 / math.pi) * inner))
    return convert(x * part, x.type.dtype)


def mish(x: Any) -> Array:
    """``x * tanh(softplus(x))``. Source: Misra, 2019.

    >>> mish(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = inexact(x)
    return x * transcendental.tanh(softplus(minimum(x, _SATURATED)))


def glu(x: Any, axis: int = -1) -> Array:
    """The first half along an axis, times the sigmoid of the second half.

    Raises: ShapeMismatch: the axis has no even size.

    >>> from handlax.numpy import ones
    >>> glu(ones((2, 4))).shape
    (2, 2)
    """
    x = inexact(x)
    axis = canonical_axis(axis, len(x.type.shape), "glu")
    size = x.type.shape[axis]
    if size % 2:
        raise ShapeMismatch(f"glu: the axis must have an even size, got {x.type} along axis {axis}.")
    first, second = (slice_in_dim(x, start, start + size // 2, axis=axis) for start in (0, size // 2))
    return first * transcendental.logistic(second)


def log1mexp(x: Any) -> Array:
    """``log(1 - e**-x)`` for ``x > 0``, accurate near 0 and for large ``x``; NaN for negative ``x``, as is the slope.

    >>> float(log1mexp(30.0)) < 0
    True
    """
    x = inexact(x)
    x = x * select_n(x < 0, like(x, 1), like(x, math.nan))  # a factor, so that derivatives are NaN, too
    near = x < math.log(2)
    small, large = select_n(near, like(x, 1), x), select_n(near, x, like(x, 1))
    return select_n(near, log1p(-exp(-large)), transcendental.log(-expm1(-small)))


programs(globals(), direct=("identity",))
