"""Functions are compared on drawn inputs: those that differ are found, with simple inputs and the operation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.operations import Sin
from handlax.testing import WAYS, LawFails, Way, assert_close, compare
from handlax.testing.strategies import Domain, arrays

VECTORS = st.tuples(arrays("float64", (8,), domain=Domain(-3.0, 3.0)))


def test_a_function_equals_another_library_s():
    report = compare(hnp.sinh, np.sinh, inputs=VECTORS, examples=20, loose=10.0)
    assert [examples for _, examples, _ in report.held] == [20]


def test_a_function_that_differs_is_found_with_a_simple_input():
    with pytest.raises(LawFails, match="<lambda> equals absolute") as caught:
        compare(lambda x: hnp.maximum(x, -x - 0.5), np.abs, inputs=VECTORS)
    (x,) = caught.value.example
    assert np.count_nonzero(x) == 1 and x.min() < 0


def test_a_function_is_the_same_in_all_ways():
    def f(x):
        y = lax.fori_loop(0, 3, lambda i, c: hnp.sin(c) + x, x)
        return {"y": lax.cond(y.sum() > 0, lambda: y, lambda: -y), "sum": y.sum()}

    report = compare(f, inputs=VECTORS, examples=2)
    assert [law.name for law, *_ in report.held] == [way.name for way in WAYS]


def test_the_first_operation_that_a_way_computes_otherwise_is_named():
    wrong = hx.handle(hx.handler({Sin: lambda op, x: hnp.where(x > 1.0, 2.0, hx.perform(op, x))}))
    with pytest.raises(LawFails, match=r"The first operation that differs: sin at test_compare.py:\d+"):
        compare(lambda x: hnp.exp(hnp.sin(x)), inputs=VECTORS, ways=[Way("a wrong sine", wrong)])


def test_integers_are_equal_and_floats_are_close():
    assert_close(np.float32(1.0), np.float32(1.0 + 1e-6))
    with pytest.raises(AssertionError):
        assert_close(np.float32(1.0), np.float32(1.0 + 1e-4))
    with pytest.raises(AssertionError):
        assert_close(np.int32(1), np.int32(2))
    with pytest.raises(AssertionError, match="dtypes"):
        assert_close(np.float32(1.0), np.float64(1.0))
