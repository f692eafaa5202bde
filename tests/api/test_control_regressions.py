"""Mistakes found in control flow and effects that cross it, each once."""

from __future__ import annotations

from typing import Any

import pytest

import handlax as hx
from handlax import lax


@hx.effect(vmap="per_lane", diff="stop")
class Tick:
    def result_type(op: Any) -> None:
        return None


counter = hx.handler({Tick: lambda n, op: (n + 1, None)})


def tick() -> None:
    hx.perform(Tick())


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
    ended = hx.handler({Tick: hx.final(lambda op: (False, 0.0))}, returns=lambda y: (True, y))
    slope = hx.handle(ended)(hx.grad(only_performs))
    assert [bool(x) for x in (slope(3.0)[0], slope(-3.0)[0])] == [False, True]


def test_what_only_performs_on_unknown_operands_stays_in_the_rest() -> None:
    program = hx.make_program(only_performs)(1.0)
    split = hx.partial_eval_program(program, [True])
    assert [effect.name for effect in split.rest.effects] == ["tick"] and not split.known.effects
