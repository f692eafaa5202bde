"""Mistakes found in control flow and effects that cross it, each once."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect(vmap="per_lane", diff="stop")
class Click:
    def result_type(op: Any) -> None:
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Number:
    def result_type(op: Any) -> Any:
        return hnp.zeros((), "int32").type


counter = hx.handler({Click: lambda n, op: (n + 1, None)})


def tick() -> None:
    hx.perform(Click())


def counted(f: Any) -> Any:
    return lambda *args: int(hx.handle(counter, 0)(f)(*args)[0])


def only_performs(x: Any) -> Any:
    lax.cond(x > 0, tick, lambda: None)
    return x * x


@pytest.mark.parametrize("boundary", [hx.jit, hx.checkpoint])
@pytest.mark.parametrize("transform", [hx.grad, hx.hessian, lambda f: lambda x: hx.linearize(f, x)[1](x)])
def test_an_operation_that_only_performs_stays_in_the_known_part(boundary: Any, transform: Any) -> None:
    def f(x: Any) -> Any:
        boundary(lambda x: lax.cond(x > 0, tick, lambda: None))(x)
        return x * x

    assert counted(transform(f))(2.0) == 1
    assert counted(transform(f))(-2.0) == 0


def test_an_early_end_without_results_is_seen_through_grad() -> None:
    ended = hx.handler({Click: hx.final(lambda op: (False, 0.0))}, returns=lambda y: (True, y))
    slope = hx.handle(ended)(hx.grad(only_performs))
    assert [bool(x) for x in (slope(3.0)[0], slope(-3.0)[0])] == [False, True]


def test_what_only_performs_on_unknown_operands_stays_in_the_rest() -> None:
    program = hx.make_program(only_performs)(1.0)
    split = hx.partial_eval_program(program, [True])
    assert [effect.name for effect in split.rest.effects] == ["click"] and not split.known.effects


@pytest.mark.parametrize("derivative", [hx.jacfwd, hx.jacrev, hx.hessian, lambda f: hx.jacfwd(hx.jacfwd(f))])
def test_all_columns_of_a_jacobian_share_one_primal_pass(derivative: Any) -> None:
    def f(x: Any) -> Any:
        tick()
        return lax.scan(lambda c, y: ((tick(), c + y**2)[1], None), 0.0, x)[0]

    xs = hnp.arange(1.0, 4.0)
    assert counted(derivative(f))(xs) == counted(hx.jit(derivative(f)))(xs) == 4


def test_a_jacobian_is_at_the_one_answer_that_an_effect_has() -> None:
    numbers = hx.handler({Number: lambda n, op: (n + 1, n)})
    jacobian = hx.handle(numbers, 3)(hx.jacfwd(lambda x: x**2 * hx.perform(Number())))
    n, made = jacobian(hnp.array([1.0, 2.0]))
    assert n == 4 and made.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_what_is_made_of_a_jitted_function_is_another_function() -> None:
    f = hx.jit(lambda x: hnp.sum(x**2))
    xs = hnp.arange(3.0)
    assert hx.jit(f)(xs) == 5.0
    assert hx.jit(hx.grad(f))(xs).tolist() == [0.0, 2.0, 4.0]
    assert hx.jit(hx.hessian(f))(xs).tolist() == (2 * hnp.eye(3)).tolist()
    assert hx.eval_shape(hx.hessian(f), xs).shape == (3, 3)

    @functools.wraps(f)
    def more(x: Any) -> Any:
        return f(x) + 1

    assert hx.jit(more)(xs) == 6.0


CALLERS = [lambda f: f, hx.jit, lambda f: hx.jit(hx.grad(f)), lambda f: lambda x: hx.vmap(f)(x[None])]


@pytest.mark.parametrize("wrap", CALLERS)
def test_branches_that_only_call_the_host_compile(wrap: Any) -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        lax.cond(x > 0, lambda: hx.debug.callback(lambda v: seen.append(float(v)), x), lambda: None)
        lax.switch(1, [lambda: None, lambda: hx.debug.callback(lambda v: seen.append(-float(v)), x)])
        return x * x

    wrap(f)(hnp.asarray(2.0))
    hx.effects_barrier()
    assert sorted(seen) == [-2.0, 2.0]


def test_keys_of_no_lanes_stay_keys() -> None:
    keys = hx.random.split(hx.random.key(0), 0)
    draw = hx.vmap(lambda key: hx.random.uniform(hx.random.split(key)[0], (3,)))
    assert draw(keys).shape == hx.jit(draw)(keys).shape == (0, 3)
    with hx.disable_jit():
        assert draw(keys).shape == (0, 3)
    assert hx.random.key_data(hx.random.split(hx.random.key(0), (0, 2))[:, 0]).shape == (0, 2)
    assert hx.vmap(hx.random.uniform)(hx.random.split(hx.random.key(0), (0, 2))[:, 0]).shape == (0,)
