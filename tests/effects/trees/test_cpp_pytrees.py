"""Pytrees flattened in C++."""

import collections
import pickle

import pytest

from handlax.effects.trees import cpp_pytrees, pytrees

Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (1, [1]),
        (None, []),
        ({"b": 1, "a": (2, [None, 3])}, [2, 3, 1]),
        (Point(1, {"z": 2}), [1, 2]),
        (collections.OrderedDict(z=1, a=2), [1, 2]),
        (collections.defaultdict(int, {"m": 1}), [1]),
        (collections.defaultdict(int, {"m": 1, "a": 2}), pytrees.leaves(collections.defaultdict(int, m=1, a=2))),
    ],
    ids=str,
)
def test_unflattening_undoes_flattening(tree, leaves):
    found, treedef = cpp_pytrees.flatten(tree)
    assert found == leaves
    again = treedef.unflatten(found)
    assert again == tree and type(again) is type(tree)
    assert cpp_pytrees.flatten(tree)[1] == treedef and hash(cpp_pytrees.flatten(tree)[1]) == hash(treedef)


def test_a_registered_class_is_a_node():
    class Pair:
        def __init__(self, left, right, name):
            self.left, self.right, self.name = left, right, name

    pytrees.register_pytree_node(Pair, lambda p: ((p.left, p.right), p.name), lambda name, both: Pair(*both, name))
    leaves, treedef = cpp_pytrees.flatten([Pair(1, (2, 3), "p")])
    assert leaves == [1, 2, 3]
    assert treedef.unflatten([4, 5, 6])[0].right == (5, 6)
    assert treedef != cpp_pytrees.flatten([Pair(1, (2, 3), "q")])[1]
    static = [cpp_pytrees.flatten(Pair(1, 2, number))[1] for number in (1, 1.0, True)]
    assert len(set(static)) == 3


def test_a_predicate_stops_the_descent():
    assert cpp_pytrees.flatten([Point(1, 2), 3], lambda x: isinstance(x, Point))[0] == [Point(1, 2), 3]


def test_a_treedef_can_be_pickled():
    treedef = cpp_pytrees.flatten({"a": (1, None)})[1]
    assert pickle.loads(pickle.dumps(treedef)) == treedef
