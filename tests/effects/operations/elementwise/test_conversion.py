"""Bits are read as compiled code reads them, also where numbers have less than a byte."""

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax import lax

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


def test_the_lowest_bits_come_first():
    assert lax.bitcast_convert_type(np.array([1, 2], hnp.dtype("uint4")), "uint8").tolist() == 0x21
    assert lax.bitcast_convert_type(np.uint16(0x4321), hnp.dtype("uint4")).astype(int).tolist() == [1, 2, 3, 4]
