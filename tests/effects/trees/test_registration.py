"""Types registered as nodes of pytrees: their children, their keys, and mistakes in registering."""

import copy
import dataclasses
import functools
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
from helpers.other_threads import together
from helpers.own_pytree_nodes import Bag, Layer

import handlax as hx
from handlax.effects.base.errors import BadArgument
from handlax.effects.trees import pytrees
from handlax.effects.trees.path_keys import DictKey, GetAttrKey
from handlax.effects.trees.pytrees import Frozen, Partial, flatten, keystr, structure


def test_an_exact_type_is_a_leaf_until_it_is_registered():
    class Late:
        def __init__(self, x):
            self.x = x

    assert structure([Late(1)]) == structure([0])
    pytrees.register_pytree_node(Late, lambda late: ((late.x,), None), lambda _, xs: Late(*xs))
    assert pytrees.leaves([Late(1), Late(None)]) == [1]


def test_a_field_without_init_is_no_child_and_a_dropped_one_takes_its_default():
    @functools.partial(pytrees.register_dataclass, data_fields=["x"], meta_fields=[], drop_fields=["cache"])
    @dataclasses.dataclass
    class Node:
        x: object
        cache: int = 0
        double: object = dataclasses.field(init=False, default=None)

    again = pytrees.map(lambda x: x, Node(1, 7))
    assert (again.x, again.cache) == (1, 0)


def test_register_static_makes_a_value_part_of_the_structure():
    @pytrees.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert flatten([Mode("a"), 1])[0] == [1]
    assert structure(Mode("a")) == structure(Mode("a")) != structure(Mode("b"))
    assert pytrees.map(lambda x: x, [Mode("a")]) == [Mode("a")]


def test_registration_with_keys_names_the_children():
    @pytrees.register_pytree_with_keys_class
    class Pair:
        def __init__(self, *xs):
            self.xs = xs

        def tree_flatten_with_keys(self):
            return [(GetAttrKey("left"), self.xs[0]), (DictKey("r"), self.xs[1])], None

        @classmethod
        def tree_unflatten(cls, _, xs):
            return cls(*xs)

    assert [keystr(path) for path, _ in pytrees.leaves_with_path(Pair(1, [2]))] == [".left", "['r'][0]"]
    assert pytrees.map(lambda x: -x, Pair(1, 2)).xs == (-1, -2)


def test_a_listener_hears_of_every_registration_once():
    heard = {}

    def listen(node):
        assert node.cls not in heard
        heard[node.cls] = node.flatten, node.unflatten

    pytrees.on_register(listen)
    assert {OrderedDict, defaultdict, Partial, Frozen, Bag, Layer} <= set(heard)

    class New:
        pass

    pytrees.register_pytree_node(New, lambda x: ((1, 2), "data"), lambda data, xs: (data, xs))
    to_iter, from_iter = heard[New]
    assert to_iter(New()) == ((1, 2), "data") and from_iter("data", (3, 4)) == ("data", (3, 4))


def test_threads_register_and_flatten_at_the_same_time():
    def work(_):
        for _ in range(50):
            class Own:
                def __init__(self, x):
                    self.x = x

            before = flatten([Own(1)])[1].num_leaves
            pytrees.register_pytree_node(Own, lambda own: ((own.x, own.x), None), lambda _, xs: xs[0])
            after = pytrees.leaves({"a": Own(1), "b": (Own(2),)})
            assert (before, after) == (1, [1, 1, 2, 2])

    together(4, work)


def test_registering_twice_is_refused():
    for register in (lambda: pytrees.register_static(Bag), lambda: pytrees.register_dataclass(Layer)):
        with pytest.raises(BadArgument, match="registered already"):
            register()
    with pytest.raises(BadArgument, match="registered already"):
        pytrees.register_pytree_node(tuple, lambda x: (x, None), lambda _, xs: xs)


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
        ((["x"], None), "must both be passed"),
    ],
)
def test_register_dataclass_refuses_fields_that_do_not_fit(fields, message):
    with pytest.raises(BadArgument, match=message):
        pytrees.register_dataclass(Loose, *fields)
    assert not pytrees.is_tree_node(Loose)


def test_a_flatten_function_must_give_a_pair():
    class Bad:
        pass

    pytrees.register_pytree_node(Bad, lambda x: 3, lambda _, xs: None)
    with pytest.raises(BadArgument, match=r"Bad must return \(children, static data\), got 3"):
        flatten([Bad()])


@pytest.mark.parametrize("data", [["a"], {"a": [1]}, (1, {2}), np.ones(3), bytearray(b"a")], ids=str)
def test_structures_with_static_data_that_cannot_be_hashed_are_hashed_without(data):
    first, second, other = (structure(Layer(0, name=x)) for x in (data, copy.deepcopy(data), [1.5]))
    assert first == second != other
    assert hash(first) == hash(second)
    assert {first: 1, other: 2}[second] == 1


def test_static_data_that_cannot_be_hashed_cross_every_transformation():
    traces = []

    def f(layer):
        traces.append(layer.name)
        return Layer(layer.w * len(layer.name), name=layer.name)

    layer = Layer(hx.numpy.arange(3.0), name=["a", {"b": 1}])
    loss = hx.custom_jvp(lambda layer: f(layer).w.sum())
    loss.defjvp(lambda primals, tangents: (loss(*primals), f(*tangents).w.sum()))
    static = hx.jit(lambda x, tree: hx.tree.unflatten(tree, [x]), static_argnums=1)
    for again in (layer, Layer(layer.w, name=copy.deepcopy(layer.name))):
        results = (
            hx.jit(f)(again), hx.vmap(f)(again), hx.jvp(f, (again,), (again,))[1], hx.checkpoint(f)(again),
            hx.lax.cond(True, f, f, again), hx.lax.scan(lambda c, _: (f(c), None), again, None, length=1)[0],
            hx.jit(hx.vmap(hx.jit(f)))(again), hx.vjp(f, again)[1](again)[0], f(static(again.w, structure(again))),
        )
        for result in results:
            assert (result.w.tolist(), result.name) == ([0, 2, 4], layer.name)
        for grad in (hx.grad(loss), hx.jit(hx.grad(loss))):
            assert (grad(again).w.tolist(), grad(again).name) == ([2, 2, 2], layer.name)
    g = hx.jit(f)
    traces.clear()
    for name in (["a"], ["a"], [1], [1.0], ["a"]):
        g(Layer(layer.w, name=name))
    assert [[*map(type, name)] for name in traces] == [[str], [int], [float]]
