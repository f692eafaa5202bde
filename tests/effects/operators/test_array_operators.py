"""Operators of arrays: those of NumPy, in both orders, with Python numbers that are weak."""

import operator

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

X = np.array([-3, 1, 4], "int32")
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.eq,
          operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("op", [*BINARY, *BITS], ids=lambda op: op.__name__)
def test_an_operator_is_numpys_in_both_orders(op):
    y = hnp.asarray(X)
    for other in (2, X[::-1] + 5):
        for found, expected in [(op(y, other), op(X, other)), (op(other, y), op(other, X))]:
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            np.testing.assert_allclose(hx.jit(op)(y, other), op(X, other), rtol=1e-6)


@pytest.mark.each_choice
@pytest.mark.parametrize("f", [operator.truediv, hnp.divide, hnp.arctan2, hnp.hypot, hnp.logaddexp, hnp.copysign])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32"])
def test_floats_are_made_of_the_full_value_of_a_number(f, dtype):
    x = hnp.asarray([1, 2, 5], dtype)
    for number in (-3, 300):
        for args in ((x, number), (number, x)):
            expected = f(*[hnp.asarray(v, "float64") for v in args])
            for way in (f, hx.jit(f)):
                np.testing.assert_allclose(way(*args), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("other", [3, hnp.arange(3, dtype="int16")], ids=["number", "array"])
@pytest.mark.parametrize("f", [operator.truediv, hnp.divide])
def test_integers_are_converted_to_floats_at_once(f, other):
    program = hx.make_program(lambda x: f(x, other))(hnp.asarray(X))
    assert {op.name for op in program.ops} == {"convert_element_type", "div"}
    assert {op.dtype.name for op in program.ops if op.name == "convert_element_type"} == {"float32"}


@pytest.mark.parametrize("op", [operator.neg, operator.pos, operator.invert, abs])
def test_a_sign_is_numpys(op):
    np.testing.assert_array_equal(op(hnp.asarray(X)), op(X))


def test_a_python_number_does_not_widen():
    for dtype in ("int8", "float16", "bfloat16", "complex64"):
        assert (hnp.ones(2, dtype) + 1).dtype == (1 - hnp.ones(2, dtype)).dtype == dtype
    assert (hnp.ones(2, "int8") * 1.5).dtype == "float32"


def test_shifts_powers_and_products():
    assert ((hnp.int32(5) << 2) >> 1).tolist() == 10
    assert (2 ** hnp.asarray([1, 3])).tolist() == [2, 8] and (hnp.asarray([2.0, 3.0]) ** 2).tolist() == [4.0, 9.0]
    a = np.arange(6.0, dtype="float32").reshape(2, 3)
    np.testing.assert_allclose(hnp.asarray(a) @ a.T, a @ a.T)
    assert [x.tolist() for x in divmod(hnp.asarray(X), 2)] == [x.tolist() for x in np.divmod(X, 2)]


def test_powers_of_integers_are_numpys_whatever_the_exponents():
    x, y = np.array([[-1], [0], [2], [3]]), np.array([0, 1, 5, 63, 64, 101])
    for f in (operator.pow, hx.jit(operator.pow)):
        np.testing.assert_array_equal(f(hnp.asarray(x), hnp.asarray(y)), x**y)


def test_what_is_no_operand_is_left_to_the_other():
    class Other:
        def __radd__(self, x):
            return "other"

    assert hnp.ones(2) + Other() == "other"
    with pytest.raises(TypeError):
        hnp.ones(2) + "text"
