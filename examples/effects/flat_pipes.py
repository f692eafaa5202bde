"""A producer and a consumer that take turns: both are programs, and a pipe holds their steps.

    $ python examples/effects/flat_pipes.py 256
    256

A step is an effect as a value: the pipe answers what the consumer awaits with what the producer yields. Other effects
of either go to the handlers around the pipe.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import handlax as hx

Process = Callable[[], int]


@hx.effect
class Yield:
    """Give a value to the consumer."""

    value: int

    def result_type(op):
        return None


@hx.effect
class Await:
    """The next value of the producer."""

    def result_type(op):
        return object


def pipe(producer: Process, consumer: Process) -> Process:
    """The two as one process, whose result is that of the one which ends."""

    def piped() -> int:
        awaiting, proceed = hx.steps(Await)(consumer)(), hx.steps(Yield)(producer)
        while isinstance(awaiting, hx.Step):
            yielded = proceed()
            if isinstance(yielded, hx.Done):
                return yielded.value
            awaiting, proceed = awaiting.resume(yielded.op.value), yielded.resume
        return awaiting.value

    return piped


def produce(n: int) -> int:
    for value in range(1, n + 1):
        hx.perform(Yield(value))
    return n


def blackhole() -> int:
    while True:
        hx.perform(Await())


def flat_pipes(n: int = 256) -> int:
    """The number of values that go through the pipe."""
    return pipe(lambda: produce(n), blackhole)()


if __name__ == "__main__":
    print(flat_pipes(*map(int, sys.argv[1:])))
