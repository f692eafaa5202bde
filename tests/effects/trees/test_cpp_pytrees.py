"""jaxlib's pytrees under the package's registry."""

import collections
import dataclasses
import functools
import operator
import pickle
import sys

import pytest
from helpers.other_threads import together

import handlax as hx
from handlax.effects.base.errors import BadArgument, TreeMismatch
from handlax.effects.trees import pytrees
from handlax.effects.trees.structure import assemble


class Pair:
    """Two children, and a name as static data."""

    def __init__(self, left, right, name):
        self.left, self.right, self.name = left, right, name


pytrees.register_pytree_node(Pair, lambda p: ((p.left, p.right), p.name), lambda name, both: Pair(*both, name))


def test_static_data_compare_by_type_and_value():
    static = [pytrees.structure(Pair(1, 2, data)) for data in (1, 1.0, True, 0.0, -0.0, "p")]
    assert len(set(static)) == 6
    again = [pytrees.structure(Pair(1, 2, data)) for data in (1, 1.0, True, 0.0, -0.0, "p")]
    assert static == again and list(map(hash, static)) == list(map(hash, again))


def test_a_structure_with_nodes_of_a_user_is_pickled():
    treedef = pytrees.structure({"a": [Pair(1, (2, None), "p")]})
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef and again.unflatten([3, 4])["a"][0].right == (4, None)


def test_a_type_registered_while_threads_flatten_is_a_node_for_all():
    def work(_):
        class Box:
            def __init__(self, value):
                self.value = value

        pytrees.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, children: Box(*children))
        return [pytrees.leaves([Box(i), Pair(i, i, "p")]) for i in range(200)]

    assert together(8, work) == [[[i] * 3 for i in range(200)]] * 8


def calls(n=0):
    """How many calls of functions of Python may be nested."""
    try:
        return calls(n + 1)
    except RecursionError:
        return n


def calls_from_c(n=0):
    """How many calls of functions of Python by functions of C, which some versions of CPython count by themselves."""
    try:
        return max((n + 1,), key=calls_from_c) and DEEPEST[0]
    except RecursionError:
        DEEPEST[0] = n
        return n


DEEPEST = [0]


def levels():
    """What the thread has left of the recursion limit."""
    calls_from_c()
    return calls(), DEEPEST[0]


def nested(x, depth):
    for _ in range(depth):
        x = [x]
    return x


CYCLIC = []
CYCLIC.append(CYCLIC)


def test_a_tree_that_is_too_deep_is_refused():
    before = levels()
    for tree in (nested(0, sys.getrecursionlimit() * 50), CYCLIC):
        with pytest.raises(BadArgument, match="nested too deeply, or contains itself"):
            pytrees.flatten(tree)
    assert levels() == before


def false(*x):
    return False


def called_at(depth, f):
    """``f()``, with this many calls around it."""
    return f() if depth == 0 else called_at(depth - 1, f)


@pytest.mark.parametrize("is_leaf", [false, functools.partial(operator.eq, None)], ids=["of Python", "of C"])
def test_with_is_leaf_a_tree_that_contains_itself_is_refused_at_every_depth_of_calls(is_leaf):
    before = levels()
    for depth in range(8):
        with pytest.raises(BadArgument, match="nested too deeply, or contains itself"):
            called_at(depth, lambda: pytrees.flatten({"a": (CYCLIC,)}, is_leaf))
    with pytest.raises(BadArgument, match="nested too deeply, or contains itself"):
        pytrees.flatten_with_path(CYCLIC, false)
    assert levels() == before


@pytest.mark.parametrize(
    "call",
    [
        lambda x: hx.vmap(lambda x: x, in_axes=CYCLIC)(x),
        lambda x: hx.vmap(lambda x: x, out_axes=CYCLIC)(x),
        lambda x: hx.device_put(x, CYCLIC),
        lambda x: hx.jit(lambda x: x, in_shardings=CYCLIC)(x),
        lambda x: hx.tree.leaves(CYCLIC, is_leaf=lambda x: x is None),
    ],
    ids=["in_axes", "out_axes", "device_put", "in_shardings", "leaves"],
)
def test_an_argument_that_contains_itself_is_refused_and_the_next_call_works(call):
    x = hx.numpy.ones(3)
    with pytest.raises(BadArgument, match="nested too deeply, or contains itself"):
        call(x)
    assert hx.vmap(hx.jit(lambda x: x + 1))(x).tolist() == [2.0, 2.0, 2.0]


class Endless:
    """A node that is its own child."""


class Failing:
    """A node whose flatten function raises."""


pytrees.register_pytree_node(Endless, lambda x: ((x,), None), lambda _, children: children[0])
pytrees.register_pytree_node(Failing, lambda x: 1 / 0, lambda _, children: children[0])


class Incomparable:
    """A key that raises, as it is compared."""

    def __init__(self, error=ZeroDivisionError):
        self.error = error

    def __lt__(self, other):
        raise self.error


@pytrees.register_dataclass
@dataclasses.dataclass
class Point:
    x: int


UNSORTABLE = {1: 0, "a": 0}
BROKEN = {
    "flatten function": ([[[Failing()]]], ZeroDivisionError),
    "endless": (Endless(), RecursionError),
    "keys": ([[[UNSORTABLE]]], BadArgument),
    "keys, deep": (nested(UNSORTABLE, 600), BadArgument),
    "keys in a node": (Pair(0, {"a": [UNSORTABLE]}, "p"), BadArgument),
    "keys that raise": ([[[{Incomparable(): 0, Incomparable(): 0}]]], ZeroDivisionError),
    "keys that interrupt": (nested({Incomparable(KeyboardInterrupt): 0, Incomparable(KeyboardInterrupt): 0}, 9),
                            KeyboardInterrupt),
    "defaultdict": ([[[collections.defaultdict(int, UNSORTABLE)]]], BadArgument),
    "attribute": ([[[object.__new__(Point)]]], AttributeError),
    "two": ([[Failing()], [[[UNSORTABLE]]]], ZeroDivisionError),
    "two the other way round": ([[UNSORTABLE], [[[Failing()]]]], BadArgument),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_tree_that_cannot_be_taken_apart_leaves_nothing_behind(what):
    tree, error = BROKEN[what]
    ways = [pytrees.flatten, pytrees.flatten_with_path, lambda x: hx.jit(lambda y: y)(x)]
    ways += [hx.jit(lambda y: y, donate_argnums=0), hx.jit(lambda y, n: y, static_argnames="n")]
    if what != "endless":
        ways += [lambda x: pytrees.flatten(x, false), lambda x: pytrees.flatten_with_path(x, false)]
    before = levels()
    for _ in range(10):
        for flatten in ways:
            with pytest.raises(error):
                flatten(tree)
        if not what.startswith("keys, deep"):
            with pytest.raises((TreeMismatch, error)):
                pytrees.flatten_up_to(pytrees.structure([0, 0, 0]), tree, "test")
        assert pytrees.leaves([1, Pair(2, 3, "p")]) == [1, 2, 3]
    assert levels() == before


def test_an_interrupt_that_does_not_come_again_ends_the_call():
    class Once:
        def __lt__(self, other):
            if not asked:
                asked.append(other)
                raise KeyboardInterrupt
            return id(self) < id(other)

    for flatten in (pytrees.flatten, pytrees.flatten_with_path, lambda x: hx.jit(lambda y: y)(x)):
        asked = []
        with pytest.raises(KeyboardInterrupt):
            flatten({Once(): 1, Once(): 2})


def test_what_is_leaf_raises_leaves_nothing_behind():
    def ask(x):
        if x == 1:
            raise KeyError(x)
        asked.append(x)
        return False

    before, asked = levels(), []
    for flatten in (pytrees.flatten, pytrees.flatten_with_path):
        for _ in range(50):
            with pytest.raises(KeyError):
                flatten([[[[1]]], 2], ask)
            with pytest.raises(BadArgument, match="is_leaf must return a bool, got 3"):
                flatten([[[[1]]]], lambda x: x == 1 and 3)
    assert levels() == before and 2 not in asked


def test_a_node_is_assembled_of_a_registered_type():
    treedef = pytrees.structure(Pair(0, [0], "p"))
    assert assemble((Pair, "p"), treedef.children()) == treedef
    with pytest.raises(TreeMismatch, match="int must be registered as a node"):
        assemble((int, None), ())


# the registry


class Twin:
    def __init__(self, a, b, name):
        self.a, self.b, self.name = a, b, name


@dataclasses.dataclass
class Dense:
    w: float
    size: int


Place = collections.namedtuple("Place", "x y")


def test_the_registry_answers_what_libraries_ask_of_it():
    registry = hx.tree_util.default_registry
    registry.register_node(
        Twin, lambda p: ((p.a, p.b), p.name), lambda name, c: Twin(*c, name),
        lambda p: ((("a", p.a), ("b", p.b)), p.name),
    )
    registry.register_dataclass_node(Dense, ("w",), ("size",))
    for node, children, data in (
        (Twin(1, 2, "p"), (1, 2), "p"), (Dense(3.0, 4), (3.0,), (4,)), (Place(1, 2), (1, 2), None), (None, (), None),
        ([1, (2,)], (1, (2,)), None), ({"b": 1, "a": 2}, (2, 1), ("a", "b")),
    ):
        assert registry.is_node(type(node)) and registry.flatten_one_level(node) == (children, data)
        pairs, same = registry.flatten_one_level_with_keys(node)
        assert tuple(child for _, child in pairs) == children and same == data
        leaves, structure = registry.flatten(node)
        assert [leaf for _, leaf in registry.flatten_with_path(node)[0]] == leaves == hx.tree.leaves(node)
        assert structure == hx.tree.structure(node) == pickle.loads(pickle.dumps(structure))
        rebuilt = hx.tree_util.PyTreeDef.from_node_data_and_children(
            registry, structure.node_data(), structure.children())
        assert rebuilt == structure
    for leaf in (1, "text", hx.numpy.ones(2), object()):
        assert registry.flatten_one_level(leaf) is registry.flatten_one_level_with_keys(leaf) is None
        assert not registry.is_node(type(leaf)) and registry.flatten(leaf)[0] == [leaf]
    assert registry.flatten(((1, 2), 3), lambda x: x == (1, 2))[0] == [(1, 2), 3]
    with pytest.raises(BadArgument, match="registered already"):
        registry.register_node(Twin, None, None)
