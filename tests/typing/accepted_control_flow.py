"""Loops and branches: carries keep their type, numbers become arrays."""

from typing import assert_type

import handlax as hx
from handlax import Array, lax
from handlax import numpy as hnp

State = tuple[Array, Array]


def step(carry: State, x: Array) -> tuple[State, Array]:
    total, count = carry
    return (total + x, count + 1), total


def double(x: Array) -> Array:
    return 2 * x


def negate(x: Array) -> Array:
    return -x


def bisect(lane: State) -> State:
    low, high = lane
    return low, (low + high) / 2


x = hnp.arange(3.0)
zero = hnp.zeros(())

assert_type(lax.scan(step, (zero, hnp.array(0)), x), tuple[State, Array])
assert_type(lax.scan(lambda c, x: (c + x, c), 0.0, x), tuple[Array, Array])
assert_type(lax.scan(lambda c, _: (c + 1, None), zero, length=3), tuple[Array, None])
assert_type(lax.fori_loop(0, 3, lambda i, x: x + i, 10), Array)
assert_type(lax.fori_loop(0, x.sum().astype(int), lambda i, c: (c[0] + i, c[1]), (hnp.array(0), zero)), State)
assert_type(lax.while_loop(lambda c: c[1] > 1.0, bisect, (zero, zero + 8.0)), State)
assert_type(lax.cond(zero > 0, double, negate, x), Array)
assert_type(lax.cond(True, lambda: zero, lambda: 1.0), Array)
assert_type(lax.switch(1, [double, negate], x), Array)
assert_type(lax.map(double, x), Array)
assert_type(lax.associative_scan(hnp.maximum, x), Array)
assert_type(hx.jit(lambda x: lax.cond(x > 0, double, negate, x))(zero), Array)
