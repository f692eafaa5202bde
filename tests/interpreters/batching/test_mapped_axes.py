"""The mapped axes of arrays."""

import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.interpreters.batching.mapped_axes import dimensions, lane_count, result_dimensions

X, Y = hnp.ones((2, 3)), hnp.ones((3, 4))


def test_dimensions_count_from_zero_and_follow_a_prefix_of_the_tree():
    assert dimensions("vmap", -1, (X, Y), [X, Y]) == [1, 1]
    assert dimensions("vmap", (1, {"a": None, "b": -2}), (X, {"a": X, "b": Y}), [X, X, Y]) == [1, None, 0]
    assert result_dimensions("vmap", (-1, None), (X, Y), [3, 3]) == [2, None]


def test_lanes_are_as_many_as_all_mapped_axes_have_elements():
    assert lane_count("vmap", [1, 0, None], [X, Y, X], None) == lane_count("vmap", [None], [X], 3) == 3
    with pytest.raises(errors.ShapeMismatch, match=r"2 of argument 0 \(f32\[2,3\] along 0\); 3 of argument 1"):
        lane_count("vmap", [0, 0], [X, Y], None)
    with pytest.raises(errors.BadArgument, match="or axis_size be set"):
        lane_count("vmap", [None], [X], None)


def test_a_negative_number_of_lanes_is_refused():
    with pytest.raises(errors.BadArgument, match="vmap: axis_size must be at least 0, got -1"):
        hx.vmap(lambda x: x, in_axes=None, axis_size=-1)(1.0)
