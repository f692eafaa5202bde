"""Many threads, one function."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax.lowering.clients import platforms


def test_eight_threads_compile_once_and_agree():
    hx.clear_caches()
    f = hx.jit(lambda x: x * 13 + 1)
    before = platforms.COUNTS["compile"]
    results = together(8, lambda i: [float(np.asarray(f(np.float32(i + k)))) for k in range(50)])
    assert results == [[(i + k) * 13 + 1.0 for k in range(50)] for i in range(8)]
    assert platforms.COUNTS["compile"] - before == 1


def test_threads_with_trees_and_shapes_of_their_own():
    f = hx.jit(lambda t, n: {"y": t["x"] * n}, static_argnums=1)

    def work(i):
        x = np.arange(i % 3 + 1, dtype=np.float32)
        return [np.asarray(f({"x": x}, i)["y"]) for _ in range(20)]

    for i, found in enumerate(together(8, work)):
        for y in found:
            np.testing.assert_array_equal(y, np.arange(i % 3 + 1) * i)


def test_settings_of_one_thread_are_not_those_of_another():
    f = hx.jit(lambda x: x + 1.0)

    def work(i):
        if i % 2:
            with hx.configure(default_float="float64"):
                return {f(1).dtype.name for _ in range(50)}
        return {f(1).dtype.name for _ in range(50)}

    assert together(8, work) == [{"float64"} if i % 2 else {"float32"} for i in range(8)]


def test_transformations_in_threads_do_not_meet():
    f = hx.jit(lambda x: hx.lax.sin(x) * x)
    found = together(8, lambda i: [float(hx.grad(f)(float(i))) for _ in range(20)])
    for i, values in enumerate(found):
        np.testing.assert_allclose(values, [np.cos(i) * i + np.sin(i)] * 20, rtol=1e-5, atol=1e-6)


def test_one_thread_that_fails_harms_no_other():
    @hx.jit
    def f(x):
        if x.type.shape == (2,):
            raise ValueError("two")
        return x + 1

    def work(i):
        if i % 2:
            with pytest.raises(ValueError, match="two"):
                f(np.zeros(2, np.float32))
            return 1.0
        return float(np.asarray(f(np.zeros((), np.float32))))

    assert together(8, work) == [1.0] * 8
