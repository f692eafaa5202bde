"""Programs of ``n`` like parts, for handlax alone: what grows with ``n`` must grow in proportion."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

Made = tuple[Callable[[Any], Any], Any]


@hx.effect(vmap="per_lane", diff="stop")
class Fail:
    def result_type(op, x):
        return None


@hx.effect(vmap="per_lane", diff="stop")
class Ask:
    def result_type(op, x):
        return x


SCALING = hx.handler({Ask: lambda s, op, x: (s + 1.0, 1.5 * x)})
FAILING = hx.handler({Fail: hx.final(lambda op, x: (False, x))}, returns=lambda y: (True, y))
RESUMING = hx.handler({Ask: hx.ctl(lambda resume, op, x: resume(x + 1.0))})
LOGGING = hx.handler({Ask: lambda log, op, x: ((*log, x), x)}, moves=hx.append)
MERGING = hx.handler({Ask: lambda s, op, x: (s + x, x)}, moves=hx.merge(lambda s, t: s + t, 0.0))
USING = hx.handler({Ask: hx.ctl(lambda resume, op, x: 0.5 * resume(x + 1.0))})
SUMMING = hx.handler({Ask: lambda s, op, x: (s + x, s * x)})


def _row(step: Callable[[Any], Any], n: int) -> Callable[[Any], Any]:
    def f(x):
        for _ in range(n):
            x = step(x) * 1.01
        return x

    return f


def _nest(wrap: Callable[[Any], Any], n: int) -> Callable[[Any], Any]:
    f = hnp.sin
    for _ in range(n):
        f = wrap(f)
    return f


def failure_points(n: int) -> Made:
    step = lambda x: (lax.cond(x > 1e6, lambda y: hx.perform(Fail(), y), lambda y: None, x), x)[1]
    return lambda x: hx.handle(FAILING)(_row(step, n))(x)[1], 1.0


def failing_loops(n: int) -> Made:
    def iterate(i, x):
        lax.cond(x > 1e6, lambda y: hx.perform(Fail(), y), lambda y: None, x)
        return x * 1.1

    return lambda x: hx.handle(FAILING)(_row(lambda x: lax.fori_loop(0, 3, iterate, x), n))(x)[1], 1.0


def choices(n: int, handler: hx.Handler = RESUMING) -> Made:
    step = lambda x: lax.cond(x > 1.0, lambda y: hx.perform(Ask(), y), lambda y: y * 2.0, x)
    return lambda x: hx.handle(handler)(_row(step, n))(x), 1.0


def choices_that_use_the_answer(n: int) -> Made:
    return choices(n, USING)


def resumptions(n: int) -> Made:
    return lambda x: hx.handle(RESUMING)(_row(lambda x: hx.perform(Ask(), x), n))(x), 1.0


def carried_in_lanes(n: int) -> Made:
    f = _row(lambda x: hx.perform(Ask(), x), n)
    return lambda xs: hx.handle(SUMMING, 1.0)(hx.vmap(f))(xs)[1].sum(), hnp.ones(4)


def merged_in_lanes(n: int) -> Made:
    f = _row(lambda x: hx.perform(Ask(), x), n)
    return lambda xs: hx.handle(MERGING, 1.0)(hx.vmap(f))(xs)[1].sum(), hnp.ones(4)


def branches(n: int) -> Made:
    def f(x):
        parts = [functools.partial(lambda i, y: hx.perform(Ask(), y) * (1.0 + i), i) for i in range(n)]
        return lax.switch(hnp.int32(x), parts, x)

    return lambda x: hx.handle(SUMMING, 1.0)(f)(x)[1], 1.0


def logging_branches(n: int) -> Made:
    def f(x):
        parts = [functools.partial(lambda i, y: hx.perform(Ask(), y) * (1.0 + i), i) for i in range(n)]
        return lax.switch(hnp.int32(x), parts, x)

    return lambda x: hx.handle(LOGGING, ())(f)(x)[1], 1.0


def handlers_in_a_row(n: int) -> Made:
    return _row(lambda x: hx.handle(SUMMING, 1.0)(lambda y: hx.perform(Ask(), y))(x)[1], n), 1.0


def checkpoints(n: int) -> Made:
    return _row(lambda x: hx.checkpoint(lambda y: hnp.sin(hnp.sin(y)))(x), n), 1.0


def nested_jits(n: int) -> Made:
    return _nest(lambda f: hx.jit(lambda x: f(x) * 1.1), n), 1.0


def nested_checkpoints(n: int) -> Made:
    return _nest(lambda f: hx.checkpoint(lambda x: hnp.sin(f(x))), n), 1.0


def branches_in_lanes(n: int) -> Made:
    level = lambda w, f: lambda x: lax.cond(x > 0, lambda x: w * f(x), lambda x: x, x)
    return lambda xs: hx.vmap(_nest(functools.partial(level, xs[0]), n))(xs).sum(), hnp.ones(4)


def handled_twice_at_each_level(n: int) -> Made:
    f = lambda x: hx.perform(Ask(), x)
    for _ in range(n):
        f = (lambda f: hx.jit(lambda x: f(x) + f(x)))(f)
    return lambda x: hx.handle(SCALING, 0.0)(f)(x)[1], 1.0


FAMILIES: dict[str, Callable[[int], Made]] = {
    "failure points": failure_points, "loops with a failure point": failing_loops, "traced choices": choices,
    "traced choices that use the answer": choices_that_use_the_answer, "resumptions": resumptions,
    "carried effects under vmap": carried_in_lanes,
    "merged effects under vmap": merged_in_lanes, "branches with an effect": branches,
    "branches with an entry of a log": logging_branches, "handled calls": handlers_in_a_row,
    "nested branches in lanes that share a value": branches_in_lanes,
    "checkpoints": checkpoints, "nested jits": nested_jits, "nested checkpoints": nested_checkpoints,
    "handled functions that call the next one twice": handled_twice_at_each_level,
}
