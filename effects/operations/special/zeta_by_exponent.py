"""The derivative of Hurwitz' zeta function by its exponent, composed of operations, so that it has derivatives itself.

    zeta(s, q) = sum of (q + k)^-s for k < N  +  a^(1-s) / (s - 1)  +  a^-s (1/2 + sum over j of c_j P_j)
    where  a = q + N,  c_j = B_2j / (2j)!,  P_j = s (s + 1) ... (s + 2j - 2) / a^(2j - 1)

Source: F. Johansson, Rigorous high-precision computation of the Hurwitz zeta function and its derivatives (2014).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...types.dtypes import float64
from ..elementwise.arithmetic import like, neg
from ..elementwise.bitwise import bitwise_and
from ..elementwise.comparison import eq, ge, gt, select
from ..elementwise.conversion import convert
from ..elementwise.transcendental import log, pow

FIRST = 12  # the number of terms N summed directly
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def corrections(s: Any, a: Any) -> tuple[Any, Any]:
    """The sum of ``c_j P_j``, and its derivative by ``s``."""
    p, dp = s / a, 1 / a
    total, slope = p * 0, p * 0
    for j, b in enumerate(BERNOULLI, 1):
        c = b / math.factorial(2 * j)
        total, slope = total + c * p, slope + c * dp
        factor, by_s = (s + (2 * j - 1)) / a * ((s + 2 * j) / a), (2 * s + (4 * j - 1)) / a / a
        p, dp = p * factor, dp * factor + p * by_s
    return total, slope


def zeta_by_exponent(s: Any, q: Any) -> Any:
    """The derivative of ``zeta(s, q)`` by ``s`` for ``s > 1`` and ``q > 0``; elsewhere NaN, and -inf for ``s == 1``.

    It is computed in 64 bits.
    """
    dtype, weak = s.type.dtype, s.type.weak
    s, q = convert(s, float64), convert(q, float64)
    inside = bitwise_and(gt(s, like(s, 1.0)), gt(q, like(q, 0.0)))
    r, x = select(inside, s, like(s, 2.0)), select(bitwise_and(inside, gt(like(q, np.inf), q)), q, like(q, 1.0))
    a = x + FIRST
    tail, last = pow(a, neg(r)), log(a)
    total, slope = corrections(r, a)
    ends = tail * (slope - last * (0.5 + total) - a / (r - 1) * (last + 1 / (r - 1)))
    y = select(eq(tail, like(tail, 0.0)), like(tail, 0.0), ends)  # where it underflows the corrections may overflow
    for k in range(FIRST):
        y = y - log(x + k) * pow(x + k, neg(r))
    y = select(eq(q, like(q, np.inf)), like(y, 0.0), y)
    pole = bitwise_and(eq(s, like(s, 1.0)), ge(q, like(q, 0.0)))
    return convert(select(inside, y, select(pole, like(y, -np.inf), like(y, np.nan))), dtype, weak)
