"""Integers of four bits: every pair of them, eager and compiled, against Python's integers that wrap around."""

import functools
import itertools
import math
import operator

import ml_dtypes
import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

WAYS = {"eager": lambda f: f, "compiled": hx.jit}
BOUNDS = {"int4": (-8, 8), "uint4": (0, 16)}


def quotient(x, y):
    return -1 if y == 0 else math.trunc(x / y)


def remainder(x, y):
    return x if y == 0 else x - y * quotient(x, y)


BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": quotient, "rem": remainder,
    "max": max, "min": min, "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "shift_left": lambda x, y: x << y % 16 if y % 16 < 4 else 0,
    "shift_right_logical": lambda x, y: x % 16 >> y % 16,
    "shift_right_arithmetic": lambda x, y: ((x % 16 + 8) % 16 - 8) >> y % 16,
}
UNARY = {
    "neg": operator.neg, "bitwise_not": operator.invert, "square": lambda x: x * x,
    "sign": lambda x: (x > 0) - (x < 0), "population_count": lambda x: (x % 16).bit_count(),
    "clz": lambda x: 4 - (x % 16).bit_length(),
}


def wrapped(values, dtype):
    low, _ = BOUNDS[dtype]
    return [(int(v) - low) % 16 + low for v in values]


def arrays(dtype):
    low, high = BOUNDS[dtype]
    x, y = (v.ravel() for v in np.meshgrid(np.arange(low, high), np.arange(low, high)))
    return x, y, x.astype(getattr(ml_dtypes, dtype)), y.astype(getattr(ml_dtypes, dtype))


def assert_is(got, wanted, dtype):
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got).astype(int), wrapped(wanted, dtype))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_elementwise_functions_wrap_around(dtype, way):
    xs, ys, x, y = arrays(dtype)
    for got, f in zip(WAYS[way](lambda x, y: [getattr(lax, n)(x, y) for n in BINARY])(x, y), BINARY.values()):
        assert_is(got, [f(a, b) for a, b in zip(xs.tolist(), ys.tolist())], dtype)
    for got, f in zip(WAYS[way](lambda x: [getattr(lax, n)(x) for n in UNARY])(x), UNARY.values()):
        assert_is(got, [f(a) for a in xs.tolist()], dtype)
    assert_is(WAYS[way](lambda x: lax.integer_pow(x, 3))(x), xs**3, dtype)
    assert_is(WAYS[way](hnp.gcd)(x, y), np.gcd(xs, ys), dtype)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_infix_operators_take_numbers(dtype, way):
    xs, _, x, _ = arrays(dtype)
    for f in (lambda x: x + 3, lambda x: 2 * x, lambda x: x - 7, lambda x: x // 2, lambda x: x % 3, lambda x: x**2):
        assert_is(WAYS[way](f)(hnp.asarray(x)), f(xs), dtype)


SCANS = {"cumsum": operator.add, "cumprod": operator.mul, "cummax": max, "cummin": min}
REDUCTIONS = {
    "reduce_sum": (operator.add, lambda low: 0), "reduce_prod": (operator.mul, lambda low: 1),
    "reduce_max": (max, lambda low: low), "reduce_min": (min, lambda low: low + 15),
    "reduce_and": (operator.and_, lambda low: -1), "reduce_or": (operator.or_, lambda low: 0),
    "reduce_xor": (operator.xor, lambda low: 0),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_reductions_scans_and_orders(dtype, way):
    xs, _, x, _ = arrays(dtype)
    xs, x = np.roll(xs, 5)[:40], np.roll(x, 5)[:40]
    for name, f in SCANS.items():
        assert_is(WAYS[way](getattr(lax, name))(x), list(itertools.accumulate(xs.tolist(), f)), dtype)
    for name, (f, unit) in REDUCTIONS.items():
        for part in (slice(0, 6), slice(3, 7), slice(0)):
            got = WAYS[way](lambda x, name=name: getattr(lax, name)(x, (0,)))(x[part])
            values = xs[part].tolist()
            assert_is(got, [functools.reduce(f, values) if values else unit(BOUNDS[dtype][0])], dtype)
    assert_is(WAYS[way](lax.sort)(x), np.sort(xs), dtype)
    assert int(WAYS[way](lambda x: lax.argmax(x, 0, "int32"))(x)) == xs.argmax()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_updates_accumulate(dtype, way):
    x, index = hnp.zeros(3, dtype), np.array([0, 0, 2, 0])
    assert_is(WAYS[way](lambda x: x.at[index].add(7))(x), [21, 0, 7], dtype)
    assert_is(WAYS[way](lambda x: (x + 1).at[index].multiply(3))(x), [27, 1, 3], dtype)
    assert_is(WAYS[way](lambda x: x.at[index].max(5))(x), [5, 0, 5], dtype)
