"""Numbers and arrays as text: the shortest that reads back, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlax.effects.programs.literals import array_of, array_text, number_of, number_text
from handlax.effects.types import dtypes
from handlax.effects.types.array_type import array_type
from handlax.testing.generator.equations import DTYPES, KEY, random_array

f32 = np.dtype("float32")


@pytest.mark.parametrize("dtype", [*DTYPES, *sorted(dtypes.SMALL, key=str), KEY], ids=str)
def test_constants_read_back_bit_for_bit(dtype):
    rng = np.random.default_rng(1)
    for shape in ((), (5,), (2, 3), (0, 3)):
        for _ in range(10):
            x = random_array(array_type(shape, dtype), rng)
            text = array_text(x).replace("[", " ").replace("]", " ")
            items = [item.strip() for item in text.split(",") if item.strip()]
            assert array_of(items, x.type).tobytes() == x.value.tobytes()


@given(st.floats(width=32) | st.floats(width=16))
def test_floats_are_written_as_short_as_they_read_back(value):
    for dtype in (np.float32, np.float64, dtypes.bfloat16.type):
        with np.errstate(all="ignore"):
            x = dtype(value)
        assert number_of(number_text(x), x.dtype).tobytes() == x.tobytes()


@pytest.mark.parametrize(("text", "dtype"), [
    ("2", np.bool_), ("300", np.int8), ("-1", np.uint8), ("0x100", np.uint8), ("one", np.float32), ("1+j", np.float32),
])
def test_what_is_no_number_of_the_dtype_is_refused(text, dtype):
    with pytest.raises((ValueError, OverflowError)):
        number_of(text, np.dtype(dtype))


def test_a_real_number_is_a_complex_one_without_an_imaginary_part():
    assert number_of("2.5", np.dtype("complex64")) == np.complex64(2.5)


def test_short_numbers():
    numbers = (np.float32(0.1), dtypes.bfloat16.type(0.1), np.float64(-0.0), np.complex64(complex(1, -0.0)),
               np.float32("nan"), np.int8(-3), np.bool_(True), np.float16(1e-7), np.float32(1e5))
    texts = [number_text(x) for x in numbers]
    assert texts == ["0.1", "0.1", "-0.0", "1.0-0.0j", "nan", "-3", "True", "1e-07", "100000.0"]
    assert number_text(np.array([0x7FC00001], np.uint32).view(f32)[0]) == "0x7fc00001"
