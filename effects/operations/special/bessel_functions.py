"""The modified Bessel functions of the first kind of orders 0 and 1, scaled by e^-abs(x)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from ...types.dtypes import FLOATING, float64
from ..elementwise.arithmetic import abs, like, mul, polynomial, rsqrt, sign, sub
from ..elementwise.comparison import lt, max, min, select_n
from ..elementwise.conversion import performed_wide
from ..elementwise.transcendental import exp
from ..foundations.elementwise_factory import Function, elementwise, surface
from ..foundations.half_precision import scipy_special
from .chebyshev_series import chebyshev


def _in_squares(order: int, terms: int) -> list[float]:
    """The power series coefficients, in x^2, of I0(x) and of 2 I1(x) / x. Source: Abramowitz & Stegun 9.6.10."""
    return [0.25**k / (math.factorial(k) * math.factorial(k + order)) for k in range(terms)]


def _scaled_beyond_eight(order: int, t: Any) -> Any:
    """sqrt(x) e^-x I(x) as a function of t = 16/x - 1, for x above 8."""
    x = 16 / (1 + t)
    return scipy_special(f"i{order}e")(x) * np.sqrt(x)


_BEYOND_EIGHT = tuple([partial(_scaled_beyond_eight, order) for order in (0, 1)])


def _performed_bessel(order: int, x: Any) -> Any:
    """A power series of positive terms up to 8, and a Chebyshev series in 16/x beyond."""
    terms = 26 if x.type.dtype == float64 else 18
    size = abs(x)
    inner, outer = min(size, like(x, 8.0)), max(size, like(x, 8.0))
    near = exp(-inner) * polynomial(inner * inner, _in_squares(order, terms))
    position = like(x, 16.0) / outer - like(x, 1.0)
    far = chebyshev(position, _BEYOND_EIGHT[order], 29) * rsqrt(outer)
    if order:
        near, far = x * (near * like(x, 0.5)), sign(x) * far
    return select_n(lt(size, like(x, 8.0)), far, near)


def _i1e(x):
    """SciPy's i1e, but -0 at -0."""
    return np.copysign(scipy_special("i1e")(x), x)


def _slope_i1e(x: Any, y: Any) -> Any:
    """The derivative I0e(x) - sign(x) I1e(x) - I1e(x) / x; near 0 the last term by a series, which has derivatives."""
    near = lt(abs(x), like(x, 1.0))
    inner, outer = select_n(near, like(x, 0.0), x), select_n(near, x, like(x, 1.0))
    half = exp(-(inner * sign(inner))) * like(x, 0.5)
    ratio = select_n(near, y / outer, half * polynomial(inner * inner, _in_squares(1, 10)))
    return bessel_i0e(x) - sign(x) * y - ratio


# y = e^-|x| I0(x), e^-|x| I1(x)
BesselI0e = elementwise(
    "bessel_i0e", FLOATING, scipy_special("i0e"), jvp=lambda x, dx, y: mul(dx, sub(bessel_i1e(x), mul(sign(x), y))),
    decompose=performed_wide(partial(_performed_bessel, 0)),
    doc="``e**-abs(x)`` times the modified Bessel function of the first kind of order 0.",
)
BesselI1e = elementwise(
    "bessel_i1e", FLOATING, _i1e, jvp=lambda x, dx, y: mul(dx, _slope_i1e(x, y)),
    decompose=performed_wide(partial(_performed_bessel, 1)),
    doc="``e**-abs(x)`` times the modified Bessel function of the first kind of order 1.",
)
bessel_i0e: Function = surface(BesselI0e)
bessel_i1e: Function = surface(BesselI1e)
