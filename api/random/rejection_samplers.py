"""Samplers by rejection, and what follows from them: gamma, beta, chisquare, dirichlet, t, f, poisson.

Candidates are drawn for the whole array at once, until every element has accepted one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..effects.base.errors import DTypeMismatch, ShapeMismatch
from ..effects.control.loops import while_loop
from ..effects.core.arrays import as_array, scalar
from ..effects.functions.unsupported import no_sharding
from ..effects.operations.elementwise.arithmetic import abs, div, floor, is_finite, neg, sqrt, stop_gradient, sub
from ..effects.operations.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from ..effects.operations.elementwise.comparison import eq, ge, gt, le, lt, max, min, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp, log, log1p, logistic
from ..effects.operations.foundations.shapes import broadcast, full
from ..effects.operations.random_bits import random_fold_in
from ..effects.operations.reductions.reductions import reduce_or
from ..effects.operations.special.special_functions import digamma, lgamma, random_gamma_grad
from ..effects.types.array_type import array_type
from ..effects.types.dtypes import ANY_INTEGER, bool_, canonical, default_int, float32, iinfo, itemsize_bits, uint32
from ..interpreters.custom.custom_jvp import custom_jvp
from ..numpy.mathematics import reductions
from .basic_samplers import floating, normal, parameters, unit
from .keys import pair, single

__all__ = ["beta", "chisquare", "dirichlet", "f", "gamma", "loggamma", "poisson", "t"]


def _wide(dtype: Any) -> Any:
    """The dtype of the computation: at least 32 bits."""
    return float32 if itemsize_bits(dtype) < 32 else dtype


def _until_taken(
    key: Any, start: Any, open: Any, propose: Callable[[Any], tuple[Any, Any]]
) -> Any:
    """``start`` with every element where ``open`` is true replaced by the first candidate accepted there.

    ``propose(key)`` gives a candidate for every element, and which of them are accepted.
    """

    def more(s: Any) -> Any:
        waiting = s[1]
        return reduce_or(waiting, tuple(range(len(waiting.type.shape))))

    def once(s: Any) -> Any:
        i, waiting, found = s
        candidate, taken = propose(random_fold_in(key, i))
        found = select(bitwise_and(waiting, taken), candidate, found)
        return i + 1, bitwise_and(waiting, bitwise_not(taken)), found

    return while_loop(more, once, (scalar(0, uint32), open, start))[2]


def _log_gamma_draw(key: Any, a: Any) -> Any:
    """Logarithms of draws for each ``a``: -inf for 0, inf for inf, NaN for an invalid shape parameter.

    Source: Marsaglia & Tsang, A simple method for generating gamma variables (2000), sections 2 and 6.
    """
    shape, dtype = a.type.shape, a.type.dtype
    key, boost_key = pair(key)
    valid = bitwise_and(gt(a, 0.0), is_finite(a))
    safe = select(valid, a, full(a.type, 1.0))
    boosted = lt(safe, 1.0)  # drawn for a + 1, then multiplied by u ** (1 / a)
    d = select(boosted, safe + 1.0, safe) - 1.0 / 3.0
    c = 1.0 / sqrt(d * 9.0)

    def propose(key: Any) -> tuple[Any, Any]:
        first, second = pair(key)
        x = normal(first, shape, dtype)
        root = c * x + 1.0
        cube = root * root * root
        positive = gt(cube, 0.0)
        log_cube = log(select(positive, cube, full(a.type, 1.0)))
        # 1 - u is never 0
        good = le(log1p(neg(unit(second, shape, dtype))), x * x * 0.5 + d - d * cube + d * log_cube)
        return log_cube, bitwise_and(positive, good)

    log_cube = _until_taken(key, full(a.type, 0.0), full(array_type(shape, bool_), True), propose)
    power = select(boosted, log1p(neg(unit(boost_key, shape, dtype))) / safe, full(a.type, 0.0))
    drawn = log(d) + log_cube + power
    limit = select(eq(a, 0.0), full(a.type, -math.inf), select(eq(a, math.inf), a, full(a.type, math.nan)))
    return select(valid, drawn, limit)


@custom_jvp
def _reparametrised(a: Any, log_x: Any) -> Any:
    """``log_x``, the logarithm of a draw for ``a``, with its derivative by ``a``."""
    return log_x


@_reparametrised.defjvp
def _slope(primals: Any, tangents: Any) -> Any:
    """The implicit reparametrisation gradient; for tiny x it follows from P(a, x) = x**a / Gamma(a + 1)."""
    a, log_x = primals
    tiny = lt(log_x, -15.0)
    x = exp(select(tiny, full(log_x.type, 0.0), log_x))
    slope = select(tiny, (digamma(a + 1.0) - log_x) / a, random_gamma_grad(a, x) / x)
    return log_x, slope * tangents[0]


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Logarithms of gamma distributed numbers: finite where ``gamma`` gives 0, for small ``a``.

    Shapes: ``a`` broadcasts to ``shape``, by default its own. Derivatives by ``a`` are those of ``gamma``.
    """
    no_sharding("loggamma", out_sharding)
    dtype = floating("random.loggamma", dtype)
    shape, (a,) = parameters("random.loggamma", shape, _wide(dtype), a)
    a = broadcast(a, shape)
    drawn = _log_gamma_draw(single("random.loggamma", key), stop_gradient(a))
    return convert(_reparametrised(a, drawn), dtype)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Gamma distributed numbers of shape parameter ``a`` and scale 1: density ``x**(a-1) e**-x / Gamma(a)``.

    Shapes: ``a`` broadcasts to ``shape``, by default its own. NaN for a negative ``a``. The derivative by ``a`` is that
    of the quantile at which the number lies.
    Source: Marsaglia & Tsang, A simple method for generating gamma variables (2000); Figurnov, Mohamed & Mnih, Implicit
    reparameterization gradients (2018).

    >>> from handlax import random
    >>> random.gamma(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    return exp(loggamma(key, a, shape, dtype, out_sharding=out_sharding))


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Chi-square distributed numbers of ``df`` degrees of freedom: sums of so many squares of normal ones."""
    no_sharding("chisquare", out_sharding)
    dtype = floating("random.chisquare", dtype)
    shape, (df,) = parameters("random.chisquare", shape, dtype, df)
    return gamma(key, df * 0.5, shape, dtype) * 2.0


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Beta distributed numbers: density proportional to ``x**(a-1) (1-x)**(b-1)`` on [0, 1].

    Shapes: ``a`` and ``b`` broadcast to ``shape``, by default to each other.
    """
    no_sharding("beta", out_sharding)
    dtype = floating("random.beta", dtype)
    shape, (a, b) = parameters("random.beta", shape, _wide(dtype), a, b)
    first, second = pair(single("random.beta", key))
    x, y = loggamma(first, a, shape, a.type.dtype), loggamma(second, b, shape, b.type.dtype)
    return convert(logistic(sub(x, y)), dtype)


def _shares(logs: Any) -> Any:
    """``e**logs / sum(e**logs)`` over the last axis, of finite numbers."""
    top = stop_gradient(reductions.max(logs, -1, keepdims=True, initial=-math.inf if 0 in logs.type.shape else None))
    powers = exp(sub(logs, broadcast(top, logs.type.shape)))
    return div(powers, broadcast(reductions.sum(powers, -1, keepdims=True), logs.type.shape))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Dirichlet distributed vectors: positive numbers of sum 1, density proportional to ``prod(x**(alpha-1))``.

    Shapes: ``alpha[*s, n] -> [*shape, n]``; ``s`` broadcasts to ``shape``, by default itself.
    """
    no_sharding("dirichlet", out_sharding)
    dtype = floating("random.dirichlet", dtype)
    weights = convert(alpha, _wide(dtype))
    if not weights.type.shape:
        raise ShapeMismatch(f"random.dirichlet: alpha must have a dimension, got {weights.type}.")
    *lead, n = weights.type.shape
    full_shape = (*(lead if shape is None else tuple(shape)), n)
    return convert(_shares(loggamma(key, weights, full_shape, weights.type.dtype)), dtype)


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Student's t: ``x / sqrt(y / df)`` for normal ``x`` and chi-square ``y`` of ``df`` degrees of freedom."""
    no_sharding("t", out_sharding)
    dtype = floating("random.t", dtype)
    shape, (df,) = parameters("random.t", shape, dtype, df)
    first, second = pair(single("random.t", key))
    half = df * 0.5
    return normal(first, shape, dtype) * sqrt(half / gamma(second, half, shape, dtype))


def f(
    key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Fisher's F: the ratio of two chi-square numbers, each divided by its degrees of freedom."""
    no_sharding("f", out_sharding)
    dtype = floating("random.f", dtype)
    shape, (dfnum, dfden) = parameters("random.f", shape, dtype, dfnum, dfden)
    first, second = pair(single("random.f", key))
    return chisquare(first, dfnum, shape, dtype) / dfnum / (chisquare(second, dfden, shape, dtype) / dfden)


_LARGE = 10.0  # from here on candidates are worth their price


def _few(key: Any, rate: Any) -> Any:
    """Poisson draws for small rates: events in one unit of time, with exponential waiting times (Knuth)."""
    shape, dtype = rate.type.shape, rate.type.dtype

    def more(s: Any) -> Any:
        return reduce_or(lt(s[2], rate), tuple(range(len(shape))))

    def once(s: Any) -> Any:
        i, count, time = s
        time = time - log1p(neg(unit(random_fold_in(key, i), shape, dtype)))
        return i + 1, select(lt(time, rate), count + 1.0, count), time

    start = full(rate.type, 0.0)
    return while_loop(more, once, (scalar(0, uint32), start, start))[1]


def _log_probability(k: Any, rate: Any) -> Any:
    """``k log(rate) - rate - log(k!)``, by Stirling's series where its terms would cancel."""
    safe = max(k, full(k.type, 1.0))
    near = k * log(rate) - rate - lgamma(k + 1.0)
    off = (safe - rate) / safe
    tail = (1.0 - 1.0 / (safe * safe * 30.0)) / (safe * 12.0)
    far = safe * (log1p(neg(off)) + off) - log(safe * (2 * math.pi)) * 0.5 - tail
    return select(lt(k, _LARGE), near, far)


def _many(key: Any, rate: Any, open: Any) -> Any:
    """Transformed rejection with a squeeze.

    Source: Hörmann, The transformed rejection method for generating Poisson random variables (1993), algorithm PTRS.
    """
    shape, dtype = rate.type.shape, rate.type.dtype
    b = sqrt(rate) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
    squeeze = 0.9277 - 3.6224 / (b - 2.0)

    def propose(key: Any) -> tuple[Any, Any]:
        first, second = pair(key)
        u = unit(first, shape, dtype) - 0.5
        v = 1.0 - unit(second, shape, dtype)
        near = max(0.5 - abs(u), full(u.type, 1e-7))
        k = floor((a * 2.0 / near + b) * u + rate + 0.43)
        good = bitwise_and(ge(near, 0.07), le(v, squeeze))
        bad = bitwise_or(lt(k, 0.0), bitwise_and(lt(near, 0.013), gt(v, near)))
        exact = le(log(v * inverse_alpha / (a / (near * near) + b)), _log_probability(max(k, full(k.type, 0.0)), rate))
        return k, bitwise_or(good, bitwise_and(bitwise_not(bad), exact))

    return _until_taken(key, full(rate.type, 0.0), open, propose)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Poisson distributed numbers of mean ``lam``; of an integer dtype. -1 where ``lam`` is negative or NaN.

    Shapes: ``lam`` broadcasts to ``shape``, by default its own. It has no derivative.
    Source: Knuth, The Art of Computer Programming 2, 3.4.1; Hörmann, The transformed rejection method for generating
    Poisson random variables (1993).

    Raises: DTypeMismatch: the dtype is not an integer one.

    >>> from handlax import random
    >>> random.poisson(random.key(0), 3.0, (4,)).dtype
    dtype('int32')
    """
    no_sharding("poisson", out_sharding)
    found = default_int() if dtype is None else canonical(dtype)
    if found not in ANY_INTEGER:
        raise DTypeMismatch(f"random.poisson: the dtype must be an integer one, got {found}.")
    rate = stop_gradient(as_array(lam))
    wide = _wide(rate.type.dtype) if rate.type.dtype.kind == "f" else float32
    shape, (rate,) = parameters("random.poisson", shape, wide, rate)
    rate = broadcast(rate, shape)
    first, second = pair(single("random.poisson", key))
    valid = ge(rate, 0.0)
    large = ge(rate, _LARGE)
    bounded = min(rate, full(rate.type, float(iinfo(found).max)))
    few = _few(first, select(bitwise_and(valid, bitwise_not(large)), rate, full(rate.type, 0.0)))
    many = _many(second, select(large, bounded, full(rate.type, 2 * _LARGE)), large)
    return convert(select(valid, select(large, many, few), full(rate.type, -1.0)), found)
