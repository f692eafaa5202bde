"""What a rule performs is remembered, and means what the rule means."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from helpers.other_threads import OtherThread, together

import handlax as hx
import handlax.lax as lax
import handlax.numpy as hnp
from handlax.effects.base.caches import CACHES
from handlax.effects.core.operation import Operation
from handlax.effects.operations.elementwise.arithmetic import Rem
from handlax.effects.operations.elementwise.transcendental import Cos, Sin
from handlax.interpreters.core import rule_cache


def wave(x):
    return hnp.sum(hnp.sin(x) * x / (2.0 + hnp.cos(x)))


def nested(x):
    return hx.jvp(hx.grad(wave), (x,), (x,))[1]


@pytest.fixture(autouse=True)
def forgotten():
    hx.clear_caches()


def size() -> int:
    return hx.cache_info()["rule_programs"].size


def by_rules(f, *args):
    """``f`` in a scope with rules of its own, where every rule runs."""
    with hx.rules(jvp={Rem: hx.columns.JVP.find(Rem)}):
        return f(*args)


@pytest.mark.parametrize("f", [hx.grad(wave), hx.vmap(hx.grad(wave)), nested, hx.hessian(wave)])
def test_a_rule_program_computes_what_its_rules_compute(f):
    x = hnp.linspace(0.1, 2.0, 12).reshape(3, 4)
    remembered = f(x)
    assert size() > 0
    np.testing.assert_allclose(np.asarray(remembered), np.asarray(by_rules(f, x)), rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(remembered), np.asarray(f(x)))


@pytest.mark.parametrize("f", [hx.grad(wave), hx.vmap(hx.grad(wave)), nested])
def test_a_program_is_the_same_whether_its_rule_programs_were_known(f):
    x = hnp.ones((3, 4))
    first = hx.make_program(f)(x)
    assert hx.make_program(f)(x) == first


def test_a_rule_program_is_recorded_once_for_operands_of_some_types(monkeypatch):
    recorded = []
    once = rule_cache._recorded
    monkeypatch.setattr(rule_cache, "_recorded", lambda rule, types: recorded.append(types) or once(rule, types))
    x = hnp.ones(3)
    for _ in range(3):
        hx.jvp(hnp.sin, (x,), (x,))
    assert len(recorded) == 1
    hx.jvp(hnp.sin, (hnp.ones(4),), (hnp.ones(4),))
    assert len(recorded) == 2


def test_a_weak_tangent_has_a_rule_program_of_its_own():
    x = hnp.float32(2.0)
    strong = hx.jvp(hnp.sin, (x,), (hnp.float32(1.0),))[1]
    weak = hx.jvp(hnp.sin, (2.0,), (1.0,))[1]
    assert not strong.weak_type
    assert weak.weak_type


def test_a_weak_cotangent_gives_what_the_rules_give():
    x = hnp.ones(3)
    _, pull = hx.vjp(lambda x: -x, x)
    for ct in (x, hnp.full(3, 0.5)):
        (found,), (wanted,) = pull(ct), by_rules(pull, ct)
        assert found.aval == wanted.aval
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_the_rules_of_a_users_operation_run_every_time():
    runs = []

    @hx.operation
    class CountedTwice:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return 2 * x

        def batch(op, dims, x):
            runs.append("batch")
            return hx.perform(op, x), dims[0]

        def jvp(op, primals, tangents):
            runs.append("jvp")
            return hx.perform(op, *primals), hx.perform(op, *tangents)

    twice = CountedTwice()
    x = hnp.ones(3)
    for _ in range(3):
        hx.jvp(lambda x: hx.perform(twice, x), (x,), (x,))
        hx.vmap(lambda x: hx.perform(twice, x))(x)
    assert runs == ["jvp", "batch"] * 3


def test_a_rule_in_force_in_a_scope_is_used_though_a_rule_program_is_known():
    x = hnp.ones(3)
    before = hx.jvp(hnp.sin, (x,), (x,))[1]

    def zero(op: Operation, primals, tangents):
        return hx.perform(op, *primals), None

    with hx.rules(jvp={Sin: zero}):
        assert not np.any(np.asarray(hx.jvp(hnp.sin, (x,), (x,))[1]))
    np.testing.assert_array_equal(np.asarray(hx.jvp(hnp.sin, (x,), (x,))[1]), np.asarray(before))


def test_settings_of_the_process_have_rule_programs_of_their_own():
    x = hnp.ones((2, 2))
    hx.jvp(hnp.matmul, (x, x), (x, x))
    known = size()
    hx.config.update("default_matmul_precision", "highest")
    try:
        program = hx.make_program(lambda x: hx.jvp(hnp.matmul, (x, x), (x, x)))(x)
    finally:
        hx.config.update("default_matmul_precision", None)
    assert size() > known
    assert "HIGHEST" in str(program).upper()


def test_settings_that_return_find_their_rule_programs_again():
    x = hnp.ones((2, 2))
    known = []
    for precision in ("highest", None) * 2:
        hx.config.update("default_matmul_precision", precision)
        hx.jvp(hnp.matmul, (x, x), (x, x))
        known.append(size())
    assert known[1] == known[2] == known[3] > known[0]


def test_a_clause_outside_sees_every_operation_of_a_rule():
    seen = []

    def noted(op, x):
        seen.append(op.name)
        return hx.perform(op, x)

    watch = hx.handler({Sin: noted, Cos: noted})
    x = hnp.ones(3)
    for _ in range(2):
        seen.clear()
        hx.handle(watch)(lambda x: hx.jvp(hnp.sin, (x,), (x,)))(x)
        assert seen == ["sin", "cos"]


def test_equations_taken_over_have_the_users_line():
    def f(x):
        y = hnp.sin(x)
        return hx.grad(lambda y: hnp.sum(y * y))(y)

    x = hnp.ones(3)
    first, second = [hx.make_program(f)(x) for _ in range(2)]
    assert list(map(str, map(first.site, range(len(first.ops))))) == list(
        map(str, map(second.site, range(len(second.ops))))
    )
    assert all("test_rule_cache.py" in str(second.site(i)) for i in range(len(second.ops)))


def test_a_rule_that_refuses_says_so_every_time():
    x = hnp.ones(3)
    for _ in range(2):
        with pytest.raises(hx.errors.HandlaxError):
            hx.grad(lambda x: hnp.sum(lax.betainc(x + 1.0, x + 2.0, x / 2)))(x)


def test_an_escaped_box_is_named_though_the_rule_program_is_known():
    kept = []
    x = hnp.ones(3)
    hx.jvp(hnp.sin, (x,), (x,))
    hx.jvp(lambda x: kept.append(x) or x, (x,), (x,))
    with pytest.raises(hx.errors.HandlaxError, match="jvp"):
        hx.jvp(lambda x: x * kept[0], (x,), (x,))


def test_threads_learn_the_same_rule_programs():
    x = hnp.linspace(0.1, 1.0, 7)
    expected = np.asarray(by_rules(hx.grad(wave), x))
    for result in together(8, lambda _: [hx.grad(wave)(x) for _ in range(20)][-1]):
        np.testing.assert_allclose(np.asarray(result), expected, rtol=2e-5)


@pytest.mark.parametrize("turns", [150, pytest.param(1500, marks=pytest.mark.sweep)])
def test_caches_are_told_and_cleared_while_threads_learn(turns):
    def watch(look):
        while learning.is_alive():
            look()
            time.sleep(0)

    def learn():
        end = time.monotonic() + 20
        for n in range(1, turns):
            if time.monotonic() > end:
                break
            hx.vmap(lambda x: lax.reshape(x, (1, n)))(hnp.ones((2, n)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        learning = OtherThread(learn)
        for thread in [learning, *[OtherThread(watch, look) for look in (hx.cache_info, hx.clear_caches)]]:
            thread.result()
    finally:
        sys.setswitchinterval(interval)


def test_a_pullback_made_with_rule_programs_may_be_called_where_every_rule_runs():
    x = hnp.linspace(0.1, 2.0, 8).reshape(2, 2, 2)
    y, pull = hx.vjp(hx.vmap(lambda x: hnp.linalg.cholesky(x @ x.T + hnp.eye(2))), x)
    np.testing.assert_allclose(np.asarray(by_rules(pull, y)[0]), np.asarray(pull(y)[0]), rtol=1e-5)


def test_clear_caches_forgets_rule_programs():
    x = hnp.ones(3)
    hx.vmap(hnp.sin)(x)
    assert size() > 0
    hx.clear_caches()
    assert size() == 0


def test_lanes_stand_where_the_rule_puts_them():
    x = hnp.arange(6.0).reshape(2, 3)
    for _ in range(2):
        y = hx.vmap(lambda a, b: a + b, in_axes=(1, 0), out_axes=1)(x, x.T)
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x + x))


def test_shapes_that_never_return_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(rule_cache.RULE_PROGRAMS, "capacity", 8)
    for n in range(1, 40):
        hx.jvp(hnp.sin, (hnp.ones(n),), (hnp.ones(n),))
    assert size() <= 8


def test_a_scope_that_returns_knows_its_rule_programs():
    x = hnp.ones(3)
    sizes = []
    for _ in range(2):
        with hx.configure(default_float="float64"):
            hx.jvp(hnp.sin, (x,), (x,))
        sizes.append(size())
    assert sizes[0] == sizes[1] > 0
    hx.jvp(hnp.sin, (x,), (x,))
    assert size() > sizes[1]


def test_every_cache_is_counted_under_a_name_of_its_own():
    names = [cache.name for cache in CACHES]
    assert len(set(names)) == len(names)
    assert set(hx.cache_info()) == set(names)


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op):
        return hx.ShapeDtypeStruct((), "float32")


@pytest.mark.parametrize(
    ("f", "inlinable"),
    [
        (lambda x: hnp.sin(x) * x, True),
        (lambda x: x * hx.perform(Tick()), False),
        (lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x), False),
    ],
)
def test_a_rule_is_inlined_if_its_operations_are_pure_and_without_bodies(f, inlinable):
    assert rule_cache.is_inlinable(hx.make_program(f)(1.0)) is inlinable


@pytest.mark.parametrize(
    ("f", "residuals", "whole"),
    [
        (lambda r, x: (hnp.sin(r) * x, r * x), 1, True),
        (lambda r, x: (r * x,) * 2, 1, False),  # given twice
        (lambda r, x: (x,), 0, False),  # an input
        (lambda r, x: (2 * x,), 1, False),  # the residual is not used
        (lambda r, x: (), 0, False),
    ],
)
def test_a_rule_program_is_transposed_as_a_unit_if_its_results_are_computed_once(f, residuals, whole):
    program = hx.make_program(f)(1.0, 1.0)
    assert (rule_cache.inlined_block(program, residuals) is not None) is whole
