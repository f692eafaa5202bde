"""The pass from the outputs back: an adjoint that is a user's rule is called with zeros too."""

import functools

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.custom_vjp
def quantized(x, scale):
    return x * scale, scale


# as where formats of 8 bits are trained: what is to replace the scale comes as its cotangent
quantized.defvjp(lambda x, scale: ((x * scale, scale), scale), lambda scale, ct: (ct[0], scale + 10.0))


@hx.custom_vjp
def straight_through(x, y, scale):
    return y * scale


straight_through.defvjp(lambda x, y, scale: (y * scale, None), lambda _, ct: (ct, None, None))
first = functools.partial(hx.tree.map, lambda y: y[0])


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("wrapped", [
    quantized, hx.jit(quantized), hx.checkpoint(quantized),
    lambda x, scale: lax.cond(x > 0.0, quantized, lambda *xs: xs, x, scale),
    lambda x, scale: first(hx.vmap(quantized)(x[None], scale[None])),
    lambda x, scale: first(lax.scan(lambda c, _: (c, quantized(x, scale)), 0.0, None, length=1)[1]),
    lambda x, scale: lax.scan(lambda c, _: (quantized(*c), None), (x, scale), None, length=1)[0],
    lambda x, scale: lax.fori_loop(0, 1, lambda _, c: quantized(*c), (x, scale)),
])
def test_a_rule_is_called_with_a_zero_cotangent_of_what_is_used(wrapped, jitted):
    def loss(x, scale):
        return straight_through(x, *wrapped(x, scale))

    f = hx.grad(loss, (0, 1))
    dx, replaced = (hx.jit(f) if jitted else f)(hnp.float32(2.0), hnp.float32(3.0))
    assert (dx, replaced) == (1.0, 13.0)


def test_a_rule_is_not_called_where_nothing_is_differentiated():
    called = []

    @hx.custom_vjp
    def noted(x):
        return x

    noted.defvjp(lambda x: (x, None), lambda _, ct: (called.append(ct) or ct,))
    linear = hx.make_program(hx.grad(lambda x, y: x * straight_through(2.0, noted(y), 1.0)))(1.0, 3.0)
    assert linear(2.0, 3.0) == (3.0,) and not called


def test_a_rule_is_not_called_for_results_that_are_not_used():
    unused = lambda x, scale: (quantized(x, scale), x)[1]
    for f in (unused, hx.jit(unused), lambda x, scale: x + lax.stop_gradient(quantized(x, scale)[0])):
        assert hx.grad(f, (0, 1))(2.0, 3.0) == (1.0, 0.0)
