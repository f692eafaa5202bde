"""xmap: against einsum and vmap, on one device and divided over a mesh."""

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.sharding import Mesh

MESH = Mesh(np.array(hx.devices("cpu")).reshape(2, 4), ("x", "y"))
RANDOM = np.random.RandomState(0)
A, B = RANDOM.randn(4, 8).astype(np.float32), RANDOM.randn(8, 2).astype(np.float32)
RESOURCES = [{}, {"i": "y"}, {"k": "x"}, {"i": "x", "k": "y"}, {"k": ("x", "y")}, {"j": "x", "k": "y"}]


def product(a, b):
    return lax.psum(a * b, "k")


@pytest.mark.parametrize("resources", RESOURCES, ids=str)
@pytest.mark.parametrize("out", ["ij", "ji"])
def test_one_program_by_names_wherever_they_stand_and_run(resources, out):
    expected = np.einsum(f"ik,kj->{out}", A, B)
    for (rows, columns), last in itertools.product([("ik", "kj"), ("ki", "jk")], [list(out), dict(enumerate(out))]):
        f = hx.xmap(product, ([*rows], [*columns]), last, axis_resources=resources, mesh=MESH)
        a, b = A if rows == "ik" else A.T, B if columns == "kj" else B.T
        np.testing.assert_allclose(f(a, b), expected, rtol=1e-4, atol=1e-5)
        with hx.set_mesh(MESH):
            again = hx.xmap(product, ([*rows], [*columns]), last, axis_resources=resources)
            np.testing.assert_allclose(again(a, b), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("resources", RESOURCES, ids=str)
def test_it_is_transformed_as_any_function(resources):
    f = hx.xmap(product, (["i", "k"], ["k", "j"]), ["i", "j"], axis_resources=resources, mesh=MESH)
    np.testing.assert_allclose(hx.grad(lambda a: hnp.sum(f(a, B) ** 2))(A), 2 * (A @ B) @ B.T, rtol=1e-4, atol=1e-5)
    many = np.stack([A, 2 * A])
    np.testing.assert_allclose(hx.vmap(f, (0, None))(many, B), many @ B, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hx.jvp(f, (A, B), (A, B))[1], 2 * A @ B, rtol=1e-4, atol=1e-5)
    nested = hx.xmap(lambda b: hx.xmap(product, (["i", "k"], ["k"]), ["i"])(A, b), [..., "j"], [..., "j"])
    np.testing.assert_allclose(nested(B), A @ B, rtol=1e-4, atol=1e-5)


def test_a_sum_along_a_divided_axis_is_one_message():
    f = hx.xmap(product, (["i", "k"], ["k", "j"]), ["i", "j"], axis_resources={"k": "x"}, mesh=MESH)
    assert f.lower(A, B).compile().as_text().count(" all-reduce(") == 1


def test_trees_positions_from_the_end_and_sizes():
    f = hx.xmap(lambda t: {"s": t["u"] - lax.pmean(t["u"], "r"), "n": lax.axis_size("z")}, {-1: "r"},
                {"s": ["r", ...], "n": []}, axis_sizes={"z": 3})
    y = f({"u": A})
    np.testing.assert_allclose(y["s"], (A - A.mean(1, keepdims=True)).T, rtol=1e-4, atol=1e-5)
    assert y["n"] == 3
    assert hx.xmap(lambda: lax.axis_index("z"), (), ["z"], axis_sizes={"z": 3})().tolist() == [0, 1, 2]
    for without in ([None, "r"], {0: None, 1: "r"}):
        sums = hx.xmap(lambda x: lax.psum(x, "r"), (without,), [None])(A)
        np.testing.assert_allclose(sums, A.sum(1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("in_axes", "out_axes", "error", "message"),
    [
        (["i"], ["i"], errors.BadArgument, "must have an entry for each of 2 dimensions"),
        ({-5: "i"}, ["i", ...], errors.BadArgument, "must name dimensions of 2"),
        ({5: "i"}, ["i", ...], errors.BadArgument, "must name dimensions of 2"),
        (["i", "i"], ["i"], errors.BadArgument, "an axis once"),
        (["i", ...], ["q", ...], errors.BadArgument, r"out_axes must name axes of \['i'\], got 'q'"),
        (["i", ...], [...], errors.ShapeMismatch, "needs a result that all lanes share"),
    ],
)
def test_errors(in_axes, out_axes, error, message):
    with pytest.raises(error, match=message):
        hx.xmap(lambda x: x, in_axes, out_axes)(A)


def test_two_sizes():
    with pytest.raises(errors.ShapeMismatch, match="'i' must have one size, got 4 and 8"):
        hx.xmap(lambda x, y: x, (["i", ...], ["i", ...]), ["i", ...])(A, B)


def test_a_second_call_traces_nothing():
    traces = []

    def f(a, b):
        traces.append(a.shape)
        return product(a, b)

    g = hx.xmap(f, (["i", "k"], ["k", "j"]), ["i", "j"], axis_resources={"k": "x"}, mesh=MESH)
    g(A, B)
    once = len(traces)
    g(A + 1, B)
    assert len(traces) == once
    h = hx.jit(lambda a, b: g(a, b) * 2)
    h(A, B)
    many = len(traces)
    h(A, B + 1)
    assert len(traces) == many


def named_inside(b, resources):
    """A named program over the rows of A, in one over the columns of b."""
    inner = hx.xmap(product, (["i", "k"], ["k"]), ["i"], axis_resources=resources.get("inner"), mesh=MESH)
    outer = hx.xmap(
        lambda column: inner(A, column), [..., "j"], [..., "j"], axis_resources=resources.get("outer"), mesh=MESH
    )
    return outer(b)


@pytest.mark.parametrize(
    "resources", [{}, {"inner": {"k": "y"}, "outer": {"j": "x"}}, {"inner": {"i": "x", "k": "y"}}], ids=str
)
def test_nested_ones_are_transformed_and_compiled(resources):
    f = lambda b: named_inside(b, resources)
    expected = hx.grad(lambda b: hnp.sum((A @ b) ** 2))
    for run in (lambda f: f, hx.jit):
        np.testing.assert_allclose(run(f)(B), A @ B, rtol=1e-4, atol=1e-5)
        slope = run(hx.grad(lambda b: hnp.sum(hx.checkpoint(f)(b) ** 2)))
        np.testing.assert_allclose(slope(B), expected(B), rtol=1e-4, atol=1e-4)
    many = np.stack([B, 2 * B])
    np.testing.assert_allclose(hx.vmap(f)(many), A @ many, rtol=1e-4, atol=1e-5)


def test_names_of_the_program_around_are_seen_inside_and_may_be_used_again():
    both = hx.xmap(lambda row: hx.xmap(lambda x: lax.psum(x, ("i", "j")), ["j"], [])(row), ["i", ...], [])
    np.testing.assert_allclose(both(A), A.sum(), rtol=1e-5)
    again = hx.xmap(lambda row: hx.xmap(lambda x: lax.psum(x, "i"), ["i"], [])(row), ["i", ...], ["i"])
    np.testing.assert_allclose(again(A), A.sum(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("resources", "mesh", "message"),
    [
        ({"q": "x"}, MESH, r"axis_resources must name axes of \['i', 'k', 'j'\], got 'q'"),
        ({"i": "x"}, None, "axis_resources are axes of a mesh, and none is given or in force"),
        ({"i": "q"}, MESH, r"the axes of the mesh are \('x', 'y'\), got 'q'"),
        ({"i": "x", "k": "x"}, MESH, "an axis of the mesh cuts one dimension, got 'x' twice"),
    ],
)
def test_resources_that_cannot_be(resources, mesh, message):
    with pytest.raises(errors.BadArgument, match=message):
        hx.xmap(product, (["i", "k"], ["k", "j"]), ["i", "j"], axis_resources=resources, mesh=mesh)(A, B)
