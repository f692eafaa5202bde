"""vmap(group=...): the values and derivatives of the loop over lanes, and what is executed for them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

R = np.random.RandomState(0)
X = np.abs(R.randn(13, 3)).astype(np.float32)
X[:, 0] = R.randint(0, 6, 13) / 2  # of which branches and lengths follow
W = R.randn(3, 3).astype(np.float32)


@hx.custom_vjp
def with_rule(x, w):
    return x @ w


with_rule.defvjp(lambda x, w: (x @ w, (x, w)), lambda r, ct: (2 * (ct @ r[1].T), hnp.outer(r[0], ct)))


def branching(x, w):
    return lax.switch((2 * x[0]).astype(int), [
        lambda x, w: x @ w, lambda x, w: hnp.tanh(x) * w[0], with_rule, lambda x, w: 0 * x], x, w)


def pair(x, w):
    return lax.cond(x[0] > 1, lambda: (x.sum(), {"y": x @ w}), lambda: (w[0, 0], {"y": x}))


def branch_in_branch(x, w):
    inner = lambda x: lax.cond(x[0] > 1.5, lambda x: hnp.sin(x), lambda x: x @ w, x)
    return lax.cond(x[0] > 0.5, inner, lambda x: hnp.cos(x), x)


def branch_in_loop(x, w):
    step = lambda c, k: (lax.cond(c[0] > k, lambda c: c @ w / 2, lambda c: hnp.sin(c + k), c), c[1])
    return lax.scan(step, x, hnp.arange(3.0))


def loop_in_branch(x, w):
    powers = lambda x: lax.scan(lambda c, _: (hnp.tanh(c @ w), c), x, None, length=3)[0]
    return lax.cond(x[0] > 1, powers, lambda x: x, x)


def branch_in_while(x, w):
    step = lambda c: (c[0] + 0.5, lax.cond(c[0] > 1, lambda y: hnp.sin(y), lambda y: y @ w, c[1]))
    return lax.while_loop(lambda c: c[0] < 3, step, (x[0], x), max_steps=8)[1]


def through_calls(x, w):
    return hx.checkpoint(hx.jit(branching))(x, w)


FUNCTIONS = [
    branching, pair, branch_in_branch, branch_in_loop, loop_in_branch, branch_in_while, through_calls
]


def loss(y):
    return sum([(leaf ** 2).sum() for leaf in hx.tree.leaves(y)])


def stacked(f):
    """The loop over lanes, in which Python branches and iterates."""

    def looped(x, w):
        with hx.disable_jit():
            return hx.tree.map(lambda *ys: hnp.stack(ys), *[f(row, w) for row in x])

    return looped


def agree(found, wanted):
    for y, z in zip(hx.tree.leaves(found), hx.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_it_is_the_loop_over_lanes(f):
    wanted = stacked(f)(X, W)
    agree(hx.vmap(f, (0, None), group=True)(X, W), wanted)
    found = hx.jit(hx.vmap(f, (1, None), -1, group=4))(X.T, W)
    agree(found, hx.tree.map(lambda y: np.moveaxis(y, 0, -1), wanted))


@pytest.mark.parametrize("group", [True, 1, 5, 20])
def test_whatever_the_number_of_lanes_at_a_time(group):
    agree(hx.jit(hx.vmap(branching, (0, None), group=group))(X, W), stacked(branching)(X, W))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_and_so_are_its_derivatives(f):
    plain, grouped = [lambda x, w, v=v: loss(v(f, (0, None))(x, w)) for v in (hx.vmap, in_fours)]
    agree(*hx.jit(lambda *xs: [hx.grad(g, (0, 1))(*xs) for g in (grouped, plain)])(X, W))


@pytest.mark.parametrize("f", [pair, branch_in_branch])
def test_and_those_of_each_lane(f):
    of_lane = hx.grad(lambda x, w: loss(f(x, w)), (0, 1))
    agree(*hx.jit(lambda *xs: [v(of_lane, (0, None))(*xs) for v in (in_fours, hx.vmap)])(X, W))


def in_fours(f, in_axes):
    return hx.vmap(f, in_axes, group=4)


def test_outside_of_programs_too():
    slope = lambda v: hx.grad(lambda x, w: loss(v(branch_in_branch, (0, None))(x, w)), (0, 1))(X, W)
    agree(slope(lambda f, axes: hx.vmap(f, axes, group=True)), slope(hx.vmap))


def test_forward_mode():
    along = lambda v: hx.jvp(lambda x: v(branch_in_branch, (0, None))(x, W), (X,), (hnp.cos(X),))
    agree(*hx.jit(lambda: (along(in_fours), along(hx.vmap)))())


def test_second_derivatives():
    f = lambda v: lambda w: loss(v(pair, (0, None))(X, w))
    twice = lambda v: hx.jacfwd(hx.grad(f(v)))
    agree(*hx.jit(lambda w: (twice(in_fours)(w), twice(hx.vmap)(w)))(W))


@pytest.mark.parametrize(("outer", "inner"), [(False, True), (True, False), (3, 2)])
def test_nested(outer, inner):
    nested = hx.vmap(hx.vmap(branching, (0, None), group=inner), (0, None), group=outer)
    x = X[:12].reshape(4, 3, 3)
    plain = hx.vmap(hx.vmap(branching, (0, None)), (0, None))
    agree(nested(x, W), plain(x, W))
    slope = lambda f: hx.value_and_grad(lambda x, w: loss(f(x, w)), (0, 1))
    agree(*hx.jit(lambda *xs: (slope(nested)(*xs), slope(plain)(*xs)))(x, W))


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("which", [0, 1])
def test_few_lanes_and_branches_that_none_takes(count, which):
    f = lambda x: lax.cond(x[0] > 10 - 20 * which, lambda x: x.sum(), lambda x: x[0], x)
    x = X[:count]
    agree(hx.jit(hx.vmap(f, group=True))(x), hx.vmap(f)(x))
    agree(hx.vmap(f, group=True)(x), hx.vmap(f)(x))


def test_all_dtypes_move():
    keys = hx.random.split(hx.random.key(0), 5)
    flags, small = np.array([True, False, True, True, False]), np.arange(5, dtype=np.int8)

    def f(flag, key, n):
        draw = lambda: (hx.random.fold_in(key, 1), n + n, hx.random.uniform(key) < 0.5, n * 1j)
        return lax.cond(flag, draw, lambda: (key, n, flag, 0j))

    for found in hx.vmap(f, group=2)(flags, keys, small), hx.jit(hx.vmap(f, group=2))(flags, keys, small):
        wanted = hx.vmap(f)(flags, keys, small)
        agree(hx.random.key_data(found[0]), hx.random.key_data(wanted[0]))
        agree(found[1:], wanted[1:])


def executed(f, x):
    """How many lanes each call of the host sees."""
    seen = []

    def look(y):
        seen.append(y.shape[0] if y.ndim else 1)
        return np.asarray(y)

    called = lambda x: hx.pure_callback(look, hx.ShapeDtypeStruct((), "float32"), x, vmap_method="expand_dims")
    hx.block_until_ready(f(lambda x: lax.cond(x > 1, called, lambda x: x, x))(x))
    return seen


def test_outside_of_programs_a_branch_is_executed_once_on_exactly_its_lanes():
    assert executed(lambda f: hx.vmap(f, group=True), X[:, 0]) == [(X[:, 0] > 1).sum()]
    assert executed(lambda f: hx.vmap(f, group=True), 0 * X[:, 0]) == []


@pytest.mark.parametrize("size", [1, 2, 5])
def test_in_programs_it_is_executed_in_as_many_chunks_as_its_lanes_need(size):
    count = -(-int((X[:, 0] > 1).sum()) // size)
    assert executed(lambda f: hx.jit(hx.vmap(f, group=size)), X[:, 0]) == [size] * count
    assert executed(lambda f: hx.jit(hx.vmap(f, group=size)), 0 * X[:, 0]) == []


def test_the_slope_of_a_branch_that_a_lane_does_not_take_is_not_computed():
    f = lambda x: lax.cond(x > 0, hnp.sqrt, lambda x: 2 * x, x)
    x = np.array([4.0, 0.0, -1.0], np.float32)
    for wrap in hx.jit, lambda f: f:
        np.testing.assert_array_equal(wrap(hx.vmap(hx.grad(f), group=True))(x), [0.25, 2, 2])
        np.testing.assert_array_equal(wrap(hx.grad(lambda x: hx.vmap(f, group=2)(x).sum()))(x), [0.25, 2, 2])


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_effects_are_performed_for_the_lanes_that_take_their_branch(wrap):
    seen = []
    f = lambda x: lax.cond(x > 1, lambda x: (hx.debug.callback(lambda y: seen.append(float(y)), x), x)[1], hnp.sin, x)
    found = wrap(hx.vmap(f, group=True))(X[:, 0])
    hx.effects_barrier()
    agree(found, hx.vmap(lambda x: hnp.where(x > 1, x, hnp.sin(x)))(X[:, 0]))
    assert sorted(seen) == sorted(X[:, 0][X[:, 0] > 1])


def test_an_effect_that_lanes_cannot_perform_apart_is_refused():
    @hx.effect(vmap="once")
    class Note:
        def result_type(op):
            return hx.typeof(1.0)

    f = lambda x: lax.cond(x > 1, lambda x: x * hx.perform(Note()), lambda x: x, x)
    with pytest.raises(errors.CannotCross, match="only some of them would perform note"):
        hx.vmap(f, group=True)(X[:, 0])


def test_collectives_are_those_of_all_lanes():
    f = lambda x: lax.cond(x > 1, lambda x: x - lax.pmean(x, "i"), lambda x: x * lax.axis_index("i"), x)
    x = X[:, 0]
    agree(hx.jit(hx.vmap(f, axis_name="i", group=True))(x), np.where(x > 1, x - x.mean(), x * np.arange(13)))
    named = lambda x: lax.cond(x > 1, lambda x: x, lambda x: -x, x) + lax.psum(x, "i")
    agree(hx.vmap(named, axis_name="i", group=True)(x), np.where(x > 1, x, -x) + x.sum())


def test_devices_group_their_own_lanes():
    mesh = hx.make_mesh((4,), ("d",))
    plain, grouped = [hx.vmap(branching, (0, None), group=group) for group in (False, 2)]
    f = hx.shard_map(grouped, mesh=mesh, in_specs=(hx.P("d"), hx.P()), out_specs=hx.P("d"))
    slope = lambda f: hx.value_and_grad(lambda x, w: loss(f(x, w)), (0, 1))
    agree(*hx.jit(lambda *xs: (slope(f)(*xs), slope(plain)(*xs)))(X[:12], W))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"group": 0}, errors.BadCall, "group must be a bool or the number of lanes executed at a time, got 0"),
        ({"group": "x"}, errors.BadCall, "got 'x'"),
        ({"group": True, "spmd_axis_name": "a"}, errors.BadArgument, "lanes that are placed along 'a' stay"),
    ],
)
def test_what_has_no_meaning_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        hx.vmap(lambda x: x, **options)(X)


def test_ragged_lanes_have_no_chunks():
    x = hx.Ragged(hnp.arange(4.0), (3, 1))
    with pytest.raises(errors.BadArgument, match="lanes of different lengths have no chunks of one type"):
        hx.vmap(lambda x: x.sum(), hx.ragged_axis, group=True)(x)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_a_ragged_axis_are_selected_and_other_axes_of_its_lanes_grouped(axis):
    f = lambda x: lax.cond(x.sum() > 1, lambda x: hnp.sin(x), lambda x: 2 * x, x)
    rows = lambda group: lambda rows: hx.vmap(f, axis, axis, group=group)(rows)
    x = hx.Ragged(X, (4, 9))
    found, wanted = [hx.vmap(rows(group), hx.ragged_axis, hx.ragged_axis)(x) for group in (True, False)]
    agree(found.data, wanted.data)


def by_rule(g):
    f = hx.custom_jvp(g)
    f.defjvp(lambda primals, tangents: (g(*primals), hx.jvp(g, primals, tangents)[1]))
    return f


AROUND = {
    "cond": lambda g: lambda x: lax.cond(x[0] > 0.6, g, lambda x: x / 2, x),
    "other cond": lambda g: lambda x: lax.cond(x.sum() > 2, lambda x: hnp.sin(x), g, x),
    "switch": lambda g: lambda x: lax.switch((2 * x[0]).astype(int), [g, lambda x: x + 1, lambda x: g(x) * x], x),
    "scan": lambda g: lambda x: lax.scan(lambda c, y: (g(c), y * c), x, hnp.stack([x, 2 * x]))[1][1],
    "fori_loop": lambda g: lambda x: lax.fori_loop(0, 2, lambda i, c: g(c) + i, x),
    "while": lambda g: lambda x: lax.while_loop(
        lambda c: c[0] < x[0], lambda c: (c[0] + 1, g(c[1])), (0, x), max_steps=3)[1],
    "jit": hx.jit,
    "checkpoint": hx.checkpoint,
    "custom rule": by_rule,
    "grad": lambda g: hx.grad(lambda x: (g(x) * x).sum()),
    "vmap": lambda g: lambda x: hx.vmap(g)(hnp.stack([x, 1 - x]))[1],
    "grouped vmap": lambda g: lambda x: hx.vmap(g, group=1)(hnp.stack([x, 1 - x])).sum(0),
    "disable_jit": lambda g: lambda x: without_jit(g, x),
}


def without_jit(g, x):
    with hx.disable_jit():
        return g(x)


def nests():
    for (i, outer), (k, inner) in itertools.permutations(enumerate(AROUND), 2):
        yield pytest.param(outer, inner, marks=[] if k == i + 1 and i % 3 == 0 else [pytest.mark.sweep])


@pytest.mark.parametrize(("outer", "inner"), [*nests()])
def test_in_nests(outer, inner):
    branch = lambda x: lax.cond(x[1] > 0.5, lambda x: hnp.tanh(x) * x[::-1], lambda x: 0.5 * x, x)
    f = AROUND[outer](AROUND[inner](branch))
    plain, grouped = [hx.vmap(f, group=group) for group in (False, 3)]
    agree(grouped(X), plain(X))
    slope = lambda f: hx.value_and_grad(lambda x: (f(x) ** 2).sum())
    agree(*hx.jit(lambda x: (slope(grouped)(x), slope(plain)(x)))(X))
