"""Functions that are called as one: jitted, checkpointed, mapped over devices, with rules of their own.

The law for each of them, whichever arguments are mapped, along whichever axes, in whichever order of transformations:

    vmap(g)(xs, ws)[i] == g(xs[i], ws[i]),  g = f, or a derivative of f;  and grad of the sum of both sides is equal
"""

from __future__ import annotations

import collections
import itertools
import re

import numpy as np
import pytest

import handlax as hx
from handlax import checkpoint_policies as policies
from handlax import lax
from handlax import numpy as hnp
from handlax.ad_checkpoint import checkpoint_name
from handlax.custom_batching import custom_vmap, sequential_vmap
from handlax.custom_derivatives import SymbolicZero, linear_call

LANES, SHAPE = 3, (3, 2)
R = np.random.RandomState(0)
X = R.randn(LANES, *SHAPE).astype(np.float32)
W = (R.randn(LANES, 2) / 2).astype(np.float32)
C = R.randn(*SHAPE).astype(np.float32)


def base(x, w):
    return hnp.sin(x) * w + w.sum() * x.sum(0)


# Rules are not the derivatives of their functions, so that they show.


def thrice(f):
    return lambda *args: tuple([3 * ct for ct in hx.vjp(f, *args[:-1])[1](args[-1])])


def jvp_rule(f, **options):
    g = hx.custom_jvp(f)
    dense = lambda dx: hnp.zeros(dx.shape) if isinstance(dx, SymbolicZero) else dx
    g.defjvp(lambda p, t: (f(*p), 3 * hx.jvp(f, p, tuple(map(dense, t)))[1]), **options)
    return g


def jvp_rule_with_a_static_argument(f):
    g = hx.custom_jvp(lambda n, x, w: n * f(x, w), nondiff_argnums=0)
    g.defjvp(lambda n, p, t: (n * f(*p), 3 * n * hx.jvp(f, p, t)[1]))
    return lambda x, w: g(2.0, x, w)


def jvp_rule_of_a_closure(f):
    def outer(x, w):
        g = hx.custom_jvp(lambda x: f(x, w))
        g.defjvp(lambda p, t: (f(p[0], w), 3 * hx.jvp(lambda x: f(x, w), p, t)[1]))
        return g(x)

    return outer


def jvp_rules_by_argument(*rules):
    def wrap(f):
        g = hx.custom_jvp(lambda x, w: hnp.sin(x) * w)
        g.defjvps(*rules)
        return g

    return wrap


def vjp_rule(f):
    g = hx.custom_vjp(f)
    g.defvjp(lambda x, w: (f(x, w), (x, w)), lambda r, ct: thrice(f)(*r, ct))
    return g


def vjp_rule_by_hand(f):
    g = hx.custom_vjp(lambda x, w: hnp.sin(x) * w)
    g.defvjp(lambda x, w: (hnp.sin(x) * w, (x, w)),
             lambda r, ct: (2 * ct * r[1] * hnp.cos(r[0]), 5 * (ct * hnp.sin(r[0])).sum(0)))
    return g


def vjp_rule_without_a_cotangent(f):
    g = hx.custom_vjp(lambda x, w: x * w)
    g.defvjp(lambda x, w: (x * w, w), lambda w, ct: (ct * w, None))
    return g


def vjp_rule_with_a_function(f):
    g = hx.custom_vjp(lambda h, x, w: h(x, w), nondiff_argnums=0)
    g.defvjp(lambda h, x, w: (h(x, w), (x, w)), lambda h, r, ct: thrice(h)(*r, ct))
    return lambda x, w: g(f, x, w)


def vjp_rule_of_a_closure(f):
    def outer(x, w):
        g = hx.custom_vjp(lambda x: f(x, w))
        g.defvjp(lambda x: (f(x, w), x), lambda x, ct: thrice(lambda x: f(x, w))(x, ct))
        return g(x)

    return outer


def vjp_rule_with_symbolic_zeros(f):
    g = hx.custom_vjp(lambda x, w: (f(x, w), 2 * w))
    g.defvjp(lambda x, w: ((f(x.value, w.value), 2 * w.value), (x.value, w.value)),
             lambda r, cts: thrice(f)(*r, cts[0]) if isinstance(cts[1], SymbolicZero) else (None, None),
             symbolic_zeros=True)
    return lambda x, w: g(x, w)[0]


def vjp_rule_of_a_tree(f):
    both = lambda x, w: {"a": f(x, w), "b": 2 * w}
    g = hx.custom_vjp(both)
    g.defvjp(lambda x, w: (both(x, w), (x, w)), lambda r, ct: (thrice(f)(*r, ct["a"])[0], 7 * ct["b"]))
    return lambda x, w: sum(g(x, w).values())


def lanes_rule(f):
    g = custom_vmap(f)
    axes = lambda mapped: tuple([0 if yes else None for yes in mapped])
    g.def_vmap(lambda size, mapped, x, w: (hx.vmap(f, axes(mapped))(x, w), True))
    return g


def solve(f):
    def inverse(a):
        (p, q), (r, s) = a
        return hnp.stack([hnp.stack([s, -q]), hnp.stack([-r, p])]) / (p * s - q * r)

    def solved(x, w):
        a = hnp.diag(hnp.exp(w)) + 0.1 * hnp.outer(w, hnp.cos(w))
        solver = lambda _, b: b @ inverse(a)
        return lax.custom_linear_solve(lambda y: y @ a, f(x, w), solver, lambda _, b: b @ inverse(a).T)

    return solved


def symmetric_solve(f):
    divide = lambda w: lambda _, b: (b / hnp.exp(w), b.sum())
    return lambda x, w: lax.custom_linear_solve(
        lambda y: y * hnp.exp(w), f(x, w), divide(w), symmetric=True, has_aux=True)[0]


def root(f):
    return lambda x, w: lax.custom_root(
        lambda y: y * hnp.exp(w) - f(x, w), hnp.zeros(SHAPE), lambda g, y: -g(y) / hnp.exp(w),
        lambda g, y: y / g(hnp.ones(SHAPE)))


def converted(f):
    def call(x, w):
        g, captured = hx.closure_convert(lambda y: f(y, w), x)
        return g(x, *captured)

    return call


def called_back(f):
    def call(x, w):
        host = lambda x, w: np.sin(x) * w[..., None, :]
        g = hx.custom_jvp(lambda x, w: hx.pure_callback(
            host, hx.ShapeDtypeStruct(SHAPE, "float32"), x, w, vmap_method="broadcast_all"))
        g.defjvps(lambda dx, y, x, w: dx * hnp.cos(x) * w, lambda dw, y, x, w: hnp.sin(x) * dw)
        return g(x, w)

    return call


def over_devices(axis, out):
    """shard_map over two devices, an argument cut along an axis."""
    mesh = hx.make_mesh((2,), ("d",))
    spec = lambda axis: hx.P(*[None] * axis, "d")

    def wrap(f):
        inner = lambda x, w: hnp.sin(x) * w.sum() + lax.psum((x[..., :1] * w[0]).sum(), "d")
        g = hx.shard_map(inner, mesh=mesh, in_specs=(spec(axis), hx.P()), out_specs=spec(out))
        return lambda x, w: f(x, w) + g(hnp.concatenate([x, x], axis), w).sum(out, keepdims=True).sum()

    return wrap


def over_pmap(axis, weights, out):
    """pmap over two devices, with these axes."""

    def wrap(f):
        g = hx.pmap(lambda x, w: f(x, w) + lax.psum(x, "p"), "p", in_axes=(axis, weights), out_axes=out,
                    devices=hx.devices()[:2])
        factors = np.float32([1, 2]).reshape([2 if d == out % 3 else 1 for d in range(3)])
        given = lambda w: w if weights is None else hnp.stack([w, -w], weights)
        return lambda x, w: (factors * g(hnp.stack([x, 2 * x], axis), given(w))).sum(out)

    return wrap


def named(policy):
    return lambda f: hx.checkpoint(
        lambda x, w: checkpoint_name(f(checkpoint_name(x * w, "a"), w), "b"), policy=policy("a"))


CALLS = {
    "jit": hx.jit,
    "inlined jit": lambda f: hx.jit(f, inline=True),
    "named_call": hx.named_call,
    "checkpoint": hx.checkpoint,
    "checkpoint that saves products": lambda f: hx.checkpoint(f, policy=policies.dots_saveable),
    "checkpoint that saves names": named(policies.save_only_these_names),
    "checkpoint that saves others": named(policies.save_any_names_but_these),
    "custom_jvp": jvp_rule,
    "custom_jvp with symbolic zeros": lambda f: jvp_rule(f, symbolic_zeros=True),
    "custom_jvp with a static argument": jvp_rule_with_a_static_argument,
    "custom_jvp of a closure": jvp_rule_of_a_closure,
    "defjvps": jvp_rules_by_argument(lambda dx, y, x, w: 2 * dx * w, lambda dw, y, x, w: 5 * dw * y),
    "defjvps of one argument": jvp_rules_by_argument(lambda dx, y, x, w: 2 * dx * w, None),
    "custom_vjp": vjp_rule,
    "custom_vjp by hand": vjp_rule_by_hand,
    "custom_vjp without a cotangent": vjp_rule_without_a_cotangent,
    "custom_vjp with a function": vjp_rule_with_a_function,
    "custom_vjp of a closure": vjp_rule_of_a_closure,
    "custom_vjp with symbolic zeros": vjp_rule_with_symbolic_zeros,
    "custom_vjp of a tree": vjp_rule_of_a_tree,
    "custom_gradient": lambda f: hx.custom_gradient(lambda x, w: (f(x, w), lambda ct: thrice(f)(x, w, ct))),
    "custom_vmap": lanes_rule,
    "sequential_vmap": sequential_vmap,
    "custom_linear_solve": solve,
    "symmetric custom_linear_solve": symmetric_solve,
    "custom_root": root,
    "linear_call": lambda f: lambda x, w: linear_call(lambda w, x: x * w, lambda w, ct: ct * w, w, f(x, w)),
    "closure_convert": converted,
    "pure_callback": called_back,
    "custom_vjp in custom_jvp": lambda f: jvp_rule(vjp_rule(f)),
    "custom_jvp in custom_vjp": lambda f: vjp_rule(jvp_rule(f)),
    "custom_vjp in custom_vjp": lambda f: vjp_rule(vjp_rule(f)),
    "custom_vmap in custom_vjp": lambda f: vjp_rule(lanes_rule(f)),
    "custom_vjp in custom_vmap": lambda f: lanes_rule(vjp_rule(f)),
    "custom_linear_solve in custom_vjp": lambda f: vjp_rule(solve(f)),
    "jit in custom_vjp in jit": lambda f: hx.jit(vjp_rule(hx.jit(f))),
    "custom_vjp in checkpoint": lambda f: hx.checkpoint(vjp_rule(f)),
    "checkpoint in custom_vjp": lambda f: vjp_rule(hx.checkpoint(f)),
    "custom_vjp in scan": lambda f: lambda x, w: lax.scan(
        lambda c, v: (vjp_rule(f)(c, v), None), x, hnp.stack([w, 2 * w]))[0],
    "rules in cond": lambda f: lambda x, w: lax.cond(w[0] > 0, vjp_rule(f), jvp_rule(f), x, w),
    "custom_vjp in while": lambda f: lambda x, w: lax.while_loop(
        lambda c: c[0] < w.sum() + 2, lambda c: (c[0] + 1, vjp_rule(f)(c[1], w)), (0, x), max_steps=4)[1],
    **{f"shard_map {axes}": over_devices(*axes) for axes in itertools.product((0, 1), repeat=2)},
    **{f"pmap {axes}": over_pmap(*axes) for axes in itertools.product((0, 1, 2, -1), (None, 0, 1, -1), (0, 1, 2, -1))},
}
FORWARD = "pmap (0, None, 1)", "pmap (1, 0, 2)", "pmap (2, 1, 0)", "pmap (-1, -1, -1)"  # those that are tested quickly
QUICK = [name for name in CALLS if not name.startswith("pmap") or name in FORWARD]


def derivatives(f):
    """Functions made of ``f``, which lanes may compute."""
    loss = lambda x, w: (f(x, w) * C).sum()
    along = hnp.cos(C), np.float32([0.5, -0.3])
    return {
        "value": f,
        "jit": hx.jit(f),
        "grad": hx.grad(loss, (0, 1)),
        "grad of x": hx.grad(loss),
        "grad of w": hx.grad(loss, 1),
        "grad of jit": hx.grad(hx.jit(loss), (0, 1)),
        "jit of grad": hx.jit(hx.grad(loss, (0, 1))),
        "grad of checkpoint": hx.grad(hx.checkpoint(loss), (0, 1)),
        "jvp": lambda x, w: hx.jvp(f, (x, w), along),
        "vjp": lambda x, w: hx.vjp(f, x, w)[1](C),
        "linearize": lambda x, w: hx.linearize(f, x, w)[1](*along),
        "grad of grad": hx.grad(lambda x, w: (hx.grad(loss)(x, w) ** 2).sum(), (0, 1)),
        "jvp of grad": lambda x, w: hx.jvp(hx.grad(loss, (0, 1)), (x, w), along),
        "vmap": lambda x, w: hx.vmap(f, (0, None))(hnp.stack([x, -x]), w).sum(0),
        "vmap of weights": lambda x, w: hx.vmap(f, (None, 1), 2)(x, hnp.stack([w, -w], 1)).sum(2),
        "grad of vmap": hx.grad(lambda x, w: (hx.vmap(f, (0, None))(hnp.stack([x, -x]), w) * C).sum(), (0, 1)),
    }


def looped(g, mapped):
    each = lambda x, yes, i: x[i] if yes else x
    lanes = lambda x, w: [g(each(x, mapped[0], i), each(w, mapped[1], i)) for i in range(LANES)]
    return lambda x, w: hx.tree.map(lambda *ys: hnp.stack(ys), *lanes(x, w))


def agree(found, wanted):
    for y, z in zip(hx.tree.leaves(found), hx.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(y, z, rtol=5e-4, atol=5e-5)


SOME = [(True, True), (True, False), (False, True)]
AXES = [(0, 0, 0), (1, 1, 1), (-1, -1, -1), (2, 0, 2)]


def check(name, order, mapped, axes):
    g = derivatives(CALLS[name](base))[order]
    args = [x if yes else x[0] for x, yes in zip((X, W), mapped)]
    *dims, out = axes if order in ("value", "jit") else (*axes[:2], 0)
    dims = [d if yes else None for d, yes in zip(dims, mapped)]
    moved = [x if d is None else np.moveaxis(x, 0, d) for x, d in zip(args, dims)]
    found = hx.tree.map(lambda y: np.moveaxis(y, out, 0), hx.vmap(g, tuple(dims), out)(*moved))
    agree(found, looped(g, mapped)(*args))


def check_sum(name, mapped, wrap=lambda f: f):
    """Gradients of all lanes together: those of what lanes share are sums."""
    f = CALLS[name](base)
    args = [x if yes else x[0] for x, yes in zip((X, W), mapped)]
    dims = tuple([0 if yes else None for yes in mapped])
    weights = R.__class__(1).randn(LANES, *SHAPE).astype(np.float32)
    slope = lambda f: hx.grad(lambda x, w: (f(x, w) * weights).sum(), (0, 1))
    agree(wrap(slope(hx.vmap(f, dims)))(*args), slope(looped(f, mapped))(*args))


@pytest.mark.parametrize("number", range(len(QUICK)))
def test_lanes_of_a_derivative(number):
    check(QUICK[number], "grad", SOME[number % 3], AXES[number % 4])


@pytest.mark.parametrize("name", QUICK)
def test_the_derivative_of_lanes_sums_over_what_they_share(name):
    check_sum(name, (True, False))


@pytest.mark.sweep
@pytest.mark.parametrize("mapped", SOME)
@pytest.mark.parametrize(("name", "order"), [
    case for case in itertools.product(CALLS, derivatives(base)) if case[0] in QUICK or case[1] in ("value", "grad")])
def test_all_orders_and_axes(name, order, mapped):
    for axes in AXES if order in ("value", "jit", "grad") else AXES[1:2]:
        check(name, order, mapped, axes)


@pytest.mark.sweep
@pytest.mark.parametrize("mapped", SOME)
@pytest.mark.parametrize("name", QUICK)
def test_all_sums(name, mapped):
    check_sum(name, mapped)
    check_sum(name, mapped, hx.jit)


def functions_of(f, *args):
    """How often each function is defined and called in the lowered text, by its name without a number."""
    text = hx.jit(f).lower(*args).as_text()
    count = lambda pattern: collections.Counter(re.findall(pattern, text))
    return count(r"func\.func private @(\w+?)(?:_\d+)?\("), count(r"call @(\w+?)(?:_\d+)?\(")


def layers(traced):
    @hx.jit
    def layer(x):
        traced.append(x)
        return hnp.sin(x) * 2

    return lambda x: layer(layer(layer(x)))


@pytest.mark.parametrize(
    "wrap", [hx.vmap, lambda f: hx.vmap(hx.vmap(f)), lambda f: hx.vmap(f, axis_name="i"), lambda f: hx.vmap(hx.jit(f))]
)
def test_a_jitted_function_stays_one_that_is_called(wrap):
    defined, called = functions_of(wrap(layers([])), X)
    assert defined["layer"] == 1 and called["layer"] == 3


def test_its_lanes_are_traced_once_and_computed_by_one_program():
    traced = []
    f = hx.vmap(layers(traced))
    for _ in range(3):
        f(X)
        hx.jit(f)(X)
    assert len(traced) == 1


def test_it_keeps_its_name_its_static_arguments_and_whether_it_is_inlined():
    power = hx.jit(lambda x, n: x**n, static_argnums=1)
    program = hx.make_program(hx.vmap(lambda x: power(x, 3)))(X)
    assert [op.label for op in program.ops if op.bodied] == ["<lambda>"]
    np.testing.assert_allclose(hx.vmap(lambda x: power(x, 3))(X), X**3, rtol=1e-5)
    inlined = hx.vmap(hx.jit(hnp.cos, inline=True))
    assert not any([op.bodied for op in hx.make_program(inlined)(X).ops])


SAVED = policies.save_only_these_names("a"), policies.nothing_saveable, policies.dots_saveable


@pytest.mark.parametrize("policy", SAVED)
def test_a_checkpoint_of_lanes_saves_what_it_saves_of_one(policy):
    f = hx.checkpoint(lambda x: hnp.sin(checkpoint_name(hnp.exp(x), "a") @ C.T), policy=policy)
    saved = lambda f, x: [(*t.shape,) for t, _ in hx.ad_checkpoint.saved_residuals(lambda x: f(x).sum(), x)]
    assert saved(hx.vmap(f), X) == [(LANES, *shape) for shape in saved(f, X[0])]


def test_maps_over_devices_keep_their_axes():
    sizes = lambda x: x + lax.axis_size("p") + lax.psum(1, "q")
    f = hx.vmap(hx.pmap(sizes, "p", devices=hx.devices()[:2]), axis_name="q")
    np.testing.assert_array_equal(f(np.zeros((5, 2))), np.full((5, 2), 7))
    mesh = hx.make_mesh((2, 4), ("a", "b"))
    g = lambda x: hx.shard_map(lambda x: lax.all_gather(x, ("a", "b")).ravel(), mesh=mesh, in_specs=hx.P(("a", "b")),
                               out_specs=hx.P(), check_vma=False)(x)
    x = np.arange(24.0).reshape(3, 8)
    np.testing.assert_array_equal(hx.vmap(g)(x), x)
