"""Traces: one for equal functions and types, freed with the function, and none that leaks."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from helpers.count_traces import traced

import handlax as hx
from handlax.errors import Leak


def array(*items, dtype="float32"):
    return hx.device_put(np.array(items, dtype))


def test_a_body_is_traced_once_however_it_is_nested():
    inner = hx.jit(lambda x: hx.lax.sin(x) * x)
    assert traced(lambda: inner(1.0)) == 1
    assert traced(lambda: (inner(2.0), hx.grad(inner)(1.0), hx.vmap(inner)(array(1, 2)))) <= 2
    outer = hx.jit(lambda x: inner(x) + inner(x + 1) + hx.grad(inner)(x))
    assert traced(lambda: outer(1.0)) == 1
    assert traced(lambda: (outer(2.0), hx.grad(outer)(1.0))) == 0


def test_depth_costs_one_trace_per_level():
    f = hx.lax.sin
    for _ in range(5):
        f = hx.jit(hx.grad(f))
    assert traced(lambda: f(1.0)) <= 10


def test_functions_and_their_traces_are_freed():
    state = []

    def make():
        def f(x):
            return x + len(state)

        return f

    f = make()
    dead = weakref.ref(f)
    hx.jit(f)(1.0)
    own = "traces of functions that equal themselves alone"
    count = hx.cache_info()[own].size
    del f
    gc.collect()
    assert dead() is None and hx.cache_info()[own].size < count


def test_a_trace_that_captured_a_box_is_not_kept():
    def outer(y):
        inner = hx.jit(lambda x: x * y)
        return inner(y) + inner(2.0)

    assert float(hx.grad(outer)(3.0)) == 8.0
    assert float(hx.grad(outer)(4.0)) == 10.0
    assert float(hx.jit(hx.grad(outer))(3.0)) == 8.0


def test_settings_are_part_of_the_key():
    f = hx.jit(lambda x: x + 1.0)
    types = [f(1).dtype]
    with hx.configure(default_float="float64"):
        types.append(f(1).dtype)
    types.append(f(1).dtype)
    assert types == [np.float32, np.float64, np.float32] and f._cache_size() == 2


def test_caches_are_cleared():
    f = hx.jit(lambda x: x * 11)
    f(1.0)
    assert f._cache_size() == 1
    f.clear_cache()
    assert f._cache_size() == 0 and traced(lambda: f(1.0)) == 1
    hx.clear_caches()
    assert f._cache_size() == 0 and traced(lambda: f(1.0)) == 1


def test_a_failed_trace_leaves_nothing_behind():
    broken = [True]

    @hx.jit
    def f(x):
        if broken[0]:
            raise KeyError("no")
        return x + 1

    for _ in range(2):
        with pytest.raises(KeyError):
            f(1.0)
    broken[0] = False
    assert float(f(1.0)) == 2.0 and f._cache_size() == 1


def test_a_leak_is_found_when_the_trace_ends():
    kept = []
    with hx.checking_leaks():
        hx.jit(lambda x: x * 5)(1.0)
        with pytest.raises(Leak, match=r"made at test_trace_cache\.py"):
            hx.jit(lambda x: kept.append(x * 2) or x)(1.0)


WHERE = {
    "jit": lambda f: hx.jit(f)(1.0),
    "scan": lambda f: hx.lax.scan(lambda c, x: (f(c), None), 1.0, np.ones(3, np.float32)),
    "fori_loop": lambda f: hx.lax.fori_loop(0, 3, lambda i, c: f(c), 1.0),
    "cond": lambda f: hx.lax.cond(hx.numpy.array(True), f, lambda x: x, 1.0),
    "grad": lambda f: hx.grad(f)(1.0),
    "linearize": lambda f: hx.linearize(f, 1.0)[1],
    "jvp": lambda f: hx.jvp(f, (1.0,), (1.0,)),
    "vmap": lambda f: hx.vmap(f)(np.ones(3, np.float32)),
    "nested": lambda f: hx.jit(hx.vmap(hx.grad(hx.checkpoint(f))))(np.ones(3, np.float32)),
}


@pytest.mark.parametrize("where", WHERE)
def test_a_leak_is_found_when_its_transformation_ends(where):
    kept = []
    with hx.check_tracer_leaks():
        WHERE[where](lambda x: hx.numpy.sin(x) * 5)
        with pytest.raises(Leak, match=r"made at test_trace_cache\.py"):
            WHERE[where](lambda x: kept.append(x * 2) or hx.numpy.sin(x))
