"""Frozen trees: leaves as attributes, entries as rows, and no change."""

import pickle

import numpy as np
import pytest
from helpers.own_pytree_nodes import Layer, Point

from handlax.effects.trees import pytrees
from handlax.effects.trees.pytrees import (
    Frozen,
    flatten,
    freeze,
    structure,
    unflatten,
)


def test_a_frozen_tree_reads_like_what_it_wraps():
    frozen = freeze({"w": [1.0, (2.0, None)], "p": Point(3, {"k": 4}), "layer": Layer([5], name="n")})
    assert frozen["w"][0] == 1.0 and frozen["w"][1][1] is None and frozen["p"].y["k"] == 4
    assert list(frozen) == ["layer", "p", "w"] and len(frozen) == 3 and "w" in frozen and frozen.get("q") is None
    assert dict(**frozen)["w"] == freeze([1.0, (2.0, None)]) and [*frozen["w"][1]] == [2.0, None]
    assert frozen["layer"].w[0] == 5 and frozen["layer"].name == "n"
    assert type(frozen["p"]) is Frozen and type(frozen["layer"].w) is Frozen


def test_a_frozen_tree_cannot_be_changed():
    source = {"w": [1, 2]}
    frozen = freeze(source)
    source["w"].append(3)
    frozen.thaw()["w"].append(4)
    assert frozen.leaves == (1, 2) and frozen.thaw() == {"w": [1, 2]}
    with pytest.raises(AttributeError, match="immutable"):
        frozen.leaves = ()
    with pytest.raises(TypeError):
        frozen["w"] = 1
    for name in ("update", "pop", "clear", "setdefault"):
        assert not hasattr(frozen, name)
    assert not hasattr(frozen["w"], "append")


def test_frozen_trees_compare_numbers_by_value_and_arrays_by_identity():
    x = np.zeros(2)
    assert freeze({"a": x}) == freeze({"a": x}) != freeze({"a": x.copy()})
    assert len({freeze(value) for value in (1, 1.0, True, 0.0, -0.0)}) == 5
    assert freeze([float("nan")]) == freeze([float("nan")])
    assert freeze(freeze(x)) == freeze(x) and pickle.loads(pickle.dumps(freeze([1, (2,)]))) == freeze([1, (2,)])


def test_flattening_a_frozen_tree_makes_no_structure():
    frozen = freeze({str(i): {"w": i, "b": i} for i in range(100)})
    leaves, treedef = flatten(frozen)
    assert treedef is frozen.treedef and leaves == list(frozen.leaves)
    assert unflatten(treedef, leaves).treedef == treedef


def test_trees_in_the_place_of_leaves_grow_the_structure_of_a_frozen_tree():
    treedef = structure(freeze((0, 0)))
    assert treedef.unflatten([1, (2, None)]) == freeze((1, (2, None)))
    assert pytrees.leaves(treedef.unflatten([None, 1])) == [1]
