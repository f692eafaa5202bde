"""Elementwise operations of one number in mpmath, each with its first and second derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
from mpmath.libmp import NoConvergence

Function = Callable[[Any], Any]


def _odd(f: Function, sign: int = -1) -> Function:
    """The odd function (for ``sign=1`` the even one) that is f for positive numbers."""
    return lambda x: f(x) if x > 0 else sign * f(-x)


def _scaled_bessel(order: int, x: Any) -> Any:
    return mp.besseli(order, x) * mp.exp(-x)


def _bessel(f: Function, order: int) -> Function:
    """f for moderate positive x; from 1e20 on this derivative of 1 / sqrt(2 pi x)."""
    factor, power = ((1, -0.5), (-0.5, -1.5), (0.75, -2.5))[order]
    return lambda x: f(x) if x < 1e20 else factor * x**power / mp.sqrt(2 * mp.pi)


def _i0e_curve(x: Any) -> Any:
    return 2 * _scaled_bessel(0, x) - (2 + 1 / x) * _scaled_bessel(1, x)


def _i1e_slope(x: Any) -> Any:
    return _scaled_bessel(0, x) - (1 + 1 / x) * _scaled_bessel(1, x)


def _i1e_curve(x: Any) -> Any:
    if x < 1e-20:
        return -1 + 15 * x / 8
    return (2 / x**2 + 2 / x + 2) * _scaled_bessel(1, x) - (1 / x + 2) * _scaled_bessel(0, x)


def _bell(x: Any) -> Any:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def _logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _logistic_slope(x: Any) -> Any:
    return mp.exp(-x) / (1 + mp.exp(-x)) ** 2


def _polygamma(m: int) -> Function:
    """For m of 1 and 2: by its asymptotic series, after a shift, and reflected for negative numbers."""
    def f(x: Any) -> Any:
        if x > 200:  # Abramowitz & Stegun 6.4.11
            rest = sum(mp.bernoulli(2 * k) * mp.factorial(2 * k + m - 1) / mp.factorial(2 * k) / x ** (2 * k + m)
                       for k in range(1, 16))
            return (-1) ** (m + 1) * (1 / x**m + m / (2 * x ** (m + 1)) + rest)
        if x > 0:
            return f(x + 200) - (-1) ** m * m * sum((x + k) ** -(m + 1) for k in range(200))
        s, c = mp.sinpi(x), mp.cospi(x)
        return mp.pi**2 / s**2 - f(1 - x) if m == 1 else f(1 - x) - 2 * mp.pi**3 * c / s**3

    return _but_at_poles(f)


def _but_at_poles(f: Function) -> Function:
    def function(x: Any) -> Any:
        if x < 0 and (x == -mp.inf or x < -1e17 or x == mp.floor(x)):
            raise ZeroDivisionError
        return f(x)

    return function


def _erf_inv(x: Any) -> Any:
    return mp.erfinv(x) if abs(x) <= 1 else mp.nan


def _power(c: Any, p: Any) -> Function:
    """c x^p for positive x."""
    return lambda x: c * x ** (mp.mpf(p[0]) / p[1])


EXACT: dict[str, tuple[Function, Function, Function]] = {
    "exp": (mp.exp, mp.exp, mp.exp),
    "exp2": tuple((lambda x, k=k: mp.mpf(2) ** x * mp.log(2) ** k) for k in range(3)),  # type: ignore[dict-item]
    "expm1": (mp.expm1, mp.exp, mp.exp),
    "log": (mp.log, lambda x: 1 / x, lambda x: -1 / x**2),
    "log1p": (mp.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2),
    "logistic": (_logistic, _logistic_slope, lambda x: _logistic_slope(x) * (2 * _logistic(-x) - 1)),
    "sin": (mp.sin, mp.cos, lambda x: -mp.sin(x)),
    "cos": (mp.cos, lambda x: -mp.sin(x), lambda x: -mp.cos(x)),
    "tan": (mp.tan, lambda x: mp.sec(x) ** 2, lambda x: 2 * mp.tan(x) * mp.sec(x) ** 2),
    "asin": (mp.asin, lambda x: 1 / mp.sqrt((1 - x) * (1 + x)), lambda x: x / ((1 - x) * (1 + x)) ** 1.5),
    "acos": (mp.acos, lambda x: -1 / mp.sqrt((1 - x) * (1 + x)), lambda x: -x / ((1 - x) * (1 + x)) ** 1.5),
    "atan": (mp.atan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "sinh": (mp.sinh, mp.cosh, mp.sinh),
    "cosh": (mp.cosh, mp.sinh, mp.cosh),
    "tanh": (mp.tanh, lambda x: mp.sech(x) ** 2, lambda x: -2 * mp.tanh(x) * mp.sech(x) ** 2),
    "asinh": (mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), lambda x: -x / (1 + x * x) ** 1.5),
    "acosh": (mp.acosh, lambda x: 1 / mp.sqrt(x - 1) / mp.sqrt(x + 1), lambda x: -x / ((x - 1) * (x + 1)) ** 1.5),
    "atanh": (mp.atanh, lambda x: 1 / ((1 - x) * (1 + x)), lambda x: 2 * x / ((1 - x) * (1 + x)) ** 2),
    "sqrt": (mp.sqrt, _power(0.5, (-1, 2)), _power(-0.25, (-3, 2))),
    "rsqrt": (_power(1, (-1, 2)), _power(-0.5, (-3, 2)), _power(0.75, (-5, 2))),
    "cbrt": (_odd(mp.cbrt), _odd(_power(mp.mpf(1) / 3, (-2, 3)), 1), _odd(_power(-mp.mpf(2) / 9, (-5, 3)))),
    "square": (lambda x: x * x, lambda x: 2 * x, lambda x: mp.mpf(2)),
    "erf": (mp.erf, _bell, lambda x: -2 * x * _bell(x)),
    "erfc": (mp.erfc, lambda x: -_bell(x), lambda x: 2 * x * _bell(x)),
    "erf_inv": (_erf_inv, lambda x: 1 / _bell(_erf_inv(x)), lambda x: 2 * _erf_inv(x) / _bell(_erf_inv(x)) ** 2),
    "lgamma": (_but_at_poles(lambda x: mp.re(mp.loggamma(x))), _but_at_poles(mp.digamma), _polygamma(1)),
    "digamma": (_but_at_poles(mp.digamma), _polygamma(1), _polygamma(2)),
    "bessel_i0e": (
        _odd(_bessel(lambda x: _scaled_bessel(0, x), 0), 1),
        _odd(_bessel(lambda x: _scaled_bessel(1, x) - _scaled_bessel(0, x), 1)), _odd(_bessel(_i0e_curve, 2), 1)),
    "bessel_i1e": (
        _odd(_bessel(lambda x: _scaled_bessel(1, x), 0)), _odd(_bessel(_i1e_slope, 1), 1),
        _odd(_bessel(_i1e_curve, 2))),
}

RANGE = (mp.mpf("1e-400"), mp.mpf("1e400"))  # what is beyond is as if it were at the end
FAR = 5000  # the decimal exponent that stands for infinity, and negative for zero
PERIODIC = frozenset({"sin", "cos", "tan"})
KINKS = frozenset({("bessel_i0e", 1), ("bessel_i0e", 2), ("bessel_i1e", 2)})  # at 0


def exact(name: str, order: int, x: float) -> Any:
    """The derivative of this order at x, as mpmath's number; at infinity and zero the limit from the side that the sign
    says; NaN outside of the domain, where derivatives are None, as they are at poles, kinks and where mpmath gives up.
    """
    if x != x or (abs(x) == float("inf") and name in PERIODIC):
        return mp.nan if order == 0 else None
    if (name, order) in KINKS and x == 0:
        return None
    if order and (exact(name, 0, x) is None or mp.isnan(exact(name, 0, x))):
        return None
    side = mp.sign(x) if x else mp.mpf(1 if str(x)[0] != "-" else -1)
    with mp.workdps(60):
        at = side * mp.mpf(10) ** FAR if abs(x) == float("inf") else mp.mpf(x) if x else side * mp.mpf(10) ** -FAR
        try:
            y = EXACT[name][order](at)
        except (ValueError, ZeroDivisionError, OverflowError, NotImplementedError, NoConvergence):
            return None
        if isinstance(y, mp.mpc):
            y = mp.nan if y.imag else y.real
        if not mp.isfinite(y):
            return y if x else None
        size = abs(y)
        if size > 1000 and (not x or abs(x) == float("inf")):  # it has no limit, or an infinite one
            return None if not x and size > mp.mpf(10) ** 1000 else mp.sign(y) * mp.inf
        return y if not y or RANGE[0] < size < RANGE[1] else mp.sign(y) * RANGE[size > 1]
