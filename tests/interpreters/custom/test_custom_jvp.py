"""custom_jvp: the rule is what every transformation sees of the derivative."""

from __future__ import annotations

import functools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import handlax as hx
from handlax import dtypes, errors, lax
from handlax import numpy as hnp
from handlax.custom_derivatives import SymbolicZero, zero_from_primal
from handlax.effects.operations.elementwise.transcendental import Sin

XS = np.linspace(0.2, 1.4, 3, dtype="float32")


@hx.effect
class Pulse:
    by: int = 1

    def result_type(op):
        return None


@hx.effect
class Read:
    like: object

    def result_type(op):
        return op.like


@hx.effect
class Write:
    def result_type(op, x):
        return None


counter = hx.handler({Pulse: lambda n, op: (n + op.by, None)})
cell = hx.handler({Write: lambda s, op, x: (x, None), Read: lambda s, op: (s, s)})
twice_sin = hx.handler({Sin: lambda op, x: 2 * hx.perform(op, x)})


@hx.custom_jvp
def f(x, y):
    return hnp.sin(x) * y


@f.defjvp
def f_jvp(primals, tangents):
    """Three times the derivative by x, so that one sees whose it is."""
    (x, y), (dx, dy) = primals, tangents
    return f(x, y), 3.0 * dx * hnp.cos(x) * y + dy * hnp.sin(x)


def f_x(x, y=2.0):
    return 3.0 * np.cos(x) * y


def f_or(f):
    """f, which here stops the loop: its result is negative."""
    return lambda x: f(x) - 1.0


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: hx.grad(f),
        lambda f: hx.jit(hx.grad(f)),
        lambda f: hx.grad(hx.jit(f)),
        lambda f: hx.jacfwd(f),
        lambda f: lambda x: hx.jvp(f, (x,), (1.0,))[1],
        lambda f: lambda x: hx.linearize(f, x)[1](1.0),
        lambda f: lambda x: hx.vmap(hx.grad(f))(hnp.array([x]))[0],
        lambda f: lambda x: hx.grad(lambda xs: hx.vmap(f)(xs).sum())(hnp.array([x]))[0],
        lambda f: hx.grad(hx.checkpoint(f)),
        lambda f: hx.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x)),
        lambda f: hx.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0]),
        lambda f: hx.grad(lambda x: lax.while_loop(lambda c: c > 0.29, f_or(f), x, max_steps=2)),
        lambda f: lambda x: hx.jvp(lambda x: lax.fori_loop(0, hnp.int32(1), lambda i, c: f(c), x), (x,), (1.0,))[1],
    ],
)
def test_the_rule_is_the_derivative(derivative):
    close(derivative(lambda x: f(x, 2.0))(0.3), f_x(0.3))


def test_second_derivatives_differentiate_the_rule():
    for second in (lambda f: hx.grad(hx.grad(f)), hx.hessian, lambda f: hx.jacfwd(hx.jacfwd(f))):
        close(second(f)(0.3, 2.0), -3.0 * np.sin(0.3) * 2.0)
        close(second(hx.jit(f))(0.3, 2.0), -3.0 * np.sin(0.3) * 2.0)


def test_the_rule_of_a_linear_function_is_not_that_of_its_adjoint():
    inverse = hx.custom_jvp(lambda a, x: hnp.linalg.inv(a) @ x)

    @inverse.defjvp
    def _(primals, tangents):
        (a, _), (da, dx) = primals, tangents
        y = inverse(*primals)
        return y, inverse(a, dx - da @ y)

    a, x = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([1.0, -1.0])
    for function in (inverse, hx.jit(inverse)):
        loss, reference = (lambda a, x, f=f: (f(a, x) ** 2).sum() for f in (function, inverse.__wrapped__))
        for second in (hx.hessian, lambda f, argnums: hx.jacrev(hx.jacrev(f, argnums), argnums)):
            expected = hx.tree.leaves(second(reference, (0, 1))(a, x))
            for found, wanted in zip(hx.tree.leaves(second(loss, (0, 1))(a, x)), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_a_rule_in_a_scan_is_applied_in_every_run():
    def looped(x):
        return lax.scan(lambda c, y: (f(c, y), c), x, XS)[0]

    x, want = np.float32(0.3), 1.0
    for y in XS:
        want *= f_x(x, y)
        x = np.sin(x) * y
    close(hx.grad(looped)(0.3), want)
    close(hx.jit(hx.vmap(hx.grad(looped)))(hnp.full(2, 0.3)), [want, want])


@hx.custom_jvp
def softmax(x):
    return hnp.exp(x) / hnp.exp(x).sum()


@softmax.defjvp
def softmax_jvp(primals, tangents):
    y, dx = softmax(*primals), tangents[0]
    return y, 5.0 * (y * dx - y * (y * dx).sum())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("jacobian", [hx.jacfwd, hx.jacrev])
def test_a_rule_that_mixes_elements_is_mapped_lane_by_lane(axis, jacobian):
    xs = np.arange(6, dtype="float32").reshape(2, 3)

    def plain(x):
        return hnp.exp(x) / hnp.exp(x).sum()

    for mapped in (lambda f: jacobian(hx.vmap(f, axis, axis)), lambda f: hx.vmap(jacobian(f), axis)):
        close(mapped(softmax)(xs), 5.0 * np.asarray(mapped(plain)(xs)))
        close(hx.jit(mapped(softmax))(xs), 5.0 * np.asarray(mapped(plain)(xs)))


def test_a_result_that_is_equal_in_all_lanes_may_have_tangents_that_differ():
    @hx.custom_jvp
    def straight(x):
        return hnp.zeros(())

    straight.defjvp(lambda primals, tangents: (straight(*primals), tangents[0]))
    weights = hnp.array([1.0, 2.0])
    for wrap in (lambda f: f, hx.jit):
        close(wrap(hx.grad(lambda x: (hx.vmap(straight)(x) * weights).sum()))(hnp.ones(2)), [1.0, 2.0])


# Arguments


def test_static_arguments_come_first():
    @functools.partial(hx.custom_jvp, nondiff_argnums=(0, 2))
    def apply(g, x, mode, y=2.0):
        return g(x) * y

    @apply.defjvp
    def apply_jvp(g, mode, primals, tangents):
        assert mode == "fast"
        return apply(g, primals[0], mode, primals[1]), 10.0 * tangents[0] * primals[1]

    assert float(hx.grad(lambda x: apply(hnp.sin, x, "fast"))(1.0)) == 20.0
    assert float(hx.grad(lambda x: apply(hnp.sin, x=x, y=3.0, mode="fast"))(1.0)) == 30.0
    assert float(hx.jit(hx.grad(lambda x: apply(hnp.sin, x, "fast")))(1.0)) == 20.0


def test_static_arguments_by_name_need_not_be_hashable():
    @functools.partial(hx.custom_jvp, nondiff_argnames=["options"])
    def scale(x, options):
        return x * options["by"]

    scale.defjvp(lambda options, p, t: (scale(p[0], options), 100.0 * options["by"] * t[0]))
    assert float(hx.jit(hx.grad(lambda x: scale(x, options={"by": 3.0})))(2.0)) == 300.0


def test_a_static_argument_that_changes_is_another_one():
    options = {"by": 1.0}
    g = functools.partial(hx.custom_jvp, nondiff_argnums=1)(lambda x, options: hnp.sin(x))
    g.defjvp(lambda options, p, t: (hnp.sin(p[0]), options["by"] * t[0]))
    gradient = hx.grad(lambda x: lax.scan(lambda c, _: (g(c, options), None), x, None, 2)[0])
    for by in (1.0, 3.0, 5.0):
        options["by"] = by
        assert float(gradient(0.3)) == by * by


def test_trees_integers_and_their_tangents():
    @hx.custom_jvp
    def g(tree, n):
        return {"y": tree["a"] * n, "next": n + 1}

    @g.defjvp
    def g_jvp(primals, tangents):
        (tree, n), (dtree, dn) = primals, tangents
        assert dn.dtype == hx.dtypes.float0
        return g(tree, n), {"y": 10.0 * dtree["a"] * n, "next": zero_from_primal(n)}

    for wrap in (lambda f: f, hx.jit):
        assert float(wrap(hx.grad(lambda tree: g(tree, 3)["y"]))({"a": 2.0})["a"]) == 30.0
    _, tangents = hx.jvp(lambda tree: g(tree, 3), ({"a": 2.0},), ({"a": 1.0},))
    assert tangents["next"].dtype == hx.dtypes.float0


def test_symbolic_zeros_come_as_such_and_may_be_given():
    seen = []

    @hx.custom_jvp
    def g(x, y):
        return x * y

    def rule(primals, tangents):
        seen.append([type(t) is SymbolicZero for t in tangents])
        y = g(*primals)
        return y, 7.0 * tangents[0] if type(tangents[0]) is not SymbolicZero else SymbolicZero(y.aval)

    g.defjvp(rule, symbolic_zeros=True)
    assert float(hx.grad(g)(1.0, 2.0)) == 7.0
    assert float(hx.grad(g, 1)(1.0, 2.0)) == 0.0
    assert float(hx.jit(hx.grad(hx.jit(g)))(1.0, 2.0)) == 7.0
    assert seen == [[False, True], [True, False], [False, True]]


def test_defjvps_adds_the_rules_of_the_arguments():
    @hx.custom_jvp
    def g(x, y):
        return x * y

    g.defjvps(lambda dx, ans, x, y: 10.0 * dx * y, None)
    assert [float(d) for d in hx.grad(g, (0, 1))(2.0, 3.0)] == [30.0, 0.0]
    g.defjvps(None, None)
    assert [float(d) for d in hx.grad(g, (0, 1))(2.0, 3.0)] == [0.0, 0.0]


def test_a_method_takes_its_object_as_a_static_argument():
    class Scale:
        def __init__(self, by):
            self.by = by

        @functools.partial(hx.custom_jvp, nondiff_argnums=(0,))
        def __call__(self, x):
            return self.by * x

        @__call__.defjvp
        def rule(self, primals, tangents):
            return self(primals[0]), 10.0 * self.by * tangents[0]

    assert float(hx.grad(Scale(3.0))(2.0)) == 30.0


def test_a_function_and_its_rule_see_known_values():
    @hx.custom_jvp
    def absolute(x):
        return x if x > 0 else -x

    absolute.defjvp(lambda p, t: (absolute(*p), t[0] if p[0] > 0 else -10.0 * t[0]))
    assert float(absolute(-2.0)) == 2.0
    assert float(hx.grad(absolute)(-2.0)) == -10.0
    assert float(hx.grad(hx.grad(lambda x: absolute(x) * x))(-2.0)) == -20.0


# What is captured


def captures(y):
    """g(x) = x y with the derivative 10 y: captures(y) = 3 y 10 y."""

    @hx.custom_jvp
    def g(x):
        return x * y

    g.defjvp(lambda p, t: (g(*p), 10.0 * t[0] * y))
    return g(3.0) * hx.grad(g)(3.0)


@pytest.mark.parametrize(
    ("transform", "want"),
    [
        (lambda f: f, 120.0),
        (hx.grad, 120.0),
        (lambda f: hx.grad(hx.grad(f)), 60.0),
        (lambda f: hx.jit(hx.grad(f)), 120.0),
        (lambda f: hx.grad(hx.jit(f)), 120.0),
        (hx.jacfwd, 120.0),
        (lambda f: lambda y: hx.vmap(f)(hnp.array([y, y])), 120.0),
        (lambda f: lambda y: hx.vmap(hx.grad(f))(hnp.array([y, y])), 120.0),
        (lambda f: hx.grad(lambda y: hx.vmap(f)(hnp.array([y, y])).sum()), 240.0),
        (lambda f: hx.grad(lambda y: lax.scan(lambda c, _: (f(c), None), y, None, 1)[0]), 120.0),
        (lambda f: hx.grad(lambda y: lax.cond(y > 0, f, f, y)), 120.0),
    ],
)
def test_a_captured_box_is_an_operand(transform, want):
    close(transform(captures)(2.0), want)


def test_a_captured_box_is_not_kept():
    with hx.checking_leaks():
        for transform in (lambda f: f, hx.grad, hx.vmap, lambda f: hx.grad(hx.jit(f))):
            x = hnp.ones(2) if transform is hx.vmap else 2.0
            hx.jit(transform(lambda y: lax.scan(lambda c, _: (c * captures(y), None), y, None, 2)[0]))(x)


def test_a_captured_box_is_differentiated_as_what_the_rule_computes_with():
    def looped(y, x):
        @hx.custom_jvp
        def g(x):
            return x * y

        g.defjvp(lambda p, t: (g(*p), 10.0 * t[0] * y))
        return lax.scan(lambda c, _: (g(c), None), x, None, 2)[0]

    # c1 = x y, c2 = c1 y; dc1 = x dy + 10 y dx, dc2 = c1 dy + 10 y dc1
    assert [float(d) for d in hx.grad(looped, (0, 1))(2.0, 3.0)] == [66.0, 400.0]
    assert float(hx.jacfwd(hx.grad(looped, 1))(2.0, 3.0)) == 400.0


def test_boxes_are_found_in_partials_trees_methods_and_static_arguments():
    def through(wrap):
        def outer(y):
            @functools.partial(hx.custom_jvp, nondiff_argnums=(0,))
            def g(h, x):
                return h(x)

            g.defjvp(lambda h, p, t: (h(p[0]), 10.0 * h(t[0])))
            return hx.grad(lambda x: g(wrap(y), x))(3.0)

        return float(hx.grad(lambda y: hx.jit(outer)(y) + hx.vmap(outer)(y[None]).sum())(hnp.float32(2.0)))

    assert through(lambda y: lambda x: x * y) == 20.0
    assert through(lambda y: functools.partial(hnp.multiply, y)) == 20.0
    assert through(lambda y: lambda x, held=({"y": [y]},): x * held[0]["y"][0]) == 20.0
    assert through(lambda y: hx.jit(lambda x: x * y)) == 20.0
    assert through(lambda y: hx.vmap(lambda x: x * y, in_axes=None, out_axes=None, axis_size=1)) == 20.0


@pytest.mark.handlax(leaks=False)  # the rules, and what they refer to, live as long as the programs that name them
def test_a_box_that_cannot_be_followed_is_refused():
    def outer(y, x=None):
        held = SimpleNamespace(y=y)

        @hx.custom_jvp
        def g(x):
            return x * held.y

        g.defjvp(lambda p, t: (p[0] * held.y, t[0] * held.y))
        return g(x if x is not None else y)

    with pytest.raises(errors.EscapedBox, match=r"escaped box(.|\n)*pass other values as arguments"):
        hx.grad(outer)(2.0)
    with pytest.raises(errors.EscapedBox, match="escaped box"):
        hx.grad(hx.jit(outer))(2.0)
    close(hx.grad(lambda y: outer(y, 3.0))(2.0), 3.0)


# Handlers of the user's


@hx.custom_jvp
def beating(x):
    hx.perform(Pulse(1))
    return hnp.sin(x)


@beating.defjvp
def beating_jvp(primals, tangents):
    hx.perform(Pulse(10))
    return hnp.sin(primals[0]), 3.0 * hnp.cos(primals[0]) * tangents[0]


def thrice(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 3)[0]


def test_the_effects_of_the_rule_replace_those_of_the_body():
    for wrap in (lambda f: f, hx.jit):
        assert int(hx.handle(counter, 0)(wrap(beating))(1.0)[0]) == 1
        assert int(hx.handle(counter, 0)(wrap(hx.grad(beating)))(1.0)[0]) == 10
        assert int(hx.handle(counter, 0)(hx.grad(wrap(beating)))(1.0)[0]) == 10
    assert int(hx.handle(counter, 0)(thrice(beating))(1.0)[0]) == 3
    assert int(hx.handle(counter, 0)(hx.grad(thrice(beating)))(1.0)[0]) == 30


@pytest.mark.parametrize(("function", "count"), [(beating, 10), (thrice(beating), 30)])
def test_a_state_inside_the_derivative_is_that_of_the_rule(function, count):
    def handled(x):
        n, y = hx.handle(counter, 0)(function)(x)
        return y, n

    (_, n), derivative = hx.value_and_grad(handled, has_aux=True)(1.0)
    assert int(n) == count
    close(derivative, hx.handle(counter, 0)(hx.grad(function))(1.0)[1])
    (_, ns), _ = hx.vmap(hx.value_and_grad(handled, has_aux=True))(hnp.ones(2))
    assert [int(n) for n in ns] == [count, count]


def test_the_tangent_of_a_state_is_the_derivative_of_what_the_rule_does_to_it():
    like = hnp.asarray(1.0).aval

    @hx.custom_jvp
    def g(x):
        s = hx.perform(Read(like))
        hx.perform(Write(), s * x)
        return x * s

    @g.defjvp
    def g_jvp(primals, tangents):
        (x,), (dx,) = primals, tangents
        s = hx.perform(Read(like))
        hx.perform(Write(), s * x * x)
        return x * s, 100.0 * dx

    def run(x, s):
        return hx.handle(cell, s)(g)(x)

    x, s = hnp.asarray(3.0), hnp.asarray(2.0)
    for wrap in (lambda f: f, hx.jit):
        (state, y), (dstate, dy) = hx.jvp(wrap(run), (x, s), (1.0, 0.0))
        assert [float(v) for v in (state, y, dstate, dy)] == [18.0, 6.0, 12.0, 100.0]
        _, (dstate, dy) = hx.jvp(wrap(run), (x, s), (0.0, 1.0))
        assert [float(v) for v in (dstate, dy)] == [9.0, 3.0]
        assert [float(d) for d in hx.grad(lambda x, s: sum(wrap(run)(x, s)), (0, 1))(x, s)] == [112.0, 12.0]


def test_a_clause_applies_inside_the_rule():
    @hx.custom_jvp
    def cosine(x):
        return hnp.cos(x)

    cosine.defjvp(lambda p, t: (hnp.cos(p[0]), -hnp.sin(p[0]) * t[0]))
    for wrap in (lambda f: f, hx.jit):
        close(hx.grad(wrap(hx.handle(twice_sin)(cosine)))(1.0), -2.0 * np.sin(1.0))
        close(hx.handle(twice_sin)(hx.grad(wrap(cosine)))(1.0), -2.0 * np.sin(1.0))
        close(wrap(hx.vmap(hx.grad(hx.handle(twice_sin)(cosine))))(hnp.ones(2)), [-2.0 * np.sin(1.0)] * 2)


def test_a_log_inside_the_derivative_of_a_rule_that_calls_its_function():
    @hx.custom_jvp
    def g(x):
        return hnp.sin(x)

    g.defjvp(lambda p, t: (g(*p), 3.0 * hnp.cos(p[0]) * t[0]))
    log = hx.handler({Sin: lambda s, op, x: ((*s, x), hx.perform(op, x))}, moves=hx.append)
    for wrap in (lambda f: f, hx.jit):
        handled = hx.handle(log, ())(wrap(lambda x: lax.scan(lambda c, _: (g(c), None), x, None, 2)[0]))
        (entries,), y = handled(0.3)
        close(entries, [0.3, np.sin(0.3)])
        close(y, np.sin(np.sin(0.3)))
        close(hx.grad(lambda x, handled=handled: handled(x)[0][0][1])(0.3), 3.0 * np.cos(0.3))
        close(hx.grad(lambda x, handled=handled: handled(x)[1])(0.3), 9.0 * np.cos(0.3) * np.cos(np.sin(0.3)))


def test_a_function_that_may_end_early_is_what_its_operations_are():
    seven = hx.handler({Sin: hx.final(lambda op, x: 7.0 * x)})
    for wrap in (lambda f: f, hx.jit):
        ends = wrap(hx.handle(seven)(lambda x: f(x, 2.0) + 1.0))
        close(ends(0.3), 2.1)
        close(hx.grad(ends)(0.3), 7.0)


# What a rule must return


def plain(x):
    return x * 2.0


def with_rule(rule):
    made = hx.custom_jvp(plain)
    made.defjvp(rule)
    return made


def gives_no_pair(primals, tangents):
    return primals[0]


def gives_another_tree(primals, tangents):
    return primals[0], (tangents[0],)


def gives_another_shape(primals, tangents):
    return primals[0], hnp.ones(3)


def gives_another_dtype(primals, tangents):
    return primals[0], hnp.ones((), "float16")


def gives_other_results(primals, tangents):
    return (primals[0],), (tangents[0],)


def gives_results_of_another_shape(primals, tangents):
    return hnp.ones(3), hnp.ones(3)


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (gives_no_pair, errors.TreeMismatch),
        (gives_another_tree, errors.TreeMismatch),
        (gives_another_shape, errors.ShapeMismatch),
        (gives_another_dtype, errors.DTypeMismatch),
        (gives_other_results, errors.TreeMismatch),
        (gives_results_of_another_shape, errors.ShapeMismatch),
    ],
)
def test_a_wrong_rule_is_named_with_its_line(rule, error):
    line = rule.__code__.co_firstlineno
    for transform in (lambda f: hx.grad(hx.jit(f)), lambda f: hx.grad(hx.vmap(f, None, None, axis_size=2))):
        with pytest.raises(error, match=rf"custom_jvp of plain, rule {rule.__name__} at test_custom_jvp.py:{line}:"):
            transform(with_rule(rule))(1.0)
    if "results" not in rule.__name__:
        with pytest.raises(error, match=rule.__name__):
            hx.grad(with_rule(rule))(1.0)


def test_a_tangent_of_an_integer_result_must_be_float0():
    rounded = hx.custom_jvp(lambda x: hnp.round(x).astype("int32"))
    rounded.defjvp(lambda p, t: (rounded(*p), t[0]))
    with pytest.raises(errors.DTypeMismatch, match="float0"):
        hx.jvp(rounded, (1.0,), (1.0,))


def test_misuse_says_what_to_do():
    with pytest.raises(errors.BadCall, match="no rule yet"):
        hx.custom_jvp(plain)(1.0)
    with pytest.raises(errors.NotAnArray, match="nondiff_argnums"):
        with_rule(gives_no_pair)("x")
    with pytest.raises(errors.BadCall, match="missing"):
        f(1.0)
    with pytest.raises(errors.BadArgument, match="'y'"):
        hx.custom_jvp(plain, nondiff_argnames="y")
    static = hx.custom_jvp(plain, nondiff_argnums=(1,))
    static.defjvp(f_jvp)
    with pytest.raises(errors.BadArgument, match="nondiff_argnums"):
        static(1.0)
    with pytest.raises(errors.NotAFunction):
        hx.custom_jvp(3)


# Programs


def test_a_program_shows_the_rule_by_its_line_and_pickles_by_its_name():
    program = hx.make_program(f)(1.0, 2.0)
    assert f"rule f_jvp at test_custom_jvp.py:{f_jvp.__code__.co_firstlineno}" in str(program)
    assert "module holds under its own name" in str(hx.parse_program(str(program)).failure())
    assert hx.check_program(program).unwrap() is program
    copy = pickle.loads(pickle.dumps(hx.make_program(softmax)(XS)))
    close(hx.jacfwd(lambda x: copy(x)[0])(XS), hx.jacfwd(softmax)(XS))


def test_a_rule_is_traced_once_for_a_trace_that_is_used_again():
    calls = []
    g = hx.custom_jvp(lambda x: hnp.sin(x))
    g.defjvp(lambda p, t: (calls.append(1), (g(*p), t[0]))[1])
    jitted = hx.jit(thrice(g))
    hx.grad(jitted)(1.0)
    first = len(calls)
    for _ in range(3):
        hx.grad(jitted)(1.0)
        hx.jit(hx.grad(jitted))(1.0)
    assert first == len(calls) > 0


def test_defaults_of_keyword_only_parameters_stay_where_they_are():
    fixed = functools.partial(lambda x, y, a: x + y * a, a=0.5)
    f = hx.custom_jvp(fixed)
    f.defjvp(lambda primals, tangents: hx.jvp(fixed, primals, tangents))
    assert hx.grad(f, (0, 1))(1.0, 2.0) == (1.0, 0.5)
    with pytest.raises(errors.BadCall, match="keyword-only a"):
        f(1.0, 2.0, a=3.0)


def test_zeros_of_float0_are_a_tangent():
    f = hx.custom_jvp(lambda x, i: (x * 2.0, i))
    f.defjvp(lambda xs, dxs: (f(*xs), (dxs[0] * 2.0, hx.lax.stop_gradient(dxs[1]))))
    zero = hnp.zeros((), dtypes.float0)
    for call in (lambda g: g, hx.jit):
        assert call(lambda *x: hx.jvp(f, x, (1.0, zero))[1][0])(1.0, 3) == 2.0
    assert hx.jvp(f, (1.0, 3), (1.0, zero))[1][1].dtype == dtypes.float0
    assert hnp.zeros_like(zero).dtype == dtypes.float0 and hnp.zeros((2,), dtypes.float0).shape == (2,)
