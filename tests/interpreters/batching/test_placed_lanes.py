"""vmap(spmd_axis_name=...): the values of vmap, and lanes that are placed over axes of the mesh."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.sharding import Mesh, NamedSharding, P

MESH = Mesh(np.array(hx.devices("cpu")).reshape(2, 4), ("a", "b"))
X = np.random.RandomState(0).randn(4, 8, 3).astype(np.float32)


def cut(x):
    return lax.with_sharding_constraint(x, NamedSharding(MESH, P("b")))


def specs_in(f, *args):
    """The specs of the constraints in a program, those of its bodies too."""

    def walk(program):
        for op in program.ops:
            if op.name == "sharding_constraint":
                yield tuple(op.sharding.spec)
            for body in op.bodies if op.bodied else ():
                yield from walk(body)

    return [*walk(hx.make_program(f)(*args))]


@hx.custom_jvp
def with_rule(x):
    return cut(x)


with_rule.defjvp(lambda primals, tangents: (cut(primals[0]), 2 * cut(tangents[0])))

INSIDE = {
    "alone": cut,
    "scan": lambda x: lax.scan(lambda c, _: (cut(c), None), x, None, length=2)[0],
    "while": lambda x: lax.while_loop(lambda c: c[0].sum() < 0, lambda c: (c[0] + 1, cut(c[1])), (x, x))[1],
    "cond": lambda x: lax.cond(True, cut, lambda x: x, x),
    "mapped cond": lambda x: lax.cond(x[0, 0] > 0, cut, lambda x: x, x),
    "jit": hx.jit(cut),
    "checkpoint": hx.checkpoint(cut),
    "custom rule": with_rule,
}


@pytest.mark.parametrize("name", INSIDE)
def test_the_mapped_dimension_is_placed_through_everything(name):
    f = INSIDE[name]
    placed = hx.vmap(f, spmd_axis_name="a")
    assert set(specs_in(placed, X)) == {("a", "b")}
    np.testing.assert_allclose(hx.jit(placed)(X), hx.vmap(f)(X))
    slope = lambda f: hx.grad(lambda x: hnp.sum(f(x) ** 2))
    if name != "while":
        assert set(specs_in(slope(placed), X)) == {("a", "b")}
        np.testing.assert_allclose(hx.jit(slope(placed))(X), slope(hx.vmap(f))(X), rtol=1e-6)


def test_dimensions_several_axes_and_nests():
    assert specs_in(hx.vmap(cut, in_axes=2, spmd_axis_name="a"), X[..., :2]) == [("b", None, "a")]
    whole = lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P()))
    assert specs_in(hx.vmap(whole, spmd_axis_name=("a", "b")), np.ones((8, 3))) == [(("a", "b"),)]
    nested = hx.vmap(hx.vmap(whole, spmd_axis_name="a"), spmd_axis_name="b")
    assert specs_in(nested, np.ones((4, 2, 3))) == [("b", "a")]
    assert specs_in(hx.vmap(hx.vmap(cut, spmd_axis_name="a")), X[None]) == [(P.UNCONSTRAINED, "a", "b")]
    made = hx.jit(hx.vmap(whole, spmd_axis_name="a"))(X)
    assert made.sharding.is_equivalent_to(NamedSharding(MESH, P("a")), 3)


def over(f, in_specs, out_specs, **options):
    return hx.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


def looped(x, y):
    step = lambda c, k: (c + lax.psum(x, "b") * k, c)
    return lax.scan(step, y, hnp.arange(3.0))[0], lax.cond(y.sum() > 0, lambda: 2 * y, lambda: y)


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (2, None), (None, 0)])
def test_devices_have_their_own_lanes_in_shard_map(in_axes):
    x = np.moveaxis(X, 0, 2) if in_axes[0] == 2 else X[0] if in_axes[0] is None else X
    y = X[0, :2] if in_axes[1] is None else X[:, :2]
    inside = over(looped, (P("b"), P()), (P(), P()))
    placed, plain = [hx.vmap(inside, in_axes, spmd_axis_name=name) for name in ("a", None)]
    hx.typecheck(hx.make_program(placed)(x, y))
    for z, expected in zip(placed(x, y), plain(x, y)):
        np.testing.assert_allclose(z, expected, rtol=1e-5, atol=1e-5)
    with hx.disable_jit():
        np.testing.assert_allclose(placed(x, y)[0], plain(x, y)[0], rtol=1e-5, atol=1e-5)
    if in_axes[0] != 0:
        return
    slope = lambda f: hx.grad(lambda x, y: hnp.sum(f(x, y)[0] ** 2) + hnp.sum(f(x, y)[1]), (0, 1))(x, y)
    for z, expected in zip(slope(placed), slope(plain)):
        np.testing.assert_allclose(z, expected, rtol=1e-4, atol=1e-4)


def test_a_device_sees_half_of_the_lanes():
    seen = []

    @hx.custom_batching.custom_vmap
    def look(x):
        return x

    @look.def_vmap
    def _(size, mapped, x):
        seen.append(size)
        return x, mapped[0]

    f = over(lambda x: look(x), P("b"), P("b"))
    np.testing.assert_allclose(hx.vmap(f, spmd_axis_name="a")(X), X)
    assert seen == [2]


@pytest.mark.parametrize(
    ("f", "axis", "error", "message"),
    [
        (cut, "b", errors.BadArgument, "cuts one dimension, got 'b' twice"),
        (cut, "z", errors.BadArgument, r"must name axes of the mesh \['a', 'b'\], got \('z',\)"),
        (over(lambda x: x, P("b"), P("b")), "b", errors.BadArgument, "one that uses 'b'"),
        (over(lambda x: lax.psum(x, "a"), P("b"), P("b")), "a", errors.BadArgument, "one that uses 'a'"),
    ],
)
def test_what_cannot_be_is_refused(f, axis, error, message):
    with pytest.raises(error, match=message):
        hx.vmap(f, spmd_axis_name=axis)(X)


def test_lanes_that_do_not_divide():
    with pytest.raises(errors.ShapeMismatch, match="must be a multiple of 2"):
        hx.vmap(over(lambda x: x, P("b"), P("b")), spmd_axis_name="a")(X[:3])
