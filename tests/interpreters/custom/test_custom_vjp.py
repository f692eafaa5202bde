"""custom_vjp: reverse mode is the user's rule, forward mode its adjoint."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.custom_derivatives import CustomVJPPrimal, SymbolicZero, custom_vjp_primal_tree_values, linear_call
from handlax.effects.operations.elementwise.transcendental import Sin

XS = np.linspace(0.2, 1.4, 3, dtype="float32")


@hx.effect
class Knock:
    by: int = 1

    def result_type(op):
        return None


@hx.effect
class Level:
    like: object

    def result_type(op):
        return op.like


counter = hx.handler({Knock: lambda n, op: (n + op.by, None)})
reader = hx.handler({Level: lambda s, op: (s, s)})
twice_sin = hx.handler({Sin: lambda op, x: 2 * hx.perform(op, x)})


@hx.custom_vjp
def f(x, y):
    return hnp.sin(x) * y


def f_fwd(x, y):
    return f(x, y), (x, y)


def f_bwd(residuals, ct):
    """Three times the derivative by x, so that one sees whose it is."""
    x, y = residuals
    return 3.0 * hnp.cos(x) * y * ct, hnp.sin(x) * ct


f.defvjp(f_fwd, f_bwd)


def f_x(x, y=2.0):
    return 3.0 * np.cos(x) * y


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "derivative",
    [
        hx.grad,
        lambda f: hx.jit(hx.grad(f)),
        lambda f: hx.grad(hx.jit(f)),
        lambda f: lambda x: hx.vjp(f, x)[1](1.0)[0],
        hx.jacfwd,
        lambda f: hx.jit(hx.jacfwd(f)),
        lambda f: lambda x: hx.jvp(hx.jit(f), (x,), (1.0,))[1],
        lambda f: lambda x: hx.linearize(f, x)[1](1.0),
        lambda f: lambda x: hx.vmap(hx.grad(f))(hnp.array([x]))[0],
        lambda f: lambda x: hx.vmap(hx.jacfwd(f))(hnp.array([x]))[0],
        lambda f: lambda x: hx.grad(lambda xs: hx.vmap(f)(xs).sum())(hnp.array([x]))[0],
        lambda f: lambda x: hx.jacfwd(hx.vmap(f))(hnp.array([x]))[0, 0],
        lambda f: hx.grad(hx.checkpoint(f)),
        lambda f: hx.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x)),
        lambda f: hx.jacfwd(lambda x: lax.cond(x > 0, f, lambda x: x, x)),
        lambda f: hx.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0]),
        lambda f: lambda x: hx.jvp(lambda x: lax.fori_loop(0, hnp.int32(1), lambda i, c: f(c), x), (x,), (1.0,))[1],
        lambda f: hx.grad(lambda x: lax.while_loop(lambda c: c > 0.29, lambda c: f(c) - 1.0, x, max_steps=2)),
    ],
)
def test_the_rules_are_the_derivative_in_both_modes(derivative):
    close(derivative(lambda x: f(x, 2.0))(0.3), f_x(0.3))


@pytest.mark.each_choice
@pytest.mark.parametrize("first", [hx.grad, hx.jacfwd, hx.jacrev])
@pytest.mark.parametrize("second", [hx.grad, hx.jacfwd, hx.jacrev])
@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_second_derivatives_differentiate_the_rules(first, second, wrap):
    close(second(first(wrap(f)))(0.3, 2.0), -3.0 * np.sin(0.3) * 2.0)
    mapped = hx.vmap(wrap(second(first(f))), (0, None))(XS, 2.0)
    close(mapped, -3.0 * np.sin(XS) * 2.0)


def test_third_derivatives_go_on():
    close(hx.grad(hx.jacfwd(hx.grad(f)))(0.3, 2.0), -3.0 * np.cos(0.3) * 2.0)


def looped(x):
    return lax.scan(lambda c, y: (f(c, y), c), x, XS)[0]


def test_rules_in_a_scan_are_applied_in_every_run():
    x, want = np.float32(0.3), 1.0
    for y in XS:
        want *= f_x(x, y)
        x = np.sin(x) * y
    for derivative in (hx.grad, hx.jacfwd):
        close(derivative(looped)(0.3), want)
        close(hx.jit(hx.vmap(derivative(looped)))(hnp.full(2, 0.3)), [want, want])
    close(hx.grad(hx.grad(looped))(0.3), hx.jacfwd(hx.jacfwd(looped))(0.3))
    close(hx.grad(hx.checkpoint(looped))(0.3), want)


def test_rules_that_mix_elements_are_mapped_lane_by_lane():
    def plain(x):
        return hnp.exp(x) / hnp.exp(x).sum()

    softmax = hx.custom_vjp(plain)
    softmax.defvjp(lambda x: (plain(x),) * 2, lambda y, ct: (5.0 * (y * ct - y * (y * ct).sum()),))
    xs = np.arange(6, dtype="float32").reshape(2, 3)
    for jacobian in (hx.jacfwd, hx.jacrev):
        for axis in (0, 1):
            for mapped in (lambda f, a=axis: jacobian(hx.vmap(f, a, a)), lambda f, a=axis: hx.vmap(jacobian(f), a)):
                close(mapped(softmax)(xs), 5.0 * np.asarray(mapped(plain)(xs)))


def test_the_cotangent_of_an_argument_that_lanes_share_is_summed():
    gradient = hx.grad(lambda y: hx.vmap(f, (0, None))(XS, y).sum())
    close(gradient(2.0), np.sin(XS).sum())
    close(hx.jit(gradient)(2.0), np.sin(XS).sum())


def test_the_backward_rule_runs_once_and_only_backward():
    calls = []
    g = hx.custom_vjp(lambda x, y: x * y)
    g.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (calls.append(type(ct).__name__), (ct * r[1], ct * r[0]))[1])
    _, pull = hx.vjp(g, 2.0, 3.0)
    assert calls == []
    pull(1.0)
    assert calls == ["ConcreteArray"]


# Forward mode, and where there is none


def clipped(x):
    return x


def clip_bwd(_, ct):
    return (hnp.clip(ct, -1.0, 1.0),)


@pytest.mark.parametrize("bwd", [clip_bwd, lambda _, ct: (ct * ct,), lambda _, ct: (hnp.exp(ct),)])
def test_forward_mode_of_a_rule_that_is_not_linear_is_refused(bwd):
    g = hx.custom_vjp(clipped)
    g.defvjp(lambda x: (x, None), bwd)
    hx.grad(lambda x: 5.0 * g(x))(1.0)
    for transform in (hx.jacfwd, lambda f: hx.jit(hx.jacfwd(f)), lambda f: hx.jacfwd(hx.checkpoint(f))):
        with pytest.raises(errors.NotDifferentiable, match=rf"backward rule {bwd.__name__} at .*not linear in the cot"):
            transform(g)(1.0)


def test_a_rule_that_is_not_linear_keeps_reverse_mode():
    g = hx.custom_vjp(clipped)
    g.defvjp(lambda x: (x, None), clip_bwd)
    assert float(hx.grad(lambda x: 5.0 * g(x))(1.0)) == 1.0
    close(hx.vmap(hx.grad(lambda x, w: w * g(x)), (None, 0))(1.0, hnp.array([0.5, 5.0])), [0.5, 1.0])
    close(hx.jit(hx.grad(lambda x: 5.0 * lax.scan(lambda c, _: (g(c), None), x, None, 3)[0]))(1.0), 1.0)


# Arguments


def test_static_arguments_stand_in_their_places_forward_and_first_backward():
    @functools.partial(hx.custom_vjp, nondiff_argnums=(1,), nondiff_argnames=("options",))
    def scale(x, g, y, options):
        return g(x) * y * options["by"]

    def fwd(x, g, y, options):
        return scale(x, g, y, options), y

    def bwd(g, options, y, ct):
        return 100.0 * options["by"] * y * ct, None

    scale.defvjp(fwd, bwd)
    for wrap in (lambda f: f, hx.jit):
        assert float(wrap(hx.grad(lambda x: scale(x, hnp.sin, 2.0, options={"by": 3.0})))(1.0)) == 600.0
        assert float(wrap(hx.grad(lambda y: scale(1.0, hnp.sin, y, {"by": 3.0})))(1.0)) == 0.0


@hx.custom_vjp
def of_tree(tree, n):
    return {"y": tree["a"] * n, "z": (tree["b"][0], n)}


def of_tree_fwd(tree, n):
    return of_tree(tree, n), {"n": n, "none": None}


def of_tree_bwd(residuals, ct):
    assert ct["z"][1].dtype == hx.dtypes.float0
    return {"a": 10.0 * ct["y"] * residuals["n"], "b": None}, None


of_tree.defvjp(of_tree_fwd, of_tree_bwd)


def test_trees_integers_and_none_for_zero():
    tree = {"a": 1.0, "b": [2.0]}
    for wrap in (lambda f: f, hx.jit):
        gradient = wrap(hx.grad(lambda tree, n: of_tree(tree, n)["y"] + of_tree(tree, n)["z"][0]))(tree, 3)
        assert float(gradient["a"]) == 30.0
        assert float(gradient["b"][0]) == 0.0
    _, tangents = hx.jvp(lambda tree: of_tree(tree, 3), (tree,), (tree,))
    assert float(tangents["y"]) == 30.0
    assert tangents["z"][1].dtype == hx.dtypes.float0
    _, by_n = hx.grad(lambda tree, n: of_tree(tree, n)["y"], (0, 1), allow_int=True)(tree, 3)
    assert by_n.dtype == hx.dtypes.float0


def test_symbolic_zeros_say_what_is_differentiated():
    seen = []

    @hx.custom_vjp
    def g(x, y):
        return x * y, x + y

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return g(x.value, y.value), y.value

    def bwd(y, ct):
        seen.append([type(part) is SymbolicZero for part in ct])
        return ct[0].instantiate() if type(ct[0]) is SymbolicZero else ct[0] * y, None

    g.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(hx.grad(lambda x, y: g(x, y)[0])(1.0, 2.0)) == 2.0
    assert float(hx.grad(lambda x, y: g(x, y)[1])(1.0, 2.0)) == 0.0
    assert seen == [(True, False), [False, True], (True, False), [True, False]]
    twice = hx.grad(lambda x: lax.scan(lambda c, _: (g(c, 2.0)[0], None), x, None, 2)[0])
    close(hx.vmap(twice)(hnp.ones(3)), [4.0] * 3)


def test_rules_see_known_values():
    @hx.custom_vjp
    def absolute(x):
        return x if x > 0 else -x

    absolute.defvjp(lambda x: (absolute(x), x), lambda x, ct: (ct if float(x) > 0 else -10.0 * float(ct),))
    assert float(hx.grad(absolute)(-2.0)) == -10.0


# What is captured


def captures(y):
    """g(x) = x y with the derivative 10 y: captures(y) = 3 y 10 y."""

    @hx.custom_vjp
    def g(x):
        return x * y

    g.defvjp(lambda x: (g(x), None), lambda _, ct: (10.0 * ct * y,))
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
    ],
)
def test_captured_boxes_are_operands_of_both_rules(transform, want):
    close(transform(captures)(2.0), want)


def test_a_box_captured_by_rules_in_a_loop_reaches_every_run():
    def loop(y, x):
        @hx.custom_vjp
        def g(x):
            return x * y

        g.defvjp(lambda x: (g(x), None), lambda _, ct: (10.0 * ct * y,))
        return lax.scan(lambda c, _: (g(c), None), x, None, 2)[0]

    assert float(hx.grad(loop, 1)(2.0, 3.0)) == 400.0
    assert float(hx.jacfwd(hx.grad(loop, 1))(2.0, 3.0)) == 400.0
    close(hx.vmap(hx.grad(loop, 1), (0, None))(hnp.array([1.0, 2.0]), 3.0), [100.0, 400.0])


# Handlers of the user's


@hx.custom_vjp
def knocking(x):
    hx.perform(Knock(1))
    return hnp.cos(x)


def knocking_fwd(x):
    hx.perform(Knock(10))
    return hnp.cos(x), x


def knocking_bwd(x, ct):
    hx.perform(Knock(100))
    return (ct,)


knocking.defvjp(knocking_fwd, knocking_bwd)


def test_a_handler_outside_sees_what_the_rules_perform():
    for wrap in (lambda f: f, hx.jit):
        assert int(hx.handle(counter, 0)(wrap(knocking))(1.0)[0]) == 1
        assert int(hx.handle(counter, 0)(hx.vjp)(wrap(knocking), 1.0)[0]) == 10
        assert int(hx.handle(counter, 0)(hx.grad(wrap(knocking)))(1.0)[0]) == 110


def test_an_effect_of_the_backward_rule_that_moves_an_inner_state_is_refused():
    for wrap in (lambda f: f, hx.jit):
        handled = wrap(hx.handle(counter, 0)(knocking))
        assert int(handled(1.0)[0]) == 1
        with pytest.raises(errors.CannotCross, match=r"backward rule knocking_bwd at test_custom_vjp\.py"):
            hx.grad(lambda x, handled=handled: handled(x)[1])(1.0)


def test_the_backward_rule_reads_the_state_as_the_forward_rule_left_it():
    like = hnp.asarray(1.0).aval
    g = hx.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, None), lambda _, ct: (ct * hx.perform(Level(like)),))
    for wrap in (lambda f: f, hx.jit):
        assert float(hx.grad(lambda x: wrap(lambda x: hx.handle(reader, 7.0)(g)(x)[1])(x))(hnp.asarray(1.0))) == 7.0


def test_a_clause_applies_inside_the_backward_rule():
    cosine = hx.custom_vjp(hnp.cos)
    cosine.defvjp(lambda x: (hnp.cos(x), x), lambda x, ct: (-hnp.sin(x) * ct,))
    handled = hx.handle(twice_sin)(cosine)
    want = -2.0 * np.sin(1.0)
    for wrap in (lambda f: f, hx.jit):
        close(hx.grad(wrap(handled))(1.0), want)
        close(hx.jacfwd(wrap(handled))(1.0), want)
        close(hx.grad(lambda xs, wrap=wrap: hx.vmap(wrap(handled))(xs).sum())(hnp.ones(2)), [want, want])


# What rules must return


def no_pair(x):
    return x


def text(x):
    return x, "text"


def fine(x):
    return x, x


def no_tuple(r, ct):
    return ct


def too_many(r, ct):
    return ct, ct


def other_shape(r, ct):
    return (hnp.ones(3),)


def other_tree(r, ct):
    return ({"a": ct},)


def other_dtype(r, ct):
    return (hnp.ones((), "int32"),)


@pytest.mark.parametrize(
    ("fwd", "bwd", "error"),
    [
        (no_pair, too_many, errors.TreeMismatch),
        (text, too_many, errors.TreeMismatch),
        (fine, no_tuple, errors.TreeMismatch),
        (fine, too_many, errors.TreeMismatch),
        (fine, other_shape, errors.ShapeMismatch),
        (fine, other_tree, errors.TreeMismatch),
        (fine, other_dtype, errors.DTypeMismatch),
    ],
)
def test_a_wrong_rule_is_named_with_its_line(fwd, bwd, error):
    wrong = fwd if fwd is not fine else bwd
    g = hx.custom_vjp(lambda x: x * 2.0)
    g.defvjp(fwd, bwd)
    named = rf"rule {wrong.__name__} at test_custom_vjp.py:{wrong.__code__.co_firstlineno}:"
    for transform in (hx.grad, lambda f: hx.grad(hx.jit(f)), lambda f: hx.jit(hx.grad(f)), hx.jacfwd):
        with pytest.raises(error, match=named):
            transform(g)(1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_a_cotangent_of_another_shape_passes_where_jax_disable_bwd_checks_asks_for_it(wrap):
    g = hx.custom_vjp(lambda x, y: x)
    g.defvjp(lambda x, y: (x, None), lambda _, ct: (ct, hnp.arange(3.0)))
    gradient = wrap(hx.grad(lambda x, y: g(x, y).sum(), 1))
    with hx.configure(disable_bwd_checks=True):
        np.testing.assert_array_equal(gradient(XS, np.ones(7, "float32")), [0.0, 1.0, 2.0])
    with pytest.raises(errors.ShapeMismatch, match="cotangents of shape"):
        gradient(XS, np.ones(7, "float32"))


def test_a_function_without_rules_says_so():
    with pytest.raises(errors.BadCall, match="defvjp"):
        hx.custom_vjp(lambda x: x)(1.0)


# What is made of it


def test_custom_gradient_takes_the_pullback_from_the_function():
    @hx.custom_gradient
    def g(x, y):
        z = hnp.sin(x)
        return z * y, lambda ct: (2.0 * ct * y, 3.0 * ct * z)

    for wrap in (lambda f: f, hx.jit):
        close(wrap(hx.grad(g, (0, 1)))(0.3, 4.0), (8.0, 3.0 * np.sin(0.3)))
        close(wrap(hx.vmap(hx.grad(g, 1), (0, None)))(XS, 4.0), 3.0 * np.sin(XS))
    close(hx.grad(hx.grad(g, 1))(0.3, 4.0), 3.0 * np.cos(0.3))
    close(hx.jacfwd(g)(0.3, 4.0), 8.0)
    alone = hx.custom_gradient(lambda x, by=2.0: (x * by, lambda ct: 10.0 * ct))
    assert float(hx.grad(alone)(3.0)) == 10.0
    assert float(hx.grad(lambda x: alone(x, by=4.0))(3.0)) == 10.0


def test_cotangents_of_integer_results_have_no_bits_in_custom_gradient():
    f = hx.custom_gradient(lambda x: ((x, hnp.int32(3)), lambda cts: cts[0] * 2.0 + (cts[1].dtype == hx.dtypes.float0)))
    assert float(hx.grad(lambda x: 5.0 * f(x)[0])(1.0)) == 11.0


def divide(r, x):
    return linear_call(lambda r, x: {"y": x / r}, lambda r, ct: 5.0 * ct["y"] / r, r, x)["y"]


def test_linear_call_is_transposed_by_the_rule():
    for wrap in (lambda f: f, hx.jit):
        close(wrap(lambda x: hx.jvp(lambda x: divide(2.0, x), (x,), (1.0,))[1])(3.0), 0.5)
        close(wrap(hx.grad(lambda x: divide(2.0, x)))(3.0), 2.5)
        close(wrap(hx.vmap(hx.grad(lambda x: divide(2.0, x))))(hnp.ones(2)), [2.5, 2.5])
        close(wrap(hx.grad(lambda r: divide(r, 3.0)))(2.0), -0.75)
    transposed = hx.linear_transpose(lambda x: divide(2.0, x), 1.0)
    close(transposed(1.0)[0], 2.5)
    close(hx.linear_transpose(lambda ct: transposed(ct)[0], 1.0)(1.0)[0], 0.5)


@pytest.mark.parametrize("given", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_cotangent_of_another_float_format_is_converted(given, dtype):
    """As mixed precision gives it: each argument has the gradient of its own dtype."""
    f = hx.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (3 * ct.astype(given),))
    x = hnp.ones(2, dtype)
    for grad in (hx.grad, lambda f: hx.jit(hx.grad(f))):
        found = grad(lambda x: (f(x * 2) + x).sum())(x)
        assert found.dtype == dtype and found.tolist() == [7.0, 7.0]


def test_a_pullback_of_custom_gradient_need_not_use_its_cotangent():
    f = hx.custom_gradient(lambda x, y: (x * y, lambda ct: (y, x)))
    for grad in (hx.grad, lambda f, n: hx.jit(hx.grad(f, n)), lambda f, n: hx.grad(hx.jit(f), n)):
        assert grad(f, (0, 1))(3.0, 4.0) == (4.0, 3.0)
    g = hx.custom_gradient(lambda x: (hnp.sum(hnp.sin(x)), lambda ct: (hnp.cos(x) * hnp.arange(3.0, 6.0),)))
    x = np.arange(3, dtype=np.float32)
    assert np.allclose(hx.grad(g)(x), np.cos(x) * np.arange(3.0, 6.0))


@pytest.mark.parametrize("constant", [lambda r: 4.0, lambda r: r, lambda r: hnp.ones_like(r)])
def test_forward_mode_is_refused_where_the_backward_rule_ignores_its_cotangent(constant):
    f = hx.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, x), lambda r, ct: (constant(r),))
    assert float(hx.grad(f)(1.0)) in (1.0, 4.0)
    with pytest.raises(errors.NotDifferentiable, match="not linear"):
        hx.jvp(f, (1.0,), (1.0,))


def test_a_cotangent_that_is_zero_is_linear():
    f = hx.custom_vjp(lambda x, y: x * 2.0)
    f.defvjp(lambda x, y: (x * 2.0, y), lambda y, ct: (2.0 * ct, hnp.zeros_like(y)))
    assert hx.jvp(f, (1.0, 3.0), (1.0, 1.0))[1] == 2.0


def test_a_captured_value_does_not_ask_the_backward_rule_to_be_linear():
    def loss(x):
        f = hx.custom_vjp(lambda y: y * x)
        f.defvjp(lambda y: (y * x, y), lambda y, ct: (hnp.sign(ct) * x,))
        return f(3.0 * x)

    assert hx.grad(loss)(2.0) == 3 * 2.0 + 6.0


def test_the_values_of_a_tree_of_primals():
    seen = []
    f = hx.custom_vjp(lambda p: p["a"] * 2.0)
    fwd = lambda p: (seen.append(p), f(custom_vjp_primal_tree_values(p)), None)[1:]
    f.defvjp(fwd, lambda _, ct: ({"a": 3.0 * ct},), symbolic_zeros=True)
    assert hx.grad(lambda x: f({"a": x}))(1.0) == 3.0
    assert type(seen[0]["a"]) is CustomVJPPrimal and custom_vjp_primal_tree_values({"b": 2}) == {"b": 2}


def test_a_pullback_of_custom_gradient_logs():
    f = hx.custom_gradient(lambda x: (x * x, lambda ct: (2 * x * ct, {"ct": ct})), with_logs=True)
    g = hx.custom_gradient(with_logs=True)(lambda x, y: (x * y, lambda ct: ((y * ct, x * ct), None)))
    assert hx.grad(f)(3.0) == 6.0 and hx.vjp(f, 3.0)[1].with_logs(1.0) == ((6.0,), {"ct": 1.0})
    assert hx.vjp(g, 3.0, 4.0)[1].with_logs(1.0) == ((4.0, 3.0), {})
    for wrong in (lambda ct: (ct,), lambda ct: (ct, [1.0])):
        with pytest.raises(TypeError, match="a pair"):
            hx.grad(hx.custom_gradient(lambda x, wrong=wrong: (x, wrong), with_logs=True))(1.0)


def test_one_cotangent_stands_for_a_subtree():
    f = hx.custom_vjp(lambda p: p["a"] * p["b"])
    f.defvjp(lambda p: (f(p), None), lambda _, ct: (5.0 * ct,))
    assert hx.grad(f)({"a": 1.0, "b": 2.0}) == {"a": 5.0, "b": 5.0}


def numbers_reach(transform, *numbers):
    """The leaves of the residuals that the backward rule gets, where the forward rule saved these and its argument."""
    got = []

    @hx.custom_vjp
    def power(x):
        return x**3

    def bwd(residuals, ct):
        got.append(residuals[1:])
        return (3.0 * residuals[0] ** 2 * ct,)

    power.defvjp(lambda x: (x**3, (x, *numbers)), bwd)
    return transform(power), got


@pytest.mark.each_choice
@pytest.mark.parametrize("numbers", [(True, False), (3, -7), (2.5, -0.0), (1j,), (1, 1.0, True)])
@pytest.mark.parametrize(("transform", "want"), [
    (lambda f: hx.grad(f)(2.0), 12.0),
    (lambda f: hx.jit(hx.grad(f))(2.0), 12.0),
    (lambda f: hx.grad(hx.jit(f))(2.0), 12.0),
    (lambda f: hx.vmap(hx.grad(f))(hnp.array([2.0, 1.0])), [12.0, 3.0]),
    (lambda f: hx.grad(lambda x: hx.vmap(f)(x).sum())(hnp.array([2.0, 1.0])), [12.0, 3.0]),
    (lambda f: hx.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(1.5), 9 * 1.5**8),
    (lambda f: hx.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x))(2.0), 12.0),
    (lambda f: hx.grad(hx.grad(f))(2.0), 12.0),
    (lambda f: hx.grad(hx.checkpoint(f))(2.0), 12.0),
    (lambda f: hx.jvp(f, (2.0,), (1.0,))[1], 12.0),
    (lambda f: hx.vjp(f, 2.0)[1](1.0)[0], 12.0),
])
def test_python_numbers_among_the_residuals_reach_the_backward_rule_as_they_are(transform, want, numbers):
    value, got = numbers_reach(transform, *numbers)
    np.testing.assert_allclose(np.asarray(value), want, rtol=1e-5)
    assert got
    assert {tuple(map(repr, each)) for each in got} == {tuple(map(repr, numbers))}


def test_numbers_that_differ_in_type_or_sign_are_not_taken_for_each_other():
    scaled = hx.custom_vjp(lambda number, x: x, nondiff_argnums=0)
    scaled.defvjp(lambda number, x: (x, number), lambda _, number, ct: (ct * (len(repr(number))),))
    for number in (1, True, 1.0, 0.0, -0.0, 0):
        assert float(hx.jit(hx.grad(lambda x: scaled(number, x)))(2.0)) == len(repr(number))


@pytest.mark.parametrize("leaf", ["text", len, hnp.float32])
def test_residuals_that_are_neither_arrays_nor_numbers_are_refused(leaf):
    with pytest.raises(TypeError):
        numbers_reach(lambda f: hx.grad(f)(2.0), leaf)
