"""Measures of a function that is jitted on either side: its time, and the temporary memory of what is compiled."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .sides import OURS, THEIRS, Side
from .timing import Measure, Pair, Plan, Prepare, timed

Jitted = Callable[[Side], tuple[Any, list[Any]]]  # the jitted function on one side, and its arguments there


def run_time(jitted: Jitted, check: Callable[[Any, Any], None], samples_per_round: int = 1) -> Measure:
    """Time of a call until its results are there: calls in flight at once would compete for the cores.

    Programs on several threads have good and bad moments, which a second of samples evens out.
    """

    def make(side: Side) -> Prepare:
        f, args = jitted(side)
        side.ready(f(*args))
        return lambda: lambda: side.ready(f(*args))

    return timed(make, check=check, samples_per_round=samples_per_round, seconds=0.2)


def temporary_memory(jitted: Jitted) -> Callable[[Plan], Pair]:
    def measure(plan: Plan) -> Pair:
        sizes = []
        for side in (OURS, THEIRS):
            f, args = jitted(side)
            sizes.append(f.lower(*args).compile().memory_analysis().temp_size_in_bytes)
        return Pair(*sizes)

    return measure


def compile_time(jitted: Jitted) -> Measure:
    """Processor time of XLA's compilation, of a program that is traced and lowered again before each sample."""

    def sample(side: Side) -> float:
        side.lib.clear_caches()
        f, args = jitted(side)
        lowered = f.lower(*args)
        gc.collect()
        start = time.process_time()
        lowered.compile()
        return (time.process_time() - start) * 1e6

    def measure(plan: Plan) -> Pair:
        samples = [(sample(OURS), sample(THEIRS)) for _ in range(max(3, plan.rounds // 2))]
        ours, theirs = map(statistics.median, zip(*samples))
        return Pair(ours, theirs)

    return measure


@dataclass(frozen=True)
class OfArray:
    """A function of one array, or its gradient: of the sum of squares of its values."""

    title: str
    f: Callable[[Side, Any], Any]
    data: np.ndarray[Any, Any]
    differentiate: bool = False

    def __str__(self) -> str:
        name = f"{self.title}, {self.data.dtype.name}{list(self.data.shape)}"
        return f"gradient of {name}" if self.differentiate else name

    def jitted(self, side: Side) -> tuple[Any, list[Any]]:
        f: Any = lambda x: self.f(side, x)
        g = side.lib.grad(lambda x: (f(x) ** 2).sum()) if self.differentiate else f
        return side.lib.jit(g), [side.array(self.data)]
