"""Explanations of retraces."""

from __future__ import annotations

import numpy as np

import handlax as hx
from handlax import numpy as hnp
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
