"""Conversions of data: each number is rounded once, and integers keep their bits or are refused."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from handlax.effects.types.casting import cast, number_data
from handlax.errors import IntegerOverflow

NARROW = ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2")


def nearest(value, dtype):
    """The finite number of the dtype that is nearest to a double, ties to even, by exact arithmetic."""
    bits = np.arange(2 ** min(8 * dtype.itemsize, 16), dtype=f"uint{8 * dtype.itemsize}")
    with np.errstate(all="ignore"):
        numbers = bits.view(dtype).astype("float64")
        near = np.argsort(abs(numbers - value))[:8]  # by rounded distances
    exact = {int(b): Fraction(float(x)) for b, x in zip(bits[near], numbers[near]) if math.isfinite(x)}
    return min(exact, key=lambda b: (abs(exact[b] - Fraction(value)), b & 1, b >> (8 * dtype.itemsize - 1)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("value", [
    0.1, 1 + 2**-8 + 2**-30, 1 + 2**-11 + 2**-30, 1 + 2**-8, 1 + 3 * 2**-8 - 2**-40, -(1 + 2**-8 + 2**-50), 3e-40, 2e-8,
])
def test_a_float_is_rounded_once(dtype, value):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    found = number_data(value, dtype)
    assert type(found) is np.ndarray and found.dtype == dtype and int(found.view("uint16")) == nearest(value, dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300, 0.0, 1e-300])
def test_the_ends_of_the_range_are_those_of_a_conversion_of_arrays(dtype, value):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    with np.errstate(all="ignore"):
        right = np.asarray(value).astype(dtype)
    np.testing.assert_array_equal(number_data(value, dtype).astype("float64"), right.astype("float64"))


@pytest.mark.parametrize(("value", "dtype", "right"), [
    (300, "int8", 44), (-1, "uint8", 255), (2**40, "int64", 2**40), (2**64 - 1, "uint64", 2**64 - 1),
    (300.7, "int8", 127), (np.nan, "int8", 0), (2**70, "float32", 2.0**70), (2**24 + 1, "float64", 2**24 + 1),
    (2, "bool", True), (0.5 + 2j, "float32", 0.5), (True, "float16", 1.0),
])
def test_numbers_are_converted_by_value_and_integers_by_bits(value, dtype, right):
    found = number_data(value, np.dtype(dtype))
    assert type(found) is np.ndarray and found.dtype == dtype and found == right


@pytest.mark.parametrize(("value", "dtype"), [
    (2**40, "int8"), (2**63, "int64"), (-(2**40), "uint64"), (10**400, "float32"),
])
def test_integers_beyond_the_dtype_and_the_default_are_refused(value, dtype):
    with pytest.raises(IntegerOverflow, match=f"an integer must fit its dtype, got {value} for {dtype}"):
        number_data(value, np.dtype(dtype))


def test_complex_numbers_lose_their_imaginary_part_unless_they_become_truth_values():
    x = np.array([1j, 0, 2 + 3j])
    assert cast(x, np.dtype("float32")).tolist() == [0.0, 0.0, 2.0]
    assert cast(x, np.dtype("bool")).tolist() == [True, False, True]
