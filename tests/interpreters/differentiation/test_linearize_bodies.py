"""Operations with bodies, linearized: reverse mode agrees with forward mode, and saves each value once."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.chosen_cases import rest_in_sweep

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.transcendental import Sin
from handlax.interpreters.differentiation import linearize_bodies

X = np.linspace(0.2, 0.9, 4).astype("float32")
DX = np.array([1.0, -2.0, 0.5, 3.0], "float32")
ROWS = np.linspace(-0.5, 1.0, 12).reshape(3, 4).astype("float32")


def scanned(step):
    return lambda x: lax.scan(step, x, ROWS)


def second_carry_follows_the_first(x):
    """A carry that has a tangent from the second iteration on, and one that never has."""
    return lax.scan(lambda c, w: ((c[0] * w, c[0] + 1.0, c[2] * 2.0), c[1] * c[2]), (x, 0.0 * X + 1.0, X), ROWS)


def branch_without_a_tangent(x):
    return lax.cond(hnp.sum(x) > 0, lambda x: (hnp.sin(x), x * 2.0), lambda x: (X, hnp.cos(x)), x)


@hx.custom_jvp
def with_loop_in_its_rule(x):
    return hnp.sum(x * x)


@with_loop_in_its_rule.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return hnp.sum(x * x), lax.scan(lambda c, i: (c + 2.0 * x[i] * dx[i], None), 0.0, np.arange(4))[0]


@hx.effect(vmap="once", diff="stop")
class Note:
    def result_type(op, x):
        return x


PROGRAMS = {
    "call": hx.jit(lambda x: hnp.sin(x) * x),
    "call in call": hx.jit(lambda x: hx.jit(lambda y: hnp.sin(y) * x)(x * x) + hx.jit(hnp.cos)(x)),
    "call of a gradient": hx.jit(hx.grad(lambda x: hnp.sum(hnp.sin(x) * x))),
    "scan": scanned(lambda c, w: (hnp.tanh(c * w), hnp.sin(c))),
    "reverse scan": lambda x: lax.scan(lambda c, w: (hnp.tanh(c * w), c * w), x, ROWS, reverse=True),
    "scan in scan": scanned(lambda c, w: (hnp.sum(lax.scan(lambda d, v: (d * v, d), c, ROWS)[1], 0) * w, c)),
    "cond in scan": scanned(lambda c, w: (lax.cond(w[0] > 0, hnp.sin, lambda c: c * w, c), c)),
    "carries": second_carry_follows_the_first,
    "branches": branch_without_a_tangent,
    "scan of checkpoint": scanned(lambda c, w: (hx.checkpoint(lambda c: hnp.sin(c) * w)(c), c)),
    "rule with a loop": lambda x: with_loop_in_its_rule(hnp.sin(x)),
    "captured": lambda x: hx.jit(lambda y: y * hnp.sin(x) * hnp.ones(4))(X) + x,
    "invariant": scanned(lambda c, w: (c * hnp.exp(hnp.cos(X)) + hnp.exp(X) * w, c * X)),
}


def flat(f):
    return lambda x: hnp.concatenate([hnp.ravel(y) for y in hx.tree.leaves(f(x))])


NESTED = ("call in call", "scan", "branches", "rule with a loop")


@pytest.mark.parametrize(("name", "order"), [*[(name, 1) for name in PROGRAMS], *[(name, 2) for name in NESTED]])
def test_reverse_mode_agrees_with_forward_mode(name, order):
    f = flat(PROGRAMS[name])
    if order == 2:
        inner = f
        f = lambda x: hx.grad(lambda y: hnp.sum(inner(y)))(x)

    @hx.jit
    def both(x):
        y, push = hx.linearize(f, x)
        _, pull = hx.vjp(f, x)
        value, tangent = hx.jvp(f, (x,), (DX,))
        ct = hnp.cos(hnp.arange(value.shape[0]))
        return (y, push(DX), hnp.sum(pull(ct)[0] * DX)), (value, tangent, hnp.sum(tangent * ct))

    for got, expected in zip(*both(X)):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5)


def derivative(f):
    """The programs of the bodies of the known operation and of the rest of a function that performs one."""
    program = hx.make_program(lambda x: hx.linearize(f, x)[1](x))(X)
    known, rest = [op.bodies[0] for op in program.ops if op.bodied]
    return known, rest


def names(program):
    return [op.name for op in program.ops]


def test_a_body_is_linearized_without_its_jvp_as_a_program():
    before = hx.cache_info()["cross"]
    hx.grad(hx.jit(lambda x: hnp.sum(hnp.sin(x) * 0.6251)))(X)
    after = hx.cache_info()["cross"]
    assert after.misses == before.misses
    assert after.hits == before.hits


def test_a_linearization_is_remembered_for_equal_operations_and_settings(monkeypatch):
    made = []
    once = linearize_bodies._linearize_operation
    monkeypatch.setattr(linearize_bodies, "_linearize_operation", lambda *args: made.append(args) or once(*args))
    first = hx.grad(hx.jit(lambda x: hnp.sum(hnp.sin(x) * 0.6252)))(X)
    again = hx.grad(hx.jit(lambda y: hnp.sum(hnp.sin(y) * 0.6252)))(X)
    np.testing.assert_array_equal(again, first)
    assert len(made) == 1
    with hx.rules(jvp={Sin: lambda op, xs, dxs: (hx.perform(op, *xs), dxs[0])}):
        np.testing.assert_allclose(hx.grad(hx.jit(lambda x: hnp.sum(hnp.sin(x) * 0.6252)))(X), [0.6252] * 4, rtol=1e-6)
    assert len(made) == 2


def test_equal_residuals_are_computed_and_saved_once():
    known, rest = derivative(hx.jit(lambda x: (hnp.sin(x) * X, hnp.sin(x) + 1.0)))
    assert names(known).count("cos") == 1
    assert len(rest.in_types) == 2  # the cosine and the tangent


def test_equal_operations_are_merged_though_they_are_not_one_object():
    known, _ = derivative(hx.jit(lambda x: hx.perform(Sin(), x) * hx.perform(Sin(), x)))
    assert names(known).count("sin") == names(known).count("cos") == 1


def test_what_has_several_results_is_computed_as_often_as_it_stands_there():
    def f(x):
        first, _ = lax.optimization_barrier((hnp.sin(x), x))
        again, _ = lax.optimization_barrier((hnp.sin(x), x))
        return first * again

    known, _ = derivative(hx.jit(f))
    assert names(known).count("sin") == 1
    assert names(known).count("optimization_barrier") == 2


def test_what_is_cheap_to_recompute_is_no_residual():
    known, rest = derivative(hx.jit(lambda x: x * hnp.broadcast_to(x[0] * 2.0, (4,))))
    assert [t.shape for t in known.out_types] == [(4,), ()]
    assert "broadcast_in_dim" in names(rest)


def test_a_result_that_is_a_residual_leaves_the_known_part_once():
    known, _ = derivative(hx.jit(lambda x: hnp.exp(x)))
    assert names(known) == ["exp"]
    assert len(known.outs) == 1


def test_a_body_with_an_effect_performs_it_once():
    count = hx.handler({Note: lambda n, op, x: (n + 1, x)})

    @hx.jit
    def f(x):
        return hnp.sum(hx.perform(Note(), lax.stop_gradient(x)) * hnp.sin(x))

    def counted(x):
        n, y = hx.handle(count, 0)(f)(x)
        return y, n

    got, n = hx.grad(counted, has_aux=True)(X)
    np.testing.assert_allclose(got, X * np.cos(X), rtol=1e-6)
    assert int(n) == 1


@hx.effect(vmap="per_lane")
class Allreduce:
    """A linear effect: its derivative and its adjoint are itself."""

    def result_type(op, x):
        return x

    def jvp(op, primals, tangents):
        return hx.perform(op, *primals), hx.perform(op, *tangents)

    def transpose(op, ct, x):
        return hx.perform(op, *ct)


# the state is the list of the operands' roundings in base 8, which tells what was performed in which order
heard = hx.handler({Allreduce: lambda s, op, x: (8.0 * s + hnp.round(hnp.abs(x)), 1.5 * x)})


def twice(around):
    """Two steps by the transformation ``around`` of one; with None by Python alone."""
    return lambda f: lambda x: (lambda g: g(g(x)))(f if around is None else around(f))


def positive(f):
    return lambda x: lax.cond(x > 0, f, lambda x: x, x)


AROUND = {
    "jit": twice(hx.jit),
    "jit of both": lambda f: hx.jit(twice(None)(f)),
    "cond": twice(positive),
    "cond of both": lambda f: positive(twice(None)(f)),
    "checkpoint": lambda f: hx.checkpoint(twice(None)(f)),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, length=2)[0],
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
    "cond in scan": lambda f: AROUND["scan"](positive(f)),
    "checkpoint in scan": lambda f: AROUND["scan"](hx.checkpoint(f)),
    "scan in jit": lambda f: hx.jit(AROUND["scan"](f)),
    "vmap": lambda f: lambda x: hx.vmap(twice(None)(f))(x[None])[0],
}
PASSES = {
    "value_and_grad": hx.value_and_grad,
    "linearize": lambda f: lambda x: (lambda y, push: (y, push(2.0), push(3.0)))(*hx.linearize(f, x)),
    "jitted grad": lambda f: hx.jit(hx.grad(f)),
}


def performing(x):
    """An effect between other operations, and one that has no tangent."""
    return hnp.sin(hx.perform(Allreduce(), hnp.sin(x))) * x + hx.perform(Allreduce(), lax.stop_gradient(x))


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", rest_in_sweep(PASSES, ["value_and_grad"]))
def test_linear_effects_in_bodies_are_performed_as_they_are_unrolled(name, around):
    derivative, x = PASSES[name], np.float32(1.7)
    got, expected = [
        hx.handle(heard, 0.0)(derivative(g))(x) for g in (AROUND[around](performing), twice(None)(performing))
    ]
    np.testing.assert_allclose(hx.tree.leaves(got), hx.tree.leaves(expected), rtol=1e-5)


def test_the_value_of_a_loop_with_a_linear_effect_is_known():
    reduced = AROUND["scan"](lambda x: hx.perform(Allreduce(), x))
    assert hx.handle(heard, 0.0)(hx.value_and_grad(reduced))(1.0)[1] == (2.25, 2.25)
