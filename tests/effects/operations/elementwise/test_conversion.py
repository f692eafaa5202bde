"""Bits are read as compiled code reads them, also where numbers have less than a byte."""

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax import lax
from handlax.effects.operations.elementwise.conversion import convert

DTYPES = ["int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "int32", "float16", "float32", "float64"]


def numbers(old, new):
    """Numbers whose bits are one or several of the new dtype, or make one together."""
    old_bits, new_bits = hx.dtypes.itemsize_bits(old), hx.dtypes.itemsize_bits(new)
    shape = (3, new_bits // old_bits) if new_bits > old_bits else (3,)
    return np.random.default_rng(0).integers(0, 4, shape).astype(old)


@pytest.mark.parametrize("old", DTYPES)
def test_bits_are_read_eagerly_as_when_compiled(old):
    old, targets = hnp.dtype(old), [hnp.dtype(new) for new in DTYPES]
    read = lambda xs: [lax.bitcast_convert_type(x, new) for x, new in zip(xs, targets)]
    xs = [numbers(old, new) for new in targets]
    for x, new, found, compiled in zip(xs, targets, read(xs), hx.jit(read)(xs)):
        assert found.dtype == compiled.dtype == new
        np.testing.assert_array_equal(np.asarray(found).astype(float), np.asarray(compiled).astype(float))
        back = lax.bitcast_convert_type(found, old)
        np.testing.assert_array_equal(np.asarray(back).astype(float), x.astype(float))


NARROW = ["int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e8m0fnu", "float8_e4m3fn", "bfloat16", "int8"]


@pytest.mark.parametrize("old", NARROW)
def test_narrow_numbers_are_converted_eagerly_as_when_compiled(old):
    """To integers: of numbers that they hold."""
    targets = [hnp.dtype(new) for new in NARROW]
    x = np.array([0.5, 1, 1.5, 2, 3, 4, 6, -2, -6], "float32")
    x = (x.astype(np.int8) if "int" in old else x).astype(hnp.dtype(old))
    xs = [x[x.astype(float) == 1] if "int2" in new.name else x for new in targets]
    converted = lambda xs: [y.astype(new) for y, new in zip(map(hnp.asarray, xs), targets)]
    for found, compiled in zip(converted(xs), hx.jit(converted)(xs)):
        np.testing.assert_array_equal(np.asarray(found).astype(float), np.asarray(compiled).astype(float))


def test_the_largest_number_of_four_bits_is_an_integer():
    x = hnp.asarray(np.array([6, -6, 4]).astype(hnp.dtype("float4_e2m1fn")))
    for dtype in ("int8", "int32", "int64"):
        assert hx.jit(lambda x: x.astype(dtype))(x).tolist() == [6, -6, 4]


def test_the_lowest_bits_come_first():
    assert lax.bitcast_convert_type(np.array([1, 2], hnp.dtype("uint4")), "uint8").tolist() == 0x21
    assert lax.bitcast_convert_type(np.uint16(0x4321), hnp.dtype("uint4")).astype(int).tolist() == [1, 2, 3, 4]


def test_a_number_takes_a_dtype_in_one_rounding():
    for number in (0.1, np.float64(0.1)):
        assert float(convert(number, np.dtype("float64"))) == 0.1
