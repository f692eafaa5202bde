"""Public functions of elementwise operations: dimensions of size 1 are repeated where the ranks are equal."""

from functools import partial

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax.effects.operations.foundations.elementwise_factory import elementwise, surface
from handlax.errors import RegistrationError, ShapeMismatch

A, B = np.array([[0.5], [1.5]]), np.array([[0.25, 0.75, 1.0]])
BINARY = (
    "add", "sub", "mul", "div", "rem", "pow", "max", "min", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt", "ge",
    "complex", "igamma", "igammac", "zeta", "random_gamma_grad", "igamma_grad_a",
)
INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical", "mulhi")


@pytest.mark.each_choice
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("transformed", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_sizes_of_one_are_repeated(name, transformed):
    f = transformed(getattr(lax, name))
    np.testing.assert_array_equal(f(A, B), f(np.broadcast_to(A, (2, 3)), np.broadcast_to(B, (2, 3))))


@pytest.mark.parametrize("name", INTEGERS)
def test_sizes_of_one_are_repeated_for_integers(name):
    f, a, b = getattr(lax, name), np.array([[3], [5]]), np.array([[1, 2, 6]])
    np.testing.assert_array_equal(f(a, b), f(np.broadcast_to(a, (2, 3)), np.broadcast_to(b, (2, 3))))


def test_the_derivative_by_a_repeated_operand_is_summed():
    dx, dy = hx.grad(lambda x, y: lax.mul(x, y).sum(), (0, 1))(A, B)
    np.testing.assert_array_equal(dx, [[2.0], [2.0]])
    np.testing.assert_array_equal(dy, [[2.0, 2.0, 2.0]])


@pytest.mark.parametrize(("x", "y"), [
    ((2, 1), (3,)), ((2, 3), (3, 2)), ((2, 3), (2, 2)), ((1, 2, 1), (2, 1)),
])
def test_other_shapes_that_differ_are_refused(x, y):
    with pytest.raises(ShapeMismatch, match="shapes must be equal"):
        lax.add(np.zeros(x), np.zeros(y))


@pytest.mark.parametrize("call", [lax.clamp, lambda x, y, z: lax.select(x > 0, y, z)])
def test_clamp_and_select_repeat_nothing(call):
    with pytest.raises(ShapeMismatch):
        call(A, B, B)


def test_a_product_in_another_dtype_is_that_of_converted_factors():
    x = np.array([100, -3], "int8")
    assert lax.mul(x, x).tolist() == [16, 9]
    wide = lax.mul(x, x, out_dtype="int32")
    assert wide.dtype == "int32" and wide.tolist() == [10000, 9]
    assert lax.mul(np.float32(1.7), np.float32(2.7), out_dtype="int32") == 2


def scaled(factor, x, dx):
    return lax.mul(dx, lax.full_like(x, factor))


@pytest.mark.parametrize("jvp", [
    lambda x, dx: scaled(3, x, dx), lambda x, dx, y: lax.div(lax.mul(dx, y), x), lambda x, dx, n=3.0: scaled(n, x, dx),
    lambda x, dx, *, n=3.0: scaled(n, x, dx), partial(scaled, 3), (lambda x, dx, y, n=1.0: lax.div(lax.mul(dx, y), x),),
])
def test_a_term_of_the_derivative_gets_the_result_if_it_has_a_parameter_for_it(jvp):
    triple = surface(elementwise("test_triple", [np.dtype("float32")], lambda x: 3 * x, jvp=jvp, lower="negate"))
    assert hx.grad(triple)(np.float32(2)) == 3


@pytest.mark.parametrize(("arity", "jvp"), [
    (1, lambda dx: dx), (1, lambda x, y, dx, z: dx), (1, lambda *xs: xs[0]), (1, (lambda x, dx: dx,) * 2),
    (2, lambda x, y, dx: dx), (2, (lambda x, dx: dx, None)),
])
def test_a_term_of_the_derivative_with_other_parameters_is_refused(arity, jvp):
    with pytest.raises(RegistrationError, match="a term of the derivative"):
        elementwise("test_refused", [np.dtype("float32")], np.negative, arity=arity, jvp=jvp, lower="negate")
