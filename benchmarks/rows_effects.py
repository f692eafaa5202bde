"""What an effect of a user's costs: performed through a handler, and where its clause takes the rest of the program."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import handlax as hx

from .timing import Pair, Plan, Row, single

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


ROWS = [
    each("perform through one handler", 1.5, hx.handle(PLAIN)),
    each("perform, the clause resumes in tail position", 8.0, hx.direct(TAIL)),
    each("perform, the clause resumes", 16.0, hx.direct(NESTED)),
    constant(f"perform, the clause resumes: each of {MANY:,} against {FEW}", hx.direct(NESTED)),
]
