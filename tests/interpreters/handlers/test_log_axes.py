"""The axes of a log: what is performed in random nests stands in it as what is returned from there stands in a result.

The oracle is the nest itself in plain Python: a loop for each loop and for each ``vmap``, whose results are stacked.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.log_nests import BRANCHES, COUNTER, STACKING, Results, Tick, counting, jit, random_nest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax import probability as hp
from handlax.library import call_and_reap, sow, tell, writer


@hx.effect(vmap="per_lane", diff="stop")
class Metric:
    label: str

    def result_type(op, x):
        return None


# What collects the marks of a function, by name: collected(f)(*args) is a dictionary, and the result


def unmasked(entry):
    """What was logged; zeros where it was in a branch that was not taken."""
    return entry.masked() if isinstance(entry, hx.When) else entry


def logged(h):
    def collected(f):
        def log(*args):
            entries, y = hx.handle(h, ())(f)(*args)
            return {name: x for entry in entries for name, x in unmasked(entry).items()}, y

        return log

    return collected


def traced(f):
    def collected(*args):
        sites, y = hp.trace(f)(*args)
        values = {name: hx.tree.map(lambda x: x, site) for name, site in sites.items()}
        return {name: unmasked(site).value for name, site in values.items()}, y

    return collected


def reaped(f):
    def collected(*args):
        y, found = call_and_reap(f)(*args)
        return {name: unmasked(x) for name, x in found.items()}, y

    return collected


METRICS = hx.handler({Metric: lambda log, op, x: ((*log, {op.label: x}), None)}, moves=hx.append)
PRINTS = hx.handler(
    {hx.operations.DebugPrint: lambda log, op, x: ((*log, {op.format.split()[0]: x}), None)}, moves=hx.append
)
COLLECTORS = {
    "a user's log": (lambda name, x: hx.perform(Metric(name), x), logged(METRICS)),
    "writer": (lambda name, x: tell({name: x}), logged(writer)),
    "prints": (lambda name, x: hx.debug.print(name + " {}", x), logged(PRINTS)),
    "trace": (lambda name, x: hp.observe(name, hp.Normal(0.0, 1.0), x), traced),
    "reap": (lambda name, x: sow(x, name), reaped),
}


def compared(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        assert np.asarray(found[name]).shape == expected[name].shape, name
        np.testing.assert_allclose(np.asarray(found[name]), expected[name], rtol=1e-5, err_msg=name)


PURE = (STACKING, STACKING, BRANCHES, (jit, counting))  # no derivative, which nothing sampled has


def ticking(effect):
    """A mark that also performs an effect whose handler carries its state: of these lanes are executed in order."""

    def mark(name, x):
        hx.perform(Tick())
        effect(name, x)
        return x

    return mark


def counted(f):
    return lambda x, flag: hx.handle(COUNTER, 0)(f)(x, flag)[1]


ARGUMENTS = np.float32(1.25), np.float32(1.0)


def check(seed, kind, depth):
    effect, collected = COLLECTORS[kind]
    plain, f = random_nest(seed, Results(), ticking(effect), depth, **({"kinds": PURE} if kind == "trace" else {}))
    expected = plain(*ARGUMENTS)
    for g in (counted(f), hx.jit(counted(f))):
        found, y = collected(g)(*map(hnp.asarray, ARGUMENTS))
        compared(y, expected)
        compared({name: found.get(name, np.zeros_like(y)) for name, y in expected.items()}, expected)


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", COLLECTORS)
@pytest.mark.parametrize("seed", range(6))
def test_a_log_stands_as_the_result(kind, seed):
    check(seed, kind, 3)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", COLLECTORS)
@pytest.mark.parametrize("first", range(100, 300, 10))
def test_the_logs_of_deep_nests_stand_as_the_result(kind, first):
    for seed in range(first, first + 10):
        check(seed, kind, 4)


@hx.custom_jvp
def by_jvp(x):
    return hnp.sin(x)


@by_jvp.defjvp
def _(primals, tangents):
    tell(primals[0])
    return by_jvp(primals[0]), tangents[0] * hnp.cos(primals[0])


@hx.custom_vjp
def by_vjp(x):
    return hnp.sin(x)


def _forward(x):
    tell(x)
    return hnp.sin(x), x


by_vjp.defvjp(_forward, lambda x, ct: (ct * hnp.cos(x),))


@pytest.mark.each_choice
@pytest.mark.parametrize("compiled", [lambda f: f, hx.jit, hx.checkpoint])
@pytest.mark.parametrize("rule", [by_jvp, by_vjp])
def test_what_a_rule_logs_stands_as_what_its_function_would_return(rule, compiled):
    def walk(x):
        return lax.scan(lambda c, i: (c, rule(c * i)), x, hnp.arange(1.0, 4.0))[1]

    xs = hnp.arange(5.0)
    around = hx.grad(lambda xs: compiled(hx.vmap(walk))(xs).sum())
    inside = hx.vmap(hx.grad(lambda x: compiled(walk)(x).sum()))
    for f in (around, inside):
        (entry,), _ = hx.handle(writer, ())(f)(xs)
        assert np.asarray(entry).tolist() == np.outer(np.arange(5.0), np.arange(1.0, 4.0)).tolist()


def test_lanes_that_have_crossed_a_loop_within_another_stand_between_the_two():
    """The example of the module: ``scan(vmap(scan(f)))``."""

    def inner(x, j):
        tell(x + j)
        return x, x + j

    outer = lambda c, i: (c, hx.vmap(lambda x: lax.scan(inner, i * x, hnp.arange(2.0))[1])(hnp.arange(5.0)))
    (entry,), y = hx.handle(writer, ())(lambda: lax.scan(outer, None, hnp.arange(1.0, 4.0))[1])()
    assert y.shape == (3, 5, 2) and np.asarray(entry).tolist() == y.tolist()
