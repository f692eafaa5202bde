"""checkpoint: values and derivatives are those of the function; values that may not be saved are recomputed."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.ad_checkpoint import checkpoint_name, memory_budget, saved_residuals
from handlax.effects.control.checkpoint import Checkpoint, OptimizationBarrier
from handlax.testing import counted
from handlax.testing.generator.unrolled import evaluated

RNG = np.random.default_rng(0)
X = RNG.normal(size=4)
W = RNG.normal(size=(4, 4)) / 2
WS = RNG.normal(size=(3, 4, 4)) / 2
POLICIES = hx.checkpoint_policies


def dense(x, w):
    return checkpoint_name(hnp.sin(x @ w), "activations") * x


def summed(f):
    return lambda x: sum([hnp.sum(y) for y in hx.tree.leaves(f(x)) if y.dtype.kind == "f"], 0.0)


@hx.custom_vjp
def doubled_sine(x):
    return 2 * hnp.sin(x)


doubled_sine.defvjp(lambda x: (2 * hnp.sin(x), hnp.cos(x)), lambda cos, ct: (2 * cos * ct,))


@hx.custom_jvp
def sine(x):
    return hnp.sin(x)


sine.defjvp(lambda primals, tangents: (hnp.sin(*primals), hnp.cos(*primals) * tangents[0]))

FUNCTIONS = {
    "straight": lambda x: dense(dense(x, W), W),
    "scan": lambda x: lax.scan(lambda c, w: (dense(c, w), hnp.sum(c)), x, WS),
    "scan with shared": lambda x: lax.scan(lambda c, _: (dense(c, W) + x, hnp.cos(x)), x, None, length=3),
    "scan of constants": lambda x: x * lax.scan(lambda c, w: (dense(c, w), None), W[0], WS)[0] * hnp.sin(x),
    "nested scans": lambda x: lax.scan(
        lambda c, w: (lax.scan(lambda d, _: (dense(d, w) * c, None), c, None, length=2)[0], None), x, WS
    ),
    "cond": lambda x: lax.cond(x[0] > 0, lambda x: dense(x, W), lambda x: hnp.cos(x) * x, x),
    "switch": lambda x: lax.switch(1, [lambda x: x * x, lambda x: dense(x, W), hnp.cos], x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: dense(c, W) * (i + 1.0), x),
    "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, dense(s[1], W)), (0, x), max_steps=5)[1],
    "while of constants": lambda x: (
        x * lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, hnp.sin(s[1])), (0, W[0]))[1]
    ),
    "jit": lambda x: hx.jit(lambda x: dense(x, W))(x) * x,
    "custom_jvp": lambda x: dense(sine(dense(x, W)), W),
    "custom_vjp": lambda x: dense(doubled_sine(dense(x, W)), W) * doubled_sine(W[0]),
    "checkpoint": lambda x: hx.checkpoint(lambda x: dense(x, W), policy=POLICIES.dots_saveable)(hnp.sin(x)) * x,
    "checkpoint in scan": lambda x: lax.scan(lambda c, w: (hx.checkpoint(dense)(c, w) * x, hnp.sum(c)), x, WS),
    "integers": lambda x: (x[hnp.argsort(x)] * hnp.arange(4), hnp.argmax(x)),
}
RULES = {
    "none": None,
    "everything": POLICIES.everything_saveable,
    "budget": memory_budget(3000),
    "dots": POLICIES.dots_saveable,
    "names": POLICIES.save_only_these_names("activations"),
    "sines": lambda primitive, *types, **params: primitive.name == "sin",
}


@pytest.mark.each_choice
@pytest.mark.parametrize("policy", RULES.values(), ids=RULES)
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_gradient_is_that_of_the_function_to_the_bit(f, policy):
    with evaluated():
        want = hx.grad(summed(f))(X)
        np.testing.assert_array_equal(hx.grad(summed(hx.checkpoint(f, policy=policy)))(X), want)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_compiled_gradients_agree(f):
    guarded, bare = [hx.checkpoint(f, prevent_cse=guarded) for guarded in (True, False)]
    want, *found = hx.jit(lambda x: [hx.grad(summed(g))(x) for g in (f, guarded, bare)])(X)
    for got in found:
        np.testing.assert_allclose(got, want, rtol=1e-12)


COMPOSED = {
    "vmap of grad": lambda f: lambda x: hx.vmap(hx.grad(summed(f)))(hnp.stack([x, 2 * x])),
    "grad of vmap": lambda f: lambda x: hx.grad(lambda xs: hnp.sum(hx.vmap(summed(f))(xs)))(hnp.stack([x, 2 * x])),
    "grad of grad": lambda f: hx.grad(lambda x: hnp.sum(hx.grad(summed(f))(x) ** 2)),
    "hessian": lambda f: hx.hessian(summed(f)),
    "jacfwd": lambda f: hx.jacfwd(summed(f)),
    "linearize": lambda f: lambda x: hx.linearize(summed(f), x)[1](x),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("t", COMPOSED.values(), ids=COMPOSED)
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_it_composes_with_every_transformation(f, t):
    with evaluated():
        want = t(f)(X)
        for policy in (None, POLICIES.dots_saveable):
            np.testing.assert_allclose(t(hx.checkpoint(f, policy=policy))(X), want, rtol=1e-12, atol=1e-14)


def equations(program, kind):
    return [op for op in program.ops if isinstance(op, kind)]


def test_the_adjoint_alone_is_guarded_by_a_barrier():
    f = hx.checkpoint(lambda x: hnp.sum(hnp.sin(hnp.sin(x))))
    first, second = equations(hx.make_program(hx.grad(f))(X), Checkpoint)
    assert (first.differentiated, second.differentiated) == (False, True)
    assert hx.jit(hx.grad(f)).lower(X).as_text().count("optimization_barrier") == 1
    assert "optimization_barrier" not in hx.jit(f).lower(X).as_text()
    bare = hx.checkpoint(f, prevent_cse=False)
    assert hx.jit(hx.grad(bare)).lower(X).as_text().count("optimization_barrier") == 1  # that of f inside
    assert "optimization_barrier" not in hx.jit(hx.grad(hx.checkpoint(hnp.sin, prevent_cse=False))).lower(1.0).as_text()


@pytest.mark.parametrize("transform", [
    lambda f: f, hx.jit, hx.grad, hx.checkpoint, lambda f: hx.grad(hx.checkpoint(f)),
    lambda f: hx.linearize(f, X[0])[1],
])
def test_what_a_sink_needs_is_kept(transform):
    def f(x):
        lax.dce_sink({"a": hnp.cos(x)}, prevent_mlir_dce=True)
        return 2.0 * x

    assert transform(f)(X[0]) == transform(lambda x: 2.0 * x)(X[0])
    program = hx.make_program(f)(X[0])
    assert "cos" in [op.name for op in program.ops] and len(program.in_types) == 1
    assert "cosine" in hx.jit(f).lower(X[0]).compile().as_text()
    mapped = hx.make_program(hx.vmap(f))(X)
    assert [op.name for op in mapped.ops].count("dce_sink") == 1


def test_xla_may_drop_what_a_sink_keeps_in_the_program():
    def f(x):
        lax.dce_sink(hnp.cos(x))
        return x

    assert "cosine" not in hx.jit(f).lower(1.0).compile().as_text()
    assert [op.name for op in hx.make_program(hx.vmap(f))(X).ops] == ["cos", "dce_sink"]


def test_the_second_computation_reads_nothing_but_what_passed_the_barrier():
    f = hx.checkpoint(lambda x: hnp.sum(hnp.sin(hnp.sin(x) * x)))
    program = hx.make_program(hx.grad(f))(X)
    (body,) = [op.bodies[0] for op in equations(program, Checkpoint) if op.differentiated]
    (barrier,) = [i for i, op in enumerate(body.ops) if isinstance(op, OptimizationBarrier)]
    residual = program.in_types[0]
    assert body.in_types[0] == residual and 0 in body.args[barrier]
    assert all(0 not in args for i, args in enumerate(body.args) if i != barrier)


def test_what_the_adjoint_does_not_need_is_in_neither_half():
    f = hx.checkpoint(lambda x: (hnp.sum(hnp.sin(x)), hnp.exp(hnp.exp(x))))
    program = hx.make_program(hx.grad(lambda x: f(x)[0]))(X)
    (adjoint,) = [op for op in equations(program, Checkpoint) if op.differentiated]
    assert {op.name for op in adjoint.bodies[0].ops} == {"optimization_barrier", "cos", "broadcast_in_dim", "mul"}


def test_known_results_under_a_foreign_policy_are_computed_again_where_it_forbids_them():
    inner = hx.checkpoint(hnp.sin)
    f = hx.checkpoint(lambda x: hnp.sum(inner(hnp.sin(x)) * x))
    assert [r.source for r in saved_residuals(f, X)] == ["argument"]


# static arguments


def test_python_control_flow_on_an_argument_points_to_static_argnums():
    with pytest.raises(errors.TracerBoolConversionError, match="static_argnums") as found:
        hx.checkpoint(lambda x: x if x > 0 else -x)(1.0)
    assert "under checkpoint" in str(found.value)


def test_static_arguments_are_python_values():
    f = hx.checkpoint(lambda x, up, how: x * 2 if up and how["sign"] else -x, static_argnums=(1, 2))
    assert hx.grad(f)(1.0, True, {"sign": 1}) == 2.0
    assert hx.grad(f)(1.0, True, {"sign": 0}) == -1.0
    g = hx.checkpoint(lambda x, up: x * 2 if up else -x, static_argnames="up")
    assert (hx.grad(g)(1.0, up=True), hx.grad(g)(1.0, up=False)) == (2.0, -1.0)


@dataclasses.dataclass
class Settings:
    depth: int
    sizes: list[int]


class Odd:
    """Neither hashable nor a container."""

    __hash__ = None

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, Odd) and self.n == other.n


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: [1, (2, [3])], lambda: {"a": [1]}, lambda: {1, 2}, lambda: np.arange(3),
             lambda: Settings(2, [3]), lambda: Odd(4)],
)
def test_a_trace_is_used_again_for_an_equal_static_argument(make):
    made = []
    f = hx.checkpoint(lambda x, how: made.append(how) or x, static_argnums=1)
    f(1.0, make())
    f(2.0, make())
    assert len(made) == 1
    f(1.0, ["another"])
    assert len(made) == 2


def test_a_variable_that_was_changed_is_seen_by_loops_and_branches_but_not_by_what_is_traced_once():
    factor = [1.0]
    scale = lambda x: x * factor[0]
    steps = lambda c, _: (scale(c), None)
    traced_at_each_call = [
        lambda x: lax.scan(steps, x, None, length=1)[0], lambda x: lax.cond(x > 0, scale, scale, x),
        lambda x: lax.while_loop(lambda x: x < 2, lambda x: scale(x) + 1, x),
    ]
    traced_once = [hx.checkpoint(scale), hx.jit(scale)]
    functions = traced_at_each_call + traced_once
    assert [float(f(1.0)) for f in functions] == [1.0, 1.0, 2.0, 1.0, 1.0]
    factor[0] = 3.0
    assert [float(f(1.0)) for f in functions] == [3.0, 3.0, 4.0, 1.0, 1.0]
    assert [float(hx.grad(f)(1.0)) for f in (*traced_at_each_call[:2], *traced_once)] == [3.0, 3.0, 1.0, 1.0]


def test_a_static_argument_that_was_changed_is_traced_again():
    how = {"sizes": [1]}
    f = hx.checkpoint(lambda x, how: x * sum(how["sizes"]), static_argnums=1)
    assert f(1.0, how) == 1.0
    how["sizes"].append(2)
    assert f(1.0, how) == 3.0


def test_a_trace_is_used_again_across_calls_and_wrappers():
    def f(x):
        return hnp.sin(x) * 3.25

    def call():
        for _ in range(3):
            hx.checkpoint(f)(X)
            hx.checkpoint(f, policy=POLICIES.dots_saveable)(X)

    assert counted(call).traces == 1


def test_arguments_may_be_trees_and_keywords():
    f = hx.checkpoint(lambda p, *, scale: {"y": (hnp.sin(p["a"]) * scale, p["b"])})
    made = f({"a": X, "b": 2}, scale=3.0)
    np.testing.assert_allclose(made["y"][0], np.sin(X) * 3)
    gradient = hx.grad(lambda p: hnp.sum(f(p, scale=2.0)["y"][0]), allow_int=True)({"a": X, "b": 2})
    np.testing.assert_allclose(gradient["a"], 2 * np.cos(X))


def test_a_box_from_outside_has_its_derivative():
    gradient = hx.grad(lambda w: hnp.sum(hx.checkpoint(lambda x: hnp.sin(x * w))(X)))(2.0)
    np.testing.assert_allclose(gradient, np.sum(np.cos(2 * X) * X), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "match"),
    [({"policy": 3}, "policy must be a function"), ({"prevent_cse": "yes"}, "prevent_cse must be a bool"),
     ({"static_argnums": 5}, "has 1 positional parameters")],
)
def test_a_wrong_argument_is_refused(given, match):
    with pytest.raises(errors.BadArgument, match=match):
        hx.checkpoint(lambda x: x, **given)


def test_a_tree_of_bools_guards_as_soon_as_one_is_true():
    f = lambda x, y: hnp.sum(hnp.sin(x * y))
    made = [hx.checkpoint(f, prevent_cse=which) for which in ((False, True), (False,))]
    texts = [hx.jit(hx.grad(g)).lower(X, X).as_text() for g in made]
    assert ["optimization_barrier" in text for text in texts] == [True, False]


# effects


@hx.effect(vmap="per_lane", diff="stop")
class Draw:
    def result_type(op):
        return hnp.float64(0.0).type


draws = hx.handler({Draw: lambda n, op: (n + 1.0, hnp.sin(n))})


def drawing(x):
    def step(c, _):
        scale = hx.perform(Draw())
        y = hx.checkpoint(lambda c: hnp.sin(c) * hx.perform(Draw()) * scale)(c)
        return lax.cond(y[0] > 0, lambda y: y * hx.perform(Draw()), lambda y: y, y), None

    return hnp.sum(lax.scan(step, x, None, length=3)[0])


@pytest.mark.parametrize("policy", [None, POLICIES.everything_saveable, POLICIES.dots_saveable])
def test_an_effect_is_performed_once_and_its_result_is_kept(policy):
    count, want = hx.handle(draws, 1.0)(hx.grad(drawing))(X)
    for gradient in (hx.grad(hx.checkpoint(drawing, policy=policy)), hx.jit(hx.grad(hx.checkpoint(drawing)))):
        again, got = hx.handle(draws, 1.0)(gradient)(X)
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert again == count


def test_a_state_crosses_it_in_both_orders():
    want = hx.handle(draws, 1.0)(hx.grad(drawing))(X)[1]
    inside = hx.checkpoint(lambda x: hx.handle(draws, 1.0)(drawing)(x)[1])
    outside = lambda x: hx.handle(draws, 1.0)(hx.checkpoint(drawing))(x)[1]
    for f in (inside, outside):
        np.testing.assert_allclose(hx.grad(f)(X), want, rtol=1e-12)


# the operations beside it


def test_a_barrier_and_a_name_are_the_identity_under_every_transformation():
    for f in (lambda x: lax.optimization_barrier((x, 2 * x))[1], lambda x: 2 * checkpoint_name(x, "x")):
        np.testing.assert_array_equal(hx.jit(f)(X), 2 * X)
        np.testing.assert_array_equal(hx.vmap(f)(W), 2 * W)
        np.testing.assert_array_equal(hx.jvp(f, (X,), (X,))[1], 2 * X)
        np.testing.assert_array_equal(hx.grad(lambda x: hnp.sum(f(x)))(X), np.full(4, 2.0))
        np.testing.assert_array_equal(hx.linear_transpose(f, X)(X)[0], 2 * X)
    assert lax.optimization_barrier(()) == ()


def test_a_barrier_stays_one_operation_when_mapped_in_part():
    program = hx.make_program(hx.vmap(lambda x: lax.optimization_barrier((x, X))))(W)
    assert len(equations(program, OptimizationBarrier)) == 1
    assert program.out_types[1].shape == (4, 4)


def test_names_are_strings_on_every_leaf():
    program = hx.make_program(lambda x: checkpoint_name({"a": x, "b": x}, "both"))(X)
    assert [op.label for op in program.ops] == ["both", "both"]
    with pytest.raises(errors.BadArgument, match="must be a string"):
        checkpoint_name(X, 3)


def test_programs_with_it_are_read_back_and_pickled():
    policy = POLICIES.save_only_these_names("activations")
    f = hx.checkpoint(lambda x: hnp.sum(dense(x, hnp.ones((4, 4)))), policy=policy)
    program = hx.make_program(hx.grad(f))(X)
    assert hx.Program.parse(str(program), program.constants) == program
    assert pickle.loads(pickle.dumps(program)) == program


# evaluation at compile time


def test_a_policy_need_not_know_its_module():
    """As functions that NumPy makes do not."""
    saving = np.frompyfunc(lambda primitive, t: True, 2, 1)
    assert not hasattr(saving, "__module__")

    class Policy:
        __module__ = None

        def __call__(self, primitive, *types, **params):
            return True

    f = lambda x: hnp.negative(hnp.negative(x))  # whose primitive has one operand and no parameters
    for policy in (Policy(), saving):
        np.testing.assert_array_equal(hx.grad(hx.checkpoint(f, policy=policy))(0.5), hx.grad(f)(0.5))
