"""Going through a program without computing."""

from __future__ import annotations

import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.library import dry_run


def names(run):
    return [step.op.name for step in run.steps]


def test_every_operation_is_a_step_with_types_and_line():
    run = dry_run(lambda x: hnp.sin(x) * 2.0)(hnp.ones(3))
    assert names(run) == ["sin", "mul"]
    assert str(run.steps[0].results[0]) == "f32[3]" and run.steps[0].where.startswith("test_dry_run.py:")
    assert str(run).splitlines()[0].endswith("sin                  (f32[3]) -> (f32[3])")
    assert run.result.tolist() == [0.0, 0.0, 0.0]


def test_nothing_is_computed_and_no_memory_taken():
    n = 10**6

    def f(x):
        y = lax.scan(lambda c, _: (c @ c, None), hnp.zeros((n, n)) + x, None, n)[0]
        return {"sum": y.sum(), "y": y}

    run = dry_run(f)(1.0)
    assert hx.tree.map(str, run.types) == {"sum": "f32[]", "y": f"f32[{n},{n}]"}
    assert "scan" in names(run)


def test_loops_branches_and_compiled_functions_are_one_step():
    f = lambda x: lax.cond(x > 1, hx.jit(hnp.sin), lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, x), x)
    assert names(dry_run(f)(1.0))[-1] == "cond"
    assert names(dry_run(hx.jit(f))(1.0)) == ["call"]
    assert "call" in names(dry_run(hx.grad(hx.jit(hnp.sin)))(1.0)) or names(dry_run(hx.grad(hx.jit(hnp.sin)))(1.0))


def test_effects_are_listed_and_not_performed():
    def f(x):
        hx.tell(x)
        hx.check(x < 0, "never looked at")
        return x

    run = dry_run(f)(1.0)
    assert {type(effect).__name__ for effect in run.effects} == {"Tell", "Check"}


def test_effects_answer_with_zeros_of_the_tree_that_they_declare():
    number = hx.ArrayType((), hnp.float32)

    @hx.effect
    class One:
        def result_type(op):
            return number

    @hx.effect
    class Several:
        def result_type(op, x):
            return {"rest": [x, number], "first": number}

    run = dry_run(lambda x: (hx.perform(One()) + 1.0, hx.perform(Several(), x)))(hnp.ones(3))
    assert names(run) == ["one", "add", "several"]
    assert float(run.result[0]) == 0.0 and hx.tree.map(str, run.types[1]) == {
        "rest": ["f32[3]", "f32[]"], "first": "f32[]"
    }


@pytest.mark.parametrize("default", [None, lambda op, f, x: f(x)])
def test_effects_that_take_functions_are_one_step(default):
    @hx.effect(scopes=1, default=default)
    class Attempt:
        pass

    @hx.effect(scopes=2, default=default and (lambda op, f, g, x: {"as": x}))
    class Either:
        def result_type(op, body, other, x):
            return {"as": x}

    def f(x, w):
        y = hx.perform(Attempt(), lambda y: {"sum": (y * w).sum()}, x)
        return y, hx.perform(Either(), lambda y: y * w, lambda y: y, x)

    run = dry_run(f)(hnp.ones(3), 2.0)
    assert names(run) == ["attempt", "either"] and [str(t) for step in run.steps for t in step.types] == ["f32[3]"] * 2
    assert hx.tree.map(str, run.types) == ({"sum": "f32[]"}, {"as": "f32[3]"})


def test_mistakes_are_found():
    with pytest.raises(errors.ShapeMismatch):
        dry_run(lambda x: x @ x)(hnp.ones((2, 3)))


def test_an_if_sees_zeros():
    run = dry_run(lambda x: x + 1 if hnp.cos(x) > 0.5 else x - 1)(hnp.float32(0.0))
    assert names(run) == ["cos", "gt", "sub"]


def test_keys_and_lanes():
    run = dry_run(hx.vmap(lambda k: hx.random.normal(k, (2,))))(hx.random.split(hx.random.key(0), 3))
    assert run.result.shape == (3, 2)
    assert dry_run(lambda: hx.random.split(hx.random.key(0), 2))().result.shape == (2,)


def test_only_a_function_is_run_dry():
    with pytest.raises(errors.NotAFunction, match="dry_run"):
        dry_run(3)
