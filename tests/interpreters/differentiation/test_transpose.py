"""The pass from the outputs back: an adjoint that is a user's rule is called with zeros too."""

import functools

import numpy as np
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


def loss(wrapped):
    return lambda x, scale: straight_through(x, *wrapped(x, scale))


@pytest.mark.parametrize("compile", [lambda f: f, hx.jit])
@pytest.mark.parametrize("wrapped", [quantized, lambda x, scale: first(hx.vmap(quantized)(x[None], scale[None]))])
def test_a_rule_is_called_with_a_zero_cotangent_of_what_is_used(wrapped, compile):
    f = compile(hx.grad(loss(wrapped), (0, 1)))
    assert f(hnp.float32(2.0), hnp.float32(3.0)) == (1.0, 13.0)


@pytest.mark.parametrize("compile", [lambda f: f, hx.jit])
@pytest.mark.parametrize("wrapped", [
    hx.jit(quantized), hx.checkpoint(quantized),
    lambda x, scale: lax.cond(x > 0.0, quantized, lambda *xs: xs, x, scale),
    lambda x, scale: first(lax.scan(lambda c, _: (c, quantized(x, scale)), 0.0, None, length=1)[1]),
])
def test_within_bodies_it_is_not(wrapped, compile):
    """As in JAX: what is outside of a body does not say whether a result with the cotangent zero is used."""
    f = compile(hx.grad(loss(wrapped), (0, 1)))
    assert f(hnp.float32(2.0), hnp.float32(3.0)) == (1.0, 0.0)


@hx.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, ct: (ct / abs(ct) * x,))


@pytest.mark.each_choice
@pytest.mark.parametrize("compile", [lambda f: f, hx.jit, hx.checkpoint])
@pytest.mark.parametrize("f", [
    lambda x: lax.scan(lambda c, _: (c * 1.0, square(c)), x, None, length=3)[0],
    lambda x: lax.scan(lambda c, _: ((c[0] * 1.0, square(c[0])), None), (x, x), None, length=3)[0][0],
    lambda x: lax.fori_loop(0, 3, lambda _, c: (c[0] * 1.0, square(c[0])), (x, x))[0],
    lambda x: lax.map(lambda y: (y * 1.0, square(y)), hnp.stack([x, x]))[0].sum() / 2,
    lambda x: lax.cond(x > 0, lambda: (square(x), x), lambda: (x, square(x)))[1],
    lambda x: lax.while_loop(lambda c: c[2] < 3, lambda c: (c[0] * 1.0, square(c[0]), c[2] + 1), (x, x, 0),
                             max_steps=4)[0],
    lambda x: hx.jit(lambda x: (x, square(x)))(x)[0],
])
def test_a_rule_that_divides_by_its_cotangent_is_not_called_for_what_is_unused(f, compile):
    assert hx.grad(compile(f))(2.0) == compile(hx.grad(f))(2.0) == 1.0


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


@pytest.mark.parametrize("wrap", [
    lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0], hx.jit, hx.checkpoint,
])
def test_an_error_of_a_rule_is_raised_as_it_is(wrap):
    @hx.custom_vjp
    def f(x):
        return x

    def bwd(residuals, ct):
        raise ZeroDivisionError

    f.defvjp(lambda x: (x, x), bwd)
    with pytest.raises(ZeroDivisionError) as caught:
        hx.jit(hx.grad(wrap(f)))(1.0)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("wrap", [
    hx.jit, hx.checkpoint, lambda f: lambda x: lax.cond(x > 0, f, f, x),
    lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
], ids=["jit", "checkpoint", "cond", "scan"])
def test_a_body_is_transposed_anew_where_an_axis_has_another_size(wrap):
    @hx.operation
    class Kept:
        jvp = hx.columns.linear

        def result_type(op, x):
            return x

        def evaluate(op, x):
            return x

        def batch(op, dims, x):
            return hx.perform(op, x), dims[0]

        def transpose(op, ct, x):
            return ct * lax.axis_size("lanes")

        def lower(op, emit, x):
            return x

    gradient = hx.vmap(hx.grad(wrap(lambda x: hx.perform(Kept(), x))), axis_name="lanes")
    assert [gradient(np.ones(n, "float32")).tolist() for n in (2, 3)] == [[2.0] * 2, [3.0] * 3]
