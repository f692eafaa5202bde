"""jaxlib's pytrees under the package's registry."""

import pickle
import sys
import threading

import pytest

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
    leaves = []

    def work():
        class Box:
            def __init__(self, value):
                self.value = value

        pytrees.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, children: Box(*children))
        leaves.append([pytrees.leaves([Box(i), Pair(i, i, "p")]) for i in range(200)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert leaves == [[[i] * 3 for i in range(200)]] * 8


def levels(n=0):
    """How many calls may be nested."""
    try:
        return levels(n + 1)
    except RecursionError:
        return n


def test_a_tree_that_is_too_deep_is_refused():
    cyclic = deep = []
    for _ in range(sys.getrecursionlimit() * 5):
        deep = [deep]
    cyclic.append(cyclic)
    before = levels()
    for tree in (deep, cyclic):
        with pytest.raises(BadArgument, match="nested too deeply, or contains itself"):
            pytrees.flatten(tree)
    assert levels() == before


class Endless:
    """A node that is its own child."""


class Failing:
    """A node whose flatten function raises."""


pytrees.register_pytree_node(Endless, lambda x: ((x,), None), lambda _, children: children[0])
pytrees.register_pytree_node(Failing, lambda x: 1 / 0, lambda _, children: children[0])


@pytest.mark.parametrize(("tree", "error"), [([[[Failing()]]], ZeroDivisionError), (Endless(), RecursionError)])
def test_a_failed_flatten_function_leaves_nothing_behind(tree, error):
    before = levels()
    for _ in range(50):
        for flatten in (pytrees.flatten, pytrees.flatten_with_path, lambda x: hx.jit(lambda y: y)(x)):
            with pytest.raises(error):
                flatten(tree)
        with pytest.raises(TreeMismatch):
            pytrees.flatten_up_to(pytrees.structure([0, 0]), tree, "test")
        assert pytrees.leaves([1, Pair(2, 3, "p")]) == [1, 2, 3]
    assert levels() == before


def test_a_node_is_assembled_of_a_registered_type():
    treedef = pytrees.structure(Pair(0, [0], "p"))
    assert assemble((Pair, "p"), treedef.children()) == treedef
    with pytest.raises(TreeMismatch, match="int must be registered as a node"):
        assemble((int, None), ())
