"""``debug_nans`` and ``debug_infs`` in eager operations: the first one with a bad result is named with its line."""

import inspect

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.errors import FoundNaN

X = hnp.array([-1.0, 1.0])


def line():
    return inspect.currentframe().f_back.f_lineno


CASES = {
    "function": (lambda: hnp.log(X), "log"),
    "operator": (lambda: 0.0 / (X - X), "div"),
    "three operands": (lambda: hnp.where(X > 0, X, hnp.nan), "select_n"),
    "reduction": (lambda: hnp.max(hnp.array([1.0, hnp.nan])), "reduce_max"),
    "value": (lambda: hx.value_and_grad(lambda x: hnp.log(x).sum())(X), "log"),
    "gradient": (lambda: hx.grad(lambda x: (hnp.sqrt(x) * 0.0).sum())(X - X), "mul"),
    "lanes": (lambda: hx.vmap(hnp.log)(X), "log"),
    "tangent": (lambda: hx.jvp(hnp.sqrt, (0.0,), (0.0,)), "mul"),
    "loop": (lambda: lax.fori_loop(0, 3, lambda i, c: hnp.log(c - 1), X), "log"),
    "scan": (lambda: lax.scan(lambda c, y: (hnp.sin(y), hnp.log(y)), 0.0, X), "log"),
    "while": (lambda: lax.while_loop(lambda c: c[0] < 0, hnp.log, X), "log"),
    "branch": (lambda: lax.cond(True, hnp.log, hnp.sin, X), "log"),
    "jit": (lambda: hx.jit(hnp.log)(X), "log"),
    "loop in jit": (lambda: hx.jit(lambda x: lax.map(lambda y: hnp.sin(hnp.log(y)), x))(X), "log"),
    "checkpoint": (lambda: hx.grad(hx.checkpoint(lambda x: hnp.log(x).sum()))(X), "log"),
    "complex": (lambda: X * complex(hnp.nan, 0), "mul"),
    "16 bits": (lambda: hnp.log(X.astype("bfloat16")), "log"),
    "compiled for its size": (lambda: hnp.log(-hnp.ones(10**6)), "log"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_nan_is_named(case):
    call, operation = CASES[case]
    for _ in range(2):
        with hx.debug_nans(), pytest.raises(FoundNaN, match=f"^{operation}: results must be") as caught:
            call()
        assert "got NaN" in caught.value.what and isinstance(caught.value, FloatingPointError)
        assert "at test_bad_values.py:" in caught.value.where
    call()  # outside, it is a value
    with hx.debug_nans(False):
        call()


def root(x):
    return hnp.sqrt(x)


def test_the_line_is_that_of_the_operation():
    place = f"test_bad_values.py:{root.__code__.co_firstlineno + 1}"
    for f, under in ((root, ""), (hx.vmap(root), ", under vmap"), (hx.vmap(hx.grad(root)), ", under vmap")):
        for scale in (-1.0, -2.0):
            with hx.debug_nans(), pytest.raises(FoundNaN) as caught:
                f(scale * hnp.ones(2))
            assert caught.value.where == f"at {place}{under}"

    def body(c, _):
        here.append(line())
        return hnp.sqrt(c), None

    here = []
    with hx.debug_nans(), pytest.raises(FoundNaN, match=r"got NaN in f32\[\]~ at") as caught:
        lax.scan(body, -1.0, None, length=2)
    assert f"test_bad_values.py:{here[0] + 1}." in caught.value.what


def test_infinities_and_the_setting_of_the_process():
    with hx.debug_infs(), pytest.raises(FoundNaN, match=r"^div: .* got infinity"):
        hnp.ones(2) / 0.0
    with hx.debug_nans():
        assert np.isinf(np.asarray(hnp.ones(2) / 0.0)).all()
    try:
        hx.config.update("jax_debug_nans", True)
        for _ in range(2):
            with pytest.raises(FoundNaN):
                hnp.log(X)
    finally:
        hx.config.update("jax_debug_nans", False)
    assert np.isnan(np.asarray(hnp.log(X))[0])


def test_good_values_are_what_they_are_without_the_search():
    def f(x):
        y = lax.scan(lambda c, y: (c + hnp.sin(y), c), 0.0, x)[1]
        return {"a": hx.vmap(hx.grad(lambda z: z * hnp.exp(z)))(y), "n": hnp.argmax(y), "k": hx.random.key(0)}

    for g in (f, hx.jit(f)):
        with hx.debug_nans(), hx.debug_infs():
            searched = g(X)
        for x, y in zip(hx.tree.leaves(searched), hx.tree.leaves(g(X)), strict=True):
            assert x.aval == y.aval and x.tolist() == y.tolist()
