"""Pipes of pipes: a pipe is a process again, which awaits and yields as a whole.

    $ python examples/effects/nested_pipes.py 8
    1256

An endless producer goes through 2**n processes, each of which adds one, and a last one that takes 1,000 values.
"""

from __future__ import annotations

import itertools
import sys

from flat_pipes import Await, Process, Yield, blackhole, pipe

import handlax as hx


def produce_all() -> int:
    for value in itertools.count(1):
        hx.perform(Yield(value))
    raise AssertionError("there is no last value")


def increment() -> int:
    while True:
        hx.perform(Yield(hx.perform(Await()) + 1))


def increments(n: int) -> Process:
    """A chain of 2**n increments, as a balanced tree of pipes."""
    return increment if n == 0 else pipe(increments(n - 1), increments(n - 1))


def take(count: int) -> int:
    """Pass on some values; the last one."""
    for _ in range(count):
        value = hx.perform(Await())
        hx.perform(Yield(value))
    return value


def nested_pipes(n: int = 8) -> int:
    """The last value that leaves the chain."""
    taken = pipe(pipe(produce_all, increments(n)), lambda: take(1000))
    return pipe(taken, blackhole)()


if __name__ == "__main__":
    print(nested_pipes(*map(int, sys.argv[1:])))
