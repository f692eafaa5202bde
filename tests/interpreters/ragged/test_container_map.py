"""The arguments and results of vmap: ragged arrays among them, and containers of a user's own."""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from helpers.containers import Axis, NamedArray, block_sparse

import handlax as hx
from handlax import numpy as hnp

R = hx.ragged_axis
X = hx.Ragged(hnp.arange(8.0), (3, 1, 4))
OTHER = hx.Ragged(hnp.ones(4), (1, 1, 2))
SUMS = [3.0, 3.0, 22.0]


def test_trees_of_ragged_and_ordinary_arguments():
    f = lambda args, w, *, scale: args["x"].sum() * args["s"] * scale + w
    y = hx.vmap(f, in_axes=({"x": R, "s": 0}, None))({"x": X, "s": hnp.arange(3.0)}, 1.0, scale=hnp.ones(3))
    assert np.allclose(y, [1, 4, 45])
    assert np.allclose(hx.vmap(lambda *, x: x.sum(), R)(x=X), SUMS)


def test_results_of_one_length_are_one_ragged_array():
    pair = hx.vmap(lambda x: {"a": x, "b": x * 2}, R, R)(X)
    assert isinstance(pair, hx.Ragged) and pair.segment_lengths == (3, 1, 4)
    assert np.array_equal(pair.data["b"], 2 * X.data)
    total, rest = hx.vmap(lambda x: (x.sum(), (x, x)), R, (0, R))(X)
    assert np.allclose(total, SUMS) and len(rest.data) == 2


def test_lengths_of_results_follow_from_the_arguments():
    y = hx.vmap(lambda x: hnp.concatenate([x, hnp.zeros(1), x]), R, R)(X)
    assert [len(part) for part in y.to_list()] == [7, 3, 9]


def test_spare_rows_leave_as_zeros():
    x = hx.Ragged(hnp.full(8, hnp.nan).at[:3].set(1.0), np.array([1, 2]))
    y = hx.vmap(lambda x: x + 1, R, R)(x)
    assert np.array_equal(y.data, [2, 2, 2, 0, 0, 0, 0, 0])


def test_axis_names_and_sizes():
    f = lambda x: x.sum() / hx.lax.psum(x.sum(), "i") * hx.lax.axis_size("i")
    assert np.allclose(hx.vmap(f, R, axis_name="i", axis_size=3)(X), np.array(SUMS) * 3 / 28)


@pytest.mark.parametrize(("run", "error", "words"), [
    (lambda: hx.vmap(lambda x: x, R, 0)(X), hx.errors.ShapeMismatch, r"out_axes=hx.ragged_axis, got f32\[n0\]"),
    (lambda: hx.vmap(lambda x: x.sum(), R, R)(X), hx.errors.ShapeMismatch, "out_axes=0 for a result"),
    (lambda: hx.vmap(lambda x: hnp.outer(x, x), R, R)(X), hx.errors.ShapeMismatch, r"f32\[n0,n0\]"),
    (lambda: hx.vmap(lambda x: x, R, R)(hnp.ones((3, 4))), hx.errors.BadArgument, "an axis of Ragged"),
    (lambda: hx.vmap(lambda x, y: y, (0, R), R)(X, X), hx.errors.BadArgument, "of type RaggedAxis, got 0"),
    (lambda: hx.vmap(lambda x, y: x, (R, 0), R)(X, hnp.ones(4)), hx.errors.ShapeMismatch, "one size"),
    (lambda: hx.vmap(lambda x, y: x + y, R, R)(X, OTHER), hx.errors.ShapeMismatch, r"n0.*n1(.|\n)*y.over\(x\)"),
    (lambda: hx.vmap(lambda x: hnp.outer(x, x), R, R)(X), hx.errors.ShapeMismatch, r"y.reshape\(-1\) makes one axis"),
    (lambda: hx.vmap(lambda x: (x[:, None] * hnp.ones(2)).T, R, R)(X), hx.errors.ShapeMismatch, "transpose it"),
])
def test_what_is_no_ragged_axis_is_refused(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_a_length_that_outlives_its_lanes_is_refused():
    kept = []
    hx.vmap(lambda x: (kept.append(x.shape[0]), x.sum())[1], R)(X)
    with pytest.raises(hx.errors.EscapedBox, match=r"n0 is the length of a lane(.|\n)*inside of the mapped function"):
        hnp.ones(3) * kept[0]


# --- containers of a user's own

A = Axis("a")
NAMED = NamedArray(hnp.arange(6.0).reshape(3, 2), ("a", "b"))
BLOCKS = block_sparse.example()


@contextmanager
def registered(data_type, spec_type, to_elt, from_elt=lambda cont, n, y, spec: y, axis_size_type=int, make_iota=None):
    hx.register_vmappable(data_type, spec_type, axis_size_type, to_elt, from_elt, make_iota)
    try:
        yield
    finally:
        hx.unregister_vmappable(data_type)


class Plain:
    """No pytree."""

    def __init__(self, data):
        self.data = data


def test_containers_stand_in_trees_beside_arrays_and_by_keyword():
    def f(args, w, *, other, scale):
        assert args["x"].names == other.names == ("b",)
        return (args["x"].data * w).sum() + args["s"] + other.data.sum() * scale

    axes = ({"x": A, "s": 0}, None)
    y = hx.vmap(f, axes)({"x": NAMED, "s": hnp.ones(3)}, hnp.array([1.0, -1.0]), other=NAMED, scale=hnp.ones(3))
    assert np.allclose(y, NAMED.data.sum(1))
    assert np.allclose(hx.vmap(lambda x, r: x.data.sum() + r.sum(), (A, R))(NAMED, X), [4, 8, 31])


def test_results_are_mapped_by_a_prefix_of_their_tree():
    f = lambda x: {"n": (x, x.data.sum()), "m": x.data, "same": 1.0}
    found = hx.vmap(f, A, {"n": (A, 0), "m": 1, "same": None})(NAMED)
    assert np.array_equal(found["n"][0].data, NAMED.data) and np.array_equal(found["m"], NAMED.data.T)
    assert found["same"] == 1.0
    pair = hx.vmap(lambda x: [x, NamedArray(x.data, ("c",))], A, A)(NAMED)
    assert [y.names for y in pair] == [("a", "b"), ("a", "c")]


def test_one_that_all_lanes_share_enters_and_leaves_whole():
    f = lambda x, i: (x, x.data[0, 1] * i)
    shared, y = hx.vmap(f, (None, 0), (None, 0))(NAMED, hnp.arange(3.0))
    assert shared.names == ("a", "b") and np.array_equal(y, [0, 1, 2])
    y = hx.vmap(lambda x, i: NamedArray(x.data[0], ("b",)), (None, 0), A)(NAMED, X.data)
    assert y.data.shape == (8, 2) and np.array_equal(y.data[7], [0, 1])


def test_a_result_may_be_a_container_where_no_argument_is():
    y = hx.vmap(lambda v: NamedArray(v, ("b",)), 1, A)(NAMED.data.T)
    assert y.names == ("a", "b") and np.array_equal(y.data, NAMED.data)


def test_an_integer_maps_a_container_whose_axes_are_integers():
    """Two lines of JAX's own tests: handlers may perform operations, before and after."""
    with registered(Plain, int, lambda cont, _, x, axis: cont(x.data + 1, axis)):
        y = hx.jit(lambda: hx.vmap(lambda x: x - 1, axis_size=3)(Plain(hnp.arange(3.0))))()
    assert np.array_equal(y, [0, 1, 2])
    to_elt = lambda cont, _, x, axis: Plain(cont(x.data, axis))
    with registered(Plain, int, to_elt, lambda cont, n, y, axis: Plain(cont(n, y.data + 1, axis))):
        assert np.array_equal(hx.vmap(lambda x: x)(Plain(hnp.arange(3.0))).data, [1, 2, 3])
        assert np.array_equal(hx.vmap(Plain)(hnp.arange(3.0)).data, [1, 2, 3])
        assert np.array_equal(hx.vmap(lambda *, x: x.data)(x=Plain(hnp.arange(3.0))), [0, 1, 2])


class Places:
    """An axis with numbers of its own."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def __index__(self):
        return len(self.numbers)


def test_the_axis_size_makes_the_numbers_of_the_lanes():
    seen = []
    to_elt = lambda cont, get_idx, x, spec: (cont(x.data, 0), get_idx())
    from_elt = lambda cont, n, y, spec: (seen.append(n), cont(n, y, 0))[1]
    sizes = (Places, lambda places: hnp.array(places.numbers))
    f = lambda x: x[0] + x[1] + 100 * hx.lax.axis_index("i") + hx.lax.axis_size("i")
    with registered(Plain, Places, to_elt, from_elt, *sizes):
        size = Places(7, 5, 9)
        y = hx.vmap(f, size, size, axis_name="i", axis_size=size)(Plain(hnp.zeros(3, int)))
        assert np.array_equal(y, [710, 508, 912]) and seen == [size]
        both = lambda _: hx.lax.axis_index(("j", "i"))
        inner = hx.vmap(both, axis_name="i", axis_size=size)
        assert np.array_equal(hx.vmap(lambda _: inner(X.data[:3]), axis_name="j")(hnp.ones(2))[1], [10, 8, 12])
        loop = lambda x: hx.lax.fori_loop(0, 2, lambda _, c: c + hx.lax.axis_index("i"), 0)
        assert np.array_equal(hx.vmap(loop, axis_name="i", axis_size=size)(hnp.ones(3)), [14, 10, 18])
        assert np.array_equal(hx.vmap(loop, axis_name="i", axis_size=Places(1, 1))(hnp.ones(2)), [2, 2])
        with pytest.raises(hx.errors.BadArgument, match="numbers of their own are neither"):
            hx.vmap(f, size, axis_size=size, spmd_axis_name="d")(Plain(hnp.zeros(3)))


def test_a_container_numbers_the_lanes_of_its_own_axes_alone():
    number = lambda *_: hx.lax.axis_index("i")
    to_elt = lambda cont, get_idx, x, spec: (cont(x.data, spec.axis), get_idx())
    tens = lambda n: 10 * hnp.arange(n)
    with registered(Plain, Along, to_elt, make_iota=tens), registered(Places, Places, lambda *_: None):
        assert np.array_equal(hx.vmap(number, R, axis_name="i")(X), [0, 1, 2])
        assert np.array_equal(hx.vmap(number, A, axis_name="i")(NAMED), [0, 1, 2])
        assert np.array_equal(hx.vmap(number, axis_name="i", axis_size=3)(), [0, 1, 2])
        assert np.array_equal(hx.vmap(number, (Along(0), R), axis_name="i")(Plain(ROWS[:3]), X), [0, 10, 20])
        y = hx.vmap(lambda x: (x[1], number()), Along(1), axis_name="i")(Plain(ROWS))
        assert np.array_equal(y, [[0, 10], [0, 10]])


def test_a_handler_computes_with_what_entered():
    """In the lanes, as the function does: eager, jitted, differentiated, in lanes of another map."""
    def to_elt(cont, get_idx, x, spec):
        rows = cont(hx.Ragged(x.data, (3, 1, 4)), R) * 2
        return rows.sum() + get_idx() * 100 + hnp.sin(cont(x.data[:3] + 1, 0)) + x.data[1]

    def wanted(v):
        sums = hnp.stack([v[:3].sum(), v[3], v[4:].sum()])
        return 2 * sums + 100 * hnp.arange(3.0) + hnp.sin(v[:3] + 1) + v[1]

    with registered(Plain, Along, to_elt):
        f = lambda v: hx.vmap(lambda x: x, Along(0))(Plain(v))
        for g, h in ((f, wanted), (hx.jit(f), wanted), (hx.jacrev(f), hx.jacrev(wanted))):
            assert np.allclose(g(X.data), h(X.data), rtol=1e-6)
        both = hnp.stack([X.data, -X.data])
        assert np.allclose(hx.vmap(f)(both), hx.vmap(wanted)(both), rtol=1e-6)


class Along(NamedTuple):
    axis: int


def test_a_spec_may_be_a_node_of_a_pytree():
    with registered(Plain, Along, lambda cont, _, x, spec: cont(x.data, spec.axis)):
        for axes in (Along(1), (Along(1),), [Along(1)]):
            assert np.array_equal(hx.vmap(lambda x: x.sum(), axes)(Plain(hnp.ones((3, 2)))), [3, 3])


def test_gradients_are_containers():
    loss = lambda x: (hx.vmap(lambda x: x.data.sum() ** 2, A)(x) * hnp.arange(3.0)).sum()
    assert np.allclose(hx.grad(loss)(NAMED).data, [[0, 0], [10, 10], [36, 36]])


def test_lanes_that_need_no_lengths_are_those_of_an_ordinary_map():
    """Bodies are transformed once for equal maps, and messages do not speak of ragged lanes."""
    with pytest.raises(hx.errors.ShapeMismatch, match=r"under vmap\n"):
        hx.vmap(lambda x: x.data + hnp.ones(3), A)(NAMED)


ROWS = hnp.ones((4, 2))


@pytest.mark.parametrize(("run", "error", "words"), [
    (lambda: hx.vmap(lambda x: x, "a")(NAMED), hx.errors.BadCall, "got 'a'.*register_vmappable"),
    (lambda: hx.vmap(lambda x: x, ("a",))(NAMED), hx.errors.BadArgument, "of type Axis, got 'a'.*its spec, or None"),
    (lambda: hx.vmap(lambda x: x, ("a",))(ROWS), hx.errors.BadCall, "got 'a'.*register_vmappable"),
    (lambda: hx.vmap(lambda x: x)(NAMED), hx.errors.BadArgument, "NamedArray is mapped by in_axes of type Axis, got 0"),
    (lambda: hx.vmap(lambda x: x.data)(X), hx.errors.BadArgument, "hx.ragged_axis maps over the lanes"),
    (lambda: hx.vmap(lambda x: x, A)(ROWS), hx.errors.BadArgument, "'a'.* is an axis of NamedArray, got f32.*an int"),
    (lambda: hx.vmap(lambda x: x, A, 0)(NAMED), hx.errors.BadArgument, "by out_axes of type Axis, got 0"),
    (lambda: hx.vmap(lambda x: x, A, block_sparse.by_row)(NAMED), hx.errors.BadArgument, "out_axes of type Axis, got"),
    (lambda: hx.vmap(lambda x: x, A, None)(NAMED), hx.errors.ShapeMismatch, "all lanes share, got a mapped f32"),
    (lambda: hx.vmap(lambda x, y: x, (A, 0), A)(NAMED, ROWS), hx.errors.ShapeMismatch,
     r"got f32\[4,2\] along 0 and f32\[3,2\] along 0.*None shares"),
    (lambda: hx.vmap(lambda x, y: y, (A, Axis("b")))(NAMED, NAMED), hx.errors.ShapeMismatch, "along 0 and .* along 1"),
    (lambda: hx.vmap(lambda x: x, A, axis_size=4)(NAMED), hx.errors.ShapeMismatch, "axis_size 4 and f32"),
    (lambda: hx.vmap(lambda x: x, A, axis_size="4")(NAMED), hx.errors.BadCall, "axis_size is an integer.*__index__"),
    (lambda: hx.vmap(lambda x, *, y: y)(ROWS, y=NAMED), hx.errors.BadArgument, "keyword.*they name none.*positional"),
    (lambda: hx.vmap(lambda x: x, (None,), A)(NAMED), hx.errors.BadArgument, "at least one argument must be mapped"),
    (lambda: hx.vmap(lambda x: x, A, (A, A))(NAMED), hx.errors.TreeMismatch, "out_axes"),
])
def test_mistakes_name_the_container_and_the_remedy(run, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        run()


def test_mistakes_of_handlers():
    early = lambda cont, get_idx, x, spec: (get_idx(), cont(x.data, 0))
    with registered(Plain, Places, early), pytest.raises(hx.errors.BadArgument, match="asks for the number"):
        hx.vmap(lambda x: x, Places())(Plain(hnp.ones(3)))
    with registered(Plain, Axis, early), pytest.raises(hx.errors.BadCall, match="is an axis of NamedArray or Plain"):
        hx.vmap(lambda x: x, 0, A)(hnp.ones(3))
    twice = lambda cont, get_idx, x, spec: cont(cont(x.data, 0), 0)
    with registered(Plain, Places, twice), pytest.raises(hx.errors.BadArgument, match="enters once, got the f32"):
        hx.vmap(lambda x: x, Places())(Plain(hnp.ones((3, 3))))
    plain = lambda cont, get_idx, x, spec: Plain(cont(x.data, 0))
    with registered(Plain, Places, plain), pytest.raises(hx.errors.NotAnArray):
        hx.vmap(lambda x: x, Places(), None)(Plain(hnp.ones(3)))


def test_what_maps_inside_of_the_package_takes_containers_as_pytrees():
    f = lambda x: hx.vmap(lambda e: e.data.sum() ** 2, A)(x)
    rows = hx.jacrev(f)(NAMED)
    assert np.allclose(rows.data, hx.jacfwd(f)(NAMED).data) and rows.data.shape == (3, 3, 2)
    assert hx.hessian(lambda x: (x.data**3).sum())(NAMED).data.data.shape == (3, 2, 3, 2)


def test_references_beside_containers():
    table, shared = hx.new_ref(hnp.zeros((2, 3))), hx.new_ref(hnp.ones(2))

    def f(x, words, tables, *, ref):
        tables["t"][...] += x.data + words.sum()
        return x.data * ref[...]

    y = hx.vmap(f, (A, R, {"t": 1}))(NAMED, X, {"t": table}, ref=hx.new_ref(hnp.full((3, 2), 2.0)))
    assert np.array_equal(y, 2 * NAMED.data) and np.array_equal(table[...], (NAMED.data + np.array(SUMS)[:, None]).T)
    assert np.array_equal(hx.vmap(lambda x, r: x.data + r[...], (A, None))(NAMED, shared), NAMED.data + 1)


@pytest.mark.parametrize("run", [
    lambda f: hx.vmap(f, A, A)(NAMED),
    lambda f: hx.vmap(lambda v: f(NamedArray(v, ("b",))), 0, A)(NAMED.data),
    lambda f: hx.vmap(lambda v: Plain(f(NamedArray(v, ("b",))).data))(NAMED.data),
])
def test_leaks_are_found_where_containers_enter_or_leave(run):
    kept = []
    to_elt, from_elt = lambda *_: None, lambda cont, n, y, axis: Plain(cont(n, y.data, axis))
    with registered(Plain, int, to_elt, from_elt), hx.checking_leaks():
        run(lambda x: x)
        with pytest.raises(hx.errors.Leak, match="f32"):
            run(lambda x: (kept.append(x.data), x)[1])


def test_a_ragged_array_by_keyword_needs_a_spec_among_the_axes():
    with pytest.raises(hx.errors.BadArgument, match=r"Ragged by keyword.*they name none(.|\n)*positional"):
        hx.vmap(lambda a, x=None: x.sum() + a, in_axes=0)(hnp.arange(3.0), x=X)
