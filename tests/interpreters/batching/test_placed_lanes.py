"""vmap(spmd_axis_name=...): the values of vmap, and lanes that are placed over axes of the mesh."""

from __future__ import annotations

import itertools

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


def over(f, in_specs, out_specs, **options):
    return hx.shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs, **options)


def specs_in(f, *args):
    """The specs of the constraints in a program, those of its bodies too."""

    def walk(program):
        for op in program.ops:
            if op.name == "sharding_constraint":
                yield tuple(op.sharding.spec)
            for body in op.bodies if op.bodied else ():
                yield from walk(body)

    return [*walk(hx.make_program(f)(*args))]


def jvp_rule(g):
    f = hx.custom_jvp(g)
    f.defjvp(lambda primals, tangents: (g(primals[0]), 2 * g(tangents[0])))
    return f


def vjp_rule(g):
    f = hx.custom_vjp(g)
    f.defvjp(lambda x: (g(x), x), lambda x, ct: (2 * g(ct),))
    return f


def batching_rule(g):
    f = hx.custom_batching.custom_vmap(g)
    f.def_vmap(lambda size, mapped, x: (hx.vmap(g, spmd_axis_name="a")(x), True))
    return f


def in_place(g):
    def f(x):
        ref = hx.new_ref(x)
        ref[...] = g(ref[...])
        return ref[...]

    return f


def half_of(g):
    solve = lambda matvec, b: g(b / 2)
    return lambda x: lax.custom_linear_solve(lambda v: g(2 * v), x, solve, solve)


# what may stand between vmap and a function of one array; each is a function of the same shape
AROUND = {
    "nothing": lambda g: g,
    "scan": lambda g: lambda x: lax.scan(lambda c, _: (g(c), None), x, None, length=2)[0],
    "scan over slices": lambda g: lambda x: lax.scan(lambda c, y: (c + g(y), g(y)), x, hnp.stack([x, x]))[0],
    "scan of a closure": lambda g: lambda x: lax.scan(lambda c, _: (c + g(x), None), 0 * x, None, length=2)[0],
    "fori_loop": lambda g: lambda x: lax.fori_loop(0, 2, lambda i, c: g(c) + i, x),
    "map": lambda g: lambda x: lax.map(g, hnp.stack([x, x]))[1],
    "associative_scan": lambda g: lambda x: lax.associative_scan(lambda p, q: hx.vmap(g)(p + q), hnp.stack([x, x]))[1],
    "while": lambda g: lambda x: lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, g(c[1])), (0, x), max_steps=2)[1],
    "mapped while": lambda g: lambda x: lax.while_loop(lambda c: g(c).sum() < 0, lambda c: g(c + 1), x, max_steps=9),
    "cond": lambda g: lambda x: lax.cond(True, g, lambda x: x, x),
    "mapped cond": lambda g: lambda x: lax.cond(x[0, 0] > 0, g, lambda x: x, x),
    "switch": lambda g: lambda x: lax.switch(1, [lambda x: x, g], x),
    "mapped switch": lambda g: lambda x: lax.switch(hnp.argmax(x[0]), [lambda x: x, g, g], x),
    "jit": hx.jit,
    "inlined jit": lambda g: hx.jit(g, inline=True),
    "named_call": hx.named_call,
    "checkpoint": hx.checkpoint,
    "checkpoint with a policy": lambda g: hx.checkpoint(g, policy=hx.checkpoint_policies.nothing_saveable),
    "custom_jvp": jvp_rule,
    "custom_vjp": vjp_rule,
    "custom_gradient": lambda g: hx.custom_gradient(lambda x: (g(x), lambda ct: (g(ct),))),
    "custom_vmap": batching_rule,
    "custom_linear_solve": half_of,
    "jvp": lambda g: lambda x: hx.jvp(g, (x,), (x,))[1],
    "vjp": lambda g: lambda x: hx.vjp(g, x)[1](x)[0],
    "linearize": lambda g: lambda x: hx.linearize(g, x)[1](x),
    "vmap": lambda g: lambda x: hx.vmap(g, 1, 1)(x[:, None])[:, 0],
    "vtile": lambda g: hx.vtile(lambda x: hnp.concatenate([g(hnp.concatenate([x, x]))[:4]]), tile_size=2),
    "a reference": in_place,
}


def slope(f):
    return hx.grad(lambda x: hnp.sum(f(x) ** 2))


@pytest.mark.parametrize("name", AROUND)
def test_the_mapped_dimension_is_placed_through_everything(name):
    f = AROUND[name](cut)
    placed, plain = hx.vmap(f, spmd_axis_name="a"), hx.vmap(f)
    for g in placed, slope(placed):
        found = specs_in(g, X)
        assert found
        assert all(["a" in spec for spec in found])
    for y, wanted in hx.jit(lambda x: [(placed(x), plain(x)), (slope(placed)(x), slope(plain)(x))])(X):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def _pairs():
    chosen = {"mapped cond", "mapped switch", "mapped while"}  # these are not linear, and a rule for lanes places them
    names = [name for name in AROUND if name != "custom_vmap"]
    for (i, outer), (k, inner) in itertools.permutations(enumerate(names), 2):
        if not (outer in ("custom_linear_solve", "custom_jvp") and inner in chosen):
            yield pytest.param(outer, inner, marks=[] if k == i + 1 else [pytest.mark.sweep])


@pytest.mark.parametrize(("outer", "inner"), [*_pairs()])
def test_and_through_one_inside_another(outer, inner):
    f = AROUND[outer](AROUND[inner](cut))
    for g in hx.vmap(f, spmd_axis_name="a"), slope(hx.vmap(f, spmd_axis_name="a")):
        found = specs_in(g, X)
        assert found
        assert all(["a" in spec for spec in found])


def outermost_maps(program):
    """The axes of the shard_maps that stand in no other."""
    for op in program.ops:
        if op.name == "shard_map":
            yield [name for name, _ in op.axes]
        else:
            for body in op.bodies if op.bodied else ():
                yield from outermost_maps(body)


@pytest.mark.parametrize("name", AROUND)
def test_lanes_are_divided_around_shard_map_in_everything(name):
    f = AROUND[name](over(lambda x: x, P("b"), P("b")))
    placed = hx.vmap(f, spmd_axis_name="a")
    for g in placed, slope(placed):
        found = [*outermost_maps(hx.make_program(g)(X))]
        assert found
        assert all([axes == ["a"] for axes in found])
    np.testing.assert_allclose(hx.jit(placed)(X), hx.vmap(f)(X), rtol=1e-5, atol=1e-5)


def test_dimensions_several_axes_and_nests():
    assert specs_in(hx.vmap(cut, in_axes=2, spmd_axis_name="a"), X[..., :2]) == [("b", None, "a")]
    whole = lambda x: lax.with_sharding_constraint(x, NamedSharding(MESH, P()))
    assert specs_in(hx.vmap(whole, spmd_axis_name=("a", "b")), np.ones((8, 3))) == [(("a", "b"),)]
    nested = hx.vmap(hx.vmap(whole, spmd_axis_name="a"), spmd_axis_name="b")
    assert specs_in(nested, np.ones((4, 2, 3))) == [("b", "a")]
    assert specs_in(hx.vmap(hx.vmap(cut, spmd_axis_name="a")), X[None]) == [(P.UNCONSTRAINED, "a", "b")]
    made = hx.jit(hx.vmap(whole, spmd_axis_name="a"))(X)
    assert made.sharding.is_equivalent_to(NamedSharding(MESH, P("a")), 3)


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
    slopes = lambda f: hx.grad(lambda x, y: hnp.sum(f(x, y)[0] ** 2) + hnp.sum(f(x, y)[1]), (0, 1))(x, y)
    for z, expected in zip(slopes(placed), slopes(plain)):
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
    ],
)
def test_what_cannot_be_is_refused(f, axis, error, message):
    with pytest.raises(error, match=message):
        hx.vmap(f, spmd_axis_name=axis)(X)


@pytest.mark.parametrize("stated", [False, True], ids=["placed", "stated"])
@pytest.mark.parametrize("tracks", [False, True], ids=["untracked", "tracked"])
@pytest.mark.parametrize(("f", "in_specs", "out_specs"), [
    (hnp.sin, P("b"), P("b")), (lambda x: lax.psum(hnp.sin(x), "b"), P("b"), P()),
    (lambda x: lax.psum(hnp.sin(x), "a"), P("b"), P("b")),
    (lambda x: lax.psum(hnp.sin(x), "a"), P("a"), P()),
])
def test_a_map_that_uses_the_axis_has_all_lanes(f, in_specs, out_specs, tracks, stated):
    mesh = hx.make_mesh((2, 2), ("a", "b"), (hx.sharding.AxisType.Explicit,) * 2) if stated else MESH
    with hx.set_mesh(mesh):
        row = P() if in_specs == P("a") else in_specs
        x = hx.device_put(X, NamedSharding(mesh, P("a", *row)))
        mapped = hx.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=tracks)
        placed = {} if stated else {"spmd_axis_name": "a"}
        both = lambda row: (mapped(row), hx.grad(lambda row: hnp.sum(mapped(row) ** 2))(row))
        lanes = [hx.device_put(lane, NamedSharding(mesh, row)) for lane in X]
        for y, *wanted in zip(hx.jit(hx.vmap(both, **placed))(x), *map(hx.jit(both), lanes)):
            np.testing.assert_allclose(y, np.stack(wanted), rtol=1e-6)
            assert not stated or y.type.cut.spec[0] == "a"


def test_lanes_that_do_not_divide():
    with pytest.raises(errors.ShapeMismatch, match="must be a multiple of 2"):
        hx.vmap(over(lambda x: x, P("b"), P("b")), spmd_axis_name="a")(X[:3])


def test_ragged_lanes_are_not_placed():
    with pytest.raises(errors.BadArgument, match=r"no equal parts for the devices along .*'a'"):
        hx.vmap(lambda x: x, hx.ragged_axis, hx.ragged_axis, spmd_axis_name="a")(hx.Ragged(hx.numpy.ones(3), (1, 2)))
