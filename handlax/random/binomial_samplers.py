"""Samplers of numbers of successes: binomial, multinomial.

A key gives the same numbers as in JAX, up to rounding, but for 16-bit probabilities, which are converted to 32 bits.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from ..effects.control.loops import scan, while_loop
from ..effects.core.arrays import Array, as_array
from ..effects.operations.elementwise.arithmetic import ceil, floor, neg, sqrt, stop_gradient
from ..effects.operations.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from ..effects.operations.elementwise.comparison import clamp, eq, ge, gt, le, lt, select
from ..effects.operations.elementwise.conversion import convert
from ..effects.operations.elementwise.transcendental import log, log1p
from ..effects.operations.foundations.shapes import broadcast, canonical_shape, full, move_axis
from ..effects.operations.reductions.cumulative import cumsum
from ..effects.types.array_type import array_type
from ..effects.types.dtypes import canonical, int32, promote_types, to_inexact
from ..interpreters.core.eager_programs import programs
from ..numpy.arrays.indexing_operations import take
from .basic_samplers import checked, fitted, floating, unit
from .keys import pair, single, split
from .rejection_samplers import any_true, at_least_32_bits, transformed_rejection

__all__ = ["binomial", "multinomial"]

_FEW = 10.0  # with at most so many expected successes ``_few`` draws the number, beyond ``_many``

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


def _few(key: Any, count: Any, p: Any) -> Any:
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


def _many(key: Any, count: Any, p: Any) -> Any:
    """Binomial numbers, for many expected successes: transformed rejection with a squeeze.

    Source: Hörmann, The generation of binomial random variates (1993), algorithm BTRS.
    """
    deviation = sqrt(count * p * (1.0 - p))
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + p * 0.01
    squeeze = 0.92 - 4.2 / b
    odds = p / (1.0 - p)
    alpha = (5.1 / b + 2.83) * deviation
    mode = floor((count + 1.0) * p)

    def log_ratio(k: Any) -> Any:
        """The logarithm of the probability of ``k`` divided by that of the mode."""
        return (
            (mode + 0.5) * log((mode + 1.0) / (odds * (count - mode + 1.0)))
            + (count + 1.0) * log((count - mode + 1.0) / (count - k + 1.0))
            + (k + 0.5) * log(odds * (count - k + 1.0) / (k + 1.0))
            + _tail(mode) + _tail(count - mode) - _tail(k) - _tail(count - k)
        )  # fmt: skip

    outside = lambda k, near, v: bitwise_or(lt(k, 0.0), gt(k, count))
    return transformed_rejection(key, count * p, 0.5, (a, b, alpha), squeeze, outside, log_ratio)


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
    counted = _few(key, select(few, whole, number(0.0)), q)
    drawn = select(few, counted, _many(key, select(few, number(1e4), whole), select(few, number(0.5), q)))
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
    one, shape, _, n, p = checked("binomial", key, shape, _working(p), None, n, p)
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
