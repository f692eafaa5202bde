"""Arrays of every dtype and shape: NumPy's, which handlax takes with every bit."""

import numpy as np
from helpers.drawn_kinds import missing
from hypothesis import given
from hypothesis import strategies as st

import handlax as hx
from handlax import numpy as hnp
from handlax.testing.strategies import Domain, arrays, dtypes, shapes


@given(arrays(bits=True))
def test_an_array_keeps_its_bits_in_handlax(x):
    y = hnp.asarray(x)
    assert (y.shape, y.dtype) == (x.shape, x.dtype) and np.asarray(y).tobytes() == x.tobytes()


@given(st.data())
def test_arrays_have_the_dtype_and_the_shape_that_are_drawn_for_them(data):
    dtype, shape = data.draw(dtypes()), data.draw(shapes())
    x = data.draw(arrays(dtype, shape))
    assert (x.dtype, x.shape) == (dtype, shape)


def test_arrays_of_every_kind_are_drawn():
    assert not missing(arrays("float32"), {
        "nan and infinity": lambda x: np.isnan(x).any() and np.isinf(x).any(),
        "-0": lambda x: ((x == 0) & np.signbit(x)).any(),
        "subnormal": lambda x: ((x != 0) & (np.abs(x) < np.finfo("float32").tiny)).any(),
        "large": lambda x: (np.abs(x) > 1e38).any(), "no dimensions": lambda x: x.ndim == 0,
        "no elements": lambda x: x.ndim == 2 and not x.size, "many": lambda x: x.size > 8,
    })


@given(arrays("float32", finite=True))
def test_finite_arrays_are_finite(x):
    assert np.isfinite(x).all()


@given(arrays("float32", domain=Domain(1.0, 3.0, dtype="int8")))
def test_a_domain_with_a_dtype_has_arrays_of_that_one(x):
    assert x.dtype == np.int8 and ((x >= 1) & (x <= 3)).all()


@given(arrays(dtypes((), keys=True), shapes(max_side=2)))
def test_arrays_of_keys_are_keys_of_every_generator(keys):
    assert hx.dtypes.is_extended(keys.dtype)
    if keys.ndim == 0:
        assert 0 <= hx.random.uniform(keys) < 1
