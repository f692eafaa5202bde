"""What an effect of a user's costs: performed through a handler, and where its clause takes the rest of the program.

A hidden Markov model, its loop summed out by a handler, stands beside the forward algorithm written by hand in JAX.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

import handlax as hx

from .sides import OURS, Side, assert_agree, on
from .timing import Pair, Plan, Prepare, Row, single, timed

FEW, MANY = 100, 1600


@hx.effect
class Next:
    def result_type(op):
        return hx.ArrayType((), "float32")


ANSWER = hx.numpy.float32(1.0)
PLAIN = hx.handler({Next: lambda op: ANSWER})
TAIL = hx.handler({Next: hx.once(lambda resume, op: resume.tail(ANSWER))})
NESTED = hx.handler({Next: hx.once(lambda resume, op: resume(ANSWER))})


def performing(n: int) -> Callable[[], Any]:
    """A function that performs one operation n times."""
    op = Next()

    def f() -> Any:
        for _ in range(n):
            y = hx.perform(op)
        return y

    return f


def microseconds(installed: Callable[[Callable[[], Any]], Callable[[], Any]], n: int, rounds: int) -> float:
    """The median processor time of one of n performed operations."""
    handled = installed(performing(n))
    handled()
    samples = []
    for _ in range(rounds):
        start = time.process_time()
        handled()
        samples.append(time.process_time() - start)
    return statistics.median(samples) / n * 1e6


def each(name: str, bar: float, installed: Any) -> Row:
    return Row(name, bar, single(lambda plan: microseconds(installed, 1000, plan.rounds * 5)), 0.0, beside=False)


def constant(name: str, installed: Any) -> Row:
    """The time of each of many against that of each of few."""

    def measure(plan: Plan) -> Pair:
        many, few = [microseconds(installed, n, plan.rounds) for n in (MANY, FEW)]
        return Pair(many, few, (f"at {FEW}: {few:.3g} us each",))

    return Row(name, 1.5, measure, 1.0, beside=False)


@hx.effect(vmap="per_lane")
class State:
    """A hidden state, by the log-probability of each and of what it shows."""

    def result_type(op, log_probs):
        return hx.ArrayType((), "int32")


def _summed(resume: Any, op: Any, log_probs: Any) -> Any:
    return hx.nn.logsumexp(log_probs + hx.vmap(resume)(hx.numpy.arange(log_probs.shape[0])))


EVIDENCE = hx.handler(
    {State: hx.ctl(_summed, support=lambda op, log_probs: log_probs.shape[0])}, returns=lambda y: 0.0
)


@hx.handle(EVIDENCE)
def markov(start: Any, move: Any, shown: Any) -> Any:
    """A hidden Markov model, by the logarithms of its probabilities."""

    def step(row: Any, seen: Any) -> Any:
        return move[hx.perform(State(), row + seen)], None

    return hx.lax.scan(step, start, shown)


def forward(start: Any, move: Any, shown: Any) -> Any:
    """Its evidence by the forward algorithm, in JAX."""
    step = lambda alpha, seen: (jax.nn.logsumexp(alpha[:, None] + move, 0) + seen, None)
    return jax.nn.logsumexp(jax.lax.scan(step, start + shown[0], shown[1:])[0])


def chain(length: int, states: int, gradient: bool) -> Row:
    """The compiled evidence of a hidden Markov model, or its gradient."""
    rng = np.random.default_rng(0)
    data = tuple([np.float32(rng.normal(size=shape)) for shape in [(states,), (states, states), (length, states)]])

    def make(side: Side) -> Prepare:
        f: Any = markov if side is OURS else forward
        jitted, args = side.lib.jit(side.lib.grad(f, argnums=(0, 1, 2)) if gradient else f), on(side, data)
        return lambda: lambda: jitted(*args)

    check = partial(assert_agree, rtol=2e-3)  # the sums of 1,000 steps are rounded in another order
    kind = "gradient of the evidence" if gradient else "evidence"
    name = f"{kind} of {length:,} steps of {states} hidden states, summed out by a handler"
    return Row(name, 1.5, timed(make, check=check))


def new_number(side: Side) -> Prepare:
    """Calls of a compiled loop with another number each: a clause brings it; in JAX it is an argument."""
    numbers = itertools.count(1)

    def loop(x: Any, scale: Any = 1.0) -> Any:
        return side.lax.scan(lambda c, _: (scale * side.np.sin(c), None), x, None, length=10)[0]

    g, x = side.lib.jit(loop), side.array(np.ones(100, np.float32))

    def ours(scale: float) -> Any:
        return hx.handle(hx.handler({hx.operations.Sin: lambda op, y: scale * hx.perform(op, y)}))(g)(x)

    call = ours if side is OURS else lambda scale: g(x, scale)
    call(0.5)
    return lambda: lambda: call(1.0 / next(numbers))


ROWS = [
    each("perform through one handler", 1.5, hx.handle(PLAIN)),
    each("perform, the clause resumes in tail position", 8.0, hx.direct(TAIL)),
    each("perform, the clause resumes", 16.0, hx.direct(NESTED)),
    constant(f"perform, the clause resumes: each of {MANY:,} against {FEW}", hx.direct(NESTED)),
    *[chain(length, states, gradient) for length, states in ((100, 3), (1000, 32)) for gradient in (False, True)],
    Row("a new number in a clause, against an argument of JAX's", 150.0, timed(new_number)),
]
