"""The special values of each dtype, and that any value is drawn."""

import numpy as np
import pytest
from helpers.drawn_kinds import equal_to, missing
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax.testing.strategies import elements, special_values

EVERY = sorted(hx.dtypes.EVERY, key=str)
FLOATING = sorted(hx.dtypes.ANY_FLOATING, key=str)


def bits(x):
    """The bytes of a value."""
    return np.asarray(x).tobytes()


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_the_ends_of_floats_are_special(dtype):
    found = [*map(float, special_values(dtype))]
    info = hx.dtypes.finfo(dtype)
    assert {float(info.max), float(info.smallest_normal)} <= {*found}
    assert max(filter(np.isfinite, found)) == info.max


@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_each_special_value_is_there_once(dtype):
    values = special_values(dtype)
    assert values.dtype == dtype and len({*map(bits, values)}) == len(values)


@pytest.mark.parametrize("dtype", sorted(hx.dtypes.ANY_INTEGER, key=str), ids=str)
def test_the_ends_of_integers_are_special(dtype):
    found = [*map(int, special_values(dtype))]
    info = hx.dtypes.iinfo(dtype)
    assert (min(found), max(found)) == (info.min, info.max) and 0 in found


@pytest.mark.parametrize("dtype", EVERY, ids=str)
@given(data=st.data())
def test_elements_are_scalars_of_their_dtype(dtype, data):
    x = data.draw(elements(dtype, finite=True))
    assert np.asarray(x).dtype == dtype and np.isfinite(x)


@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_special_values_and_others_are_drawn(dtype):
    values = special_values(dtype)
    chosen = values[:: 70 if len(values) > 20 else 1]  # of complex numbers there are many
    known = {*map(bits, values), *map(bits, np.arange(-3, 4).astype(dtype))}
    few = hx.dtypes.itemsize_bits(dtype) <= 4 or dtype == "bool"
    assert not missing(elements(dtype), equal_to(chosen, bits) | {"other": lambda x: few or bits(x) not in known})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e5m2"])
def test_other_patterns_of_nan_are_drawn_where_that_is_asked_for(dtype):
    plain = bits(np.array([np.nan]).astype(dtype))
    other = {"other": lambda x: x != x and bits(x) != plain}
    assert not missing(elements(dtype, bits=True), other)
    assert missing(elements(dtype), other, examples=100)
