"""Logarithms and powers: entropy, logit, Box-Cox, logsumexp, softmax."""

from __future__ import annotations

from typing import Any

from ... import nn
from ... import numpy as hnp
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.transcendental import logistic
from ...interpreters.core.eager_programs import programs
from ...nn import logsumexp
from ...numpy.arrays.argument_conversion import inexact, strong, strong_beside_strong
from .formulas import analytic

__all__ = [
    "boxcox", "boxcox1p", "entr", "expit", "kl_div", "log_softmax", "logit", "logsumexp", "rel_entr", "softmax",
    "xlog1py", "xlogy",
]


def _at_zero(x: Any, y: Any, z: Any) -> Any:
    """``z`` = x log y, replaced by its limit 0 where ``x`` is 0 and ``y`` is not NaN."""
    return hnp.where((x == 0) & ~hnp.isnan(y), 0, z)


def _share(x: Any, y: Any) -> Any:
    """``x / y``, and 0 where both are 0; its derivative by ``x`` is ``1 / y`` elsewhere and at 0."""
    return x / hnp.where((x == 0) & (y == 0), 1, y)


@analytic(lambda z, x, y: hnp.log(y), lambda z, x, y: _share(x, y), complex=True)
def xlogy(x: Any, y: Any) -> Array:
    """``x * log(y)``, and 0 where ``x`` is 0 and ``y`` is not NaN.

    >>> xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _at_zero(x, y, x * hnp.log(y))


@analytic(lambda z, x, y: hnp.log1p(y), lambda z, x, y: _share(x, 1 + y), complex=True)
def xlog1py(x: Any, y: Any) -> Array:
    """``x * log(1 + y)``, and 0 where ``x`` is 0 and ``y`` is not NaN.

    >>> xlog1py(0.0, -1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return _at_zero(x, y, x * hnp.log1p(y))


@analytic(lambda y, x: -1 - hnp.log(x))
def entr(x: Any) -> Array:
    """``-x * log(x)``: 0 at 0, and -inf below.

    >>> from handlax.numpy import array
    >>> entr(array([-1.0, 1.0]))
    Array([-inf,  -0.], dtype=float32)
    """
    return hnp.where(x < 0, -hnp.inf, -xlogy(x, hnp.where(x < 0, 1, x)))


def _divergence(p: Any, q: Any, density: Any, rest: Any) -> Any:
    """``density`` where both are positive, ``rest`` where p is 0 and q >= 0, infinity elsewhere; NaN if either is NaN.
    """
    y = hnp.where((p > 0) & (q > 0), density, hnp.where((p == 0) & (q >= 0), rest, hnp.inf))
    return hnp.where(hnp.isnan(p) | hnp.isnan(q), hnp.nan, y)


def _log_ratio(p: Any, q: Any) -> Any:
    """log(p / q), by the difference where that is exact, and by both logarithms where the quotient is not normal."""
    ratio, least = p / q, float(hnp.finfo(p.dtype).tiny)
    near, normal = (ratio > 0.5) & (ratio < 2), (ratio >= least) & (ratio <= 1 / least)
    far = hnp.where(normal, hnp.log(hnp.where(normal, ratio, 1)), hnp.log(p) - hnp.log(q))
    return hnp.where(near, hnp.log1p(hnp.where(near, (p - q) / q, 0)), far)


def _gap(u: Any) -> Any:
    """u - log(1 + u) for small u: with t = u / (u + 2), u - 2 t = u t and log(1 + u) = 2 (t + t^3/3 + ...)."""
    t = u / (u + 2)
    return u * t - 2 * t**3 * sum(t ** (2 * k) / (2 * k + 3) for k in range(12))


@strong_beside_strong
@analytic(lambda y, p, q: _log_ratio(p, q) + 1, lambda y, p, q: -_share(p, q))
def rel_entr(p: Any, q: Any) -> Array:
    """``p * log(p / q)``: 0 where ``p`` is 0 and ``q`` not negative, infinite outside of the domain.

    >>> from handlax.numpy import array
    >>> rel_entr(array([2.0, 0.0, 1.0]), array([2.0, 1.0, 0.0]))
    Array([ 0.,  0., inf], dtype=float32)
    """
    return _divergence(p, q, p * _log_ratio(p, q), 0)


@strong_beside_strong
@analytic(lambda y, p, q: _log_ratio(p, q), lambda y, p, q: 1 - _share(p, q))
def kl_div(p: Any, q: Any) -> Array:
    """``p * log(p / q) - p + q``, exact near its zeros: ``q`` where ``p`` is 0, infinite outside of the domain.

    >>> from handlax.numpy import array
    >>> kl_div(array([2.0, 0.0, 1.0]), array([2.0, 3.0, 0.0]))
    Array([ 0.,  3., inf], dtype=float32)
    """
    near = hnp.abs(q - p) < 0.3 * p
    y = hnp.where(near, p * _gap(hnp.where(near, (q - p) / hnp.where(near, p, 1), 0)), p * _log_ratio(p, q) - p + q)
    return _divergence(p, q, y, q)


@analytic(lambda y, x: 1 / (x * (1 - x)))
def logit(x: Any) -> Array:
    """``log(x / (1 - x))``, the inverse of ``expit``; accurate near its zero at 1/2.

    >>> logit(0.5)
    Array(0., dtype=float32, weak_type=True)
    """
    near = (x > 0.25) & (x < 0.75)
    return hnp.where(near, 2 * hnp.arctanh(2 * hnp.where(near, x, 0.5) - 1), hnp.log(x) - hnp.log1p(-x))


def expit(x: Any) -> Array:
    """``1 / (1 + exp(-x))``.

    >>> expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return logistic(inexact(x))


def _power(log_x: Any, power: Any) -> Any:
    """(x^power - 1) / power, and log x where the power is 0."""
    none = power == 0
    return hnp.where(none, log_x, hnp.expm1(hnp.where(none, 1, power) * log_x) / hnp.where(none, 1, power))


def _power_slope(log_x: Any, power: Any) -> Any:
    """The derivative of ``_power`` by the power: with u = power log x, log^2 x ((u - 1) e^u + 1) / u^2, by a series
    near 0.
    """
    u = power * log_x
    near = hnp.abs(u) < 0.5
    series, factorial = 0, 1.0
    for k in range(18):  # the coefficient of u^k is (k + 1) / (k + 2)!
        factorial *= k + 2 if k else 2
        series = series + (k + 1) / factorial * u**k
    safe = hnp.where(near, 1, u)
    return log_x**2 * hnp.where(near, series, (1 + (safe - 1) * hnp.exp(safe)) / safe**2)


@analytic(
    lambda y, x, lmbda: hnp.exp((lmbda - 1) * hnp.log(x)), lambda y, x, lmbda: _power_slope(hnp.log(x), lmbda)
)
def boxcox(x: Any, lmbda: Any) -> Array:
    """``(x**lmbda - 1) / lmbda``, and ``log(x)`` where ``lmbda`` is 0: the transformation of Box and Cox.

    >>> boxcox(3.0, 2.0)
    Array(4., dtype=float32, weak_type=True)
    """
    return _power(hnp.log(x), lmbda)


@analytic(
    lambda y, x, lmbda: hnp.exp((lmbda - 1) * hnp.log1p(x)), lambda y, x, lmbda: _power_slope(hnp.log1p(x), lmbda)
)
def boxcox1p(x: Any, lmbda: Any) -> Array:
    """``boxcox(1 + x, lmbda)``, exact for small ``x``.

    >>> boxcox1p(2.0, 2.0)
    Array(4., dtype=float32, weak_type=True)
    """
    return _power(hnp.log1p(x), lmbda)


@strong
def softmax(x: Any, /, *, axis: Any = None) -> Array:
    """``e**x / sum(e**x)`` along the axes; None is all of them.

    >>> softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]
    """
    return nn.softmax(hnp.asarray(x), axis)


@strong
def log_softmax(x: Any, /, *, axis: Any = None) -> Array:
    """``log(softmax(x))``, without overflow.

    >>> from handlax.numpy import array
    >>> log_softmax(array([1000.0, 0.0]))
    Array([    0., -1000.], dtype=float32)
    """
    return nn.log_softmax(hnp.asarray(x), axis)


programs(globals(), direct=("boxcox", "boxcox1p", "entr", "kl_div", "logit", "rel_entr", "xlog1py", "xlogy"))
