"""The programs in handlax."""

from __future__ import annotations

from typing import Any

import handlax as hx
from handlax import lax, probability, random
from handlax import numpy as hnp
from handlax.operations import Sin

VERSION = hx.__version__
WITHOUT: dict[str, str] = {}
NOTES: dict[str, str] = {}


@hx.effect(vmap="per_lane")
class Tick:
    def result_type(op):
        return None


@hx.effect
class Setting:
    def result_type(op):
        return hx.ArrayType((), hnp.float32)


@hx.effect(vmap="per_lane", diff="stop")
class Leave:
    def result_type(op, x):
        return None


@hx.effect
class Flip:
    def result_type(op):
        return hx.ArrayType((), hnp.bool_)


@hx.effect(vmap="per_lane", diff="stop")
class Log:
    label: str

    def result_type(op, x):
        return None


@hx.effect
class Yield:
    value: Any

    def result_type(op):
        return None


def counter():
    def loop(x):
        return lax.fori_loop(0, 5, lambda i, x: (hx.perform(Tick()), 2 * x)[1], x)

    counting = hx.handler({Tick: lambda n, op: (n + 1, None)})
    n, y = hx.handle(counting, 0)(hx.jit(loop))(1.0)
    return [int(n), float(y)]


def early_exit():
    def step(i, x):
        lax.cond(x > 20, lambda: hx.perform(Leave(), x), lambda: None)
        return 2 * x

    leaving = hx.handler({Leave: hx.final(lambda op, x: -x)})
    return float(hx.jit(hx.handle(leaving)(lambda x: lax.fori_loop(0, 10, step, x)))(1.0))


def enumeration():
    def walk():
        return sum([hnp.where(hx.perform(Flip()), 2.0, -1.0) for _ in range(3)]) ** 2

    worlds = hx.handler({Flip: hx.ctl(lambda resume, op: resume(True) + resume(False))}, returns=lambda y: [float(y)])
    return sorted(hx.handle(worlds)(walk)())


@hx.jit
def walk(x):
    def step(x, _):
        x = probability.sample("x", probability.Normal(x, 1.0))
        return x, x

    return lax.scan(step, x, None, length=3)[1]


def draws():
    steps = hnp.diff(probability.seed(walk, random.key(0))(0.0), prepend=0.0)
    return len({round(step, 4) for step in steps.tolist()})


def density():
    return round(float(probability.log_density(walk, {"x": hnp.array([1.0, 1.0, 2.0])})(0.0)[0]), 3)


def density_inside():
    scored = hx.jit(lambda xs: probability.log_density(walk, {"x": xs})(0.0)[0])
    return round(float(scored(hnp.array([1.0, 1.0, 2.0]))), 3)


def logged_in_grad():
    def loss(x):
        y = x * x
        hx.perform(Log("y"), y)
        return y * x

    logging = hx.handler({Log: lambda seen, op, x: ({**seen, op.label: x}, None)})
    seen, slope = hx.handle(logging, {"y": 0.0})(hx.jit(hx.grad(loss)))(2.0)
    return [float(seen["y"]), float(slope)]


def array_primitive():
    twice = hx.handler({Sin: lambda op, x: 2 * hx.perform(op, x)})
    f = lambda x: lax.fori_loop(0, 2, lambda i, x: hnp.sin(x), x)
    return [round(y, 3) for y in hx.handle(twice)(hx.vmap(hx.jit(f)))(hnp.array([0.5, 1.0])).tolist()]


def two_handlers():
    f = hx.jit(lambda x: x * hx.perform(Setting()))
    return [float(hx.handle(hx.handler({Setting: lambda op: by}))(f)(1.0)) for by in (2.0, 3.0)]


def generator():
    def visit(tree):
        if tree is not None:
            left, value, right = tree
            visit(left)
            hx.perform(Yield(value))
            visit(right)

    def values(step):
        while isinstance(step, hx.Step):
            yield step.op.value
            step = step.resume()

    return list(values(hx.steps(Yield)(visit)(((None, 1, None), 2, (None, 3, None)))))


def scheduler():
    order = []

    def task(name):
        for i in range(2):
            order.append(f"{name}{i}")
            hx.perform(Tick())

    ready = [hx.steps(Tick)(task)(name) for name in "ab"]
    while ready:
        if isinstance(step := ready.pop(0), hx.Step):
            ready.append(step.resume())
    return order
