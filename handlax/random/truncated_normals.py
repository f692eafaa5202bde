"""Normal numbers between two bounds, which may lie far out in a tail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..effects.control.branches import cond
from ..effects.control.loops import fori_loop
from ..effects.core.arrays import Array, scalar
from ..effects.functions.out_shardings import cuts_result
from ..effects.operations.elementwise.arithmetic import neg, nextafter, sqrt
from ..effects.operations.elementwise.bitwise import bitwise_or
from ..effects.operations.elementwise.comparison import clamp, gt, lt, max, min, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import erf, erf_inv, exp, log, log1p
from ..effects.operations.foundations.half_precision import scipy_special
from ..effects.operations.reductions.reductions import reduce_or
from ..effects.operations.special.chebyshev_series import chebyshev
from ..effects.types.dtypes import finfo
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.index_arrays import known
from .basic_samplers import SQRT2, at_least_32_bits, checked, float_format, floating, spread, unit

__all__ = ["truncated_normal"]

TAIL = 1.0  # the bound beyond which probabilities of an interval are those of a tail


@cuts_result
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Standard normal numbers on the condition that they lie strictly between ``lower`` and ``upper``.

    Bounds may be infinite, or far from 0: numbers beyond 1, or below -1, are quantiles by the logarithm of their
    probability. Floats of 16 bits are computed in 32.

    Shapes: ``lower`` and ``upper`` broadcast to ``shape``, by default to each other.

    >>> from handlax import random
    >>> random.truncated_normal(random.key(0), 30.0, np.inf, (3,)).round(2)
    Array([30.1 , 30.13, 30.01], dtype=float32)
    """
    dtype = floating("random.truncated_normal", dtype)
    one, shape, _, *bounds = checked("truncated_normal", key, shape, dtype, lower, upper)
    wide, largest = at_least_32_bits(dtype), float_format(dtype).below_one
    u = convert(unit(one, shape, dtype), wide)
    low, high = [spread(convert(x, wide), shape) for x in bounds]
    outside = bitwise_or(gt(low, TAIL), lt(high, -TAIL))
    inner = lambda u, low, high: _between(u, low, high, largest)
    outer = lambda u, low, high: select(outside, _in_tail(u, low, high, largest), inner(u, low, high))
    some = reduce_or(outside, tuple(range(outside.ndim)))
    x = inner(u, low, high) if known(some) and not some else cond(some, outer, inner, u, low, high)
    finite, infinity = float(finfo(dtype).max), scalar(math.inf, dtype)
    least, most = min(nextafter(bounds[0], infinity), finite), max(nextafter(bounds[1], -infinity), -finite)
    return min(spread(most, shape), max(spread(least, shape), convert(x, dtype)))


def _between(u: Any, low: Any, high: Any, largest: float) -> Any:
    """The normal number between two bounds below which there is the share ``u`` of probability, by the error function.

    ``largest``: of ``abs(erf(x / sqrt(2)))``; it is less than 1, so that numbers are finite.
    """
    start, stop = erf(low / SQRT2), erf(high / SQRT2)
    return erf_inv(clamp(-largest, u * (stop - start) + start, largest)) * SQRT2


def _in_tail(u: Any, low: Any, high: Any, largest: float) -> Any:
    """``_between`` for bounds of one sign, in terms of the nearer one, the farther one and the logarithm of a tail."""
    right = gt(low, 0.0)
    finite = float(finfo(u.type.dtype).max)
    near = clamp(TAIL, select(right, low, neg(high)), finite)
    far = clamp(near, select(right, high, neg(low)), finite)
    share = min(select(right, u, 1.0 - u), largest)
    ratio = _scaled_mills(far) / _scaled_mills(near) * ((near + 1.0) / (far + 1.0))
    beyond = exp(_half_difference_of_squares(near, far)) * ratio
    x = _farther(near, neg(log1p(share * (beyond - 1.0))))
    return select(right, x, neg(x))


def _half_difference_of_squares(x: Any, y: Any) -> Any:
    """``(x**2 - y**2) / 2``, by a product that overflows only where the difference does."""
    return (x - y) * (x / 2.0 + y / 2.0)


def _farther(x: Any, t: Any) -> Any:
    """The number y beyond which there is ``exp(-t)`` times the probability that is beyond ``x``, for ``x >= TAIL``.

    Newton's method for the logarithm of that probability, ``log(mills(y)) - y**2 / 2``, whose slope is
    ``-1 / mills(y)``, from the number whose density is ``exp(-t)`` times that of ``x``.
    """
    steps = 3 if t.type.dtype == np.float32 else 4
    scaled, shifted = _scaled_mills(x), x + 1.0
    mills = scaled / shifted

    def step(_: Any, y: Any) -> Any:
        ratio = _scaled_mills(y) / scaled * (shifted / (y + 1.0))  # of Mills' ratios, which may underflow
        return y - mills * ratio * (_half_difference_of_squares(y, x) - log(ratio) - t)

    return fori_loop(0, steps, step, x * sqrt(1.0 + t / x / x * 2.0))


def _scaled_mills(x: Any) -> Any:
    """``(1 + x) * mills(x)``, of Mills' ratio of the probability beyond x >= 0 to the density at x.

    ``mills(x) == sqrt(pi / 2) * erfcx(x / sqrt(2))``.
    """
    return chebyshev((x - 5.0) / (x + 5.0), _scaled_mills_values, 26)


def _scaled_mills_values(t: Any) -> Any:
    """``_scaled_mills(x)``, which lies between 1 and 1.3, for ``t == (x - 5) / (x + 5)``."""
    x = 5.0 * (1 + t) / (1 - t)
    return (1 + x) * math.sqrt(math.pi / 2) * scipy_special("erfcx")(x / SQRT2)


programs(globals())
