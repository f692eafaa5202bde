"""Measures of a function that is jitted on either side: its time, and the temporary memory of what is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .sides import OURS, THEIRS, Side
from .timing import Measure, Pair, Plan, Prepare, timed

Jitted = Callable[[Side], tuple[Any, list[Any]]]  # the jitted function on one side, and its arguments there


def run_time(jitted: Jitted, check: Callable[[Any, Any], None], samples_per_round: int = 1) -> Measure:
    def make(side: Side) -> Prepare:
        f, args = jitted(side)
        f(*args)
        return lambda: lambda: f(*args)

    return timed(make, check=check, samples_per_round=samples_per_round)


def temporary_memory(jitted: Jitted) -> Callable[[Plan], Pair]:
    def measure(plan: Plan) -> Pair:
        sizes = []
        for side in (OURS, THEIRS):
            f, args = jitted(side)
            sizes.append(f.lower(*args).compile().memory_analysis().temp_size_in_bytes)
        return Pair(*sizes)

    return measure
