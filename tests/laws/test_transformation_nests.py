"""Any nesting of transformations means what the transformations mean, one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from helpers.random_programs import programs
from hypothesis import assume, given
from hypothesis import strategies as st

import handlax as hx
from handlax import lax, testing
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.arithmetic import Add, Mul, Neg, Sub
from handlax.effects.operations.elementwise.conversion import ConvertElementType
from handlax.effects.operations.elementwise.transcendental import Cos, Exp, Logistic, Sin, Tanh
from handlax.testing.generator.equations import arguments

SMOOTH = [Add, Mul, Sub, Neg, Sin, Cos, Tanh, Logistic]
SCALES = np.array([0.5, -1.0, 1.5])
STEP = 1e-3


def along(xs):
    """A direction for every argument."""
    return [0.3 * hnp.ones(x.shape, x.dtype) for x in xs]


def pairing(us, vs):
    return sum([hnp.sum(u * v) for u, v in zip(us, vs)], hnp.zeros((), "float64"))


def difference(f, xs):
    """The derivative of ``f`` along the direction, by a central difference of the fourth order."""
    def at(k):
        return f(*[x + k * STEP * dx for x, dx in zip(xs, along(xs))])

    ys = [at(k) for k in (-2, -1, 1, 2)]
    return [(a - 8 * b + 8 * c - d) / (12 * STEP) for a, b, c, d in zip(*ys)]


def loss(f):
    return lambda *xs: sum([hnp.sum(hnp.sin(y)) for y in f(*xs)], hnp.zeros((), "float64"))


# Each maps a function from arrays to a list of arrays to another: transformations, and their meanings by definition.
def jit(f):
    return hx.jit(f)


def vmap(f):
    return lambda *xs: [hnp.sum(y, 0) for y in hx.vmap(lambda s: f(*[x * s for x in xs]))(hnp.asarray(SCALES))]


def looped(f):
    return lambda *xs: [sum(ys) for ys in zip(*[f(*[x * float(s) for x in xs]) for s in SCALES])]


def jvp(f):
    return lambda *xs: hx.jvp(f, xs, tuple(along(xs)))[1]


def linearize(f):
    return lambda *xs: hx.linearize(f, *xs)[1](*along(xs))


def differences(f):
    return lambda *xs: difference(f, xs)


def grad(f):
    def g(*xs):
        grads = hx.grad(loss(f), argnums=tuple(range(len(xs))))(*xs)
        return [pairing(grads, along(xs))]

    return g


def loss_difference(f):
    return lambda *xs: difference(lambda *ys: [loss(f)(*ys)], xs)


def vjp(f):
    def g(*xs):
        ys, pull = hx.vjp(f, *xs)
        return [pairing(pull(ys), along(xs))]

    return g


def paired_difference(f):
    return lambda *xs: [pairing(f(*xs), difference(f, xs))]


FORWARDING = hx.handler({Sin: lambda op, x: hx.perform(op, x), Mul: lambda op, x, y: hx.perform(op, x, y)})
COUNTING = hx.handler({Add: lambda n, op, x, y: (n + 1, hx.perform(op, x, y))})


def forwarding(f):
    return hx.handle(FORWARDING)(f)


def counting(f):
    return lambda *xs: hx.handle(COUNTING, 0)(f)(*xs)[1]


def itself(f):
    return f


NESTS = {
    jit: itself, vmap: looped, jvp: differences, linearize: differences, grad: loss_difference, vjp: paired_difference,
    forwarding: itself, counting: itself,
}


def bodies(program):
    for op in program.ops:
        yield op
        for body in getattr(op, "bodies", ()):
            yield from bodies(body)


@given(
    programs(dtypes=[np.dtype("float64")], kinds=SMOOTH, constants=False, size=6, depth=1),
    st.lists(st.sampled_from(sorted(NESTS, key=lambda t: t.__name__)), min_size=1, max_size=3),
)
def test_a_nesting_means_what_its_parts_mean(program, nest):
    assume(program.outs and not any(isinstance(op, ConvertElementType) for op in bodies(program)))
    xs = [hnp.asarray(np.asarray(x) / 3 + 0.1, "float64") for x in arguments(program)]
    found = meant = lambda *xs: list(program(*xs))
    for transform in nest:
        found, meant = transform(found), NESTS[transform](meant)
    ys, wanted = found(*xs), meant(*xs)
    assert len(ys) == len(wanted)
    for y, z in zip(ys, wanted):
        assert y.shape == z.shape
        scale = 1.0 + float(hnp.max(hnp.abs(z), initial=0.0))
        assume(np.isfinite(scale) and scale < 1e4)
        np.testing.assert_allclose(y, z, rtol=0, atol=1e-5 * scale)
    again = hx.jit(found)(*xs)
    for y, z in zip(again, ys):
        np.testing.assert_allclose(y, z, rtol=1e-10, atol=1e-10)


def test_five_times_sum_grad_jit_traces_each_body_once():
    calls = Counter()

    def counted(level, f):
        def body(x):
            calls[level] += 1
            return f(x)

        return hx.jit(body)

    f = counted(0, lambda x: hnp.sum(hnp.sin(x)))
    for level in range(1, 6):
        derivative = hx.grad(f)
        f = counted(level, lambda x, g=derivative: hnp.sum(g(x)))
    x = hnp.asarray([0.1, 0.2, 0.3], "float64")
    expected = np.sum(np.cos([0.1, 0.2, 0.3]))  # the fifth derivative of sin is cos
    work = testing.counted(lambda: [np.testing.assert_allclose(float(f(x)), expected, rtol=1e-12) for _ in range(3)])
    assert calls == Counter(range(6))
    assert work.traces == 6


# y = x^2 + c, in the documented style
@hx.operation
class SquarePlus:
    c: float

    def result_type(op, x):
        return x

    def evaluate(op, x):
        return x * x + x.dtype.type(op.c)

    def batch(op, dims, x):
        return hx.perform(op, x), dims[0]

    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        return hx.perform(op, x), 2.0 * x * dx

    def lower(op, emit, x):
        return emit.decompose(lambda x: x * x + op.c, x)

    exempt = {"transpose": "it is not linear"}


def test_an_operation_of_a_user_obeys_every_law():
    rng = np.random.default_rng(0)
    testing.check_operation(SquarePlus(1.5), [(rng.normal(size=shape),) for shape in ((), (3,), (2, 3), (0, 2))])


@pytest.mark.parametrize("nest", [hx.grad, hx.jit, lambda f: hx.jit(hx.grad(f)), lambda f: hx.grad(hx.jit(f))])
def test_an_operation_of_a_user_nests(nest):
    def builtin(x):
        return x * x + 1.5

    for x in (0.5, -2.0):
        mine = nest(lambda x: hx.perform(SquarePlus(1.5), x))(x)
        np.testing.assert_allclose(mine, nest(builtin)(x), rtol=1e-6)
    np.testing.assert_allclose(
        hx.vmap(hx.grad(lambda x: hx.perform(SquarePlus(1.5), x)))(hnp.arange(3.0)), [0, 2, 4], rtol=1e-6
    )


def seven(op, primals, tangents):
    """A derivative of sin that nobody would take for the true one."""
    return hx.perform(op, *primals), 7.0 * tangents[0]


def test_rules_hold_inside_and_outside_the_transformed_function():
    assert float(hx.grad(lax.sin)(0.0)) == 1.0
    with hx.rules(jvp={Sin: seven}):
        assert float(hx.grad(lax.sin)(0.0)) == 7.0
        assert float(hx.jvp(lax.sin, (0.0,), (1.0,))[1]) == 7.0
        assert float(hx.linearize(lax.sin, 0.0)[1](1.0)) == 7.0
        np.testing.assert_array_equal(hx.vmap(hx.grad(lax.sin))(hnp.zeros(2)), [7, 7])

    def scoped(x):
        with hx.rules(jvp={Sin: seven}):
            y = lax.sin(x)
        return y + lax.sin(x)

    assert float(hx.grad(scoped)(0.0)) == 8.0
    assert float(hx.jit(hx.grad(scoped))(0.0)) == 8.0
    assert float(hx.grad(lax.sin)(0.0)) == 1.0


@pytest.mark.parametrize("shape", [(), (1 << 22,)])
def test_an_evaluate_rule_of_a_scope_is_called_for_arrays_of_every_size(shape):
    x = hnp.ones(shape)
    for _ in range(2):
        with hx.rules(evaluate={Exp: lambda op, x: x + 5}):
            assert float(hnp.exp(x).ravel()[0]) == 6
        assert float(hnp.exp(x).ravel()[0]) == pytest.approx(np.e)


def test_rules_are_part_of_every_cache_key():
    f, g = hx.jit(lax.sin), hx.jit(hx.grad(lax.sin))
    h = hx.grad(f)
    for _ in range(2):
        assert [float(g(0.0)), float(h(0.0)), float(f(0.0))] == [1.0, 1.0, 0.0]
        with hx.rules(jvp={Sin: seven}):
            assert [float(g(0.0)), float(h(0.0)), float(f(0.0))] == [7.0, 7.0, 0.0]
        with hx.rules(evaluate={Sin: lambda op, x: x + 5}, lower={Sin: "cosine"}):
            assert float(f(0.0)) == 1.0
            assert float(lax.sin(0.0)) == 5.0


def test_explain_rules_shows_the_rule_in_force():
    with hx.rules(jvp={Sin: seven}):
        (line,) = [line for line in hx.explain_rules(Sin).splitlines() if line.split()[0] == "jvp"]
        assert "test_transformation_nests.py" in line
        assert "in force in this scope" in line
    assert "test_transformation_nests.py" not in hx.explain_rules(Sin)
