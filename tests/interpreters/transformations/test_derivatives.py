"""Jacobians and Hessians: one primal pass for all columns, and functions of functions."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp


@hx.effect(vmap="per_lane", diff="stop")
class Click:
    def result_type(op: Any) -> None:
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Number:
    def result_type(op: Any) -> Any:
        return hnp.zeros((), "int32").type


counter = hx.handler({Click: lambda n, op: (n + 1, None)})


def tick() -> None:
    hx.perform(Click())


def counted(f: Any) -> Any:
    return lambda *args: int(hx.handle(counter, 0)(f)(*args)[0])


@pytest.mark.parametrize("derivative", [hx.jacfwd, hx.jacrev, hx.hessian, lambda f: hx.jacfwd(hx.jacfwd(f))])
def test_all_columns_of_a_jacobian_share_one_primal_pass(derivative: Any) -> None:
    def f(x: Any) -> Any:
        tick()
        return lax.scan(lambda c, y: ((tick(), c + y**2)[1], None), 0.0, x)[0]

    xs = hnp.arange(1.0, 4.0)
    assert counted(derivative(f))(xs) == counted(hx.jit(derivative(f)))(xs) == 4


def test_a_jacobian_is_at_the_one_answer_that_an_effect_has() -> None:
    numbers = hx.handler({Number: lambda n, op: (n + 1, n)})
    jacobian = hx.handle(numbers, 3)(hx.jacfwd(lambda x: x**2 * hx.perform(Number())))
    n, made = jacobian(hnp.array([1.0, 2.0]))
    assert n == 4 and made.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_what_is_made_of_a_jitted_function_is_another_function() -> None:
    f = hx.jit(lambda x: hnp.sum(x**2))
    xs = hnp.arange(3.0)
    assert hx.jit(f)(xs) == 5.0
    assert hx.jit(hx.grad(f))(xs).tolist() == [0.0, 2.0, 4.0]
    assert hx.jit(hx.hessian(f))(xs).tolist() == (2 * hnp.eye(3)).tolist()
    assert hx.eval_shape(hx.hessian(f), xs).shape == (3, 3)

    @functools.wraps(f)
    def more(x: Any) -> Any:
        return f(x) + 1

    assert hx.jit(more)(xs) == 6.0


@pytest.mark.parametrize("jacobian", [hx.jacfwd, hx.jacrev])
def test_a_jacobian_has_the_axes_of_the_result_before_those_of_the_argument(jacobian: Any) -> None:
    a, x = np.arange(6.0, dtype="float32").reshape(2, 3), np.ones(3, "float32")
    np.testing.assert_allclose(jacobian(lambda x: hnp.asarray(a) @ x)(x), a)
    by_two = jacobian(lambda x, y: {"s": x * y, "t": x}, (0, 1))(2.0, 3.0)
    assert {k: tuple(map(float, v)) for k, v in by_two.items()} == {"s": (3.0, 2.0), "t": (1.0, 0.0)}


def test_a_gradient_is_asked_of_a_scalar_and_of_inexact_arguments() -> None:
    with pytest.raises(errors.HandlaxError, match="scalar"):
        hx.grad(lambda x: x)(hnp.ones(3))
    with pytest.raises(errors.HandlaxError, match="int32"):
        hx.grad(lambda x: x * 2.0)(3)


X = np.ones(3, "float32")
WRONG = {
    "one tangent, no tuple": (lambda: hx.jvp(hnp.sin, (1.0,), 1.0), "primals and tangents are tuples or lists"),
    "one primal, no tuple": (lambda: hx.jvp(hnp.sin, 1.0, (1.0,)), "primals and tangents are tuples or lists"),
    "tangents of another structure": (lambda: hx.jvp(hnp.sin, (1.0,), (1.0, 1.0)), "the tuple of tangents"),
    "aux of three": (lambda: hx.jvp(lambda x: (x, x, x), (1.0,), (1.0,), has_aux=True), r"\(result, aux\), got tuple"),
    "an array beside nothing": (lambda: hx.jvp(lambda x: x, (1.0,), (1.0,), has_aux=True), r"\(result, aux\), got f32"),
    "a cotangent of another shape": (
        lambda: hx.linear_transpose(lambda x: 2.0 * x, X)(np.ones(2)), r"must have its shape, got \(2,\)"),
    "a real value": (lambda: hx.grad(lambda z: hnp.abs(z), holomorphic=True)(1j), "the value is complex, got float32"),
    "no cotangent": (lambda: hx.vjp(hnp.sin, X)[1](), "takes one cotangent"),
    "two cotangents": (lambda: hx.vjp(hnp.sin, X)[1](X, X), "takes one cotangent"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_derivative_is_refused(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(errors.HandlaxError, match=words):
        call()


def test_a_linearization_has_what_is_beside_the_value() -> None:
    y, push, beside = hx.linearize(lambda x: (hnp.sin(x), {"twice": 2.0 * x}), 0.5, has_aux=True)
    assert (y, push(1.0), beside["twice"]) == (hnp.sin(0.5), hnp.cos(0.5), 1.0)


def test_a_transpose_is_of_anything_with_a_shape_and_a_dtype() -> None:
    shape = hx.ShapeDtypeStruct((3,), "float32")
    assert hx.linear_transpose(lambda x: 2.0 * x, shape)(X)[0].tolist() == [2.0] * 3


def test_what_is_beside_a_value_is_returned_beside_its_derivative() -> None:
    value, slope = hx.value_and_grad(lambda x: (x * x, {"twice": 2 * x}), has_aux=True)(3.0)
    assert (float(value[0]), float(value[1]["twice"]), float(slope)) == (9.0, 6.0, 6.0)
    y, pull, aux = hx.vjp(lambda x: (x**3, x), 2.0, has_aux=True)
    assert (float(y), float(pull(1.0)[0]), float(aux)) == (8.0, 12.0, 2.0)


def test_forward_jacobians_of_complex_arguments_must_be_holomorphic():
    assert complex(hx.jacfwd(lambda z: z * z, holomorphic=True)(1 + 2j)) == 2 + 4j
    with pytest.raises(TypeError, match="holomorphic"):
        hx.jacfwd(lambda z: z * z)(1 + 2j)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_numpy_tangents_of_64_bits_are_converted_within_their_kind(dtype):
    x = hnp.array([1.0, 2.0], dtype)
    _, dy = hx.jvp(lambda x: x * x, (x,), (np.ones(2),))
    assert dy.dtype == dtype and dy.astype("float32").tolist() == [2.0, 4.0]
    (ct,) = hx.vjp(lambda x: x * x, x)[1](np.ones(2))
    assert ct.dtype == dtype
    other = "float32" if dtype == "float16" else "float16"
    for tangent in (hnp.ones(2, "float64"), np.ones(2, complex), np.ones(2, other)):
        with pytest.raises(errors.DTypeMismatch, match="its primal's dtype"):
            hx.jvp(lambda x: x * x, (x,), (tangent,))


def test_linear_transpose_refuses_integers_among_floating_point_arguments():
    f = lambda x, n: hnp.zeros(2).at[n].add(x)
    with pytest.raises(hx.errors.DTypeMismatch, match="close over integers"):
        hx.linear_transpose(f, hnp.ones(2), hnp.array([0, 1]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: hnp.where(x > 0, x, 2 * x),
        lambda x: hx.lax.dynamic_slice(x, (x[0].astype(int),), (1,)),
        lambda x: hx.lax.scan(lambda c, _: (hnp.where(c > 0, c, 2 * c), None), x, length=2)[0],
    ],
)
def test_an_operand_that_a_rule_reads_must_not_depend_on_the_argument(f):
    x = hnp.ones(3)
    for transposed in (hx.linear_transpose(f, x), hx.jit(hx.linear_transpose(f, x))):
        with pytest.raises(hx.errors.NotDifferentiable, match="must be linear"):
            transposed(f(x))


def test_what_is_recorded_after_a_pullback_has_its_own_line():
    lines = []

    def f(x):
        y, pull = hx.vjp(lambda x: hnp.sin(x) * x, x)
        (dx,) = pull(y)
        with pytest.raises(errors.NotDifferentiable):
            hx.linear_transpose(lambda x: hnp.sin(x), x)(y)
        lines.append(inspect.currentframe().f_lineno + 1)
        return hnp.tanh(dx)

    program = hx.make_program(f)(1.0)
    assert [str(program.site(i)).rpartition(":")[2] for i, op in enumerate(program.ops) if op.name == "tanh"] == [
        str(lines[0])
    ]


NUMBERS = {
    "float": lambda x: float(x) ** 2, "complex": lambda x: complex(x).real, "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(), "math": lambda x: math.exp(x), "a part": lambda x: float(x) * x,
}
DERIVATIVES = {
    "grad": lambda f: hx.grad(f)(3.0), "jvp": lambda f: hx.jvp(f, (3.0,), (1.0,)), "vjp": lambda f: hx.vjp(f, 3.0),
    "linearize": lambda f: hx.linearize(f, 3.0), "hessian": lambda f: hx.hessian(f)(3.0),
    "vmap of grad": lambda f: hx.vmap(hx.grad(f))(hnp.ones(2)),
}


@pytest.mark.parametrize("f", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("derivative", DERIVATIVES.values(), ids=DERIVATIVES)
def test_a_number_would_lose_the_derivative(f, derivative):
    with pytest.raises(hx.errors.ConcretizationTypeError, match="needs a known value"):
        derivative(lambda x: f(x) + 0.0 * x)


@pytest.mark.parametrize("transformation", [hx.grad, hx.jit])
def test_the_cause_of_an_array_that_cannot_be_filled_says_how_to_fill_one(transformation):
    def f(v):
        filled = np.zeros(3)
        filled[1] = v[1] ** 2
        return filled.sum()

    with pytest.raises(ValueError) as caught:
        transformation(f)(hnp.ones(3))
    cause = caught.value.__cause__
    assert isinstance(cause, errors.ConcretizationTypeError) and "a.at[i].set(x)" in str(cause.hint)


def test_numbers_that_have_no_derivative_are_known():
    f = lambda x: x * (2.0 if x > 0 else 3.0) + int(x) * x
    assert float(hx.grad(f)(1.5)) == 3.0
    assert float(hx.grad(lambda x: x * float(hx.lax.stop_gradient(x)))(3.0)) == 3.0


@pytest.mark.parametrize("of", [hx.grad, hx.value_and_grad, hx.jacfwd, hx.jacrev, hx.jacobian, hx.hessian])
def test_a_derivative_by_an_integer_is_refused_by_its_name_with_hints_that_it_takes(of: Any) -> None:
    with pytest.raises(errors.NotDifferentiable) as caught:
        of(lambda x, y: x * y, argnums=(0, 1))(2.0, 3)
    name = "jacrev" if of is hx.jacobian else of.__name__
    assert caught.value.what == f"{name}: the derivative by y, of dtype int32, is not defined."
    hint = str(caught.value.hint)
    assert "leave it out of argnums" in hint and of(lambda x, y: x * y, argnums=0)(2.0, 3) is not None
    taken = "allow_int" in inspect.signature(of).parameters
    assert ("allow_int=True" in hint) is taken
    if taken:
        of(lambda x, y: x * y, argnums=(0, 1), allow_int=True)(2.0, 3)


@pytest.mark.parametrize("of", [hx.grad, hx.value_and_grad, hx.jacfwd, hx.jacrev, hx.hessian])
@pytest.mark.parametrize("argument", [1.0, "text"])
def test_other_arguments_without_a_derivative_are_refused_by_its_name(of: Any, argument: Any) -> None:
    with pytest.raises(errors.NotDifferentiable, match=f"^{of.__name__}: "):
        of(lambda x: x, holomorphic=True)(argument)
