"""What the evaluate rule of a user's operation returns has the type that the operation declares, or is refused."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
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
