"""Functions of real numbers as formulas of simpler ones, where those of StableHLO and CHLO lose digits.

    y = sinh(m, x)                            m: functions under the names of the array API, as in ``complex_functions``
    decompose = by_formula(sinh, of_complex)  the formula in operations, and another one for complex operands
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from ...types import dtypes
from .bitwise import shift_left
from .complex_functions import PERFORMED, performed
from .conversion import bitcast_convert_type, convert, performed_wide


def by_formula(formula: Callable[..., Any], of_complex: Callable[..., Any]) -> Callable[..., Any]:
    """The cell of ``decompose``: the formula, 16-bit floats in float32; for complex operands that of their parts."""
    of_real, of_parts = performed_wide(partial(formula, PERFORMED)), performed(of_complex)
    return wraps(formula)(lambda x: (of_parts if dtypes.is_complex(x.type.dtype) else of_real)(x))


def _power_of_two(n: Any) -> Any:
    """2^n for integers n, given as floats, by the bits of its exponent: exact where it is a normal number."""
    info = dtypes.finfo(n.dtype)
    exponent = convert(n + (1 - info.minexp), np.dtype(f"int{dtypes.itemsize_bits(n.dtype)}"))
    return bitcast_convert_type(shift_left(exponent, np.asarray(info.nmant, exponent.dtype)), n.dtype)


def exp2(m: Any, x: Any) -> Any:
    """2^x = e^((x - n) log 2) 2^n for the integer n next to x; 2^n in two factors, as the result may be subnormal."""
    info = dtypes.finfo(x.dtype)
    x = m.minimum(m.maximum(x, 2.0 * info.minexp), 2.0 * info.maxexp)
    n = m.floor(x + 0.5)
    half = m.floor(n * 0.5)
    return m.exp((x - n) * math.log(2)) * _power_of_two(half) * _power_of_two(n - half)


def sinh(m: Any, x: Any) -> Any:
    """t^2 / 2 - 1 / (2 t^2) for t = e^(abs(x) / 2), which overflows no sooner than the result; by e^x - 1 near 0."""
    size = m.abs(x)
    t, u = m.exp(size * 0.5), m.expm1(size)
    return m.sign(x) * m.where(size < 1.0, (u + u / (u + 1.0)) * 0.5, t * 0.5 * t - 0.5 / t / t)


def cosh(m: Any, x: Any) -> Any:
    """t^2 / 2 + 1 / (2 t^2) for t = e^(abs(x) / 2), which overflows no sooner than the result."""
    t = m.exp(m.abs(x) * 0.5)
    return t * 0.5 * t + 0.5 / t / t


def improved_erf_inv(m: Any, x: Any, y: Any) -> Any:
    """A step of Newton's method from y, which is near the inverse of erf at x; near 1 by 1 - erf."""
    size, z = m.abs(x), m.abs(y)
    error = m.where(size > 0.5, m.erfc(z) - (1.0 - size), size - m.erf(z))
    return m.where(size < 1.0, m.sign(x) * (z + error * m.exp(z * z) * (math.sqrt(math.pi) / 2)), y)
