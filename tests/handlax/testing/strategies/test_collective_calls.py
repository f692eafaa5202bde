"""Calls of collectives: each runs wherever its axes are bound, and with every option."""

import itertools
from inspect import signature
from types import FunctionType

import numpy as np
import pytest
from helpers.drawn_kinds import equal_to, missing
from helpers.lanes import Devices, mapped
from hypothesis import given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import lax
from handlax.testing.strategies import collectives, lane_groups
from handlax.testing.strategies.collective_calls import COLLECTIVES

SIZES = {"i": 2, "j": 3}
MESH = hx.make_mesh((2, 3), ("i", "j"))


@pytest.mark.parametrize("name", COLLECTIVES)
@settings(max_examples=2)
@given(data=st.data())
def test_every_call_runs_in_shard_map_as_in_vmap(name, data):
    call = data.draw(collectives(SIZES, [name]))
    shape = (2, 3, *call.shape)
    x = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    by_lanes, by_devices = (mapped(lambda x: (call(x),), "ij", (2, 3), owners)(x)[0]
                            for owners in ((0, 1), [Devices((0, 1), MESH, True)]))
    np.testing.assert_allclose(by_devices, by_lanes, rtol=1e-6)


# functions of an axis that no call is of, and why
WITHOUT_CALLS = {
    "axis_size": "it is a number of Python", "pdot": "it has two operands", "ragged_all_to_all": "it has six operands",
    "pcast": "it changes the type alone", "pvary": "it changes the type alone",
}


def test_every_collective_has_calls_or_a_reason():
    functions = {name: f for name, f in vars(lax).items() if isinstance(f, FunctionType)}
    of_axes = {name for name, f in functions.items() if "axis_name" in signature(f).parameters}
    assert of_axes | {"pgather"} == {*COLLECTIVES, *WITHOUT_CALLS}


def option(key, value):
    """That a call has this option."""
    return lambda call: call.options.get(key) == value


# what calls of each collective over axes of 2 and 3 lanes can be told
KINDS = {
    "psum": [lambda call: call.axis_name == "j", lambda call: call.axis_name == ("j", "i"),
             lambda call: call.axis_name == (), lambda call: call.axis_name == (-1, "i")],
    "pmax": [lambda call: call.dims == (0, -1), option("axis_index_groups", [[0], [1]])],
    "pmean": [lambda call: {*map(len, call.options.get("axis_index_groups", ()))} == {1, 2}],
    "all_gather": [option("tiled", True), option("axis", -1), option("axis", 2), option("axis_index_groups", [[0, 1]])],
    "psum_scatter": [option("tiled", True), option("tiled", False), option("scatter_dimension", -1)],
    "all_to_all": [option("concat_axis", -2), option("split_axis", 1), option("tiled", True)],
    "pswapaxes": [option("axis", 1)], "pbroadcast": [option("source", 2)],
    "pcumsum": [lambda call: call.options["reverse"] and call.options["exclusive"]],
    "ppermute": [option("perm", []), option("perm", [(0, 1)]), lambda call: len(call.options["perm"]) == 6],
    "pshuffle": [lambda call: len(call.options["perm"]) == 6], "pargmin": [lambda call: call.axes == ("i",)],
    "pgather": [lambda call: len(call.options["idx"]) == 2], "axis_index": [lambda call: call.axis_name == ("j", "i")],
}


@pytest.mark.parametrize("name", KINDS)
def test_calls_of_every_kind_are_drawn(name):
    assert not missing(collectives(SIZES, [name]), dict(enumerate(KINDS[name])))


@given(st.integers(1, 8), st.data())
def test_groups_have_every_lane_once(total, data):
    groups = data.draw(lane_groups(total, equal=data.draw(st.booleans())))
    assert sorted(itertools.chain(*groups)) == [*range(total)] and all(groups)


def test_groups_of_equal_sizes_and_of_others_are_drawn():
    assert not missing(lane_groups(3), equal_to([[[0, 1, 2]], [[0], [1, 2]], [[2], [1], [0]]], repr))
    assert not missing(lane_groups(4, equal=True), equal_to([[[0, 1], [2, 3]], [[0], [1], [2], [3]]], repr))
