"""jit: a call is one look-up, a body is traced once, and mistakes are reported before anything is executed."""

from __future__ import annotations

import copy
import pickle
from collections import namedtuple

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax.effects.base.caches import CACHES
from handlax.effects.core.arrays import ConcreteArray
from handlax.effects.trees.frozen_tree import deferred_tree
from handlax.errors import (
    BadArgument,
    BadStaticArgument,
    DeletedArray,
    EscapedBox,
    NotAFunction,
    NotAnArray,
    UnhandledEffect,
)
from handlax.lowering.jit.call_signature import FrozenSignature, frozen_signature
from handlax.lowering.jit.dispatch import Jitted

Point = namedtuple("Point", "x y")


def array(*items, dtype="float32"):
    return hx.device_put(np.array(items, dtype))


@hx.jit
def module_level(x):
    """Twice x."""
    return x * 2


@pytest.fixture(params=[True, False], ids=["placed", "nothing placed"])
def either_way(request):
    """In a process in which arrays were put on devices by name, and in one in which none was."""
    if request.param:
        hx.device_put(1.0, hx.devices()[1])
    else:
        request.getfixturevalue("nothing_placed")


# Values


@pytest.mark.parametrize("x", [2, 2.5, True, 1j, np.float32(3), np.int64(4), np.arange(3), np.float16(1)])
def test_every_kind_of_number_goes_in_the_quick_way_and_the_slow_way(x):
    f, g = hx.jit(lambda x: x + x), hx.jit(lambda xs, n: xs[n] + xs[0], static_argnums=1)
    expected = (lambda x: x + x)(hx.device_put(x))
    for y in (f(x), f(x), g([x], 0), g([x], 0)):
        assert type(y) is ConcreteArray and y.type is expected.type
        np.testing.assert_array_equal(np.asarray(y), np.asarray(expected))


def test_weak_and_strong_arguments_are_two_traces():
    half = array(1, dtype="float16")
    f = hx.jit(lambda x: x + half)
    assert f(1.0).dtype == np.float16 and f(np.float32(1) * np.ones((), "float32").reshape(1)).dtype == np.float32
    assert f._cache_size() == 2


def test_trees_of_all_kinds_go_in_and_out():
    f = hx.jit(lambda t, *, k: {"p": Point(t["a"] + k, t["b"][0]), "n": None, "l": [t["b"][1]]})
    for _ in range(3):
        y = f({"a": 1.0, "b": (2, np.arange(2))}, k=array(1))
        assert y["n"] is None and isinstance(y["p"], Point) and y["p"].y == 2
        assert float(np.asarray(y["p"].x)[0]) == 2.0 and list(np.asarray(y["l"][0])) == [0, 1]


def test_static_data_of_nodes_is_told_apart_by_type():
    class Box:
        def __init__(self, x, data):
            self.x, self.data = x, data

    hx.tree_util.register_pytree_node(Box, lambda b: ((b.x,), b.data), lambda d, c: Box(c[0], d))
    f = hx.jit(lambda b: b.x * b.data)
    assert f(Box(array(2), 1)).dtype == np.float32
    assert [float(np.asarray(f(Box(array(2), d)))[0]) for d in (1, 3, True)] == [2.0, 6.0, 2.0]
    assert f._cache_size() == 3


@pytest.mark.parametrize("options", [{}, {"static_argnums": 1}], ids=repr)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_a_node_raises_when_it_is_flattened_reaches_the_caller(error, options):
    class Node:
        def __init__(self, x, error=None):
            self.x, self.error = x, error

        def children(self):
            if self.error is not None:
                raise self.error
            return (self.x,), None

    hx.tree_util.register_pytree_node(Node, Node.children, lambda _, children: Node(*children))
    f = hx.jit(lambda node, n=2: node.x * n, **options)
    for _ in range(2):
        assert f(Node(array(1)), 2).tolist() == [2]
        with pytest.raises(error):
            f(Node(array(1), error), 2)


@pytest.mark.parametrize("one", [array(1), 1], ids=["array", "number"])
def test_a_frozen_tree_is_a_tree_and_stays_frozen(one, either_way):
    tree = hx.tree.freeze({"w": array(1, 2), "b": array(3)})
    f = hx.jit(lambda t, x: hx.tree.map(lambda y: y + x, t))
    for _ in range(3):
        y = f(tree, one)
        assert isinstance(y, hx.Frozen) and list(np.asarray(y["w"])) == [2, 3]
        assert y == y and y.leaves is y.leaves
        assert list(np.asarray(f(hx.tree.freeze({"v": array(4)}), one)["v"])) == [5]
    again = f(f(tree, one), one)
    assert list(np.asarray(again["b"])) == [float(np.asarray(tree["b"])[0]) + 2]


@pytest.mark.parametrize("frozen", [False, True], ids=["tree", "frozen tree"])
@pytest.mark.parametrize("options", [{}, {"static_argnums": 0}, {"donate_argnums": 2}], ids=str)
def test_a_deleted_leaf_is_named_in_every_call(frozen, options, either_way):
    f = hx.jit(lambda n, t, more: (t["w"][1] + 1, more + 1), **options)
    for _ in range(3):
        b, w = array(0), array(1, 2)
        tree = {"b": b, "w": [b, w]}
        tree = hx.tree.freeze(tree) if frozen else tree
        assert list(np.asarray(f(2, tree, array(1))[0])) == [2, 3]
        w.delete()
        with pytest.raises(DeletedArray, match=r"t\['w'\]\[1\] must not be deleted"):
            f(2, tree, array(1))


def test_a_frozen_tree_alone_is_told_apart_by_types_and_structure(either_way):
    f = hx.jit(lambda t: hx.tree.map(lambda y: y + 1, t))
    trees = [hx.tree.freeze(t) for t in ({"w": array(1, 2)}, {"w": array(1)}, {"v": array(1)}, {"w": 1})]
    for _ in range(3):
        assert [str(f(t)["v" if "v" in t else "w"]) for t in trees] == ["[2. 3.]", "[2.]", "[2.]", "2"]
    assert str(f(f(f(trees[0])))["w"]) == "[4. 5.]" and f._cache_size() == 4


def test_the_signature_of_equal_frozen_trees_is_one_object():
    tree, other = [hx.tree.freeze({"w": x}) for x in (array(1, 2), array(1))]
    types = lambda tree: tuple([x.type for x in tree.leaves])
    known = frozen_signature(tree.treedef, types(tree))
    assert type(known) is FrozenSignature and frozen_signature(tree.treedef, types(tree)) is known
    assert frozen_signature(other.treedef, types(other)) is not known


def test_waiting_for_a_frozen_result_makes_no_arrays():
    tree = hx.tree.freeze({"w": array(1, 2)})
    made = []
    y = deferred_tree(tree.treedef, lambda: made.append(1) or tree.leaves, (None, [x.buffer for x in tree.leaves]))
    assert hx.block_until_ready(y) is y and not made
    assert list(np.asarray(y["w"])) == [1, 2] and made


def test_arguments_are_given_by_any_names_or_not_at_all():
    f = hx.jit(lambda x=1, more=2, **named: [x, more, named["named"]])
    for _ in range(3):
        assert f(x=array(5), named=array(7)) == [5, 2, 7] and f(named=3) == [1, 2, 3]
        assert f(array(5), more=array(6), named=array(7)) == [5, 6, 7] == f(array(5), array(6), named=array(7))


def test_a_function_is_called_with_more_or_fewer_arguments_than_it_names():
    def odd(*xs, scale=1):
        return sum(xs) * scale

    twice = hx.jit(lambda x, y=2, *rest: x * y + sum(rest))
    odd.__wrapped__ = odd  # says nothing about its arguments
    many = hx.jit(odd)
    for _ in range(3):
        for x in (array(3), 3, np.float32(3), np.full(1, 3, np.float32)):
            assert twice(x) == 6 and twice(x, x) == 9 and twice(x, x, x) == 12 and twice(x, y=4) == 12
            assert many(x) == 3 and many(x, x) == 6 and many(x, scale=2) == 6 and many() == 0


def test_a_changed_numpy_argument_is_never_seen_later():
    f = hx.jit(lambda x: x + 1)
    x = np.zeros(4, np.float32)
    results = []
    for i in range(100):
        x[:] = i
        results.append(f(x))
    assert [float(np.asarray(y)[0]) for y in results] == [i + 1.0 for i in range(100)]


def test_unused_arguments_stay_away_from_the_device():
    f, g = hx.jit(lambda x, y: x), hx.jit(lambda x, y: x, keep_unused=True)
    assert "%arg1" not in f.lower(1.0, 2.0).as_text() and "%arg1" in g.lower(1.0, 2.0).as_text()
    for h in (f, g):
        assert [float(h(1.0, 2.0)) for _ in range(3)] == [1.0] * 3


@pytest.mark.parametrize("options", [{}, {"donate_argnums": 0}, {"static_argnums": 1}], ids=str)
def test_captured_arrays_are_beside_arguments_of_the_host(options, either_way):
    w = array(1, 2)
    f = hx.jit(lambda x, n=1: x + w * n, **options)
    for x in (np.ones(2, np.float32), np.ones(2, ">f4")):
        assert [f(x, 1).tolist() for _ in range(3)] == [[2, 3]] * 3
    large = np.ones((3000, 2), np.float32)
    assert [float(f(large, 1).sum()) for _ in range(3)] == [15000] * 3


def test_tangents_of_integers_are_arguments_that_have_no_data():
    f = hx.jit(lambda zero, x: x + 1)
    assert [float(f(np.zeros(3, hx.float0), 1.0)) for _ in range(3)] == [2] * 3


@pytest.mark.parametrize("inline", [False, True])
def test_a_reference_of_its_surroundings_is_read_in_every_call(inline):
    ref = hx.new_ref(np.float32(2))
    f = hx.jit(lambda x: x + ref[...], inline=inline)
    for n in range(3):
        ref[...] = np.float32(n)
        assert float(f(1.0)) == 1 + n


def test_captured_arrays_are_arguments_of_the_program():
    big = array(*range(1000))
    f = hx.jit(lambda x: x + big)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(f(1.0)), np.arange(1000) + 1)
    assert len(f.lower(1.0).as_text()) < 2000
    np.testing.assert_array_equal(np.asarray(hx.jit(lambda x: f(x) * 2)(1.0)), (np.arange(1000) + 1) * 2)


def test_results_without_arguments_and_without_results():
    assert hx.jit(lambda: 3)() == 3
    assert hx.jit(lambda x: None)(1.0) is None
    assert hx.jit(lambda x: (x, x))(2.0) == (2.0, 2.0)


# What it looks like


def test_a_jitted_function_is_a_function():
    assert module_level.__name__ == "module_level" and module_level.__doc__ == "Twice x."
    assert pickle.loads(pickle.dumps(module_level)) is module_level and copy.deepcopy(module_level) is module_level
    assert module_level.__wrapped__(3) == 6


def test_it_binds_as_a_method():
    class Model:
        def __init__(self, w):
            self.w = w

        @staticmethod
        @hx.jit
        def add(x, y):
            return x + y

    hx.tree_util.register_pytree_node(Model, lambda m: ((m.w,), None), lambda _, c: Model(*c))
    Model.scaled = hx.jit(lambda self, x: self.w * x)
    assert float(Model(3.0).scaled(2.0)) == 6.0 and float(Model.add(1, 2)) == 3


def test_keywords_without_a_function_make_a_decorator():
    @hx.jit(static_argnums=1)
    def power(x, n):
        return x**n

    assert float(power(2.0, 3)) == 8.0


# Static and donated arguments


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: hx.jit(lambda x, n: x, static_argnums=1)(1.0, [1]), BadStaticArgument, "'n'.*hashable.*list"),
    (lambda: hx.jit(lambda x: x, static_argnums=3), BadArgument, "1 positional parameters, got 3"),
    (lambda: hx.jit(lambda x: x, static_argnums=-2), BadArgument, "got -2"),
    (lambda: hx.jit(lambda x: x, static_argnames="q"), BadArgument, "'q'"),
    (lambda: hx.jit(lambda x: x, static_argnums=0, donate_argnums=0), BadArgument, "both static and donated"),
    (lambda: hx.jit(lambda x, t: x)(1.0, {"a": ["s"]}), NotAnArray, r"t\['a'\]\[0\]"),
    (lambda: hx.jit(lambda x: {"k": "s"})(1.0), NotAnArray, r"str at \['k'\]"),
    (lambda: hx.jit(3), NotAFunction, "function"),
    (lambda: hx.jit(lambda x: x, in_shardings=1), BadArgument, "in_shardings: a sharding or a PartitionSpec"),
    (lambda: hx.jit(lambda x: x, out_shardings=(None, hx.devices()[0])), BadArgument, "out_shardings"),
])
def test_what_is_wrong_is_named(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert str(caught.value).splitlines()[1].startswith("  at test_jit.py:")


@pytest.mark.parametrize("unspecified", [None, (None, None), {"a": (None, [None])}])
def test_shardings_may_be_left_unspecified_leaf_by_leaf(unspecified):
    f = hx.jit(lambda x: (x, 2.0 * x), in_shardings=unspecified, out_shardings=unspecified)
    assert [float(y) for y in f(3.0)] == [3.0, 6.0]


def test_a_donated_array_is_gone_and_says_so(either_way):
    f = hx.jit(lambda x, y: x + y, donate_argnums=0)
    for i in range(3):
        x, y = array(1, 2), array(3, 4)
        if i == 2:
            np.asarray(x)
        np.testing.assert_array_equal(np.asarray(f(x, y)), [4, 6])
        assert x.is_deleted() and not y.is_deleted()
        with pytest.raises(DeletedArray):
            np.asarray(x)
        with pytest.raises(DeletedArray, match="x must not be deleted"):
            f(x, y)


@pytest.mark.parametrize("made", [
    lambda: hnp.array(0.0), lambda: hnp.zeros(1000), lambda: hnp.asarray(np.arange(3.0)),
    lambda: hx.device_put(np.ones(3)), lambda: hx.jit(lambda x: x * 2)(hnp.ones(3)),
    lambda: hx.random.normal(hx.random.key(0), (5,)),
])
def test_a_result_has_the_address_of_the_argument_that_was_donated_to_it(made):
    x, expected = made(), made() + 1
    address = x.unsafe_buffer_pointer()
    assert x.unsafe_buffer_pointer() == address
    y = hx.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(y, expected)


def test_an_array_cannot_be_donated_and_used():
    f = hx.jit(lambda x, y: (x + 1, y + 1), donate_argnames="x")
    for _ in range(2):
        x = array(1, 2)
        with pytest.raises(BadArgument, match="single argument, got it as x and y"):
            f(x, x)
        assert not x.is_deleted()
        f(x, array(1, 2))
    g, x = hx.jit(lambda x, y, z: (x + y, z + 1), donate_argnames="z"), array(1, 2)
    for _ in range(2):
        assert g(x, x, array(3))[0].tolist() == [2, 4]  # twice an argument, but not donated


def test_donating_a_number_leaves_equal_numbers_alone(either_way):
    f = hx.jit(lambda x: x + 1, donate_argnums=0)
    assert [float(f(7.5)) for _ in range(3)] == [8.5] * 3
    x = np.ones(3, np.float32)
    assert [f(x).tolist() for _ in range(3)] == [[2, 2, 2]] * 3 and x.tolist() == [1, 1, 1]
    assert float(hx.jit(lambda x: x)(7.5)) == 7.5


INTERNED = {
    "numbers": lambda: (0.0, 0.0),
    "scalars of NumPy": lambda: (np.float32(0), np.float32(0)),
    "zeros": lambda: (hnp.zeros(()), hnp.zeros(())),
    "constructors": lambda: (hnp.int32(0), hnp.int32(0)),
    "a number and an array": lambda: (0.0, hnp.asarray(0.0)),
    "arrays that were put": lambda: (hx.device_put(hnp.zeros(())), hx.device_put(hnp.zeros(()))),
    "arrays on a device": lambda: tuple([hx.device_put(hnp.zeros(()), hx.devices()[0]) for _ in "ab"]),
    "constants of a program": lambda: (hx.jit(lambda: (hnp.zeros(()), hnp.zeros(())))()),
}


@pytest.mark.parametrize("donated", [0, 1, (0, 1)])
@pytest.mark.parametrize("way", INTERNED)
def test_equal_numbers_may_be_several_donated_arguments(way, donated):
    f = hx.jit(lambda a, b: (a + 1, b), donate_argnums=donated)
    compiled = f.lower(*INTERNED[way]()).compile()
    for call in (f, f, f, compiled, compiled):
        assert [float(y) for y in call(*INTERNED[way]())] == [1.0, 0.0]
    assert float(hx.jit(lambda x: x)(hnp.zeros(()))) == float(hnp.zeros(())) == 0.0


def test_state_that_is_made_of_equal_numbers_is_donated():
    params = {"scale": hnp.zeros(()), "temperature": hnp.ones(())}
    moments = hx.tree.map(hnp.zeros_like, params)
    step = hx.jit(lambda p, m: hx.tree.map(lambda p, m: (p + 1, m + p), p, m), donate_argnums=(0, 1))
    for _ in range(2):
        stepped = step(params, moments)
        assert hx.tree.map(float, stepped) == {"scale": (1.0, 0.0), "temperature": (2.0, 1.0)}


def test_numbers_outlive_thousands_of_donations():
    f = hx.jit(lambda a, b: (a + 1, b - 1), donate_argnums=(0, 1))
    for _ in range(2000):
        f(hnp.zeros(()), hnp.zeros(()))
    assert float(hnp.zeros(())) == float(hnp.zeros(()) + 0) == float(hx.jit(lambda x: x)(hnp.zeros(()))) == 0.0


def test_memory_that_no_result_can_use_is_kept():
    f = hx.jit(lambda x: x < x, donate_argnums=0)
    x = array(1, 2)
    with pytest.warns(UserWarning, match="not usable") as warned:
        f(x)
    assert [found.filename for found in warned] == [__file__]
    assert not x.is_deleted()


# Failure, and looking closely


def test_an_effect_that_nobody_handles_is_refused():
    @hx.effect
    class Shout:
        def result_type(op):
            return hx.device_put(1.0).type

    with pytest.raises(UnhandledEffect, match="Shout"):
        hx.jit(lambda: hx.perform(Shout()))()


def test_a_box_that_escaped_is_refused():
    kept = []
    hx.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(EscapedBox, match="jit"):
        hx.jit(lambda x: x + 1)(kept[0])


def test_disable_jit_runs_the_function_as_it_is_written():
    seen = []
    f = hx.jit(lambda x: seen.append(type(x)) or x + 1)
    with hx.disable_jit():
        f(np.float32(1))
    assert seen == [np.float32]


def test_lowering_many_arguments_is_linear():
    def f(*xs):
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        return total

    text = hx.jit(f).lower(*[np.float32(1)] * 1000).as_text()
    assert text.count("stablehlo.add") == 999


@pytest.mark.parametrize("wrap", [
    hx.jit, lambda f: hx.jit(hx.jit(f)), lambda f: hx.jit(lambda *xs: {"a": f(*xs)["a"]}),
])
def test_gradients_of_integers_leave_as_they_leave_grad(wrap):
    def f(x, i):
        return {"a": hx.grad(lambda i, x: x * i, allow_int=True)(i, x), "x": x}

    expected = f(2.0, 3)["a"]
    jitted = wrap(f)
    for _ in range(2):  # the slow and the fast path
        found = jitted(2.0, 3)["a"]
        assert type(found) is type(expected) is np.ndarray
        assert found.dtype == hx.float0 and found == expected
    alone = hx.jit(lambda i: hx.grad(lambda i: 2.0 * i, allow_int=True)(i))
    assert [type(alone(3)) for _ in range(2)] == [np.ndarray] * 2


def test_a_device_or_a_backend_is_chosen():
    (device, *_) = hx.devices("cpu")
    for chosen in ({"device": device}, {"backend": "cpu"}):
        assert float(hx.jit(lambda x: x + 1, **chosen)(1.0)) == 2.0
    with pytest.raises(hx.errors.BadArgument, match="device or backend must be None"):
        hx.jit(lambda x: x, device=device, backend="cpu")


def test_results_are_committed_to_the_chosen_device_wherever_the_arguments_are():
    devices = hx.devices()
    add, constant = (hx.jit(f, device=devices[4]) for f in (lambda a, b: a + b, lambda: hx.numpy.ones(2)))
    on = [hx.device_put(n, device) for n, device in ((1, devices[2]), (2, devices[2]), (2, devices[3]))]
    for a, b in ((1, 2), (1, on[1]), (on[0], on[2])):
        for _ in range(2):  # the slow and the fast path
            assert add(a, b) == 3 and add(a, b).committed and add(a, b).devices() == {devices[4]}
    assert constant().committed and constant().devices() == {devices[4]}


@pytest.mark.parametrize(("f", "arguments", "options"), [
    (lambda x: x + 1, lambda x: (x,), {}),
    (lambda x, y: x + y, lambda x: (x, x), {}),
    (lambda t: t["x"] + 1, lambda x: ({"x": x},), {}),
    (lambda x, n: x * n, lambda x: (x, 2), {"static_argnums": 1}),
])
def test_only_the_first_call_of_each_type_is_slow(f, arguments, options, monkeypatch):
    slow, calls = Jitted.slow, []
    monkeypatch.setattr(Jitted, "slow", lambda self, *args: (calls.append(args), slow(self, *args))[1])
    jitted = hx.jit(f, **options)
    for kind in (hnp.ones(2), hnp.ones(3), hnp.ones(2, "int32")):
        calls.clear()
        for _ in range(3):
            np.testing.assert_array_equal(jitted(*arguments(kind)), f(*arguments(kind)))
        assert len(calls) == 1


def test_compiled_traces_are_bounded_over_all_functions(monkeypatch):
    hx.clear_caches()
    cache = next(cache for cache in CACHES if cache.name == "compiled traces")
    monkeypatch.setattr(cache, "capacity", 3)
    functions = [hx.jit(lambda x, n=n: x + n) for n in range(8)]
    sizes = [(f(1.0), len(cache))[1] for f in functions]
    assert max(sizes) <= 3 and cache.misses - cache.misses_at_clear < 3
    assert [float(f(1.0)) for f in functions] == [1.0 + n for n in range(8)]


def test_float0_is_an_argument():
    zero, x = np.zeros((2, 3), hx.float0), np.ones(3, np.float32)
    f = hx.jit(lambda z, x: (z, x + 1))
    for _ in range(3):  # traced, by a plan of the types, and again
        same, y = f(zero, x)
        assert same.dtype == hx.float0 and same.shape == (2, 3)
        np.testing.assert_array_equal(y, 2)
    assert f.lower(zero, x).compile()(zero, x)[0].shape == (2, 3)
    _, pull = hx.vjp(lambda n, x: (2 * n, n * x), 3, 2.0)
    counts, slope = hx.jit(lambda ct: pull(ct))((np.zeros((), hx.float0), 1.0))
    assert counts.dtype == hx.float0 and float(slope) == 3.0
