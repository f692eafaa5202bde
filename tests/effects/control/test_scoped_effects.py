"""Effects that take functions, against an interpreter in plain Python: exceptions, callbacks and dual numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from helpers.effect_oracle import ARITHMETIC, Dual, number

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

PER_LANE = {"vmap": "per_lane", "diff": "bodies"}


@hx.effect(scopes=2, **PER_LANE)
class Attempt:
    """The first function; the second one if it fails."""


@hx.effect(scopes=1, **PER_LANE)
class Local:
    """A function in which the setting is ``by`` times as large."""

    by: float


@hx.effect(scopes=1, **PER_LANE)
class Region:
    """A function between two ticks."""


@hx.effect(vmap="per_lane", diff="stop")
class Fail:
    def result_type(op):
        return None


@hx.effect(vmap="per_lane")
class Ask:
    def result_type(op):
        return hx.ArrayType((), hnp.float32)


@hx.effect(vmap="per_lane")
class Tick:
    def result_type(op):
        return None


def attempted(op, body, other, *xs):
    return hx.handle(hx.handler({Fail: hx.final(lambda op: other(*xs))}))(body)(*xs)


def between_ticks(op, body, *xs):
    hx.perform(Tick())
    y = body(*xs)
    hx.perform(Tick())
    return y


attempting = hx.handler({Attempt: attempted, Region: between_ticks})
reading = hx.handler(
    {Ask: lambda s, op: (s, s), Local: lambda s, op, body, *xs: (s, body(op.by * s, *xs)[1])}
)
counting = hx.handler({Tick: lambda n, op: (n + 1, None)})


def under(f):
    """``f(x) -> (ticks, y)`` under all handlers."""
    inside = lambda x: hx.handle(reading, hnp.float32(0.5))(f)(x)[1]
    return hx.handle(counting, 0)(hx.handle(attempting)(inside))


# Programs: a block is a list of statements, each of which appends a value to those before.


def block(rng, depth, count=3):
    return [statement(rng, depth) for _ in range(rng.randint(1, count))]


def statement(rng, depth):
    kinds = ["arithmetic", "arithmetic", "tick", "ask", "fail"]
    kinds += ["attempt", "attempt", "local", "region", "loop", "cond"] if depth else []
    kind = rng.choice(kinds)
    match kind:
        case "arithmetic":
            return kind, rng.choice([*ARITHMETIC]), rng.random(), rng.random()
        case "tick" | "ask":
            return (kind,)
        case "fail":
            return kind, rng.random(), rng.uniform(-1.0, 0.5)
        case "attempt" | "cond":
            return kind, rng.random(), block(rng, depth - 1), block(rng, depth - 1)
        case "local" | "region":
            return kind, rng.random(), block(rng, depth - 1)
        case "loop":
            return kind, rng.random(), block(rng, depth - 1)


class Machine:
    """Python: failures are exceptions, ticks are counted by the way, the setting is an attribute."""

    class Failure(Exception):
        pass

    def __init__(self):
        self.ticks, self.setting = 0, 0.5

    arithmetic = staticmethod(lambda name, a, b: ARITHMETIC[name](a, b))

    def tick(self):
        self.ticks += 1

    def ask(self):
        return self.setting

    def fail_if_below(self, x, bound):
        if number(x) < bound:
            raise self.Failure

    def attempt(self, body, other, x):
        try:
            return body(x)
        except self.Failure:
            return other(x)

    def local(self, body, x):
        before, self.setting = self.setting, 2.0 * self.setting
        try:
            return body(x)
        finally:
            self.setting = before

    def region(self, body, x):
        self.tick()
        y = body(x)
        self.tick()
        return y

    def loop(self, body, x):
        return body(body(x))

    def cond(self, x, first, second):
        return first(x) if number(x) > 0.3 else second(x)


class Performed:
    """The same operations, performed."""

    FUNCTIONS = {
        "add": lambda a, b: 0.6 * a + 0.5 * b,
        "mul": lambda a, b: hnp.sin(a) * b,
        "sin": lambda a, b: hnp.sin(a + 0.3 * b),
        "cos": lambda a, b: hnp.cos(a * b),
    }
    arithmetic = staticmethod(lambda name, a, b: Performed.FUNCTIONS[name](a, b))
    tick = staticmethod(lambda: hx.perform(Tick()))
    ask = staticmethod(lambda: hx.perform(Ask()))
    attempt = staticmethod(lambda body, other, x: hx.perform(Attempt(), body, other, x))
    local = staticmethod(lambda body, x: hx.perform(Local(2.0), body, x))
    region = staticmethod(lambda body, x: hx.perform(Region(), body, x))
    loop = staticmethod(lambda body, x: lax.fori_loop(0, 2, lambda i, x: body(x), x))
    cond = staticmethod(lambda x, first, second: lax.cond(x > 0.3, first, second, x))

    @staticmethod
    def fail_if_below(x, bound):
        lax.cond(x < bound, lambda: hx.perform(Fail()), lambda: None)


def run(machine, statements, values):
    """The last value of a block; functions in it read the values before them."""
    values = list(values)
    pick = lambda place: values[int(place * len(values))]
    for kind, *fields in statements:
        inner = lambda block, values=values: lambda x, values=tuple(values): run(machine, block, (*values, x))
        match kind, fields:
            case "arithmetic", (name, i, j):
                values.append(machine.arithmetic(name, pick(i), pick(j)))
            case "tick", ():
                machine.tick()
            case "ask", ():
                values.append(machine.ask())
            case "fail", (i, bound):
                machine.fail_if_below(pick(i), bound)
            case "attempt", (i, first, second):
                values.append(machine.attempt(inner(first), inner(second), pick(i)))
            case "cond", (i, first, second):
                values.append(machine.cond(pick(i), inner(first), inner(second)))
            case ("local" | "region" | "loop"), (i, body):
                values.append(getattr(machine, kind)(inner(body), pick(i)))
    return machine.arithmetic("add", values[-1], values[0])


def program(seed):
    """A random block in an attempt, so that no failure is left."""
    rng = random.Random(seed)
    return [("attempt", 0.0, block(rng, 2, 4), [("tick",), ("arithmetic", "sin", 0.0, 0.0)])]


def outcome(statements, x, tangent=None):
    machine = Machine()
    y = run(machine, statements, [x if tangent is None else Dual(0, x, tangent)])
    return machine.ticks, y


XS = (0.2, 0.9, -0.6)


def check(seed):
    statements = program(seed)
    f = lambda x: run(Performed, statements, [x])
    expected = [outcome(statements, x) for x in XS]
    slopes = [getattr(outcome(statements, x, 1.0)[1], "t", 0.0) for x in XS]
    close = lambda got, wanted: np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-4, atol=2e-5)
    ticks, ys = zip(*expected)
    inner, outer = hx.jit(lambda x: under(hx.jit(f))(x)), lambda x: under(f)(x)
    for x, (n, y), slope in zip(XS, expected, slopes):
        for handled in (inner, outer)[: 2 if x == XS[0] else 1]:
            close(handled(x), (n, y))
        close(hx.jit(hx.grad(lambda x: under(f)(x)[1]))(x), slope)
        close(hx.jit(lambda x: under(hx.grad(f))(x))(x), (n, slope))
        close(hx.jit(lambda x: under(hx.grad(hx.checkpoint(f)))(x))(x), (n, slope))
    lanes = hnp.array(XS)
    for n, y in (hx.jit(hx.vmap(lambda x: under(f)(x)))(lanes), hx.jit(lambda xs: under(hx.vmap(f))(xs))(lanes)):
        close(n, ticks if n.shape else sum(ticks))
        close(y, ys)
    n, derived = hx.jit(lambda xs: under(hx.vmap(hx.grad(f)))(xs))(lanes)
    close(n, sum(ticks))
    close(derived, slopes)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_do_what_python_does(seed):
    check(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_programs_do_what_python_does(seed):
    check(seed)
