"""Pytrees: the laws of leaves and structures, on trees of every built-in node type and of types of our own."""

import copy
import functools
import operator
import pickle
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest
from helpers.own_pytree_nodes import Bag, Couple, Layer, Point
from hypothesis import given
from hypothesis import strategies as st

from handlax import tree as public_tree
from handlax import tree_util
from handlax.effects.base.errors import BadArgument, TreeMismatch
from handlax.effects.trees import pytrees
from handlax.effects.trees.cpp_pytrees import PyTreeDef
from handlax.effects.trees.path_keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from handlax.effects.trees.pytrees import (
    Frozen,
    Partial,
    flatten,
    freeze,
    keystr,
    structure,
    unflatten,
)
from handlax.testing.strategies import trees


def nodes(inner):
    """Containers beside those that everybody has."""
    keys = st.text("abc", max_size=2)
    return st.one_of(
        st.builds(Point, inner, inner), st.builds(Couple, inner, inner), st.builds(Layer, inner, inner, keys),
        st.builds(Bag, st.lists(inner, max_size=2), keys), inner.map(freeze),
    )


LEAVES = st.integers(0, 9) | st.floats(allow_nan=False) | st.text("xy", max_size=1)
TREES = trees(LEAVES, nodes=[nodes], max_leaves=12)


def same(a, b):
    """Equal trees; ``functools.partial`` compares by identity, so the comparison is by parts."""
    return structure(a) == structure(b) and pytrees.leaves(a) == pytrees.leaves(b) and type(a) is type(b)


# Laws


@given(TREES)
def test_unflatten_undoes_flatten(tree):
    leaves, treedef = flatten(tree)
    assert same(unflatten(treedef, leaves), tree)
    assert len(leaves) == treedef.num_leaves


@given(TREES)
def test_flatten_undoes_unflatten(tree):
    treedef = structure(tree)
    leaves = [object() for _ in range(treedef.num_leaves)]
    again, other = flatten(treedef.unflatten(iter(leaves)))
    assert again == leaves and other == treedef


@given(TREES)
def test_equal_structures_hash_and_print_alike(tree):
    first, second = structure(tree), structure(copy.deepcopy(tree))
    assert first == second and hash(first) == hash(second) and repr(first) == repr(second)


@given(TREES, TREES)
def test_structures_are_equal_only_if_they_are_prefixes_of_each_other(a, b):
    try:
        parts = pytrees.flatten_up_to(structure(a), b, "test")
        pytrees.flatten_up_to(structure(b), a, "test")
    except TreeMismatch:
        assert structure(a) != structure(b)
    else:
        assert pytrees.all_leaves(parts) == (structure(a) == structure(b))


@given(TREES)
def test_a_structure_survives_pickling(tree):
    treedef = structure(tree)
    assert pickle.loads(pickle.dumps(treedef)) == treedef


@given(TREES)
def test_a_tree_without_early_leaves_flattens_the_same_by_every_walk(tree):
    leaves, treedef = flatten(tree)
    assert flatten(tree, lambda x: False) == (leaves, treedef)
    found, by_path = pytrees.flatten_with_path(tree)
    assert [leaf for _, leaf in found] == leaves and by_path == treedef


def leaves_by_level(x, path=()):
    """The leaves of a tree with their paths, taken apart level by level."""
    if not pytrees.is_tree_node(type(x)):
        return [(path, x)]
    pairs = pytrees.flatten_one_level_with_keys(x)[0]
    return [leaf for key, child in pairs for leaf in leaves_by_level(child, path if key is None else (*path, key))]


@given(TREES)
def test_paths_consist_of_the_keys_of_the_levels(tree):
    assert pytrees.leaves_with_path(tree) == leaves_by_level(tree)
    seen = []
    pytrees.flatten_with_path(tree, lambda path, x: seen.append(path), is_leaf_takes_path=True)
    assert {path for path, _ in leaves_by_level(tree)} <= set(seen)
    assert not any(key is None for path in seen for key in path)
    assert [path for path, _ in leaves_by_level(tree)] == list(pytrees.leaf_paths(structure(tree)))


@given(TREES)
def test_paths_are_distinct(tree):
    paths = [path for path, _ in pytrees.leaves_with_path(tree)]
    assert len(set(paths)) == len(paths)


@given(TREES)
def test_map_keeps_the_structure_and_obeys_the_functor_laws(tree):
    assert same(pytrees.map(lambda x: x, tree), tree)
    assert same(pytrees.map(lambda x: x + "!", pytrees.map(str, tree)), pytrees.map(lambda x: str(x) + "!", tree))


@given(TREES)
def test_compose_puts_the_inner_structure_at_every_leaf(tree):
    inner = structure([0, (0,)])
    composed = structure(tree).compose(inner)
    assert composed == structure(pytrees.map(lambda x: [x, (x,)], tree))
    assert composed.flatten_up_to(pytrees.map(lambda x: [x, (x,)], tree)) == [
        x for leaf in pytrees.leaves(tree) for x in (leaf, leaf)
    ]


@given(TREES)
def test_a_leaf_is_a_prefix_of_everything_and_a_tree_of_itself(tree):
    n = structure(tree).num_leaves
    assert pytrees.broadcast_prefix(0, tree) == [0] * n
    assert pytrees.broadcast_prefix(tree, tree) == pytrees.leaves(tree)
    assert structure(pytrees.broadcast(0, tree)) == structure(tree)


@given(st.lists(st.integers(), min_size=1, max_size=3), TREES)
def test_transpose_is_its_own_inverse(outer, inner):
    full = [inner for _ in outer]
    a, b = structure(outer), structure(inner)
    turned = pytrees.transpose(a, b, full)
    if b.num_leaves:
        assert same(pytrees.transpose(b, a, turned), full)
    assert structure(turned) == b.compose(a)


@given(TREES)
def test_children_and_node_data_take_a_structure_apart(tree):
    treedef = structure(tree)
    leaves = sum(child.num_leaves for child in treedef.children())
    assert treedef.num_leaves == leaves or pytrees.is_leaf_structure(treedef)
    assert treedef.num_nodes == 1 + sum(child.num_nodes for child in treedef.children())
    assert (treedef.node_data() is None) == pytrees.is_leaf_structure(treedef)
    assert (not treedef.children()) == pytrees.treedef_is_leaf(treedef)


@given(st.lists(TREES, max_size=3))
def test_treedef_tuple_is_the_structure_of_the_tuple(parts):
    assert pytrees.treedef_tuple(map(structure, parts)) == structure(tuple(parts))


@given(TREES)
def test_freeze_keeps_leaves_and_thaws_to_the_same_tree(tree):
    frozen = freeze(tree)
    assert list(frozen.leaves) == pytrees.leaves(tree) and frozen.treedef == structure(frozen)
    if type(tree) is not Frozen:
        assert same(frozen.thaw(), tree)
        assert frozen.treedef.children() == [structure(tree)]
    assert frozen == freeze(copy.deepcopy(tree)) and hash(frozen) == hash(freeze(copy.deepcopy(tree)))


@given(TREES)
def test_a_frozen_tree_maps_like_the_tree_inside(tree):
    boxed = pytrees.map(lambda x: [x], freeze(tree))
    assert type(boxed) is Frozen
    inner = tree if type(tree) is Frozen else freeze(tree)
    assert same(boxed.thaw(), pytrees.map(lambda x: [x], inner.thaw()))
    assert [keystr(path) for path, _ in pytrees.leaves_with_path(freeze(tree))] == [
        keystr(path) for path, _ in pytrees.leaves_with_path(tree)
    ]


@given(st.permutations(list("abcdef")))
def test_the_order_of_insertion_in_a_dict_does_not_matter(keys):
    tree = {key: ord(key) for key in keys}
    assert flatten(tree) == ([ord(key) for key in "abcdef"], structure(dict.fromkeys("abcdef", 0)))
    nested = {key: (ord(key),) for key in keys}
    assert pytrees.leaves(nested) == [ord(key) for key in "abcdef"]


# What is a node


@pytest.mark.parametrize(
    ("tree", "shown", "paths"),
    [
        (1, "*", [""]),
        (None, "None", []),
        ((1,), "(*,)", ["[0]"]),
        ((), "()", []),
        ([1, None, (2,)], "[*, None, (*,)]", ["[0]", "[2][0]"]),
        ({"b": (1, None), "a": 2}, "{'a': *, 'b': (*, None)}", ["['a']", "['b'][0]"]),
        (Point(1, 2), "CustomNode(namedtuple[Point], [*, *])", [".x", ".y"]),
        (OrderedDict(b=1, a=2), "CustomNode(OrderedDict[('b', 'a')], [*, *])", ["['b']", "['a']"]),
        (defaultdict(int, b=1), "CustomNode(defaultdict[(<class 'int'>, ('b',))], [*])", ["['b']"]),
        (Partial(max, 1, a=2), "CustomNode(Partial[<built-in function max>], [(*,), {'a': *}])",
         ["[<flat index 0>][0]", "[<flat index 1>]['a']"]),
        (Layer([1, 2], name="q"), "CustomNode(Layer[('q',)], [[*, *], None])", [".w[0]", ".w[1]"]),
        (deque([1, 2]), "*", [""]),
        (freeze({"a": 1}), "CustomNode(Frozen[None], [{'a': *}])", ["['a']"]),
    ],
)
def test_node_types_print_and_name_their_children(tree, shown, paths):
    assert repr(structure(tree)) == f"PyTreeDef({shown})"
    assert [keystr(path) for path, _ in pytrees.leaves_with_path(tree)] == paths


def test_subclasses_of_containers_are_leaves():
    class Words(dict):
        pass

    class Pair(tuple):
        __slots__ = ()

    for leaf in (Words(a=1), Pair((1, 2))):
        assert pytrees.leaves([leaf]) == [leaf] and pytrees.leaves(leaf)[0] is leaf


def test_static_data_are_compared_by_type():
    assert len({structure(Layer(0, name=name)) for name in (1, 1.0, True, 0.0, -0.0)}) == 5


def test_is_leaf_stops_the_walk_and_may_see_the_path():
    assert pytrees.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    found, treedef = pytrees.flatten_with_path(
        {"a": (1, [2, 3])}, is_leaf=lambda path, x: len(path) == 2, is_leaf_takes_path=True
    )
    assert [leaf for _, leaf in found] == [1, [2, 3]] and treedef == structure({"a": (0, 0)})


def test_a_partial_inside_a_partial_stays_whole():
    inner = functools.partial(operator.sub, 10)
    outer = Partial(inner, 3)
    assert outer() == 7 and pytrees.leaves(outer) == [3]
    assert pytrees.map(lambda x: x + 1, outer)() == 6


# Functions


def test_map_takes_what_stands_in_the_place_of_a_leaf():
    assert pytrees.map(lambda x, y: (x, y), (1, 2), ([1], None)) == ((1, [1]), (2, None))
    assert pytrees.map_with_path(lambda path, x, y: (keystr(path), x + y), {"a": 1}, {"a": 2}) == {"a": ("['a']", 3)}
    assert pytrees.map_with_path(lambda path, x: x, ()) == ()


def test_reductions_go_over_the_leaves():
    tree = {"a": [1, 2], "b": (3, None)}
    assert pytrees.reduce(operator.add, tree) == 6 and pytrees.reduce(operator.add, tree, 10) == 16
    assert pytrees.reduce_associative(lambda a, b: (a, b), list(range(5))) == ((0, 1), (2, (3, 4)))
    assert pytrees.reduce_associative(operator.add, [], identity=3) == 3
    assert pytrees.all(tree) and not pytrees.all([1, 0]) and pytrees.all(None)
    with pytest.raises(BadArgument, match="identity"):
        pytrees.reduce_associative(operator.add, [])


def test_build_tree_reads_nested_iterables():
    assert pytrees.build_tree(structure({"a": 0, "b": (0, 0)}), [1, iter([2, 3])]) == {"a": 1, "b": (2, 3)}
    with pytest.raises(TreeMismatch, match="2 children, got 1"):
        pytrees.build_tree(structure((0, 0)), [1])


def test_one_level_and_queries():
    assert pytrees.flatten_one_level({"b": 1, "a": [2]}) == (([2], 1), ("a", "b"))
    assert pytrees.flatten_one_level_with_keys([5]) == (((SequenceKey(0), 5),), None)
    assert all(pytrees.is_tree_node(cls) for cls in (tuple, Point, type(None)))
    assert not any(pytrees.is_tree_node(cls) for cls in (int, np.ndarray))
    assert pytrees.all_leaves([1, "a"]) and not pytrees.all_leaves([1, None])
    assert pytrees.all_leaves([()], lambda x: x == ())
    with pytest.raises(BadArgument, match="int"):
        pytrees.flatten_one_level(3)


def test_keystr_is_python_syntax_or_bare_keys():
    path = (DictKey("a"), SequenceKey(0), GetAttrKey("x"), FlattenedIndexKey(3))
    assert keystr(path) == "['a'][0].x[<flat index 3>]"
    assert keystr(path, simple=True, separator="/") == "a/0/x/3"


def test_the_public_modules_hold_the_same_functions():
    assert public_tree.map is tree_util.tree_map is pytrees.map
    assert public_tree.freeze is freeze and tree_util.PyTreeDef is PyTreeDef


# Errors


@pytest.mark.parametrize(
    ("prefix", "full", "message"),
    [
        ({"w": (0, (1, 1))}, {"w": (9, [1, 2, 3])},
         r"at \['w'\]\[1\] the prefix is a tuple of 2 but the tree has a list of 3\."),
        ((0, 1), (1, 2, 3), "at the root the prefix is a tuple of 2 but the tree has a tuple of 3"),
        ([{"a": 1}], [{"b": 1}],
         r"at \[0\] the prefix is a dict with keys \['a'\] but the tree has a dict with keys \['b'\]"),
        ({"a": (0,)}, {"a": 1.5}, r"at \['a'\] the prefix is a tuple of 1 but the tree has a leaf of type float"),
        (Layer((0,)), Layer([0]), r"at \.w the prefix is a tuple of 1 but the tree has a list of 1"),
        (Layer(0, name="a"), Layer(0, name="b"),
         r"a Layer of 2 with static data \('a',\) but the tree has a Layer of 2"),
        (freeze({"a": (0,)}), freeze({"a": [0]}),
         r"at \['a'\] the prefix is a tuple of 1 but the tree has a list of 1"),
    ],
)
def test_a_prefix_that_does_not_fit_names_the_path_and_both_sides(prefix, full, message):
    with pytest.raises(TreeMismatch, match="^vmap in_axes: .*" + message):
        pytrees.broadcast_prefix(prefix, full, what="vmap in_axes")
    of_trees = message.replace("the prefix is", "there must be").replace(" but the tree has", ", got")
    with pytest.raises(ValueError, match="^tree.map, argument 2: .*" + of_trees):
        pytrees.map(lambda x, y: x, prefix, full)


def test_a_none_that_does_not_fit_gives_the_remedy():
    with pytest.raises(TreeMismatch, match=r"(?s)at \[1\] the prefix is None.*is_leaf=lambda x: x is None"):
        pytrees.broadcast((0, None), (1, 2))
    assert pytrees.broadcast((0, None), (1, (2, 3)), is_leaf=lambda x: x is None) == (0, (None, None))


def test_prefix_errors_lists_every_place():
    found = pytrees.prefix_errors(((0,), [0], 0), ([0], (0,), 0), what="in_axes")
    assert [error.what.split(" the ")[0] for error in found] == ["in_axes: at [0]", "in_axes: at [1]"]
    assert pytrees.prefix_errors((0, 0), (1, [2])) == []


def test_the_number_of_leaves_must_fit():
    for leaves in ([], [1], [1, 2, 3], iter([1])):
        with pytest.raises(TreeMismatch, match="has 2 leaves, got"):
            unflatten(structure((0, [0])), leaves)


@pytest.mark.parametrize("make", [dict, lambda d: defaultdict(list, d)])
def test_keys_that_cannot_be_sorted_are_an_error_with_their_path(make):
    tree = {"a": [0, make({1: 2, "b": 3})]}
    for walk in (flatten, pytrees.flatten_with_path, lambda t: flatten(t, is_leaf=lambda x: False)):
        with pytest.raises(BadArgument, match=r"sortable, got int, str at \['a'\]\[1\]"):
            walk(tree)


def test_a_transpose_of_another_shape_is_refused():
    pair = structure((0, 0))
    with pytest.raises(TreeMismatch, match=r"at \[1\]"):
        pytrees.transpose(structure([0, 0]), pair, [(1, 2), (3, 4, 5)])
    with pytest.raises(TreeMismatch, match="the tree must be"):
        pytrees.transpose(structure([0, 0]), pair, [(1, 2), (3, (4, 5))])
    with pytest.raises(TreeMismatch, match="must have a leaf"):
        pytrees.transpose(structure([]), None, [])


def test_structures_are_immutable():
    treedef = structure((1, 2))
    for name in ("num_leaves", "another"):
        with pytest.raises(AttributeError):
            setattr(treedef, name, 3)
    with pytest.raises(TypeError):
        PyTreeDef()


def test_nodes_without_children_are_leaves_to_treedef_is_leaf_as_in_jax():
    for tree in (1.0, None, (), [], {}, OrderedDict()):
        assert pytrees.treedef_is_leaf(structure(tree))
    for tree in ((None,), [()], {"a": 1}, Point(1, 2)):
        assert not pytrees.treedef_is_leaf(structure(tree))
