"""Samplers by rejection, and what follows from them: gamma, beta, chisquare, dirichlet, t, f, poisson.

A key gives JAX's numbers, up to rounding; for 16-bit floats, which are rounded ones of 32 bits, other ones.
"""

from __future__ import annotations

import math
from typing import Any

from ..effects.base.errors import DTypeMismatch, ShapeMismatch, whole_number
from ..effects.control.loops import while_loop
from ..effects.core.arrays import Array, as_array, scalar
from ..effects.functions.unsupported import no_sharding
from ..effects.operations.elementwise.arithmetic import abs, div, floor, is_finite, neg, sqrt, stop_gradient, sub
from ..effects.operations.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from ..effects.operations.elementwise.comparison import eq, ge, gt, le, lt, max, min, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import exp, log, log1p, pow
from ..effects.operations.foundations.shapes import broadcast, canonical_shape, full, reshape
from ..effects.operations.manipulation.slicing import index_in_dim
from ..effects.operations.random_generators import split_keys
from ..effects.operations.reductions.reductions import reduce_or
from ..effects.operations.special.special_functions import digamma, lgamma, random_gamma_grad
from ..effects.types.array_type import array_type
from ..effects.types.dtypes import ANY_INTEGER, bool_, canonical, default_int, float32, iinfo, itemsize_bits
from ..interpreters.core.eager_programs import programs
from ..interpreters.custom.custom_jvp import custom_jvp
from ..interpreters.transformations.vmap import vmap
from ..numpy.mathematics import reductions
from .basic_samplers import floating, normal, parameters, rademacher, spread, unit
from .keys import pair, single
from .transformed_samplers import exponential

__all__ = [
    "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "poisson", "t",
]  # fmt: skip


def _wide(dtype: Any) -> Any:
    """The dtype of the computation: at least 32 bits."""
    return float32 if itemsize_bits(dtype) < 32 else dtype


def _gamma_draw(key: Any, a: Any) -> tuple[Any, Any]:
    """The cube of a draw for one number ``a``, and a new key: a draw of ``max(a, a + 1 if a < 1)`` is ``d * cube``.

    Each element has its own key, so that it does not depend on how many candidates others need.
    Source: Marsaglia & Tsang, A simple method for generating gamma variables (2000), section 2, with its squeeze.
    """
    dtype = a.type.dtype
    d = _gamma_scale(a)
    c = (1.0 / 3.0) / sqrt(d)

    def candidate(key: Any) -> tuple[Any, Any]:
        """A normal number x with 1 + c x > 0, and this root of the candidate."""
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
    """d = a - 1/3 of the method of Marsaglia & Tsang, for a + 1 where a < 1."""
    return select(lt(a, 1.0), a + 1.0, a) - 1.0 / 3.0


def _gamma_draws(key: Any, a: Any, in_logs: bool) -> Any:
    """Draws for each ``a``, or their logarithms: 0 for 0, inf for inf, NaN for an invalid shape parameter.

    A draw for a < 1 is one for a + 1, multiplied by u ** (1 / a).
    """
    valid = bitwise_and(gt(a, 0.0), is_finite(a))
    safe = select(valid, a, full(a.type, 1.0))
    flat = reshape(safe, (a.type.size,))
    cube, keys = vmap(_gamma_draw)(split_keys(key, flat.type.shape), flat)
    boosted, d = lt(flat, 1.0), _gamma_scale(flat)
    uniform = vmap(lambda key: unit(key, (), a.type.dtype))(keys)
    if in_logs:
        power = log1p(neg(uniform)) * (1.0 / flat)
        drawn = log(d) + log(cube) + select(boosted, power, full(flat.type, 0.0))
    else:
        drawn = d * cube * select(boosted, pow(1.0 - uniform, 1.0 / flat), full(flat.type, 1.0))
    limit = select(eq(a, 0.0), full(a.type, -math.inf if in_logs else 0.0), full(a.type, math.nan))
    return select(valid, reshape(drawn, a.type.shape), select(eq(a, math.inf), a, limit))


@custom_jvp
def _moved(a: Any, x: Any, log_x: Any) -> tuple[Any, Any]:
    """A draw for ``a`` and its logarithm, with their derivatives by ``a``."""
    return x, log_x


@_moved.defjvp
def _slopes(primals: Any, tangents: Any) -> Any:
    """The implicit reparametrisation gradient; for tiny x it follows from P(a, x) = x**a / Gamma(a + 1)."""
    a, x, log_x = primals
    da, tiny = tangents[0], lt(log_x, -15.0)
    ordinary = exp(select(tiny, full(log_x.type, 0.0), log_x))
    slope = select(tiny, (digamma(a + 1.0) - log_x) / a, random_gamma_grad(a, ordinary) / ordinary)
    return (x, log_x), (select(eq(x, 0.0), full(x.type, 0.0), x * slope) * da, slope * da)


def _gamma(name: str, key: Any, a: Any, shape: Any, dtype: Any, in_logs: bool) -> Any:
    """``gamma`` or ``loggamma``; 16-bit floats are computed in 32 bits."""
    dtype = floating(name, dtype)
    shape, (a,) = parameters(name, shape, _wide(dtype), a)
    a = broadcast(a, shape)
    drawn = _gamma_draws(single(name, key), stop_gradient(a), in_logs)
    x, log_x = _moved(a, exp(drawn), drawn) if in_logs else _moved(a, drawn, log(drawn))
    return convert(log_x if in_logs else x, dtype)


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Logarithms of gamma distributed numbers: finite where ``gamma`` gives 0, for small ``a``.

    Shapes: ``a`` broadcasts to ``shape``, by default its own. Derivatives by ``a`` are those of ``gamma``.
    """
    no_sharding("loggamma", out_sharding)
    return _gamma("random.loggamma", key, a, shape, dtype, True)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Gamma distributed numbers of shape parameter ``a`` and scale 1: density ``x**(a-1) e**-x / Gamma(a)``.

    Shapes: ``a`` broadcasts to ``shape``, by default its own. NaN for a negative ``a``. The derivative by ``a`` is that
    of the quantile at which the number lies.
    Source: Marsaglia & Tsang, A simple method for generating gamma variables (2000); Figurnov, Mohamed & Mnih, Implicit
    reparameterization gradients (2018).

    >>> from handlax import random
    >>> random.gamma(random.key(0), 3.0, (2,)).shape
    (2,)
    """
    no_sharding("gamma", out_sharding)
    return _gamma("random.gamma", key, a, shape, dtype, False)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Chi-square distributed numbers of ``df`` degrees of freedom: sums of so many squares of normal ones."""
    no_sharding("chisquare", out_sharding)
    dtype = floating("random.chisquare", dtype)
    shape, (df,) = parameters("random.chisquare", shape, dtype, df)
    return exp(loggamma(key, df * 0.5, shape, dtype)) * 2.0


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Beta distributed numbers: density proportional to ``x**(a-1) (1-x)**(b-1)`` on [0, 1].

    Shapes: ``a`` and ``b`` broadcast to ``shape``, by default to each other.
    """
    no_sharding("beta", out_sharding)
    dtype = floating("random.beta", dtype)
    shape, (a, b) = parameters("random.beta", shape, _wide(dtype), a, b)
    first, second = pair(single("random.beta", key))
    x, y = loggamma(first, a, shape, a.type.dtype), loggamma(second, b, shape, b.type.dtype)
    top = max(x, y)
    x, y = exp(sub(x, top)), exp(sub(y, top))
    return convert(x / (x + y), dtype)


def _shares(logs: Any) -> Any:
    """``e**logs / sum(e**logs)`` over the last axis, of finite numbers."""
    top = stop_gradient(reductions.max(logs, -1, keepdims=True, initial=-math.inf if 0 in logs.type.shape else None))
    powers = exp(sub(logs, broadcast(top, logs.type.shape)))
    return div(powers, broadcast(reductions.sum(powers, -1, keepdims=True), logs.type.shape))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
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


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Student's t: ``x / sqrt(y / df)`` for normal ``x`` and chi-square ``y`` of ``df`` degrees of freedom."""
    no_sharding("t", out_sharding)
    dtype = floating("random.t", dtype)
    shape, (df,) = parameters("random.t", shape, dtype, df)
    first, second = pair(single("random.t", key))
    half = df * 0.5
    return normal(first, shape, dtype) * sqrt(half / gamma(second, half, shape, dtype))


def f(
    key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Fisher's F: the ratio of two chi-square numbers, each divided by its degrees of freedom."""
    no_sharding("f", out_sharding)
    dtype = floating("random.f", dtype)
    shape, (dfnum, dfden) = parameters("random.f", shape, dtype, dfnum, dfden)
    second, first = pair(single("random.f", key))
    return chisquare(first, dfnum, shape, dtype) / dfnum / (chisquare(second, dfden, shape, dtype) / dfden)


_LARGE = 10.0  # from here on candidates are worth their price
_CANCELLING = 65536.0  # from here on float32 loses k log(rate) - log(k!)


def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Numbers of density proportional to ``exp(-abs(x)**p)``: powers of gamma distributed ones, with a random sign.

    ``p=2`` gives normal numbers of variance 1/2, ``p=1`` those of ``laplace``.

    Shapes: ``p`` broadcasts to ``shape``.

    >>> from handlax import random
    >>> random.generalized_normal(random.key(0), 2.0, (3,)).dtype
    dtype('float32')
    """
    no_sharding("generalized_normal", out_sharding)
    dtype = floating("random.generalized_normal", dtype)
    size_key, sign_key = pair(single("random.generalized_normal", key))
    shape, (p,) = parameters("random.generalized_normal", shape, dtype, p)
    sizes = pow(gamma(size_key, 1.0 / p, shape, dtype), spread(1.0 / p, shape))
    return rademacher(sign_key, shape, dtype) * sizes


def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Points that are uniform in the ball of ``d`` dimensions, where ``sum(abs(x)**p) <= 1``.

    Shapes: ``a[*shape, d]``; ``p`` is one number.
    Source: Barthe, Guedon, Mendelson & Naor, A probabilistic approach to the geometry of the l_p^n-ball (2005).

    >>> from handlax import random
    >>> points = random.ball(random.key(0), 3, shape=(100,))
    >>> points.shape, bool((points**2).sum(1).max() <= 1.0)
    ((100, 3), True)
    """
    no_sharding("ball", out_sharding)
    dtype = floating("random.ball", dtype)
    first, second = pair(single("random.ball", key))
    shape = canonical_shape(shape, "random.ball")
    (p,) = parameters("random.ball", (), dtype, p)[1]
    x = generalized_normal(first, p, (*shape, whole_number("random.ball: d", d)), dtype)
    power = reductions.sum(pow(abs(x), spread(p, x.type.shape)), -1) + exponential(second, shape, dtype)
    return x / reshape(pow(power, spread(1.0 / p, shape)), (*shape, 1))


def _few(key: Any, rate: Any) -> Any:
    """Poisson draws for small rates: the number of factors after which a product of uniform numbers is below e^-rate.

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


def _log_probability(k: Any, rate: Any) -> Any:
    """``k log(rate) - rate - log(k!)``; of large rates by Stirling's series, whose terms do not cancel."""
    plain = neg(rate) + k * log(rate) - lgamma(k + 1.0)
    safe = max(k, full(k.type, 1.0))
    off = (safe - rate) / safe
    tail = (1.0 - 1.0 / (safe * safe * 30.0)) / (safe * 12.0)
    series = safe * (log1p(neg(off)) + off) - log(safe * (2 * math.pi)) * 0.5 - tail
    return select(lt(rate, _CANCELLING), plain, series)


def transformed_rejection(
    key: Any, mean: Any, offset: float, hat: tuple[Any, Any, Any], squeeze: Any, outside: Any, log_ratio: Any
) -> Any:
    """Draws of counts by transformed rejection with a squeeze.

    ``hat``: the parameters a, b, alpha of the distribution whose draws, moved to ``mean + offset``, are the candidates.
    ``outside(k, near, v)``: those that are certainly refused; ``log_ratio(k)``: what decides about the others.
    Source: Hörmann, The transformed rejection method for generating Poisson random variables (1993).
    """
    a, b, alpha = hat
    shape, dtype = mean.type.shape, mean.type.dtype

    def once(s: Any) -> Any:
        key, waiting, found = s
        keys = split_keys(key, (3,))
        key, first, second = [index_in_dim(keys, i, keepdims=False) for i in range(3)]
        u = unit(first, shape, dtype) - 0.5
        v = unit(second, shape, dtype)
        near = 0.5 - abs(u)
        k = floor((a * 2.0 / near + b) * u + mean + offset)
        good = bitwise_and(ge(near, 0.07), le(v, squeeze))
        exact = le(log(v * alpha / (a / (near * near) + b)), log_ratio(k))
        accepted = bitwise_or(good, bitwise_and(bitwise_not(outside(k, near, v)), exact))
        return key, bitwise_and(waiting, bitwise_not(accepted)), select(accepted, k, found)

    start = key, full(array_type(shape, bool_), True), full(mean.type, -1.0)
    return while_loop(lambda s: any_true(s[1]), once, start)[2]


def any_true(x: Any) -> Any:
    return reduce_or(x, tuple(range(len(x.type.shape))))


def _many(key: Any, rate: Any) -> Any:
    """Poisson draws for large rates: algorithm PTRS of the source of ``transformed_rejection``."""
    b = sqrt(rate) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    outside = lambda k, near, v: bitwise_or(lt(k, 0.0), bitwise_and(lt(near, 0.013), gt(v, near)))
    log_ratio = lambda k: _log_probability(k, rate)
    return transformed_rejection(key, rate, 0.43, (a, b, inverse_alpha), squeeze, outside, log_ratio)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Poisson distributed numbers of mean ``lam``; of an integer dtype. -1 where ``lam`` is negative or NaN.

    Shapes: ``lam`` broadcasts to ``shape``, by default its own; it is rounded to float32. It has no derivative.
    A key gives JAX's numbers for ``lam`` below 65536; from there on other ones, of the same law.
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
    shape, (rate,) = parameters("random.poisson", shape, float32, rate)
    rate = broadcast(rate, shape)
    key = single("random.poisson", key)
    valid, large = ge(rate, 0.0), ge(rate, _LARGE)
    bounded = min(rate, full(rate.type, float(iinfo(found).max)))
    few = _few(key, select(bitwise_and(valid, bitwise_not(large)), rate, full(rate.type, 0.0)))
    many = _many(key, select(large, bounded, full(rate.type, 1e5)))
    drawn = select(bitwise_or(eq(rate, 0.0), eq(rate, math.inf)), rate, select(large, many, few))
    return convert(select(valid, drawn, full(rate.type, -1.0)), found)


programs(globals())
