"""The derivatives of digamma as products of two ratios, neither of which leaves the range of what they give.

    polygamma(s - 1, x) = (-1)^s Gamma(s) zeta(s, x)
                        = (-1)^s (Gamma(s) b^-s) (b^s zeta(s, x))

``b`` is the distance of ``x`` from the nearest pole, so that the second ratio is next to 1 or to ``b / (s - 1)``. For
``x < 0`` it is the sum over all integers less that over those below ``x``. ``m`` has the functions of the array API:
``IN_NUMPY`` or ``PERFORMED``.

Sources: F. Johansson, Rigorous high-precision computation of the Hurwitz zeta function and its derivatives (2014);
Abramowitz & Stegun 6.1.41.
"""

from __future__ import annotations

import math
from typing import Any

from ..elementwise.complex_functions import exact_product
from .incomplete_gamma import SHIFT, stirling_correction
from .zeta_by_exponent import FIRST, corrections

FARTHEST = 1e33  # of b and 1 / b: beyond, Gamma(s) b^-s is 0 or infinite for s >= SHIFT
INVERSE_E = (1 / math.e, -1.2428753672788363e-17)  # 1 / e rounded to 64 bits, and the rest


def scaled_zeta(m: Any, s: Any, b: Any, d: Any) -> Any:
    """b^s zeta(s, b + d) for s > 1, b > 0 and d >= 0, by the formula of ``zeta_by_exponent``."""

    def power(n: float) -> Any:  # (b / (b + d + n))^s
        return m.exp(-s * m.log1p((d + n) / b))

    a, tail = b + (d + FIRST), power(FIRST)
    ends = tail * (a / (s - 1.0) + 0.5 + corrections(s, a)[0])
    y = m.where(tail == 0.0, 0.0, ends)  # where it underflows the corrections may overflow
    for n in reversed(range(FIRST)):
        y = y + power(n)
    return y


def _quotient_by_e(s: Any, b: Any) -> tuple[Any, Any]:
    """s / (e b) rounded, and the relative error of that."""
    inverse = s.dtype.type(INVERSE_E[0])
    of_inverse = (INVERSE_E[0] - float(inverse) + INVERSE_E[1]) * math.e
    ratio = s / b
    product, rest = exact_product(ratio, b)
    quotient, more = exact_product(ratio, inverse)
    return quotient, ((s - product) - rest) / s + more / quotient + of_inverse


def scaled_gamma(m: Any, s: Any, b: Any) -> tuple[Any, Any]:
    """w and k with ``Gamma(s) b^-s == w k w`` for integers s > 1 and b > 0: w overflows only where the product does.

    k is the factorial; for large s, of which w has the power (s / e)^s of Stirling's formula, what remains of it.
    """
    few, large = s < SHIFT, m.maximum(s, float(SHIFT))
    factorial = m.full_like(s, 1.0)
    for n in range(2, SHIFT - 1):
        factorial = m.where(s > n, factorial * float(n), factorial)
    quotient, error = _quotient_by_e(large, m.minimum(m.maximum(b, 1 / FARTHEST), FARTHEST))
    stirling = m.sqrt(2 * math.pi / large) * m.exp(large * error) * stirling_correction(m, large)
    return m.where(few, b, quotient) ** (m.where(few, -s, s) * 0.5), m.where(few, factorial, stirling)


def sum_of_powers(m: Any, s: Any, x: Any, nearest: Any) -> Any:
    """b^s zeta(s, x) for x >= 0."""
    return scaled_zeta(m, s, m.abs(x), 0.0)


def sum_around(m: Any, s: Any, x: Any, nearest: Any) -> Any:
    """b^s zeta(s, x): for x < 0 the sums to the right and to the left of x, without the integers below x."""
    below, right, distance, one = x < 0.0, x > nearest, m.abs(x - nearest), m.full_like(x, 1.0)
    b, sign = m.where(below, distance, x), sign_of_order(m, s)
    near, far, under = (scaled_zeta(m, s, b, d) for d in (0.0, one - 2.0 * distance, one - x - distance))
    around = m.where(right, one, sign) * near + m.where(right, sign, one) * far - sign * under
    return m.where(below, around, near)


def sign_of_order(m: Any, s: Any) -> Any:
    """(-1)^s."""
    one = m.full_like(s, 1.0)
    return m.where(s * 0.5 == m.floor(s * 0.5), one, -one)


def polygamma_by_ratios(m: Any, s: Any, x: Any, nearest: Any, total: Any) -> Any:
    """The derivative of digamma of order s - 1, for integers s > 1; ``nearest`` is the integer next to x, ``total`` the
    second ratio.
    """
    below, sign = x < 0.0, sign_of_order(m, s)
    b = m.where(below, m.abs(x - nearest), x)
    w, k = scaled_gamma(m, s, b)
    y = m.where(b == 0.0, m.where(sign > 0.0, math.inf * sign, math.nan), sign * (w * (k * total) * w))
    return m.where(m.abs(x) == math.inf, m.where(below, math.nan, m.copysign(0.0, sign)), y)
