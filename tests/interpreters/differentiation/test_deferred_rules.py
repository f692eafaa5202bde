"""Rules recorded late: what they read is part of what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.custom_batching import custom_vmap
from handlax.custom_derivatives import linear_call
from handlax.interpreters.library.effectful.random_streams import fresh_key, seed
from handlax.testing import counted

SLOPE = 2.0


@hx.custom_jvp
def square(x: Any) -> Any:
    return x * x


@square.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return square(*primals), SLOPE * tangents[0]


@hx.custom_vjp
def cube(x: Any) -> Any:
    return x * x * x


cube.defvjp(lambda x: (cube(x), None), lambda _, ct: (SLOPE * ct,))


@custom_vmap
def lanes(x: Any) -> Any:
    return x


lanes.def_vmap(lambda size, mapped, x: (SLOPE * x, mapped[0]))


def scaled(x: Any) -> Any:
    return linear_call(lambda _, x: SLOPE * x, lambda _, ct: SLOPE * ct, (), x)


def looped(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


READERS = {
    "jvp": lambda: hx.grad(looped(square))(1.0),
    "vjp": lambda: hx.grad(looped(cube))(1.0),
    "vmap": lambda: hx.vmap(looped(lanes))(hnp.ones(2))[0],
    "linear": lambda: hx.grad(looped(scaled))(1.0),
    "in jit": lambda: hx.jit(hx.grad(looped(square)))(1.0),
    "one rule calls another": lambda: hx.vmap(hx.grad(looped(lambda x: lanes(square(x)))))(hnp.ones(2))[0] ** 0.5,
}


@pytest.mark.parametrize("call", READERS.values(), ids=READERS)
def test_a_global_that_a_rule_reads_and_that_changes_is_seen_in_a_loop(
    call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert float(call()) == 4.0
    monkeypatch.setitem(globals(), "SLOPE", 3.0)
    assert float(call()) == 9.0


def test_a_closure_value_of_a_rule_that_changes_is_seen_in_a_loop() -> None:
    slope = 2.0
    f = hx.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (f(*primals), slope * tangents[0]))
    assert float(hx.grad(looped(f))(1.0)) == 4.0
    slope = 3.0
    assert float(hx.grad(looped(f))(1.0)) == 9.0


UNDER = {
    "a handler": hx.handle(hx.handler({hx.operations.Sin: lambda op, x: x})),
    "a state": hx.handle(hx.handler({hx.operations.Sin: lambda s, op, x: (s + 1.0, x)}), 0.0),
    "a clause that resumes": hx.handle(hx.handler({hx.operations.Sin: hx.ctl(lambda resume, op, x: resume(x))})),
    "a clause that ends": hx.handle(hx.handler({hx.operations.Sin: hx.final(lambda op, x: x)})),
}
RULED = {"jvp": square, "vjp": cube, "vmap": lanes, "linear": scaled}


def performing(f: Any) -> Callable[[Any], Any]:
    """A function with the rules of ``f`` that performs ``Sin``, in a branch."""
    g = type(f)(lambda x: lax.cond(x > 0.5, hnp.sin, hnp.cos, f.fun(x)))
    for name in {"jvp", "fwd", "bwd", "vmap_rule"} & vars(f).keys():
        setattr(g, name, getattr(f, name))
    return g


PERFORMING = {f"{name}, which performs": performing(RULED[name]) for name in ("jvp", "vjp", "vmap")}


@pytest.mark.each_choice
@pytest.mark.parametrize("f", [*map(looped, RULED.values()), *PERFORMING.values()], ids=[*RULED, *PERFORMING])
@pytest.mark.parametrize("handled", UNDER.values(), ids=UNDER)
def test_rules_under_a_handler_are_compiled_once(handled: Any, f: Callable[[Any], Any]) -> None:
    made = lambda: hx.jit(lambda x: handled(f)(x))(1.0)
    made()
    assert counted(made).compiles == 0


def test_a_linear_rule_under_a_handler_that_it_does_not_use_leaves_the_state_alone() -> None:
    """The key of ``seed`` enters a linear map and does not leave it again."""
    f = seed(lambda x: hx.jvp(cube, (x,), (1.0,)), hx.random.key(0))
    assert [float(y) for y in f(1.0)] == [1.0, 2.0]
    assert [float(y) for y in hx.jit(f)(1.0)] == [1.0, 2.0]


def test_a_linear_rule_that_draws_is_refused() -> None:
    def noise() -> Any:
        return hx.random.normal(fresh_key())

    f = hx.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct + 0.0 * noise(),))
    with pytest.raises(hx.errors.CannotCross, match="changes the state"):
        hx.jit(seed(lambda x: hx.jvp(f, (x,), (1.0,)), hx.random.key(0)))(1.0)


def test_a_rule_for_lanes_under_a_handler_whose_state_does_not_leave() -> None:
    def f(x: Any) -> Any:
        return seed(lambda x: lanes(x) + 0.0 * hx.random.normal(fresh_key()), hx.random.key(0))(x)

    assert [float(y) for y in hx.vmap(f)(hnp.ones(2))] == [2.0, 2.0]
    assert [float(y) for y in hx.vmap(looped(f))(hnp.ones(2))] == [4.0, 4.0]
