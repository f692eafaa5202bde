"""custom_vmap: the rule is what vmap does, and derivatives keep it."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.custom_batching import custom_vmap, sequential_vmap
from handlax.effects.operations.elementwise.transcendental import Sin

XS = np.linspace(0.2, 1.4, 3, dtype="float32")


@hx.effect
class Toll:
    by: int = 1

    def result_type(op):
        return None


counter = hx.handler({Toll: lambda n, op: (n + op.by, None)})
twice_sin = hx.handler({Sin: lambda op, x: 2 * hx.perform(op, x)})
calls: list[object] = []


@custom_vmap
def f(x, y):
    return hnp.sin(x) * y


@f.def_vmap
def f_rule(size, in_batched, x, y):
    """Three times the function, so that one sees whose it is."""
    calls.append((size, in_batched))
    assert [x.shape, y.shape] == [(size,) if mapped else () for mapped in in_batched]
    return 3.0 * hnp.sin(x) * y, True


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=2e-5)


def test_the_rule_maps_and_the_function_does_the_rest():
    calls.clear()
    for wrap in (lambda f: f, hx.jit):
        close(wrap(f)(0.3, 2.0), 2.0 * np.sin(0.3))
        close(wrap(hx.grad(f))(0.3, 2.0), 2.0 * np.cos(0.3))
        assert calls == []
        close(wrap(hx.vmap(f, (0, None)))(XS, 2.0), 6.0 * np.sin(XS))
        close(hx.vmap(wrap(f), (0, None))(XS, 2.0), 6.0 * np.sin(XS))
        assert calls.pop() == (3, [True, False])
        calls.clear()


@pytest.mark.parametrize(
    ("derivative", "want"),
    [
        (hx.grad, np.cos),
        (hx.jacfwd, np.cos),
        (lambda f: lambda x, y: hx.jvp(lambda x: f(x, y), (x,), (1.0,))[1], np.cos),
        (lambda f: lambda x, y: hx.linearize(lambda x: f(x, y), x)[1](1.0), np.cos),
        (lambda f: hx.grad(hx.jit(f)), np.cos),
        (lambda f: hx.grad(hx.checkpoint(f)), np.cos),
        (lambda f: hx.grad(hx.grad(f)), lambda x: -np.sin(x)),
        (hx.hessian, lambda x: -np.sin(x)),
        (lambda f: hx.jacfwd(hx.jacfwd(f)), lambda x: -np.sin(x)),
        (lambda f: hx.jacrev(hx.jacfwd(f)), lambda x: -np.sin(x)),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_derivatives_are_mapped_by_the_derivative_of_the_rule(derivative, want, wrap):
    close(derivative(f)(0.3, 2.0), 2.0 * want(0.3))
    close(wrap(hx.vmap(derivative(f), (0, None)))(XS, 2.0), 6.0 * want(XS))


def test_a_mapped_function_is_differentiated_in_both_modes():
    total = hx.grad(lambda xs, y: hx.vmap(f, (0, None))(xs, y).sum(), (0, 1))
    for wrap in (lambda f: f, hx.jit):
        by_x, by_y = wrap(total)(XS, 2.0)
        close(by_x, 6.0 * np.cos(XS))
        close(by_y, 3.0 * np.sin(XS).sum())
        close(wrap(hx.jacfwd(hx.vmap(f, (0, None)), 1))(XS, 2.0), 3.0 * np.sin(XS))


def test_the_derivative_by_an_argument_that_lanes_share_differs_from_lane_to_lane():
    close(hx.vmap(hx.grad(f, 1), (0, None))(XS, 2.0), 3.0 * np.sin(XS))


def test_the_rule_is_kept_in_loops_and_branches():
    def looped(x, y):
        return lax.scan(lambda c, _: (f(c, y), None), x, None, 2)[0]

    def want(x):
        return 6.0 * hnp.sin(6.0 * hnp.sin(x))

    for wrap in (lambda f: f, hx.jit):
        close(wrap(hx.vmap(looped, (0, None)))(XS, 2.0), want(XS))
        close(wrap(hx.vmap(hx.grad(looped), (0, None)))(XS, 2.0), hx.vmap(hx.grad(want))(XS))
        chosen = hx.vmap(lambda x: lax.cond(x > 0.5, lambda x: f(x, 2.0), lambda x: x, x))
        close(wrap(chosen)(XS), np.where(XS > 0.5, 6.0 * np.sin(XS), XS))


def test_two_axes_take_the_rule_once_for_the_inner_one():
    calls.clear()
    close(hx.vmap(hx.vmap(f, (0, None)), (None, 0))(XS, XS), 3.0 * np.sin(XS) * XS[:, None])
    assert calls == [(3, [True, False])]


def test_trees_and_results_that_lanes_share():
    @custom_vmap
    def g(tree, k):
        return {"y": tree["a"] * k, "k": (k, tree["n"])}

    @g.def_vmap
    def rule(size, in_batched, tree, k):
        assert in_batched == [{"a": True, "n": False}, False]
        return g(tree, k), {"y": True, "k": (False, False)}

    made = hx.vmap(g, ({"a": 0, "n": None}, None))({"a": XS, "n": 7}, 2.0)
    close(made["y"], 2.0 * XS)
    close(made["k"][0], [2.0] * 3)
    assert made["k"][1].tolist() == [7] * 3
    gradient = hx.vmap(hx.grad(lambda a, k: g({"a": a, "n": 7}, k)["y"] * g({"a": a, "n": 7}, k)["k"][0]), (0, None))
    close(gradient(XS, 2.0), [4.0] * 3)


def test_the_mapped_axis_comes_first():
    @custom_vmap
    def g(x):
        return x.sum()

    g.def_vmap(lambda size, in_batched, x: (x.sum(tuple(range(1, x.ndim))), True))
    xs = np.arange(6, dtype="float32").reshape(2, 3)
    close(hx.vmap(g, 1)(xs), xs.sum(0))
    close(hx.vmap(hx.grad(g), 1, 1)(xs), np.ones((2, 3)))


def test_sequential_vmap_runs_lane_after_lane():
    g = sequential_vmap(lambda x, y: hnp.sin(x) * y)
    for wrap in (lambda f: f, hx.jit):
        close(wrap(hx.vmap(g, (0, None)))(XS, 2.0), 2.0 * np.sin(XS))
        close(wrap(hx.vmap(hx.grad(g), (0, None)))(XS, 2.0), 2.0 * np.cos(XS))
        close(wrap(hx.vmap(hx.vmap(g, (None, 0)), (0, None)))(XS, XS), np.sin(XS)[:, None] * XS)
    assert "scan" in str(hx.make_program(hx.vmap(g, (0, None)))(XS, 2.0))


def test_sequential_vmap_calls_its_function_with_one_lane_of_every_vmap():
    shapes = []

    def one(x):
        shapes.append(x.shape)
        return hx.pure_callback(np.sort, hx.ShapeDtypeStruct((2,), "float64"), x)  # takes no lanes

    xs = np.random.default_rng(0).normal(size=(3, 4, 2))
    close(hx.vmap(hx.vmap(sequential_vmap(one)))(xs), np.sort(xs))
    assert set(shapes) == {(2,)}


# What is captured


def test_a_captured_box_is_an_operand_unless_it_differs_from_lane_to_lane():
    def outer(y):
        @custom_vmap
        def g(x):
            return x * y

        g.def_vmap(lambda size, in_batched, x: (10.0 * x * y, True))
        return hx.vmap(g)(hnp.ones(2)).sum() + hx.vmap(hx.grad(g))(hnp.ones(2)).sum()

    for wrap in (lambda f: f, hx.jit):
        close(wrap(outer)(2.0), 80.0)
        close(wrap(hx.grad(outer))(2.0), 40.0)
        close(hx.grad(wrap(hx.grad(lambda y: y * outer(y))))(2.0), 80.0)

    def shared(y):
        g = custom_vmap(lambda x: x * y)
        g.def_vmap(lambda size, in_batched, x: (x, True))
        return g(1.0)

    with pytest.raises(errors.CannotCross, match="make it an argument"):
        hx.vmap(shared)(XS)


# Handlers of the user's


def test_effects_of_the_rule_replace_those_of_the_function():
    g = custom_vmap(lambda x: (hx.perform(Toll(1)), hnp.sin(x))[1])
    g.def_vmap(lambda size, in_batched, x: ((hx.perform(Toll(10)), hnp.sin(x))[1], True))
    assert int(hx.handle(counter, 0)(g)(1.0)[0]) == 1
    assert int(hx.handle(counter, 0)(hx.vmap(g))(XS)[0]) == 10
    assert int(hx.handle(counter, 0)(hx.jit(hx.vmap(hx.jit(g))))(XS)[0]) == 10


@hx.effect(vmap="per_lane", diff="stop")
class Scaled:
    def result_type(op, x):
        return x.update(weak=False)


scaling = hx.handle(hx.handler({Scaled: lambda n, op, x: (n + 1.0, x * n)}), 1.0)


def drawn(x):
    return hx.perform(Scaled(), x) * x


def lanes_of(transform):
    return lambda f: lambda x: hx.vmap(transform(f))(hnp.stack([x, 2.0 * x, 3.0 * x]))


def mapped_sum(f):
    return lambda x: hx.vmap(f)(hnp.stack([x, 2.0 * x, 3.0 * x])).sum()


def tangent(f):
    return lambda x: hx.jvp(f, (x,), (1.0,))


def pullback(f):
    return lambda x: hx.vjp(f, x)[1](1.0)[0]


def slopes(f):
    return lambda x: [hx.linearize(f, x)[1](dx) for dx in (1.0, 2.0)]


ONE = {"grad": hx.grad, "jvp": tangent, "value_and_grad": hx.value_and_grad, "hessian": hx.hessian, "vjp": pullback,
       "jacfwd": hx.jacfwd, "jacrev": hx.jacrev, "jit of grad": lambda f: hx.jit(hx.grad(f)), "linearize": slopes,
       "grad of vmap": lambda f: hx.grad(mapped_sum(f)), "jvp of vmap": lambda f: tangent(mapped_sum(f))}
MANY = {"vmap of grad": lanes_of(hx.grad), "vmap of jvp": lanes_of(tangent), "vmap of hessian": lanes_of(hx.hessian)}


def by_all_lanes(f):
    g = custom_vmap(f)
    g.def_vmap(lambda size, in_batched, x: (hx.vmap(f)(x), True))
    return g


@pytest.mark.each_choice
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
@pytest.mark.parametrize(
    ("ruled", "transform"),
    [*[(sequential_vmap, t) for t in {**ONE, **MANY}.values()], *[(by_all_lanes, t) for t in ONE.values()]],
    ids=[*[f"sequential, {name}" for name in {**ONE, **MANY}], *[f"by all lanes, {name}" for name in ONE]],
)
def test_a_derivative_performs_the_effects_of_the_function_once(ruled, transform, wrap):
    """As without a rule: so many performs, and value and tangent of the same answer."""
    got, want = [wrap(scaling(transform(f)))(3.0) for f in (ruled(drawn), drawn)]
    assert len(hx.tree.leaves(got)) == len(hx.tree.leaves(want)) > 1
    for a, b in zip(hx.tree.leaves(got), hx.tree.leaves(want)):
        close(a, b)


@pytest.mark.parametrize("transform", [lanes_of(hx.grad), lanes_of(tangent)], ids=["grad", "jvp"])
def test_lanes_of_a_derivative_perform_the_rules_effects_once_or_are_refused(transform):
    def toll(x):
        hx.perform(Toll())
        return x * x

    tolled = custom_vmap(toll)
    tolled.def_vmap(lambda size, in_batched, x: (toll(x), True))
    assert int(hx.handle(counter, 0)(transform(tolled))(3.0)[0]) == 1
    with pytest.raises(errors.CannotCross, match="the rule would perform them a second time") as error:
        scaling(transform(by_all_lanes(drawn)))(3.0)
    assert error.value.hint is not None


def test_a_clause_inside_vmap_applies_in_the_rule():
    handled = hx.handle(twice_sin)(lambda x: f(x, 2.0))
    for wrap in (lambda f: f, hx.jit):
        close(wrap(hx.vmap(handled))(XS), 12.0 * np.sin(XS))
        close(wrap(hx.vmap(hx.grad(handled)))(XS), 12.0 * np.cos(XS))


def test_a_state_of_each_lane_cannot_be_moved_by_the_rule_for_all():
    g = custom_vmap(lambda x: (hx.perform(Toll(1)), hnp.sin(x))[1])
    g.def_vmap(lambda size, in_batched, x: (hnp.sin(x), True))
    assert hx.vmap(hx.handle(counter, 5)(g))(XS)[0].tolist() == [5, 5, 5]
    g.def_vmap(lambda size, in_batched, x: ((hx.perform(Toll(10)), hnp.sin(x))[1], True))
    with pytest.raises(errors.CannotCross, match="custom_vmap of"):
        hx.vmap(hx.handle(counter, 0)(g))(XS)


# What a rule must return


def no_pair(size, in_batched, x):
    return (x,)


def other_tree(size, in_batched, x):
    return (x,), (True,)


def other_marks(size, in_batched, x):
    return x, [True]


def other_shape(size, in_batched, x):
    return x.sum(), True


def not_marked(size, in_batched, x):
    return x, False


def other_dtype(size, in_batched, x):
    return x.astype("float16"), True


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (no_pair, errors.TreeMismatch),
        (other_tree, errors.TreeMismatch),
        (other_marks, errors.TreeMismatch),
        (other_shape, errors.ShapeMismatch),
        (not_marked, errors.ShapeMismatch),
        (other_dtype, errors.DTypeMismatch),
    ],
)
def test_a_wrong_rule_is_named_with_its_line(rule, error):
    g = custom_vmap(lambda x: x * 2.0)
    g.def_vmap(rule)
    named = rf"rule {rule.__name__} at test_custom_vmap.py:{rule.__code__.co_firstlineno}:"
    for transform in (hx.vmap, lambda f: hx.vmap(hx.jit(f)), lambda f: hx.vmap(hx.grad(f))):
        with pytest.raises(error, match=named):
            transform(g)(XS)


def test_a_function_without_a_rule_says_so():
    with pytest.raises(errors.BadCall, match="def_vmap"):
        custom_vmap(lambda x: x)(1.0)


@pytest.mark.parametrize("inner", [hx.custom_jvp, hx.custom_vjp])
def test_rules_of_two_kinds_are_defined_on_either_decorator(inner):
    define = "defjvp" if inner is hx.custom_jvp else "defvjp"
    for outer_first in (True, False):
        make = (lambda f: custom_vmap(inner(f))) if outer_first else (lambda f: inner(custom_vmap(f)))
        f = make(lambda x: 2.0 * x)
        f.def_vmap(lambda size, mapped, xs: (2.0 * xs, True))
        if inner is hx.custom_jvp:
            f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0]))
        else:
            f.defvjp(lambda x: (f(x), None), lambda _, ct: (3.0 * ct,))
        assert hx.vmap(f)(np.float32([1.0])).tolist() == [2.0]
        assert outer_first or hx.grad(f)(1.0) == 3.0
        with pytest.raises(AttributeError, match="defnothing"):
            f.defnothing
    with pytest.raises(AttributeError, match=define):
        getattr(custom_vmap(lambda x: x), define)
    with pytest.raises(AttributeError, match=r"no rule"):
        inner(lambda x: x)(1.0)
