"""Trees of every container, and axes that ``vmap`` accepts for them."""

from collections import OrderedDict, defaultdict

import numpy as np
import pytest
from helpers.drawn_kinds import equal_to, missing
from helpers.own_pytree_nodes import Couple
from hypothesis import find, given
from hypothesis import strategies as st

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.trees import pytrees
from handlax.testing.strategies import array_types, arrays, dtypes, in_axes, out_axes, shapes, trees
from handlax.testing.strategies.tree_axes import LabelledPair, NamedPair

NUMBERS = trees(st.integers(0, 9), max_leaves=4)
ARRAYS = arrays("int32", shapes(max_side=2))


@given(NUMBERS)
def test_leaves_are_those_that_were_asked_for(tree):
    leaves, structure = pytrees.flatten(tree)
    assert all([type(x) is int for x in leaves])
    assert pytrees.structure(pytrees.unflatten(structure, leaves)) == structure


def test_every_container_is_drawn_around_and_inside_of_others_and_empty_ones_too():
    types = (type(None), list, tuple, dict, OrderedDict, defaultdict, NamedPair, LabelledPair, hx.tree_util.Partial)
    inside = {kind: lambda tree, kind=kind: type(tree) is tuple and kind in map(type, tree) for kind in types}
    assert not missing(NUMBERS, inside)
    assert not missing(NUMBERS, equal_to([None, (), [], {}, ((),), 3], repr))


def test_containers_of_a_user_are_drawn_among_the_others():
    mine = trees(st.integers(), nodes=[lambda inner: st.builds(Couple, inner, inner)])
    assert not missing(mine, {"inside": lambda tree: isinstance(tree, list) and Couple in map(type, tree)})


def size_of(args, axes):
    """The number of lanes that a spec means."""
    flat = pytrees.broadcast_prefix(axes, args, is_leaf=lambda x: x is None)
    (size,) = {x.shape[axis] for x, axis in zip(pytrees.leaves(args), flat, strict=True) if axis is not None}
    return size, flat


@given(st.tuples(trees(ARRAYS, max_leaves=4), ARRAYS.filter(np.ndim)), st.data())
def test_vmap_accepts_every_spec_of_arguments_and_takes_these_lanes(args, data):
    axes = data.draw(in_axes(args))
    size, flat = size_of(args, axes)
    rows = hx.vmap(lambda *args: pytrees.leaves(args), axes)(*args)
    for x, axis, row in zip(pytrees.leaves(args), flat, rows, strict=True):
        whole = np.broadcast_to(x, (size, *x.shape)) if axis is None else np.moveaxis(x, axis, 0)
        np.testing.assert_array_equal(row, whole)


@given(trees(ARRAYS, max_leaves=4), st.data())
def test_vmap_accepts_every_spec_of_results_and_puts_lanes_there(results, data):
    axes = data.draw(out_axes(results))
    found = hx.vmap(lambda k: pytrees.map(lambda x: x + k, results), out_axes=axes)(hnp.arange(3))
    flat = pytrees.broadcast_prefix(axes, results, is_leaf=lambda x: x is None)
    for x, axis, y in zip(pytrees.leaves(results), flat, pytrees.leaves(found), strict=True):
        np.testing.assert_array_equal(y, np.stack([x, x + 1, x + 2], axis))


PAIR = (np.zeros((2, 3)), {"a": np.zeros(3), "b": np.zeros((3, 3))})


def test_specs_of_every_kind_are_drawn():
    assert not missing(in_axes(PAIR), equal_to([
        (1, 0), (-1, {"a": 0, "b": 1}), (None, {"a": None, "b": -2}), (1, {"a": -1, "b": None}), (0, None)], repr))
    assert not missing(out_axes(PAIR), equal_to([0, -1, (2, 0), (-3, {"a": 1, "b": -1})], repr))


def test_types_have_axes_as_arrays_have_and_what_has_none_is_refused():
    types = find(st.tuples(array_types(dtypes({"float32"}))), lambda types: types[0].shape == (2,))
    assert find(in_axes(types), lambda axes: True) == 0
    with pytest.raises(hx.errors.BadArgument, match="must have an axis"):
        find(in_axes((1.0, [])), lambda axes: True)
