"""Devices that choose differently and meet inside, where types do not track what varies: against the lanes of vmap."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.sharding import Mesh, P

LANES = 4
X = hnp.arange(2.0 * LANES).reshape(LANES, 2)


def total(x):
    return lax.psum(x, "i")


def looped(x):
    return lax.while_loop(lambda c: c[0] < 9, lambda c: c + total(c) / 10 + 1, x)


def inner_loops(x):
    """Of devices that have ended the inner loop would not end."""
    step = lambda c: lax.while_loop(lambda d: d[0] != 9, lambda d: d + 1, c) * 2 + 0 * total(c)
    return lax.while_loop(lambda c: c[0] < 9, step, hnp.floor(x))


def scanned(x):
    step = lambda c, t: (lax.cond(c[0] > t, total, lambda c: c + 1, c), c[1] * t)
    return lax.scan(step, x, hnp.arange(4.0))


PROGRAMS = {
    "one branch": lambda x: lax.cond(x[0] > 3, total, lambda x: x * 10, x),
    "both branches": lambda x: lax.cond(x[0] > 3, total, lambda x: lax.pmax(x, "i") * x, x),
    "by the device's number": lambda x: lax.switch(
        lax.axis_index("i"), [lambda x: x, total, lambda x: lax.ppermute(x, "i", [(0, 2), (1, 3)])], x
    ),
    "alike": lambda x: lax.cond(total(x)[0] > 3, total, lambda x: x, x),
    "in a scan": scanned,
    "in calls": lambda x: hx.jit(hx.checkpoint(lambda x: lax.cond(x[0] > 3, total, lambda x: x**2, x)))(x),
    "branch in a branch": lambda x: lax.cond(
        x[0] > 1, lambda x: lax.cond(x[1] > 3, total, lambda x: x * x[0], x), lambda x: x, x
    ),
    "a loop": looped,
    "a loop in a branch": lambda x: lax.cond(x[0] > 3, looped, lambda x: x * 10, x),
    "loops in a loop": inner_loops,
}


def close(actual, expected):
    for y, z in zip(hx.tree.leaves(actual), hx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_do_what_lanes_do(name):
    f = PROGRAMS[name]
    close(hx.pmap(f, axis_name="i")(X), hx.vmap(f, axis_name="i")(X))
    with hx.disable_jit():
        mesh = Mesh(np.array(hx.devices("cpu")[:LANES]), ("i",))
        rows = lambda x: hx.tree.map(lambda y: y[None], f(x[0]))
        own = hx.shard_map(rows, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
        close(own(X), hx.vmap(f, axis_name="i")(X))


@pytest.mark.parametrize("name", ["both branches", "loops in a loop"])
def test_lanes_of_devices(name):
    many = hnp.stack([X, 3 * X[::-1]])
    f = PROGRAMS[name]
    close(hx.vmap(hx.pmap(f, axis_name="i"))(many), hx.vmap(hx.vmap(f, axis_name="i"))(many))


@pytest.mark.parametrize("name", ["one branch", "by the device's number", "in a scan", "branch in a branch"])
def test_derivatives_are_those_of_lanes(name):
    def loss(mapped):
        return lambda x: sum([hnp.sum(y**2) for y in hx.tree.leaves(mapped(PROGRAMS[name], axis_name="i")(x))])

    close(hx.grad(loss(hx.pmap))(X), hx.grad(loss(hx.vmap))(X))


def test_forward_derivatives_are_those_of_lanes():
    f = PROGRAMS["both branches"]
    by_devices, by_lanes = [hx.jvp(mapped(f, axis_name="i"), (X,), (X + 1,)) for mapped in (hx.pmap, hx.vmap)]
    close(by_devices, by_lanes)


PARTED = {
    "cond": lambda x: lax.cond(x > 0.5, lambda x: lax.psum(hnp.sin(x), "i") * x, lambda x: 2 * x, x),
    "switch": lambda x: lax.switch(
        (4 * x).astype("int32"),
        [lambda x: lax.psum(x**2, "i") * x, hnp.cos, lambda x: lax.psum(hnp.exp(x), "i") ** 2, lambda x: x],
        x,
    ),
    "cond in a cond": lambda x: lax.cond(
        x > 0.3, lambda x: x * lax.cond(x > 0.5, lambda x: lax.psum(hnp.sin(x), "i") * x, hnp.cos, x), hnp.sin, x
    ),
    "while": lambda x: lax.while_loop(lambda c: c < 1.9, lambda c: c + lax.psum(c * c, "i") / 4, x, max_steps=9),
}


def differences(f, x, step=1e-2):
    """The columns of the derivative of ``f``, by central differences."""
    return np.stack([(f(x + d) - f(x - d)) / (2 * step) for d in step * np.eye(len(x), dtype=x.dtype)], -1)


@pytest.mark.parametrize("name", PARTED)
def test_derivatives_where_lanes_part_and_meet_are_those_of_the_values(name):
    f, x = PARTED[name], np.array([0.1, 0.4, 0.6, 0.9], np.float32)
    near = {"rtol": 2e-3, "atol": 2e-3}
    jacobian = None
    for mapped in (hx.vmap(f, axis_name="i"), hx.pmap(f, axis_name="i")):
        jacobian = differences(lambda x: np.asarray(mapped(x), np.float64), x)
        np.testing.assert_allclose(hx.jacfwd(mapped)(x), jacobian, **near)
        gradient = hx.grad(lambda x: mapped(x).sum())
        np.testing.assert_allclose(gradient(x), jacobian.sum(0), **near)
        np.testing.assert_allclose(
            hx.jacfwd(gradient)(x), differences(lambda x: np.asarray(gradient(x), np.float64), x), rtol=1e-2, atol=1e-2
        )
    within = hx.vmap(hx.grad(f), axis_name="i")
    for gradient in (within, hx.jit(within)):
        np.testing.assert_allclose(gradient(x), jacobian.sum(0), **near)
    close(hx.jacrev(within)(x), hx.jacfwd(hx.grad(lambda x: hx.vmap(f, axis_name="i")(x).sum()))(x))


def test_axes_of_a_mesh_along_which_nobody_meets_choose_for_themselves():
    mesh = Mesh(np.array(hx.devices("cpu")).reshape(2, 4), ("a", "b"))

    def f(x):
        return lax.cond(lax.axis_index("a") > 0, lambda x: lax.psum(x, "b"), lambda x: -x, x)

    own = hx.shard_map(f, mesh=mesh, in_specs=P(("a", "b")), out_specs=P(("a", "b")), check_vma=False)
    x = np.arange(8.0, dtype=np.float32)
    close(own(x), np.concatenate([-x[:4], np.full(4, x[4:].sum())]))


def test_effects_are_performed_where_all_choose_alike_and_refused_where_they_do_not():
    seen = []

    def note(x):
        hx.debug.callback(lambda v: seen.append(float(v)), x[0])
        return total(x)

    branch = hx.pmap(lambda x: lax.cond(x[0] > 3, note, lambda x: x, x), axis_name="i")
    close(branch(X + 10), hx.vmap(total, axis_name="i")(X + 10))
    assert sorted(seen) == [10.0, 12.0, 14.0, 16.0]
    loop = hx.pmap(lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: c + 0 * note(c) + 1, x), axis_name="i")
    close(loop(0 * X), 0 * X + 2)
    for f in (branch, loop):
        with pytest.raises(errors.CallbackError, match="devices chose differently, meet along i inside"):
            f(X)


@pytest.mark.parametrize("check", [True, False])
def test_a_collective_of_which_nothing_is_used_holds_up_no_device(check):
    @hx.custom_vjp
    def scaled(x, by):
        return x * by

    scaled.defvjp(lambda x, by: (x * by, (x, by)), lambda kept, ct: (ct * kept[1], total((ct * kept[0]).sum())))

    def f(x, by):
        gradient = lambda x: hx.grad(lambda x: scaled(x, by).sum())(x)  # the cotangent of ``by`` is not asked for
        return lax.cond(lax.axis_index("i") > 0, gradient, lambda x: x, x)

    mesh = Mesh(np.array(hx.devices("cpu")[:LANES]), ("i",))
    y = hx.shard_map(f, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"), check_vma=check)(X, np.float32(2))
    np.testing.assert_array_equal(y, np.concatenate([X[:1], np.full_like(X[1:], 2)]))
