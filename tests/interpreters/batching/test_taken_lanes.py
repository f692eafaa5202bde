"""A lane has the derivative of its own branch, also where the other branches are undefined on it."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.program_sizes import equations_in

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

W = np.asarray([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [2.0, 0.0, 1.5]], np.float32)
V = np.asarray([0.5, -1.5, 2.0], np.float32)
# where x > 0: defined there alone, or singular at 0
PARTIAL = {
    "sqrt": lambda w, v, x: (v * hnp.sqrt(x)).sum(),
    "log": lambda w, v, x: hnp.log(x) @ v,
    "reciprocal": lambda w, v, x: (w @ (1 / x)).sum(),
    "power": lambda w, v, x: (hnp.sqrt(w @ x * 0 + x) ** v).sum() + (x**0.5).sum(),
    "norm": lambda w, v, x: hnp.linalg.norm(w * x),
    "arccosh": lambda w, v, x: hnp.tanh(w @ hnp.arccosh(x + 1)) @ v,
    "in a loop": lambda w, v, x: lax.fori_loop(0, 3, lambda i, c: hnp.tanh(w @ hnp.sqrt(x) + c), 0 * v).sum(),
    "in a scan": lambda w, v, x: lax.scan(lambda c, row: (c + row @ hnp.log(x), c), 0.0, w)[0] * v[0],
    "in a jitted function": lambda w, v, x: hx.jit(lambda w, x: hnp.log(x) @ w @ v)(w, x),
    "in a checkpoint": lambda w, v, x: hx.checkpoint(lambda w, x: hnp.sqrt(x) @ w @ v)(w, x),
    "in a branch": lambda w, v, x: lax.cond(v[0] > 0, lambda: hnp.sqrt(x) @ w @ v, lambda: 0.0),
    "taken from a table": lambda w, v, x: (w[hnp.int32(x[0] > 1)] / x) @ v,
    "added": lambda w, v, x: hnp.sqrt(x + v - v).sum() + (hnp.concatenate([v, hnp.sqrt(x)]) ** 2).sum(),
}
XS = np.asarray([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [-1.0, -2.0, 0.0], [0.5, 0.1, 4.0]], np.float32)


def branching(partial):
    return lambda w, v, x: lax.cond(hnp.all(x > 0), lambda: partial(w, v, x), lambda: (w @ x) @ v)


def switching(partial):
    branches = [lambda w, v, x: partial(w, v, x), lambda w, v, x: (w @ x) @ v, lambda w, v, x: partial(v * w, v, -x)]
    index = lambda x: hnp.where(hnp.all(x > 0), 0, hnp.where(hnp.all(x < 0), 2, 1))
    return lambda w, v, x: lax.switch(index(x), branches, w, v, x)


def nested(partial):
    inner = branching(partial)
    return lambda w, v, x: lax.cond(x[2] > 3, lambda: 2.0 * inner(w, v, x), lambda: inner(w, v, x) + x[0])


def guarded(partial):  # lanes outside of the domain, which do not take the outer branch, would take the inner one
    inner = lambda w, v, x: lax.cond(x[1] < 2.5, lambda: partial(w, v, x), lambda: (w @ x) @ v)
    return lambda w, v, x: lax.cond(hnp.all(x > 0), lambda: inner(w, v, x), lambda: x[0])


def guarded_deeply(partial):
    inner = lambda w, v, x: lax.switch(hnp.int32(x[2]), [lambda: x[0], lambda: 2.0 * guarded(partial)(w, v, x)])
    called = lambda w, v, x: hx.jit(lambda w, x: lax.cond(x[1] < 9, lambda: inner(w, v, x), lambda: v[1]))(w, x)
    return lambda w, v, x: lax.cond(hnp.all(x > 0), lambda: called(w, v, x), lambda: x[0])


def guarded_loop(partial):  # lanes outside of the domain would iterate
    def loop(w, v, x):
        step = lambda c: (c[0] + 1.0, c[1] + partial(w, v, x))
        return lax.while_loop(lambda c: c[0] < 2, step, (0 * x[0], x[1]), max_steps=4)[1]

    return lambda w, v, x: lax.cond(hnp.all(x > 0), lambda: loop(w, v, x), lambda: x[0])


def in_scan(partial):
    f = branching(partial)
    return lambda w, v, x: lax.scan(lambda c, s: (c + f(w, v, s * x), s), 0.0, hnp.array([1.0, -1.0]))[0]


PROGRAMS = {"cond": branching, "switch": switching, "nested": nested, "scan": in_scan, "guarded": guarded,
            "guarded deeply": guarded_deeply, "guarded loop": guarded_loop}


def by_lanes(f, *args):
    with hx.disable_jit():  # branches and loops by Python
        return sum(f(*args[:2], x) for x in args[2])


def lanes_at_once(f, *args):
    return hx.vmap(f, in_axes=(None, None, 0))(*args).sum()


def same(x, y):
    for a, b in zip(hx.tree.leaves(x), hx.tree.leaves(y), strict=True):
        assert np.isfinite(np.asarray(b)).all()
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


CASES = [("cond", branch) for branch in PARTIAL]
CASES += [(program, branch) for program in PROGRAMS if program != "cond" for branch in ("power", "in a scan")]


@pytest.mark.parametrize(("program", "branch"), CASES)
def test_gradient_of_vmap_is_that_of_a_loop_over_lanes(program, branch):
    f = PROGRAMS[program](PARTIAL[branch])
    both = [hx.grad(lambda *args, g=g: g(f, *args), argnums=(0, 1, 2)) for g in (lanes_at_once, by_lanes)]
    want = both[1](W, V, XS)
    same(both[0](W, V, XS), want)
    same(hx.jit(both[0])(W, V, XS), want)


@pytest.mark.parametrize("branch", PARTIAL)
def test_second_derivatives_of_vmap_are_those_of_a_loop_over_lanes(branch):
    f = branching(PARTIAL[branch])
    at_once, one = (
        hx.jacrev(hx.grad(lambda w, x, g=g: g(f, w, V, x), argnums=(0, 1)), argnums=(0, 1))(W, XS)
        for g in (lanes_at_once, by_lanes)
    )
    same(at_once, one)


@pytest.mark.parametrize("branch", PARTIAL)
def test_tangents_of_vmap_are_those_of_a_loop_over_lanes(branch):
    f = branching(PARTIAL[branch])
    tangents = (np.ones_like(W), np.ones_like(V), np.ones_like(XS))
    at_once, one = (hx.jvp(lambda *a, g=g: g(f, *a), (W, V, XS), tangents) for g in (lanes_at_once, by_lanes))
    same(at_once, one)


def test_lanes_that_leave_a_loop_have_the_tangents_of_their_own_iterations():
    def f(x):  # ended lanes go on with sqrt of negative numbers
        return lax.while_loop(lambda x: x > 0.5, lambda x: hnp.sqrt(x - 0.5) * 0.9, x)

    xs = np.asarray([0.1, 0.5, 0.7, 3.0], np.float32)
    at_once = hx.jvp(hx.vmap(f), (xs,), (np.ones_like(xs),))
    same(at_once, [np.stack(ys) for ys in zip(*[hx.jvp(f, (x,), (np.float32(1),)) for x in xs])])


def branches(n):
    level = lambda w, x, i: lax.cond(x > 0, lambda x: level(w, x * 2, i - 1), lambda x: x, x) if i else x + w
    return lambda w, x: level(w, x, n)


def switches(n):
    def level(w, x, i):
        rest = lambda x: level(w, x * 2, i - 1)
        return lax.switch(hnp.int32(x), [rest, lambda x: x * w, lambda x: x], x) if i else x + w

    return lambda w, x: level(w, x, n)


def loops(n):
    def level(w, x, i):
        return lax.while_loop(lambda x: x < 4, lambda x: level(w, x * 2, i - 1), x, max_steps=3) if i else x + w

    return lambda w, x: level(w, x, n)


def jitted_branches(n):
    def level(w, x, i):
        taken = hx.jit(lambda w, x: level(w, x * 2, i - 1))
        return lax.cond(x > 0, taken, lambda w, x: x, w, x) if i else x + w

    return lambda w, x: level(w, x, n)


def one_callee_of_both_branches(n):
    def level(i):
        inner = hx.jit(level(i - 1)) if i else None
        both = lambda w, x: lax.cond(x > 0, lambda: inner(w, x * 2), lambda: inner(w, x - 1))
        return both if i else lambda w, x: x + w

    return level(n)


def branches_in_loops(n):
    def level(w, x, i):
        step = lambda c, _: (lax.cond(c > 0, lambda c: level(w, c * w, i - 1), lambda c: c, c), c)
        return lax.scan(step, x, None, length=2)[0] if i else x + w

    return lambda w, x: level(w, x, n)


DEEP = [branches, switches, loops, jitted_branches, one_callee_of_both_branches, branches_in_loops]


@pytest.mark.parametrize("deep", DEEP)
def test_the_program_of_lanes_that_share_a_value_is_linear_in_the_depth(deep):
    def sizes(n):
        at = [(hnp.float32(2), None), (hnp.ones(3), 0)]  # shared by all lanes, or mapped
        return [equations_in(hx.make_program(hx.vmap(deep(n), (dim, 0)))(w, hnp.ones(3))) for w, dim in at]

    (four, _), (eight, _), (sixteen, mapped) = map(sizes, (4, 8, 16))
    assert sixteen - eight == 2 * (eight - four) > 0
    assert sixteen <= 2 * mapped


def test_shared_weights_of_branches_are_not_copied_for_each_lane():
    f = lambda w, x: lax.cond(x[0] > 0, lambda: hnp.tanh(x @ w), lambda: hnp.sin(x @ w.T))
    xs, w = np.ones((64, 32), np.float32), np.ones((32, 32), np.float32)
    text = hx.jit(hx.grad(lambda w: hx.vmap(f, (None, 0))(w, xs).sum())).lower(w).as_text()
    assert "64x32x32" not in text


@pytest.mark.parametrize("bound", [{"max_steps": 10}, {"checkpoints": 3}])
def test_lanes_that_leave_a_loop_have_the_gradients_of_their_own_iterations(bound):
    def f(w, v, x):  # the body is undefined for lanes that have ended
        def step(c):
            return 0.9 * hnp.sqrt(c[0] - 0.5) * v[0], c[1] + (w @ hnp.log(c[0] - 0.5 + 0 * v)).sum()

        return lax.while_loop(lambda c: c[0] > 0.5, step, (x[0], 0.0 * x[0]), **bound)[1]

    xs = np.asarray([[0.1], [0.5], [0.7], [3.0]], np.float32)
    losses = [lambda *a, g=g: g(f, *a) for g in (lanes_at_once, by_lanes)]
    same(*[hx.grad(loss, argnums=(0, 1, 2))(W, abs(V), xs) for loss in losses])


def test_rows_that_end_early_have_the_gradients_of_their_own_iterations():
    def f(w, row):  # where rows have ended the carry is negative, and goes on
        start = 0.9 * row[0] + 3.0 * (row.shape[0] > 1) * row[0]
        return lax.scan(lambda c, r: (c - r, hnp.log(c) * w), start, row)[1].sum()

    rows = np.asarray([5.0, 0.1, 0.1, 2.0, 4.0, 0.1], np.float32)
    at_once = lambda w, x: hx.vmap(f, in_axes=(None, hx.ragged_axis))(w, hx.Ragged(x, (3, 1, 2))).sum()
    one = lambda w, x: f(w, x[:3]) + f(w, x[3:4]) + f(w, x[4:])
    w = np.float32(1.5)
    same(hx.grad(at_once, argnums=(0, 1))(w, rows), hx.grad(one, argnums=(0, 1))(w, rows))
