"""Dtypes, shapes and types: all of them are drawn, and the simplest one is what remains."""

import numpy as np
import pytest
from helpers.drawn_kinds import equal_to, missing
from hypothesis import find, given

import handlax as hx
from handlax import numpy as hnp
from handlax.testing.strategies import array_types, broadcastable_shapes, dtypes, shapes


def test_every_dtype_is_drawn():
    assert not missing(dtypes(), equal_to(hx.dtypes.EVERY))


def test_what_remains_is_of_32_bits_and_a_key_only_where_it_is_asked_for():
    assert find(dtypes(), lambda dtype: True) == "float32"
    assert find(dtypes(hx.dtypes.INTEGER), lambda dtype: True) == "int32"
    assert find(dtypes(keys=True), hx.dtypes.is_extended).name == "key<fry>"
    with pytest.raises(hx.errors.DTypeMismatch):
        dtypes(["float33"])


@given(dtypes(keys=True), shapes(max_side=2))
def test_arrays_of_every_dtype_and_shape_exist(dtype, shape):
    assert hnp.zeros(shape, dtype).shape == shape if dtype in hx.dtypes.EVERY else dtype.itemsize


def test_shapes_of_every_kind_are_drawn():
    assert not missing(shapes(), equal_to([(), (0,), (1,), (3, 1), (0, 2), (4, 4)]) | {"many": lambda s: len(s) == 3})
    assert not missing(broadcastable_shapes(), equal_to([((), (3,)), ((1,), (2,)), ((0,), (1,))]) | {
        "both are repeated": lambda drawn: np.broadcast_shapes(*drawn) not in drawn})


@given(broadcastable_shapes(3))
def test_shapes_broadcast_together(drawn):
    assert len(drawn) == 3 and hnp.broadcast_shapes(*drawn) == np.broadcast_shapes(*drawn)


@given(array_types(weak=False))
def test_types_are_strong_where_that_is_asked_for(type):
    assert not type.weak and type is hx.core.ShapedArray(type.shape, type.dtype)
