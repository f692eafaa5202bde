"""Explanations of retraces."""

from __future__ import annotations

import numpy as np

import handlax as hx
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
