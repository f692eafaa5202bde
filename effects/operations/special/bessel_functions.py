"""The modified Bessel functions of the first kind of orders 0 and 1, scaled by e^-abs(x)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.caches import cached
from ...types.dtypes import FLOATING, float64
from ..elementwise.arithmetic import abs, div, like, mul, neg, polynomial, rsqrt, sign, sub
from ..elementwise.comparison import lt, max, min, select_n
from ..elementwise.transcendental import exp
from ..foundations.elementwise_factory import Function, elementwise, surface
from ..foundations.half_precision import lower_wide, scipy_special


def _in_squares(order: int, terms: int) -> list[float]:
    """The coefficients of I0(x) and of 2 I1(x) / x in x^2. Source: Abramowitz & Stegun 9.6.10."""
    return [0.25**k / (math.factorial(k) * math.factorial(k + order)) for k in range(terms)]


@cached("Bessel coefficients", 4)
def _beyond_eight(order: int, degree: int) -> list[float]:
    """Chebyshev's coefficients of sqrt(x) e^-x I(x) in 16/x - 1, for x above 8, from the values at his nodes.

    Cosines of reduced angles and exact sums leave an error of 1e-17 in them; NumPy's ``chebinterpolate`` leaves 1e-15.
    """
    n = degree + 1
    x = 16 / (1 + np.cos(np.pi * (np.arange(n) + 0.5) / n))
    values = scipy_special(f"i{order}e")(x) * np.sqrt(x)
    cosines = np.cos(np.pi / (2 * n) * np.arange(4 * n))
    angles = np.outer(np.arange(n), 2 * np.arange(n) + 1) % (4 * n)
    sums = [math.fsum(values * row) * 2 / n for row in cosines[angles]]
    return [sums[0] / 2, *sums[1:]]


def _chebyshev(t: Any, coefficients: list[float]) -> Any:
    """Clenshaw's recurrence: the sum of c_n T_n(t)."""
    twice = t + t
    b, before = like(t, 0.0), like(t, 0.0)
    for coefficient in reversed(coefficients[1:]):
        b, before = sub(mul(twice, b), before) + like(t, coefficient), b
    return sub(mul(t, b), before) + like(t, coefficients[0])


def _lower_bessel(order: int) -> Callable[..., Any]:
    """The ``lower`` rule: the power series up to 8, whose terms are positive, and Chebyshev's in 16/x beyond."""

    def lower(op: Any, emit: Any, x: Any) -> Any:
        terms, degree = (26, 28) if x.type.dtype == float64 else (18, 8)

        def compute(x: Any) -> Any:
            size = abs(x)
            inner, outer = min(size, like(x, 8.0)), max(size, like(x, 8.0))
            near = mul(exp(neg(inner)), polynomial(mul(inner, inner), _in_squares(order, terms)))
            position = sub(div(like(x, 16.0), outer), like(x, 1.0))
            far = mul(_chebyshev(position, _beyond_eight(order, degree)), rsqrt(outer))
            if order:
                near, far = mul(x, mul(near, like(x, 0.5))), mul(sign(x), far)
            return select_n(lt(size, like(x, 8.0)), far, near)

        return emit.decompose(compute, x)

    return lower_wide(lower)


def _i1e(x):
    """SciPy's i1e, but -0 at -0."""
    return np.copysign(scipy_special("i1e")(x), x)


def _slope_i1e(x: Any, y: Any) -> Any:
    """I0e(x) - sign(x) I1e(x) - I1e(x) / x; the last term near 0 by its series, so that its derivatives are right."""
    near = lt(abs(x), like(x, 1.0))
    inner, outer = select_n(near, like(x, 0.0), x), select_n(near, x, like(x, 1.0))
    half = mul(exp(neg(mul(inner, sign(inner)))), like(x, 0.5))
    ratio = select_n(near, div(y, outer), mul(half, polynomial(mul(inner, inner), _in_squares(1, 10))))
    return sub(sub(bessel_i0e(x), mul(sign(x), y)), ratio)


# y = e^-|x| I0(x), e^-|x| I1(x)
BesselI0e = elementwise(
    "bessel_i0e", FLOATING, scipy_special("i0e"), jvp=lambda x, dx, y: mul(dx, sub(bessel_i1e(x), mul(sign(x), y))),
    lower=_lower_bessel(0), workload="special",
    doc="``e**-abs(x)`` times the modified Bessel function of the first kind of order 0.",
)  # fmt: skip
BesselI1e = elementwise(
    "bessel_i1e", FLOATING, _i1e, jvp=lambda x, dx, y: mul(dx, _slope_i1e(x, y)),
    lower=_lower_bessel(1), workload="special",
    doc="``e**-abs(x)`` times the modified Bessel function of the first kind of order 1.",
)  # fmt: skip
bessel_i0e: Function = surface(BesselI0e)
bessel_i1e: Function = surface(BesselI1e)
