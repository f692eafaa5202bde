"""Mixed precision as a handler."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.operations.dot_general import DotGeneral
from handlax.library import autocast

RANDOM = np.random.default_rng(0)
W, X = (hnp.asarray(RANDOM.normal(size=(4, 4)).astype("float32")) for _ in range(2))


def narrowed(x, dtype=ml_dtypes.bfloat16):
    return np.asarray(x).astype(dtype).astype("float32")


def products(program):
    """The operand and result types of every product, also inside loops and branches."""
    found = []
    for op, args, made in zip(program.ops, program.args, program.types):
        if isinstance(op, DotGeneral):
            found.append(([str(program.type_of(n).dtype) for n in args], str(made.dtype)))
        for body in getattr(op, "bodies", ()):
            found += products(body)
    return found


NARROW = (["bfloat16", "bfloat16"], "float32")


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.checkpoint])
def test_products_take_narrow_operands_and_sum_wide(wrap):
    f = wrap(lambda w, x: w @ x)
    for g in (hx.handle(autocast())(f), hx.jit(hx.handle(autocast())(f))):
        y = g(W, X)
        assert y.dtype == np.float32
        np.testing.assert_allclose(y, narrowed(W) @ narrowed(X), rtol=1e-6)
        assert np.abs(y - W @ X).max() > 1e-4


def test_loops_branches_lanes_and_gradients_are_narrow():
    def scan(w, x):
        return lax.scan(lambda c, _: (hnp.tanh(c @ w), None), x, None, 3)[0].sum()

    def branch(w, x):
        return lax.cond(x[0, 0] > 0, lambda: (w @ x).sum(), lambda: (x @ w).sum())

    def loop(w, x):
        return lax.while_loop(lambda c: c.sum() < 3.0, lambda c: c @ w + 1, x).sum()

    h = autocast()
    for f in (scan, branch, loop, hx.vmap(lambda w, x: w @ x, in_axes=(None, 0)), hx.grad(scan)):
        found = products(hx.make_program(hx.handle(h)(f))(W, X))
        assert found and all(product == NARROW for product in found)
    inner = products(hx.make_program(hx.grad(hx.handle(h)(scan)))(W, X))
    assert inner.count(NARROW) >= 1
    g, exact = hx.grad(hx.handle(h)(scan))(W, X), hx.grad(scan)(W, X)
    assert g.dtype == np.float32 and np.abs(g - exact).max() < 0.1


def test_other_operations_are_chosen_by_name():
    h = autocast("float16", over=lambda op: op.name == "tanh")
    y = hx.handle(h)(lambda x: hnp.tanh(x) + x)(X)
    expected = narrowed(np.tanh(narrowed(X, np.float16)), np.float16) + X
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected, atol=1e-3)


def test_what_is_narrow_or_no_float_stays_as_it_is():
    h = autocast("float16")
    for x in (X.astype("float16"), X.astype(ml_dtypes.bfloat16), X.astype("int32"), X.astype("complex64")):
        f = lambda x: x @ x
        assert hx.make_program(hx.handle(h)(f))(x) == hx.make_program(f)(x)
    assert hx.handle(h)(lambda x: x @ x)(X.astype("float64")).dtype == np.float64


def test_a_dtype_that_is_no_float_is_refused():
    with pytest.raises(errors.BadArgument, match="int32"):
        autocast("int32")


def test_other_operations_are_narrow_where_they_are_asked_for():
    x, at = hnp.asarray([1.001, 3.0, 2.0]), hnp.asarray([2, 0, 1])
    everything = autocast(over=lambda op: True)
    assert hx.handle(everything)(lambda x: x + 0.0)(x).tolist() == narrowed(x).tolist()
    values, places = hx.handle(everything)(lambda x, at: lax.sort((x, at), num_keys=1))(x, at)
    assert (values.dtype, places.dtype) == (x.dtype, at.dtype) and places.tolist() == [2, 1, 0]
    assert values.tolist() == narrowed(hnp.sort(x)).tolist()


def test_operands_that_would_differ_stay_as_they_are():
    x, y = hnp.ones((2, 2)), hnp.ones((2, 2), "float8_e5m2")
    product = lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type="float32")
    assert str(hx.make_program(hx.handle(autocast())(product))(x, y)) == str(hx.make_program(product)(x, y))
