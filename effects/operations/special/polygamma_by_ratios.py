"""The derivatives of digamma as products of two ratios, neither of which leaves the range of what they give.

    polygamma(n, x) = (-1)^s n! zeta(s, x)  for  s = n + 1
                    = (-1)^s (n! b^-s) (b^s zeta(s, x))

``b`` is the distance of ``x`` from the nearest pole, so that the second ratio is next to 1 or to ``b / (s - 1)``. For
``x < 0`` it is the sum over all integers less that over those below ``x``. At half-integers the first of these is 0 for
even ``n``, so that ``polygamma(n, x) = polygamma(n, 1 - x)``. ``m`` has the functions of the array API: ``IN_NUMPY`` or
``PERFORMED``.

Sources: F. Johansson, Rigorous high-precision computation of the Hurwitz zeta function and its derivatives (2014);
Abramowitz & Stegun 6.1.41, 6.4.7.
"""

from __future__ import annotations

import math
from typing import Any

from ..elementwise.complex_functions import exact_product
from .incomplete_gamma import SHIFT, stirling_correction
from .zeta_by_exponent import FIRST, corrections

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


def _quotient_by_e(m: Any, n: Any, b: Any) -> tuple[Any, Any]:
    """The quotient n / (e b) as rounded, and its relative error, which is taken as 0 next to the ends of the range."""
    inverse = n.dtype.type(INVERSE_E[0])
    of_inverse = (INVERSE_E[0] - float(inverse) + INVERSE_E[1]) * math.e
    ratio = n / b
    product, rest = exact_product(ratio, b)
    quotient, more = exact_product(ratio, inverse)
    error = ((n - product) - rest) / n + more / quotient + of_inverse
    return quotient, m.where(m.abs(error) < 1.0, error, 0.0)  # not so for NaN


def scaled_factorial(m: Any, n: Any, b: Any) -> tuple[Any, Any]:
    """w and k with ``n! b^-(n + 1) == w k w`` for integers n > 0 and b > 0: w overflows only where the product does.

    k is the factorial; for large n, of which w has the power (n / (e b))^n of Stirling's formula, what remains of it.
    """
    few, large = n < SHIFT, m.maximum(n, float(SHIFT))
    factorial = m.full_like(n, 1.0)
    for i in range(2, SHIFT):
        factorial = m.where(n < i, factorial, factorial * float(i))
    quotient, error = _quotient_by_e(m, large, b)
    rest = large * error
    close = m.abs(rest) < 1.0  # else the power and what rounding took from it may be infinite and 0
    root = math.sqrt(2 * math.pi) * m.sqrt(large) / b
    stirling = root * m.exp(m.where(close, rest, 0.0)) * stirling_correction(m, large)
    power = m.where(few, b, quotient) ** (m.where(few, -n - 1.0, n) * 0.5)
    whole = m.exp((large * m.log(quotient) + rest) * 0.5)
    return m.where(few, power, m.where(close, power, whole)), m.where(few, factorial, stirling)


def reflected(m: Any, n: Any, x: Any, nearest: Any) -> Any:
    """``1 - x`` for negative half-integers ``x`` if ``n`` is even, else ``x``: ``polygamma(n, .)`` is the same."""
    zero = (m.abs(x - nearest) == 0.5) & (sign_of_order(m, n) < 0.0)  # of the sum over all integers
    return m.where((x < 0.0) & zero, 1.0 - x, x)


def sum_of_powers(m: Any, n: Any, x: Any, nearest: Any) -> Any:
    """b^s zeta(s, x) for x >= 0."""
    return scaled_zeta(m, n + 1.0, m.abs(x), 0.0)


def sum_around(m: Any, n: Any, x: Any, nearest: Any) -> Any:
    """b^s zeta(s, x): for x < 0 the sums to the right and to the left of x, without the integers below x."""
    s, sign = n + 1.0, sign_of_order(m, n)
    below, right, distance, one = x < 0.0, x > nearest, m.abs(x - nearest), m.full_like(x, 1.0)
    b = m.where(below, distance, x)
    near, far, under = (scaled_zeta(m, s, b, d) for d in (0.0, one - 2.0 * distance, one - x - distance))
    around = m.where(right, one, sign) * near + m.where(right, sign, one) * far - sign * under
    return m.where(below, around, near)


def sign_of_order(m: Any, n: Any) -> Any:
    """(-1)^(n + 1), by ``n``, since ``n + 1`` may be rounded."""
    one = m.full_like(n, 1.0)
    return m.where(n * 0.5 == m.floor(n * 0.5), -one, one)


def polygamma_by_ratios(m: Any, n: Any, x: Any, nearest: Any, total: Any) -> Any:
    """The derivative of digamma of order n > 0; ``nearest`` is the integer next to x, ``total`` the second ratio, of
    ``sum_of_powers`` or ``sum_around``.
    """
    below, sign = x < 0.0, sign_of_order(m, n)
    b = m.where(below, m.abs(x - nearest), x)
    w, k = scaled_factorial(m, n, b)
    y = m.where(b == 0.0, m.where(sign > 0.0, math.inf * sign, math.nan), sign * (w * (k * total) * w))
    return m.where(m.abs(x) == math.inf, m.where(below, math.nan, m.copysign(0.0, sign)), y)
