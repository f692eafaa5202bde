"""What the rules of a user's operation return is what they have to, or is refused."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.dtypes import float0
from handlax.experimental import jet
from handlax.operations import Sin

X = np.arange(3, dtype=np.float32)


def perform(rule, result=lambda op, x: x):
    @hx.operation
    class Odd:
        multiple_results = result is TWO
        result_type = result

        def evaluate(op, x):
            return rule(x)

    return hx.perform(Odd(), hnp.asarray(X))


WHOLE = lambda op, x: hx.ShapeDtypeStruct((), "int32")
SMALL = lambda op, x: hx.ShapeDtypeStruct((3,), "int8")
TWO = lambda op, x: (x, x)


@pytest.mark.parametrize(
    ("rule", "result", "error", "words"),
    [
        (lambda x: np.zeros(5, np.float32), None, errors.ShapeMismatch, r"must return f32\[3\].*got an array of shape"),
        (lambda x: (x, x), None, errors.ShapeMismatch, r"\(2, 3\)"),
        (lambda x: 1.0, None, errors.ShapeMismatch, r"\(\)"),
        (lambda x: None, None, errors.NotAnArray, "got NoneType"),
        (lambda x: "a", None, errors.NotAnArray, "got str"),
        (lambda x: x + 1j, None, errors.DTypeMismatch, "got one of complex64"),
        (lambda x: 3.7, WHOLE, errors.DTypeMismatch, "got one of float64"),
        (lambda x: np.array([1, 2, 300]), SMALL, errors.DTypeMismatch, "that it does not hold"),
        (lambda x: x, TWO, errors.ShapeMismatch, "a tuple of 2 results, got ndarray"),
        (lambda x: (x,), TWO, errors.ShapeMismatch, "a tuple of 2 results, got 1"),
        (lambda x: (x, x, x), TWO, errors.ShapeMismatch, "a tuple of 2 results, got 3"),
        (lambda x: (x, x[:2]), TWO, errors.ShapeMismatch, r"got an array of shape \(2,\)"),
    ],
)
def test_another_result_than_declared_is_refused(rule, result, error, words):
    with pytest.raises(error, match=words):
        perform(rule, *[result] if result else [])


def test_numbers_that_the_dtype_holds_are_converted():
    for y in (perform(lambda x: x.astype("float64")), perform(lambda x: [0, 1, 2]), perform(lambda x: x > -1) * X):
        assert y.dtype == np.float32 and y.tolist() == [0, 1, 2]
    assert perform(lambda x: np.array([1, 2, 100]), SMALL).tolist() == [1, 2, 100]
    assert perform(lambda x: 3, WHOLE) == 3 and [y.tolist() for y in perform(lambda x: [x, x], TWO)] == [[0, 1, 2]] * 2


def test_a_rule_of_a_scope_is_checked_too():
    with hx.rules(evaluate={Sin: lambda op, x: x[:1]}):
        with pytest.raises(errors.ShapeMismatch, match=r"sin: evaluate must return f32\[3\]"):
            hnp.sin(X)


def test_a_type_for_each_result_is_needed():
    @hx.operation
    class Twice:
        def result_type(op, x):
            return x, x

    with pytest.raises(errors.RegistrationError, match="twice: result_type must give one type") as caught:
        hx.perform(Twice(), hnp.asarray(X))
    assert "multiple_results = True" in str(caught.value)


def doubled(**cells):
    """The operation 2 x, with other rules."""
    own = {"result_type": lambda op, x: x, "evaluate": lambda op, x: x + x, "jvp": hx.columns.linear}
    return hx.operation(type("Doubled", (), {**own, **cells}))()


@pytest.mark.parametrize(("rule", "error", "words"), [
    (lambda op, dims, x: (hx.perform(op, x), 5), errors.ShapeMismatch, r"that has the 2 lanes, got 5 of f32\[2,3\]"),
    (lambda op, dims, x: (hx.perform(op, x), 1), errors.ShapeMismatch, r"that has the 2 lanes, got 1 of f32\[2,3\]"),
    (lambda op, dims, x: (hx.perform(op, x), dims), errors.ShapeMismatch, r"got \(0,\) of f32"),
    (lambda op, dims, x: (2.0, 0), errors.BadCall, "must return an array, got a float"),
    (lambda op, dims, x: hx.perform(op, x), errors.TreeMismatch, "must return \\(result, mapped dimension\\)"),
])
def test_a_batch_rule_returns_a_result_and_the_dimension_of_its_lanes(rule, error, words):
    op = doubled(batch=rule)
    with pytest.raises(error, match=f"^doubled, batch: the rule .*{words}") as caught:
        hx.vmap(lambda x: hx.perform(op, x))(np.ones((2, 3), np.float32))
    assert 2 <= len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(("rule", "words"), [
    (lambda op, ct, x: (ct,), "the cotangent of operand 0, an array, got a tuple of 1"),
    (lambda op, ct, x: 2.0, "the cotangent of operand 0, an array, got a float"),
    (lambda op, ct, x, *, wrt: [ct], "the cotangent of operand 0, an array, got a list of 1"),
    (lambda op, ct, x, *, linear: ct, r"1 cotangents, one for each operand, got f32\[3\]"),
    (lambda op, ct, x, *, linear: (), "1 cotangents, one for each operand, got a tuple of 0"),
])
def test_a_transpose_rule_returns_cotangents(rule, words):
    op = doubled(transpose=rule)
    with pytest.raises(errors.BadCall, match=f"^doubled, transpose: the rule must return {words}") as caught:
        hx.vjp(lambda x: hx.perform(op, x), X)[1](X)
    assert "transpose(op, ct, *operands, wrt)" in str(caught.value).splitlines()[2]


def test_a_jvp_rule_returns_a_pair():
    """An array of two rows would be unpacked as one."""
    op, x = doubled(jvp=lambda op, primals, tangents: hx.perform(op, *primals)), np.ones((2, 3), np.float32)
    with pytest.raises(errors.TreeMismatch, match=r"^doubled, jvp: the rule must return \(result, tangent\), got"):
        hx.jvp(lambda x: hx.perform(op, x), (x,), (x,))


@hx.effect(vmap="per_lane")
class Split:
    """An effect with an answer of several parts, of which the last is an integer."""

    def result_type(op, x):
        return {"double": x, "rest": (x, hx.ArrayType((), "int32"))}


SPLITTING = hx.handler({Split: lambda op, x: {"double": 2 * x, "rest": (3 * x, hnp.int32(1))}})


def _sum_of_parts(x):
    y = hx.perform(Split(), x)
    return y["double"] + y["rest"][0]


@pytest.mark.parametrize(("tangent", "slope"), [
    (lambda dx: {"double": 2 * dx, "rest": (3 * dx, None)}, 5),
    (lambda dx: {"double": 2 * dx, "rest": (None, None)}, 2),
    (lambda dx: {"double": 2 * dx, "rest": (3 * dx, np.zeros((), float0))}, 5),
    (lambda dx: None, 0),
])
def test_a_jvp_rule_of_an_effect_returns_its_answer_and_tangent_as_it_is_declared(tangent, slope):
    def rule(op, primals, tangents):
        return hx.perform(op, *primals), tangent(*tangents)

    twice = lambda x: lax.scan(lambda c, _: (_sum_of_parts(c), None), x, length=2)[0]
    with hx.rules(jvp={Split: rule}):
        assert hx.handle(SPLITTING)(hx.grad(_sum_of_parts))(1.0) == slope
        assert hx.handle(SPLITTING)(hx.jit(hx.grad(twice)))(1.0) == slope**2
        assert jet.jet(hx.handle(SPLITTING)(_sum_of_parts), (1.0,), ([1.0],)) == (5, [5])


@pytest.mark.parametrize(("returned", "words"), [
    (lambda y, dx: y, "got dict"),
    (lambda y, dx: (y, dx), "each as result_type declares the result, .*, got f32"),
    (lambda y, dx: (y, {"double": dx}), "each as result_type declares the result, .*, got a dict"),
    (lambda y, dx: ([y], dx), "each as result_type declares the result, .*, got a list of 1"),
    (lambda y, dx: (y, [2 * dx, 3 * dx, None]), "each as result_type declares the result, .*, got a list of 3"),
    (lambda y, dx: (None, {"double": dx, "rest": (dx, None)}), "each as .*, got None for a result"),
    (lambda y, dx: ({**y, "double": None}, None), "each as .*, got None for a result"),
])
def test_a_jvp_rule_of_an_effect_that_returns_something_else_is_named(returned, words):
    with hx.rules(jvp={Split: lambda op, xs, dxs: returned(hx.perform(op, *xs), *dxs)}):
        with pytest.raises(errors.TreeMismatch, match=rf"split, jvp: .* return \(result, tangent\), {words}"):
            hx.handle(SPLITTING)(hx.grad(_sum_of_parts))(1.0)


MISMATCHES = [
    (lambda y, dx: (y, hnp.ones(3) * dx), errors.ShapeMismatch, r"a tangent of shape \(\), got f32\[3\]"),
    (lambda y, dx: (y * hnp.ones(3), dx), errors.ShapeMismatch, r"a result of shape \(\), got f32\[3\]"),
    (lambda y, dx: (y, dx.astype("float16")), errors.DTypeMismatch, "a tangent of dtype float32, got f16"),
    (lambda y, dx: (y, dx.astype("int32")), errors.DTypeMismatch, "a tangent of dtype float32, got i32"),
    (lambda y, dx: (y.astype("float16"), dx), errors.DTypeMismatch, "a result of dtype float32, got f16"),
    (lambda y, dx: (y, "a"), errors.BadCall, "give arrays, got str for a tangent"),
    (lambda y, dx: (None, dx), errors.TreeMismatch, "each as result_type declares the result, f32.*, got None"),
]


@pytest.mark.parametrize("declared", [hx.effect(vmap="per_lane"), hx.operation])
@pytest.mark.parametrize(("returned", "error", "words"), MISMATCHES)
def test_a_jvp_rule_returns_a_result_and_a_tangent_of_the_declared_type(declared, returned, error, words):
    @declared
    class Odd:
        def result_type(op, x):
            return x

        def jvp(op, primals, tangents):
            return returned(hx.perform(op, *primals), *tangents)

    handled = hx.handle(hx.handler({Odd: lambda op, x: 2 * x}))
    f = lambda x: hx.perform(Odd(), x).sum()
    for derivative in (hx.grad(f), hx.jit(hx.grad(f)), lambda x: jet.jet(f, (x,), ([1.0, 0.0],))):
        with pytest.raises(error, match=f"^odd, jvp: the rule must .*{words}"):
            handled(derivative)(hnp.float32(1.0))


@pytest.mark.parametrize("declared", [hx.effect(vmap="per_lane"), hx.operation])
@pytest.mark.parametrize(("tangent", "refused"), [
    (lambda dx: 1.5 * dx, True), (lambda dx: hnp.int32(1), True), (lambda dx: None, False),
    (lambda dx: np.zeros((), float0), False),
])
def test_an_integer_has_no_tangent(declared, tangent, refused):
    @declared
    class Whole:
        def result_type(op, x):
            return hx.ArrayType((), "int32")

        def jvp(op, primals, tangents):
            return hx.perform(op, *primals), tangent(*tangents)

    handled = hx.handle(hx.handler({Whole: lambda op, x: hnp.int32(2)}))
    f = lambda x: x * hx.perform(Whole(), x)
    if refused:
        lanes, of_lanes = hnp.ones(2), (hx.vmap(hx.grad(f)), hx.grad(lambda x: hx.vmap(f)(x).sum()))
        for g, x in ((hx.grad(f), 1.0), *[(g, lanes) for g in of_lanes if declared is not hx.operation]):
            with pytest.raises(errors.DTypeMismatch, match=r"^whole, jvp: a result i32\[\] has no tangent, got"):
                handled(g)(x)
    else:
        assert handled(hx.grad(f))(1.0) == 2


@pytest.mark.parametrize(("rule", "slope"), [(hx.columns.linear, 2), (hx.columns.zero, 0)])
def test_a_rule_that_is_a_word_serves_an_effect_with_any_answer(rule, slope):
    with hx.rules(jvp={Split: rule}):
        f = lambda x: hx.jvp(lambda x: hx.perform(Split(), x)["double"], (x,), (x,))
        assert hx.handle(SPLITTING)(f)(1.0) == (2, slope)


def test_an_effect_with_one_answer_takes_the_rule_of_a_pure_operation():
    @hx.effect(vmap="per_lane", diff="refuse")
    class Draw:
        def result_type(op, loc):
            return loc

        def jvp(op, primals, tangents):
            return hx.perform(op, *primals), tangents[0]

    drawing = hx.handler({Draw: lambda key, op, loc: (hx.random.fold_in(key, 1), loc + hx.random.normal(key))})
    f = lambda loc: hx.perform(Draw(), loc) ** 2
    key = hx.random.key(0)
    _, slope = hx.handle(drawing, key)(hx.grad(f))(1.0)
    assert slope == hx.grad(lambda loc: hx.handle(drawing, key)(f)(loc)[1])(1.0) == 2 * (1 + hx.random.normal(key))


def test_the_remedy_for_an_effect_with_an_answer_is_to_handle_it_inside():
    with pytest.raises(errors.NotDifferentiable) as found:
        hx.handle(SPLITTING)(hx.grad(_sum_of_parts))(1.0)
    assert found.value.hint.startswith("handle it inside: grad(hx.handle(h)(f))")
    assert found.value.hint.endswith("diff='stop'): its answer is a constant to grad.")


@pytest.mark.parametrize(("result", "returned", "error"), [
    (lambda op, x: x, (0.0, 3 + 1j), errors.DTypeMismatch),
    (WHOLE, (2.7, None), errors.DTypeMismatch),
    (lambda op, x: hx.ShapeDtypeStruct((), "int8"), (300, None), errors.IntegerOverflow),
])
def test_numbers_of_a_jvp_rule_keep_their_value(result, returned, error):
    @hx.operation
    class Odd:
        result_type = result

        def jvp(op, primals, tangents):
            return returned

    with pytest.raises(error, match="odd, jvp"):
        hx.jvp(lambda x: hx.perform(Odd(), x), (1.0,), (1.0,))
