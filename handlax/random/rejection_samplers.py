"""Samplers by rejection, of gamma, Poisson and binomial numbers; and functions of gamma numbers: beta, t, f, ...

A key gives the same numbers as in JAX, up to rounding, but for 16-bit floats, which are computed in 32 bits.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from ..effects.base.errors import ShapeMismatch, whole_number
from ..effects.control.loops import scan, while_loop
from ..effects.core.arrays import Array, as_array, scalar
from ..effects.functions.out_shardings import cuts_result
from ..effects.operations.elementwise.arithmetic import abs, ceil, div, floor, is_finite, neg, sqrt, stop_gradient, sub
from ..effects.operations.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from ..effects.operations.elementwise.comparison import clamp, eq, ge, gt, le, lt, max, min, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp, log, log1p, pow
from ..effects.operations.foundations.shapes import broadcast, canonical_shape, full, move_axis, reshape
from ..effects.operations.manipulation.slicing import index_in_dim
from ..effects.operations.random_generators import split_keys
from ..effects.operations.reductions.cumulative import cumsum
from ..effects.operations.reductions.reductions import reduce_or
from ..effects.operations.special.special_functions import digamma, lgamma, random_gamma_grad
from ..effects.types.array_type import array_type
from ..effects.types.dtypes import canonical, float32, iinfo, int32, promote_types, to_inexact
from ..interpreters.core.eager_programs import programs
from ..interpreters.custom.custom_jvp import custom_jvp
from ..interpreters.transformations.vmap import vmap
from ..numpy.arrays.indexing_operations import take
from ..numpy.mathematics import reductions
from .basic_samplers import (
    at_least_32_bits,
    checked,
    fitted,
    floating,
    integral,
    normal,
    parameters,
    rademacher,
    spread,
    unit,
)
from .keys import pair, single, split
from .transformed_samplers import exponential

__all__ = [
    "ball", "beta", "binomial", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "multinomial",
    "poisson", "t",
]


def _gamma_draw(key: Any, a: Any) -> tuple[Any, Any]:
    """One gamma number over its scale d, for the shape parameter ``a``, or ``a + 1`` if ``a < 1``; and a new key.

    Each element of an array has its own key, so that it does not depend on the number of candidates of others.
    Source: Marsaglia & Tsang, A simple method for generating gamma variables (2000), section 2, with its squeeze.
    """
    dtype = a.type.dtype
    d = _gamma_scale(a)
    c = (1.0 / 3.0) / sqrt(d)

    def candidate(key: Any) -> tuple[Any, Any]:
        """The square of a standard normal number x with 1 + c x > 0, and the candidate (1 + c x)^3."""
        def redraw(s: Any) -> Any:
            key, x_key = pair(s[0])
            x = normal(x_key, (), dtype)
            return key, x, x * c + 1.0

        _, x, root = while_loop(lambda s: le(s[2], 0.0), redraw, (key, scalar(0, dtype), scalar(-1, dtype)))
        return x * x, root * root * root

    def refused(s: Any) -> Any:
        _, square, cube, u = s
        outside = ge(u, 1.0 - square * square * 0.0331)
        return bitwise_and(outside, ge(log(u), square * 0.5 + d * ((1.0 - cube) + log(cube))))

    def again(s: Any) -> Any:
        keys = split_keys(s[0], (3,))
        key, x_key, u_key = [index_in_dim(keys, i, keepdims=False) for i in range(3)]
        square, cube = candidate(x_key)
        return key, square, cube, unit(u_key, (), dtype)

    key, power_key = pair(key)
    start = key, scalar(0, dtype), scalar(1, dtype), scalar(2, dtype)
    return while_loop(refused, again, start)[2], power_key


def _gamma_scale(a: Any) -> Any:
    """The scale d of the method of Marsaglia & Tsang: a - 1/3; a + 1 - 1/3 where a < 1."""
    return select(lt(a, 1.0), a + 1.0, a) - 1.0 / 3.0


def _gamma_draws(key: Any, a: Any, in_logs: bool) -> Any:
    """A gamma number, or its logarithm, for each shape parameter ``a``: 0 for 0, inf for inf, NaN for NaN and below 0.

    A gamma number for a < 1 is one for a + 1, multiplied by u ** (1 / a) for uniform u.
    """
    valid = bitwise_and(gt(a, 0.0), is_finite(a))
    flat = reshape(select(valid, a, full(a.type, 1.0)), (a.type.size,))
    cube, keys = vmap(_gamma_draw)(split_keys(key, flat.type.shape), flat)
    boosted, d = lt(flat, 1.0), _gamma_scale(flat)
    uniform = vmap(lambda key: unit(key, (), a.type.dtype))(keys)
    if in_logs:
        drawn = log(d) + log(cube) + select(boosted, log1p(neg(uniform)) * (1.0 / flat), full(flat.type, 0.0))
    else:
        drawn = d * cube * select(boosted, pow(1.0 - uniform, 1.0 / flat), full(flat.type, 1.0))
    limit = select(eq(a, 0.0), full(a.type, -math.inf if in_logs else 0.0), full(a.type, math.nan))
    return select(valid, reshape(drawn, a.type.shape), select(eq(a, math.inf), a, limit))


@custom_jvp
def _reparametrised(a: Any, x: Any, log_x: Any) -> tuple[Any, Any]:
    """A gamma number ``x`` and its logarithm, which have implicit derivatives by the shape parameter ``a``."""
    return x, log_x


@_reparametrised.defjvp
def _implicit_derivative(primals: Any, tangents: Any) -> Any:
    """The implicit reparametrisation gradient; for tiny x it follows from P(a, x) = x**a / Gamma(a + 1)."""
    a, x, log_x = primals
    da, tiny = tangents[0], lt(log_x, -15.0)
    ordinary = exp(select(tiny, full(log_x.type, 0.0), log_x))
    slope = select(tiny, (digamma(a + 1.0) - log_x) / a, random_gamma_grad(a, ordinary) / ordinary)
    return (x, log_x), (select(eq(x, 0.0), full(x.type, 0.0), x * slope) * da, slope * da)


def _gamma(name: str, key: Any, a: Any, shape: Any, dtype: Any) -> Any:
    """``gamma`` or ``loggamma``, by name; floats of 16 bits are computed in 32."""
    dtype, in_logs = floating(f"random.{name}", dtype), name == "loggamma"
    one, shape, _, a = checked(name, key, shape, at_least_32_bits(dtype), a)
    a = broadcast(a, shape)
    drawn = _gamma_draws(one, stop_gradient(a), in_logs)
    x, log_x = (exp(drawn), drawn) if in_logs else (drawn, log(drawn))
    return convert(_reparametrised(a, x, log_x)[in_logs], dtype)


@cuts_result
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Logarithms of gamma distributed numbers, finite also for small ``a``, where ``gamma`` gives 0.

    Shapes: ``a`` broadcasts to ``shape``, by default its own. ``exp(loggamma(...))`` has the derivative of ``gamma``.
    """
    return _gamma("loggamma", key, a, shape, dtype)


@cuts_result
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Gamma distributed numbers of shape parameter ``a`` and scale 1: density ``x**(a-1) e**-x / Gamma(a)``.

    Shapes: ``a`` broadcasts to ``shape``, by default its own. NaN for a negative ``a``. The derivative of a number by
    ``a`` is that of the quantile at the same probability.
    Source: Marsaglia & Tsang, A simple method for generating gamma variables (2000); Figurnov, Mohamed & Mnih, Implicit
    reparameterization gradients (2018).

    >>> from handlax import random
    >>> random.gamma(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    return _gamma("gamma", key, a, shape, dtype)


@cuts_result
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Chi-square distributed numbers: sums of the squares of ``df`` standard normal numbers, the degrees of freedom."""
    dtype = floating("random.chisquare", dtype)
    one, shape, wide, df = checked("chisquare", key, shape, at_least_32_bits(dtype), df)
    return convert(gamma(one, df * 0.5, shape, wide) * 2.0, dtype)


@cuts_result
def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Beta distributed numbers: density proportional to ``x**(a-1) (1-x)**(b-1)`` on [0, 1].

    Shapes: ``a`` and ``b`` broadcast to ``shape``, by default to each other.
    """
    dtype = floating("random.beta", dtype)
    one, shape, wide, a, b = checked("beta", key, shape, at_least_32_bits(dtype), a, b)
    x, y = [loggamma(k, parameter, shape, wide) for k, parameter in zip(pair(one), (a, b))]
    top = max(x, y)
    x, y = exp(sub(x, top)), exp(sub(y, top))
    return convert(x / (x + y), dtype)


def _softmax(logs: Any) -> Any:
    """``e**logs / sum(e**logs)`` along the last axis, for finite logarithms; also of no elements."""
    top = stop_gradient(reductions.max(logs, -1, keepdims=True, initial=-math.inf if 0 in logs.type.shape else None))
    powers = exp(sub(logs, broadcast(top, logs.type.shape)))
    return div(powers, broadcast(reductions.sum(powers, -1, keepdims=True), logs.type.shape))


@cuts_result
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Dirichlet distributed vectors: positive numbers of sum 1, with density proportional to ``prod(x**(alpha-1))``.

    Shapes: ``alpha[*s, n] -> [*shape, n]``; ``s`` broadcasts to ``shape``, by default itself.
    """
    dtype = floating("random.dirichlet", dtype)
    weights = convert(alpha, at_least_32_bits(dtype))
    if not weights.type.shape:
        raise ShapeMismatch(f"random.dirichlet: alpha must have a dimension, got {weights.type}.")
    *lead, n = weights.type.shape
    full_shape = (*(lead if shape is None else tuple(shape)), n)
    return convert(_softmax(loggamma(key, weights, full_shape, weights.type.dtype)), dtype)


@cuts_result
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Student's t: ``x / sqrt(y / df)`` for normal ``x`` and chi-square ``y`` of ``df`` degrees of freedom."""
    dtype = floating("random.t", dtype)
    one, shape, wide, df = checked("t", key, shape, at_least_32_bits(dtype), df)
    first, second = pair(one)
    half = df * 0.5
    logs = spread(log(half), shape) - loggamma(second, half, shape, wide)  # gamma numbers themselves may underflow
    return convert(normal(first, shape, wide) * exp(logs * 0.5), dtype)


@cuts_result
def f(
    key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Fisher's F: ``(x / dfnum) / (y / dfden)`` for chi-square ``x`` and ``y`` of ``dfnum`` and ``dfden`` degrees of
    freedom.
    """
    dtype = floating("random.f", dtype)
    one, shape, wide, *dfs = checked("f", key, shape, at_least_32_bits(dtype), dfnum, dfden)
    second, first = pair(one)
    halves = [df * 0.5 for df in dfs]
    x, y = [loggamma(k, half, shape, wide) - spread(log(half), shape) for k, half in zip((first, second), halves)]
    return convert(exp(x - y), dtype)


_LARGE = 10.0  # Poisson numbers of this mean and above are drawn by rejection, others by multiplication
_CANCELLING = 4096.0  # of this mean and above k log(rate) - log(k!) cancels in float32


@cuts_result
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Numbers of density proportional to ``exp(-abs(x)**p)``: ``g**(1/p)`` with a random sign, for ``g = gamma(1/p)``.

    For ``p == 2`` they are normal numbers of variance 1/2, for ``p == 1`` Laplace distributed.

    Shapes: ``p`` broadcasts to ``shape``.

    >>> from handlax import random
    >>> random.generalized_normal(random.key(0), 2.0, (3,)).dtype
    dtype('float32')
    """
    dtype = floating("random.generalized_normal", dtype)
    one, shape, wide, p = checked("generalized_normal", key, shape, at_least_32_bits(dtype), p)
    size_key, sign_key = pair(one)
    sizes = exp(loggamma(size_key, 1.0 / p, shape, wide) / spread(p, shape))
    return rademacher(sign_key, shape, dtype) * convert(sizes, dtype)


@cuts_result
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Vectors of ``d`` numbers, uniform in the unit ball of the norm of order ``p``: ``sum(abs(x)**p) <= 1``.

    Shapes: ``a[*shape, d]``; ``p`` is one number.
    Source: Barthe, Guedon, Mendelson & Naor, A probabilistic approach to the geometry of the l_p^n-ball (2005).

    >>> from handlax import random
    >>> points = random.ball(random.key(0), 3, shape=(100,))
    >>> points.shape, bool((points**2).sum(1).max() <= 1.0)
    ((100, 3), True)
    """
    one, shape, dtype = checked("ball", key, shape, dtype)
    first, second = pair(one)
    (p,) = parameters("random.ball", (), dtype, p)[1]
    x = generalized_normal(first, p, (*shape, whole_number("random.ball: d", d)), dtype)
    power = reductions.sum(pow(abs(x), spread(p, x.type.shape)), -1) + exponential(second, shape, dtype)
    return x / reshape(pow(power, spread(1.0 / p, shape)), (*shape, 1))


def _few_events(key: Any, rate: Any) -> Any:
    """Poisson numbers of small means: the number of uniform factors after which their product is below e^-rate.

    Source: D. Knuth, The Art of Computer Programming, volume 2, 3.4.1.
    """
    shape, dtype = rate.type.shape, rate.type.dtype

    def once(s: Any) -> Any:
        key, count, log_product = s
        key, next_key = pair(key)
        count = select(gt(log_product, neg(rate)), count + 1.0, count)
        return key, count, log_product + log(unit(next_key, shape, dtype))

    start = key, full(rate.type, -1.0), full(rate.type, 0.0)
    return while_loop(lambda s: any_true(gt(s[2], neg(rate))), once, start)[1]


def _log1p_rest(x: Any) -> Any:
    """``log(1 - x) + x``, about ``-x**2 / 2``, so that ``k log(a / k) + k - a == k * _log1p_rest((k - a) / k)``."""
    return log1p(neg(x)) + x


def _log_probability(k: Any, rate: Any) -> Any:
    """The Poisson log-probability ``k log(rate) - rate - log(k!)``, for large rates by Stirling's series."""
    plain = neg(rate) + k * log(rate) - lgamma(k + 1.0)
    safe = max(k, full(k.type, 1.0))
    tail = (1.0 - 1.0 / (safe * safe * 30.0)) / (safe * 12.0)
    series = safe * _log1p_rest((safe - rate) / safe) - log(safe * (2 * math.pi)) * 0.5 - tail
    return select(lt(rate, _CANCELLING), plain, series)


def transformed_rejection(
    key: Any, mean: Any, offset: float, hat: tuple[Any, Any, Any], squeeze: Any, outside: Any, log_ratio: Any, used: Any
) -> Any:
    """Integers of a discrete distribution, by transformed rejection with a squeeze.

    Args:
        hat: the parameters a, b, alpha of the distribution whose numbers, moved to ``mean + offset``, are candidates.
        squeeze: a bound of uniform v up to which a candidate is accepted without its probability.
        outside: ``outside(k, near, v)``, which candidates are refused without their probability.
        log_ratio: ``log_ratio(k)``, the logarithm of the probability of k over a constant, decides about all others.
        used: which of the integers the caller uses; if none, none is drawn.
    Source: Hörmann, The transformed rejection method for generating Poisson random variables (1993).
    """
    a, b, alpha = hat
    shape, dtype = mean.type.shape, mean.type.dtype

    def once(s: Any) -> Any:
        key, waiting, chosen = s
        keys = split_keys(key, (3,))
        key, first, second = [index_in_dim(keys, i, keepdims=False) for i in range(3)]
        u = unit(first, shape, dtype) - 0.5
        v = unit(second, shape, dtype)
        near = 0.5 - abs(u)
        k = floor((a * 2.0 / near + b) * u + mean + offset)
        good = bitwise_and(ge(near, 0.07), le(v, squeeze))
        exact = le(log(v * alpha / (a / (near * near) + b)), log_ratio(k))
        accepted = bitwise_or(good, bitwise_and(bitwise_not(outside(k, near, v)), exact))
        return key, bitwise_and(waiting, bitwise_not(accepted)), select(accepted, k, chosen)

    start = key, broadcast(any_true(used), shape), full(mean.type, -1.0)
    return while_loop(lambda s: any_true(s[1]), once, start)[2]


def any_true(x: Any) -> Any:
    """Whether any element is True, as a scalar."""
    return reduce_or(x, tuple(range(len(x.type.shape))))


def _many_events(key: Any, rate: Any, used: Any) -> Any:
    """Poisson numbers of large means. Source: Hörmann (1993), as ``transformed_rejection``, algorithm PTRS."""
    b = sqrt(rate) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    outside = lambda k, near, v: bitwise_or(lt(k, 0.0), bitwise_and(lt(near, 0.013), gt(v, near)))
    log_ratio = lambda k: _log_probability(k, rate)
    return transformed_rejection(key, rate, 0.43, (a, b, inverse_alpha), squeeze, outside, log_ratio, used)


@cuts_result
def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Poisson distributed integers of mean ``lam``; -1 where ``lam`` is negative or NaN.

    Shapes: ``lam`` broadcasts to ``shape``, by default its own; it is rounded to float32.
    The derivative by ``lam`` is 0. A key gives JAX's numbers where ``lam`` is below 4096, beyond other numbers of the
    same distribution.
    Source: Knuth, The Art of Computer Programming 2, 3.4.1; Hörmann, The transformed rejection method for generating
    Poisson random variables (1993).

    Raises: DTypeMismatch: the dtype is not an integer one.

    >>> from handlax import random
    >>> random.poisson(random.key(0), 3.0, (4,)).dtype
    dtype('int32')
    """
    dtype = integral("random.poisson", dtype)
    key, shape, _, rate = checked("poisson", key, shape, float32, stop_gradient(as_array(lam)))
    rate = broadcast(rate, shape)
    valid, large = ge(rate, 0.0), ge(rate, _LARGE)
    bounded = min(rate, full(rate.type, float(iinfo(dtype).max)))
    few = _few_events(key, select(bitwise_and(valid, bitwise_not(large)), rate, full(rate.type, 0.0)))
    many = _many_events(key, select(large, bounded, full(rate.type, 1e5)), large)
    drawn = select(bitwise_or(eq(rate, 0.0), eq(rate, math.inf)), rate, select(large, many, few))
    return convert(select(valid, drawn, full(rate.type, -1.0)), dtype)


_FEW = 10.0  # with at most so many expected successes ``_few_successes`` draws the number, beyond ``_many_successes``
# log k! - log(sqrt(2 pi) (k + 1)**(k + 1/2) e**-(k + 1)), for k = 0, ..., 9
_TAILS = np.array(
    [math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + k + 1 - 0.5 * math.log(2 * math.pi) for k in range(10)]
)


def _working(*xs: Any) -> Any:
    """The floating dtype of a sampler's computation: that to which its parameters ``xs`` promote, at least float32."""
    return at_least_32_bits(to_inexact(reduce(promote_types, [as_array(x).type.dtype for x in xs])))


def _tail(k: Any) -> Any:
    """``log k!`` minus Stirling's approximation at ``k + 1``: tabulated for k <= 9, else three terms of its series."""
    tabled = take(convert(_TAILS, k.type.dtype), convert(floor(k), int32), mode="clip")
    square = (k + 1.0) * (k + 1.0)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)
    return select(le(k, 9.0), tabled, series)


def _few_successes(key: Any, count: Any, p: Any) -> Any:
    """Binomial numbers, for few expected successes: how many waiting times between successes fit into ``count`` trials.

    Source: L. Devroye, Non-Uniform Random Variate Generation (1986), chapter X.4.3, first waiting time algorithm.
    """
    scale = log1p(neg(p))

    def once(s: Any) -> Any:
        successes, trials, key = s
        next_key, key = pair(key)
        successes = select(le(trials, count), successes + 1.0, successes)
        return successes, trials + ceil(log(unit(next_key, p.type.shape, p.type.dtype)) / scale), key

    start = full(p.type, 0.0), full(p.type, 0.0), key
    return while_loop(lambda s: any_true(le(s[1], count)), once, start)[0] - 1.0


def _many_successes(key: Any, count: Any, p: Any, used: Any) -> Any:
    """Binomial numbers, for many expected successes: transformed rejection with a squeeze.

    Source: Hörmann, The generation of binomial random variates (1993), algorithm BTRS.
    """
    deviation = sqrt(count * p * (1.0 - p))
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + p * 0.01
    squeeze = 0.92 - 4.2 / b
    alpha = (5.1 / b + 2.83) * deviation
    total = count + 2.0

    def log_weight(k: Any) -> Any:
        """The logarithm of the probability of ``k``, up to a constant, without the difference of large terms."""
        x, y = k + 1.0, count - k + 1.0
        off = x - total * p  # and y is as much below total (1 - p)
        powers = x * _log1p_rest(off / x) + y * _log1p_rest(neg(off) / y)
        return powers + log(x / total * (y / total)) * 0.5 - _tail(k) - _tail(count - k)

    most = log_weight(floor((count + 1.0) * p))
    log_ratio = lambda k: log_weight(k) - most
    outside = lambda k, near, v: bitwise_or(lt(k, 0.0), gt(k, count))
    return transformed_rejection(key, count * p, 0.5, (a, b, alpha), squeeze, outside, log_ratio, used)


def _binomial(key: Any, count: Any, p: Any) -> Any:
    """Binomial numbers of ``count`` trials of probability ``p``, arrays of one shape; inf where ``count`` is inf."""
    number = lambda value: full(p.type, value)
    rare = lt(p, 0.5)
    q = select(rare, p, 1.0 - p)  # of the rarer outcome
    meant = bitwise_and(ge(count, 0.0), ge(q, 0.0))
    infinite = eq(count, math.inf)
    usual = bitwise_and(meant, bitwise_not(infinite))
    whole = floor(select(usual, count, number(0.0)))
    q = select(meant, q, number(0.01))
    few = le(select(usual, count, number(0.0)) * q, _FEW)
    counted = _few_successes(key, select(few, whole, number(0.0)), q)
    many = _many_successes(key, select(few, number(1e4), whole), select(few, number(0.5), q), bitwise_not(few))
    drawn = select(few, counted, many)
    drawn = select(rare, drawn, whole - drawn)
    return select(usual, drawn, select(bitwise_and(meant, infinite), number(math.inf), number(math.nan)))


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """The number of successes in ``n`` trials of probability ``p``, as a float.

    NaN where ``n`` is negative or ``p`` outside [0, 1]. Derivatives are 0.

    Shapes: ``n`` and ``p`` broadcast to ``shape``, by default to each other.
    Source: Devroye, Non-Uniform Random Variate Generation (1986), X.4.3; Hörmann, The generation of binomial random
    variates (1993).

    Raises: DTypeMismatch: the dtype is no floating one. ShapeMismatch: a parameter does not broadcast to the shape.

    >>> from handlax import random
    >>> random.binomial(random.key(7), 10, 0.3, (6,))
    Array([5., 4., 3., 4., 5., 1.], dtype=float32)
    """
    dtype = floating("random.binomial", dtype)
    one, shape, _, n, p = checked("binomial", key, shape, _working(p), n, p)
    n, p = [broadcast(stop_gradient(x), shape) for x in (n, p)]
    return convert(_binomial(one, n, p), dtype)


def multinomial(
    key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: int | bool = 1
) -> Array:
    """The number of times that each of k outcomes occurs in ``n`` trials, outcome i with probability ``p[i] / sum(p)``.

    Each number is binomially distributed, given the numbers of the outcomes before.

    Shapes: ``n: a[*s], p: a[*s, k] -> a[*shape, k]``; ``s`` broadcasts to ``shape``, by default ``p.shape[:-1]``.
    Args:
        unroll: the number of outcomes per iteration of the loop over outcomes, as of ``lax.scan``.

    >>> from handlax import random, numpy as hnp
    >>> random.multinomial(random.key(7), 10, hnp.array([0.2, 0.3, 0.5]))
    Array([2., 4., 4.], dtype=float32)
    """
    dtype = floating("random.multinomial", None) if dtype is None else canonical(dtype)
    one = single("random.multinomial", key)
    working = _working(n, p)
    n, p = [convert(stop_gradient(as_array(x)), working) for x in (n, p)]
    rows = p.type.shape[:-1]
    shape = rows if shape is None else canonical_shape(shape, "random.multinomial")
    fitted("random.multinomial", shape, n, full(array_type(rows, working), 0.0))
    p = move_axis(broadcast(p, (*shape, p.type.shape[-1])), len(shape), 0)
    left = cumsum(p, 0, reverse=True)
    shares = clamp(0.0, p / select(eq(left, 0.0), full(left.type, 1.0), left), 1.0)

    def once(remaining: Any, outcome: Any) -> Any:
        share, key = outcome
        count = _binomial(key, remaining, share)
        return remaining - count, count

    counts = scan(once, broadcast(n, shape), (shares, split(one, shares.type.shape[0])), unroll=unroll)[1]
    return convert(move_axis(counts, 0, len(shape)), dtype)


programs(globals())
