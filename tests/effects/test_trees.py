"""Pytrees: the laws of leaves and structures, on trees of every built-in node type and of types of our own."""

import copy
import dataclasses
import functools
import operator
import pickle
import threading
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlax import tree as public_tree
from handlax import tree_util
from handlax.effects import trees
from handlax.effects.errors import BadArgument, BadStaticArgument, TreeMismatch
from handlax.effects.trees import (
    DictKey,
    FlattenedIndexKey,
    Frozen,
    GetAttrKey,
    Partial,
    SequenceKey,
    TreeDef,
    flatten,
    freeze,
    keystr,
    structure,
    unflatten,
)

Point = namedtuple("Point", "x y")


@trees.register_pytree_node_class
class Bag:
    """A node of our own, with static data and without keys."""

    def __init__(self, items, label):
        self.items, self.label = list(items), label

    def tree_flatten(self):
        return self.items, self.label

    @classmethod
    def tree_unflatten(cls, label, items):
        return cls(items, label)

    def __eq__(self, other):
        return isinstance(other, Bag) and (self.items, self.label) == (other.items, other.label)

    __hash__ = None


@trees.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object = None
    name: str = trees.static(default="layer")


def nodes(inner):
    keys = st.text("abc", max_size=2)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(st.integers(0, 5), inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
        st.dictionaries(keys, inner, max_size=3).map(lambda d: defaultdict(list, d)),
        st.builds(Point, inner, inner),
        st.builds(Bag, st.lists(inner, max_size=2), keys),
        st.builds(Layer, inner, inner, keys),
        st.builds(lambda x, y: Partial(max, x, key=y), inner, inner),
        inner.map(freeze),
    )


LEAVES = st.integers(0, 9) | st.floats(allow_nan=False) | st.text("xy", max_size=1)
TREES = st.recursive(LEAVES | st.none(), nodes, max_leaves=12)


def same(a, b):
    """Equal trees; ``functools.partial`` compares by identity, so the comparison is by parts."""
    return structure(a) == structure(b) and trees.leaves(a) == trees.leaves(b) and type(a) is type(b)


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
        parts = structure(a).flatten_up_to(b)
        structure(b).flatten_up_to(a)
    except TreeMismatch:
        assert structure(a) != structure(b)
    else:
        assert trees.all_leaves(parts) == (structure(a) == structure(b))


@given(TREES)
def test_a_structure_survives_pickling(tree):
    treedef = structure(tree)
    assert pickle.loads(pickle.dumps(treedef)) == treedef


@given(TREES)
def test_a_tree_without_early_leaves_flattens_the_same_by_every_walk(tree):
    leaves, treedef = flatten(tree)
    assert flatten(tree, lambda x: False) == (leaves, treedef)
    assert flatten(tree, is_leaf=lambda x: False)[1].flat == treedef.flat
    found, by_path = trees.flatten_with_path(tree)
    assert [leaf for _, leaf in found] == leaves and by_path == treedef


@given(TREES)
def test_paths_are_distinct(tree):
    paths = [path for path, _ in trees.leaves_with_path(tree)]
    assert len(set(paths)) == len(paths)


@given(TREES)
def test_map_keeps_the_structure_and_obeys_the_functor_laws(tree):
    assert same(trees.map(lambda x: x, tree), tree)
    assert same(trees.map(lambda x: x + "!", trees.map(str, tree)), trees.map(lambda x: str(x) + "!", tree))


@given(TREES)
def test_compose_puts_the_inner_structure_at_every_leaf(tree):
    inner = structure([0, (0,)])
    composed = structure(tree).compose(inner)
    assert composed == structure(trees.map(lambda x: [x, (x,)], tree))
    assert composed.flatten_up_to(trees.map(lambda x: [x, (x,)], tree)) == [
        x for leaf in trees.leaves(tree) for x in (leaf, leaf)
    ]


@given(TREES)
def test_a_leaf_is_a_prefix_of_everything_and_a_tree_of_itself(tree):
    n = structure(tree).num_leaves
    assert trees.broadcast_prefix(0, tree) == [0] * n
    assert trees.broadcast_prefix(tree, tree) == trees.leaves(tree)
    assert structure(trees.broadcast(0, tree)) == structure(tree)


@given(st.lists(st.integers(), min_size=1, max_size=3), TREES)
def test_transpose_is_its_own_inverse(outer, inner):
    full = [inner for _ in outer]
    a, b = structure(outer), structure(inner)
    turned = trees.transpose(a, b, full)
    if b.num_leaves:
        assert same(trees.transpose(b, a, turned), full)
    assert structure(turned) == b.compose(a)


@given(TREES)
def test_children_and_node_data_take_a_structure_apart(tree):
    treedef = structure(tree)
    assert treedef.num_leaves == sum(child.num_leaves for child in treedef.children()) or trees.treedef_is_leaf(treedef)
    assert treedef.num_nodes == 1 + sum(child.num_nodes for child in treedef.children())
    assert (treedef.node_data() is None) == trees.treedef_is_leaf(treedef)


@given(st.lists(TREES, max_size=3))
def test_treedef_tuple_is_the_structure_of_the_tuple(parts):
    assert trees.treedef_tuple(map(structure, parts)) == structure(tuple(parts))


@given(TREES)
def test_freeze_keeps_leaves_and_thaws_to_the_same_tree(tree):
    frozen = freeze(tree)
    assert list(frozen.leaves) == trees.leaves(tree) and frozen.treedef == structure(frozen)
    if type(tree) is not Frozen:
        assert same(frozen.thaw(), tree)
        assert frozen.treedef.children() == [structure(tree)]
    assert frozen == freeze(copy.deepcopy(tree)) and hash(frozen) == hash(freeze(copy.deepcopy(tree)))


@given(TREES)
def test_a_frozen_tree_maps_like_the_tree_inside(tree):
    boxed = trees.map(lambda x: [x], freeze(tree))
    assert type(boxed) is Frozen
    inner = tree if type(tree) is Frozen else freeze(tree)
    assert same(boxed.thaw(), trees.map(lambda x: [x], inner.thaw()))
    assert [keystr(path) for path, _ in trees.leaves_with_path(freeze(tree))] == [
        keystr(path) for path, _ in trees.leaves_with_path(tree)
    ]


@given(st.permutations(list("abcdef")))
def test_the_order_of_insertion_in_a_dict_does_not_matter(keys):
    tree = {key: ord(key) for key in keys}
    assert flatten(tree) == ([ord(key) for key in "abcdef"], structure(dict.fromkeys("abcdef", 0)))
    nested = {key: (ord(key),) for key in keys}
    assert trees.leaves(nested) == [ord(key) for key in "abcdef"]


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
)  # fmt: skip
def test_node_types_print_and_name_their_children(tree, shown, paths):
    assert repr(structure(tree)) == f"PyTreeDef({shown})"
    assert [keystr(path) for path, _ in trees.leaves_with_path(tree)] == paths


def test_subclasses_of_containers_are_leaves():
    class Words(dict):
        pass

    class Pair(tuple):
        __slots__ = ()

    for leaf in (Words(a=1), Pair((1, 2))):
        assert trees.leaves([leaf]) == [leaf] and trees.leaves(leaf)[0] is leaf


def test_static_data_are_compared_by_type():
    assert len({structure(Layer(0, name=name)) for name in (1, 1.0, True, 0.0, -0.0)}) == 5


def test_an_exact_type_is_a_leaf_until_it_is_registered():
    class Late:
        def __init__(self, x):
            self.x = x

    assert structure([Late(1)]) == structure([0])
    trees.register_pytree_node(Late, lambda late: ((late.x,), None), lambda _, xs: Late(*xs))
    assert trees.leaves([Late(1), Late(None)]) == [1]


def test_is_leaf_stops_the_walk_and_may_see_the_path():
    assert trees.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    found, treedef = trees.flatten_with_path(
        {"a": (1, [2, 3])}, is_leaf=lambda path, x: len(path) == 2, is_leaf_takes_path=True
    )
    assert [leaf for _, leaf in found] == [1, [2, 3]] and treedef == structure({"a": (0, 0)})


def test_a_partial_inside_a_partial_stays_whole():
    inner = functools.partial(operator.sub, 10)
    outer = Partial(inner, 3)
    assert outer() == 7 and trees.leaves(outer) == [3]
    assert trees.map(lambda x: x + 1, outer)() == 6


def test_a_field_without_init_is_no_child_and_a_dropped_one_takes_its_default():
    @functools.partial(trees.register_dataclass, data_fields=["x"], meta_fields=[], drop_fields=["cache"])
    @dataclasses.dataclass
    class Node:
        x: object
        cache: int = 0
        double: object = dataclasses.field(init=False, default=None)

    again = trees.map(lambda x: x, Node(1, 7))
    assert (again.x, again.cache) == (1, 0)


def test_register_static_makes_a_value_part_of_the_structure():
    @trees.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert flatten([Mode("a"), 1])[0] == [1]
    assert structure(Mode("a")) == structure(Mode("a")) != structure(Mode("b"))
    assert trees.map(lambda x: x, [Mode("a")]) == [Mode("a")]


def test_registration_with_keys_names_the_children():
    @trees.register_pytree_with_keys_class
    class Pair:
        def __init__(self, *xs):
            self.xs = xs

        def tree_flatten_with_keys(self):
            return [(GetAttrKey("left"), self.xs[0]), (DictKey("r"), self.xs[1])], None

        @classmethod
        def tree_unflatten(cls, _, xs):
            return cls(*xs)

    assert [keystr(path) for path, _ in trees.leaves_with_path(Pair(1, [2]))] == [".left", "['r'][0]"]
    assert trees.map(lambda x: -x, Pair(1, 2)).xs == (-1, -2)


def test_a_listener_hears_of_every_registration_once():
    heard = {}

    def listen(cls, to_iter, from_iter):
        assert cls not in heard
        heard[cls] = to_iter, from_iter

    trees.on_register(listen)
    assert {OrderedDict, defaultdict, Partial, Frozen, Bag, Layer} <= set(heard)

    class New:
        pass

    trees.register_pytree_node(New, lambda x: ((1, 2), "data"), lambda data, xs: (data, xs))
    to_iter, from_iter = heard[New]
    assert to_iter(New()) == ((1, 2), "data") and from_iter("data", (3, 4)) == ("data", (3, 4))


def test_threads_register_and_flatten_at_the_same_time():
    wrong = []

    def work():
        for _ in range(50):
            class Own:
                def __init__(self, x):
                    self.x = x

            before = flatten([Own(1)])[1].num_leaves
            trees.register_pytree_node(Own, lambda own: ((own.x, own.x), None), lambda _, xs: xs[0])
            after = trees.leaves({"a": Own(1), "b": (Own(2),)})
            if (before, after) != (1, [1, 1, 2, 2]):
                wrong.append((before, after))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Functions


def test_map_takes_what_stands_in_the_place_of_a_leaf():
    assert trees.map(lambda x, y: (x, y), (1, 2), ([1], None)) == ((1, [1]), (2, None))
    assert trees.map_with_path(lambda path, x, y: (keystr(path), x + y), {"a": 1}, {"a": 2}) == {"a": ("['a']", 3)}
    assert trees.map_with_path(lambda path, x: x, ()) == ()


def test_reductions_go_over_the_leaves():
    tree = {"a": [1, 2], "b": (3, None)}
    assert trees.reduce(operator.add, tree) == 6 and trees.reduce(operator.add, tree, 10) == 16
    assert trees.reduce_associative(lambda a, b: (a, b), list(range(5))) == ((0, 1), (2, (3, 4)))
    assert trees.reduce_associative(operator.add, [], identity=3) == 3
    assert trees.all(tree) and not trees.all([1, 0]) and trees.all(None)
    with pytest.raises(BadArgument, match="identity"):
        trees.reduce_associative(operator.add, [])


def test_build_tree_reads_nested_iterables():
    assert trees.build_tree(structure({"a": 0, "b": (0, 0)}), [1, iter([2, 3])]) == {"a": 1, "b": (2, 3)}
    with pytest.raises(TreeMismatch, match="2 children, got 1"):
        trees.build_tree(structure((0, 0)), [1])


def test_one_level_and_queries():
    assert trees.flatten_one_level({"b": 1, "a": [2]}) == (([2], 1), ("a", "b"))
    assert trees.flatten_one_level_with_keys([5]) == (((SequenceKey(0), 5),), None)
    assert all(trees.is_tree_node(cls) for cls in (tuple, Point, type(None)))
    assert not any(trees.is_tree_node(cls) for cls in (int, np.ndarray))
    assert trees.all_leaves([1, "a"]) and not trees.all_leaves([1, None]) and trees.all_leaves([()], lambda x: x == ())
    with pytest.raises(BadArgument, match="int"):
        trees.flatten_one_level(3)


def test_keystr_is_python_syntax_or_bare_keys():
    path = (DictKey("a"), SequenceKey(0), GetAttrKey("x"), FlattenedIndexKey(3))
    assert keystr(path) == "['a'][0].x[<flat index 3>]"
    assert keystr(path, simple=True, separator="/") == "a/0/x/3"


def test_the_public_modules_hold_the_same_functions():
    assert public_tree.map is tree_util.tree_map is trees.map
    assert public_tree.freeze is freeze and tree_util.PyTreeDef is TreeDef


# Frozen trees


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
    assert unflatten(treedef, leaves).treedef is treedef


def test_trees_in_the_place_of_leaves_grow_the_structure_of_a_frozen_tree():
    treedef = structure(freeze((0, 0)))
    assert treedef.unflatten([1, (2, None)]) == freeze((1, (2, None)))
    assert trees.leaves(treedef.unflatten([None, 1])) == [1]


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
)  # fmt: skip
def test_a_prefix_that_does_not_fit_names_the_path_and_both_sides(prefix, full, message):
    with pytest.raises(TreeMismatch, match="^vmap in_axes: .*" + message):
        trees.broadcast_prefix(prefix, full, what="vmap in_axes")
    with pytest.raises(ValueError, match="^tree.map, argument 2: .*" + message):
        trees.map(lambda x, y: x, prefix, full)


def test_a_none_that_does_not_fit_gives_the_remedy():
    with pytest.raises(TreeMismatch, match=r"(?s)at \[1\] the prefix is None.*is_leaf=lambda x: x is None"):
        trees.broadcast((0, None), (1, 2))
    assert trees.broadcast((0, None), (1, (2, 3)), is_leaf=lambda x: x is None) == (0, (None, None))


def test_prefix_errors_lists_every_place():
    found = trees.prefix_errors(((0,), [0], 0), ([0], (0,), 0), what="in_axes")
    assert [error.what.split(" the ")[0] for error in found] == ["in_axes: at [0]", "in_axes: at [1]"]
    assert trees.prefix_errors((0, 0), (1, [2])) == []


def test_the_number_of_leaves_must_fit():
    for leaves in ([], [1], [1, 2, 3], iter([1])):
        with pytest.raises(TreeMismatch, match="has 2 leaves, got"):
            structure((0, [0])).unflatten(leaves)


@pytest.mark.parametrize("make", [dict, lambda d: defaultdict(list, d)])
def test_keys_that_cannot_be_sorted_are_an_error_with_their_path(make):
    tree = {"a": [0, make({1: 2, "b": 3})]}
    for walk in (flatten, trees.flatten_with_path, lambda t: flatten(t, is_leaf=lambda x: False)):
        with pytest.raises(BadArgument, match=r"sortable, got int, str at \['a'\]\[1\]"):
            walk(tree)


def test_a_transpose_of_another_shape_is_refused():
    pair = structure((0, 0))
    with pytest.raises(TreeMismatch, match=r"at \[1\]"):
        trees.transpose(structure([0, 0]), pair, [(1, 2), (3, 4, 5)])
    with pytest.raises(TreeMismatch, match="the tree must be"):
        trees.transpose(structure([0, 0]), pair, [(1, 2), (3, (4, 5))])
    with pytest.raises(TreeMismatch, match="must have a leaf"):
        trees.transpose(structure([]), None, [])


def test_registering_twice_is_refused():
    for register in (lambda: trees.register_static(Bag), lambda: trees.register_dataclass(Layer)):
        with pytest.raises(BadArgument, match="registered already"):
            register()
    with pytest.raises(BadArgument, match="registered already"):
        trees.register_pytree_node(tuple, lambda x: (x, None), lambda _, xs: xs)


@dataclasses.dataclass
class Loose:
    x: object
    y: object = 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((["x"], []), r"missing \['y'\]"),
        ((["x", "y"], ["y"]), "must not overlap"),
        ((["x", "y", "z"], []), r"unknown \['z'\]"),
        ((["x"], None), "must come together"),
    ],
)
def test_register_dataclass_refuses_fields_that_do_not_fit(fields, message):
    with pytest.raises(BadArgument, match=message):
        trees.register_dataclass(Loose, *fields)
    assert not trees.is_tree_node(Loose)


def test_a_flatten_function_must_give_a_pair():
    class Bad:
        pass

    trees.register_pytree_node(Bad, lambda x: 3, lambda _, xs: None)
    with pytest.raises(BadArgument, match=r"Bad must give \(children, static data\), got 3"):
        flatten([Bad()])


def test_static_data_that_cannot_be_hashed_are_named():
    treedef = structure(Layer(0, name=["a"]))
    with pytest.raises(BadStaticArgument, match=r"unhashable type: 'list'"):
        hash(treedef)


def test_structures_are_immutable():
    treedef = structure((1, 2))
    with pytest.raises(AttributeError, match="immutable"):
        treedef.num_leaves = 3
    with pytest.raises(AttributeError, match="immutable"):
        del treedef.data
    with pytest.raises(BadArgument, match="structure"):
        TreeDef()


def test_the_memo_of_dict_orders_stays_bounded_and_harmless():
    trees.clear_caches()
    for i in range(5000):
        flatten({f"k{i}": 0})
    assert 0 < trees.clear_caches() <= 4096
    flatten({"a": 1, "b": 2})
    assert trees.clear_caches() == 1
    assert repr(structure({1: 0})) != repr(structure({True: 0})) and structure({1: 0}) != structure({True: 0})
