"""Integer operations at the ends of their ranges, beside arithmetic with Python's integers, eagerly and compiled."""

import itertools
import math
import operator
from functools import reduce

import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OFTEN = ("int8", "int64", "uint8", "uint16")


def edges(dtype):
    """The least and largest numbers, 0, small ones, and the shifts around the width."""
    low, high, width = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max), 8 * np.dtype(dtype).itemsize
    found = {low, low + 1, low // 2, high // 2, high // 2 + 1, high - 1, high, width - 1, width, width + 1}
    return sorted(n for n in found | set(range(-1, 8)) if low <= n <= high)


def signed(a, w):
    return a - 2**w if a >= 2 ** (w - 1) else a


def wrapped(n, dtype):
    """The low bits of an integer, as ``dtype``."""
    width = 8 * np.dtype(dtype).itemsize
    return signed(n % 2**width, width) if np.dtype(dtype).kind == "i" else n % 2**width


def quotient(a, b):
    """Towards zero; -1 for a division by 0, as in StableHLO."""
    return -1 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted_right(a, b, w):
    return a >> (b if 0 <= b < w else w)


# name -> the result for (a, b, width); None: not defined
BINARY = {
    lax.add: lambda a, b, w: a + b, lax.sub: lambda a, b, w: a - b, lax.mul: lambda a, b, w: a * b,
    lax.div: lambda a, b, w: quotient(a, b), lax.rem: lambda a, b, w: a - b * quotient(a, b) if b else a,
    lax.max: lambda a, b, w: max(a, b), lax.min: lambda a, b, w: min(a, b), lax.mulhi: lambda a, b, w: (a * b) >> w,
    lax.bitwise_and: lambda a, b, w: a & b, lax.bitwise_or: lambda a, b, w: a | b,
    lax.bitwise_xor: lambda a, b, w: a ^ b, lax.shift_left: lambda a, b, w: a << b if 0 <= b < w else 0,
    lax.shift_right_logical: lambda a, b, w: (a % 2**w) >> b if 0 <= b < w else 0,
    lax.shift_right_arithmetic: lambda a, b, w: shifted_right(signed(a % 2**w, w), b, w),
    lax.eq: lambda a, b, w: a == b, lax.lt: lambda a, b, w: a < b, lax.ge: lambda a, b, w: a >= b,
    hnp.floor_divide: lambda a, b, w: a // b if b else None, hnp.remainder: lambda a, b, w: a % b if b else 0,
    hnp.fmod: lambda a, b, w: a - b * quotient(a, b) if b else None,
    hnp.power: lambda a, b, w: pow(a, b, 2**w) if b >= 0 else None,
    hnp.right_shift: shifted_right, hnp.gcd: lambda a, b, w: math.gcd(a, b), hnp.lcm: lambda a, b, w: math.lcm(a, b),
}
UNARY = {
    lax.neg: lambda a, w: -a, lax.sign: lambda a, w: (a > 0) - (a < 0), lax.bitwise_not: lambda a, w: ~a,
    lax.population_count: lambda a, w: (a % 2**w).bit_count(), lax.clz: lambda a, w: w - (a % 2**w).bit_length(),
    lax.square: lambda a, w: a * a, hnp.abs: lambda a, w: abs(a), hnp.invert: lambda a, w: ~a,
}
REDUCTIONS = {
    lax.reduce_sum: operator.add, lax.reduce_prod: operator.mul, lax.reduce_max: max, lax.reduce_min: min,
    lax.reduce_and: operator.and_, lax.reduce_or: operator.or_, lax.reduce_xor: operator.xor,
}
CUMULATIVE = {lax.cumsum: operator.add, lax.cumprod: operator.mul, lax.cummax: max, lax.cummin: min}


def check(meanings, right, *xs):
    """Each function gives what is right, as Python's integers; where that is None it is not defined."""
    every = lambda *xs: [f(*xs) for f in meanings]
    for results in (every(*xs), hx.jit(every)(*xs)):
        for f, found in zip(meanings, results):
            wanted = right(meanings[f])
            given = np.asarray(found).astype(object).tolist()
            assert [None if r is None else x for x, r in zip(given, wanted)] == wanted, f.__name__


def kept(n, dtype):
    return n if n is None or isinstance(n, bool) else wrapped(n, dtype)


@pytest.mark.parametrize("dtype", rest_in_sweep(DTYPES, OFTEN))
def test_two_integers(dtype):
    pairs = list(itertools.product(edges(dtype), repeat=2))
    a, b = (np.array(column, dtype) for column in zip(*pairs))
    check(BINARY, lambda meaning: [kept(meaning(x, y, 8 * a.itemsize), dtype) for x, y in pairs], a, b)


@pytest.mark.parametrize("dtype", rest_in_sweep(DTYPES, OFTEN))
def test_one_integer(dtype):
    x = np.array(edges(dtype), dtype)
    check(UNARY, lambda meaning: [wrapped(meaning(n, 8 * x.itemsize), dtype) for n in edges(dtype)], x)


@pytest.mark.parametrize("dtype", rest_in_sweep(DTYPES, OFTEN))
def test_constant_powers(dtype):
    x = np.array(edges(dtype), dtype)
    powers = {lambda x, n=n: lax.integer_pow(x, n): n for n in (0, 1, 2, 7)}
    check(powers, lambda n: [wrapped(a**n, dtype) for a in edges(dtype)], x)


@pytest.mark.parametrize("dtype", rest_in_sweep(DTYPES, OFTEN))
def test_reductions(dtype):
    x = np.array(edges(dtype), dtype)
    rows = {lambda x, f=f: f(x, (0,))[None]: op for f, op in REDUCTIONS.items()}
    check(rows, lambda op: [wrapped(reduce(op, edges(dtype)), dtype)], x)
    check(CUMULATIVE, lambda op: [wrapped(n, dtype) for n in itertools.accumulate(edges(dtype), op)], x)
