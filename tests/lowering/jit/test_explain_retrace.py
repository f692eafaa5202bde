"""Explanations of retraces."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import BadArgument
from handlax.lowering.jit.explain_retrace import explain


def test_what_made_another_trace_is_explained():
    f = hx.jit(lambda x, d, n=1: x * d["a"] * n, static_argnames="n")
    f(1.0, {"a": 2})
    f(np.ones(3), {"a": 2})
    f(np.ones(3), {"a": 2}, n=3)
    with hx.configure(default_int="int64"):
        f(np.ones(3), {"a": 2}, n=3)
    lines = explain(f).splitlines()[1:]
    assert "x: f32[]~, d['a']: i32[]~" in lines[0] and "x: shape from () to (3,)" in lines[1]
    assert "static arguments from the defaults to n=3" in lines[2]
    assert "setting default_int" in lines[3] and "d['a']: dtype from int32 to int64" in lines[3]


def test_a_change_of_devices_or_of_donation_is_explained():
    f = hx.jit(lambda x, n, y=None: x * n, static_argnums=1, donate_argnums=2)
    x = np.ones(3, "float32")
    f(x, 2)
    f(hx.device_put(x, hx.devices()[1]), 2)
    assert "1: x: f32[3]; static 1=2" in explain(f) and "(devices from " in explain(f)
    f(hx.device_put(x, hx.devices()[1]), 2, x)
    assert "x: f32[3], y: f32[3]; static 1=2 (" in explain(f) and "; donated arguments)" in explain(f)


def test_a_function_without_arrays_and_one_that_is_not_jitted():
    f = hx.jit(lambda: 1.0)
    f()
    assert explain(f) == "<lambda>: compiled for 1 kind of calls\n  1: no arrays"
    with pytest.raises(BadArgument, match="must be a jitted function, got <lambda>"):
        explain(lambda: 1.0)


def test_a_change_of_the_shape_is_one_of_the_shape_alone():
    f = hx.jit(lambda x: x)
    for x in (np.ones(3, "float32"), np.ones(4, "float32"), 1.0, np.ones((), "float32")):
        with hx.configure(traceback_filtering="off" if np.ndim(x) else "auto"):  # which changes no program
            f(x)
    assert [line.partition("(")[2] for line in explain(f).splitlines()[2:]] == [
        "x: shape from (3,) to (4,))", "x: shape from (4,) to (); x: from strong to weak)", "x: from weak to strong)"]


def test_repeats_are_counted_in_the_equations_that_are_compiled():
    def described(block):
        def loss(x, w):
            for _ in range(12):
                x = block(x, w)
            return x.sum()

        f = hx.jit(hx.grad(loss))
        f(hnp.ones((4, 8)), hnp.eye(8))
        return explain(f)

    def block(x, w):
        return x + hnp.tanh(x @ w - hnp.mean(x)) * hnp.exp(-x)

    def wasteful(x, w):
        _ = hnp.cos(x) * 3.0 - x
        return block(x, w)

    assert "; repeats 11 x " in described(block) and described(wasteful) == described(block)
