"""Rows and their measurement: medians of samples that alternate between the sides.

A row is data: a name, a bar and a measure. ``timed`` is the usual measure: ``make(side)`` returns ``prepare``, which is
called before each sample, outside the timer, and returns the function that is timed.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .sides import OURS, THEIRS, Side, assert_agree

Prepare = Callable[[], Callable[[], Any]]
Check = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Pair:
    """Both sides' figures in one unit. Where only handlax has one, ``theirs`` is the unit of the bar."""

    ours: float
    theirs: float
    notes: tuple[str, ...] = ()
    low: float | None = None            # lower end of the ratio's 95 % interval, where the bar is compared with it

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs if self.theirs else (1.0 if self.ours == 0 else float("inf"))


@dataclass(frozen=True)
class Plan:
    """How long to measure: ``rounds`` per side, at least nine for published figures."""

    rounds: int = 9
    quick: bool = False


Measure = Callable[[Plan], Pair]


@dataclass(frozen=True)
class Row:
    name: str
    bar: float | None
    measure: Measure
    aim: float | None = None
    unit: str = "us"
    theme: str = ""
    beside: bool = True             # whether JAX has this figure too

    def met(self, pair: Pair) -> bool:
        """Whether the bar is met; bars of 1.00 and above allow 5 % of noise, except in exact units."""
        if self.bar is None:
            return True
        slack = 1.05 if self.bar >= 1.0 and self.unit not in EXACT else 1.0
        return pair.ratio <= self.bar * slack or (pair.low is not None and pair.low <= self.bar)


EXACT = ("flops", "bytes")


@dataclass(frozen=True)
class Part:
    """A part of handlax's work in a row, timed separately; ``end`` awaits its last result."""

    name: str
    make: Callable[[], Prepare]
    end: Callable[[Any], Any]


def timed(
    make: Callable[[Side], Prepare],
    *,
    per: int = 1,
    check: Check | None = assert_agree,
    cold: bool = False,
    samples_per_round: int = 9,
    seconds: float = 0.0,
    part: Part | None = None,
) -> Measure:
    """Median time of one call, in microseconds divided by ``per``. ``cold``: every call has a new ``prepare()``.

    ``samples_per_round``: many short samples, so that the median is robust against other processes; more of them where
    a round would take less than ``seconds``. ``check`` receives both sides' results. ``part`` is sampled in alternation
    with the sides (not where ``cold``) and becomes a note.
    """

    def measure(plan: Plan) -> Pair:
        prepares = (make(OURS), make(THEIRS))
        results = [prepare()() for prepare in prepares]
        if check is not None:
            check(*results)
        del results
        ends = (OURS.ready, THEIRS.ready)
        timers = [make_timer(prepare, end, cold) for prepare, end in zip(prepares, ends)]
        if part is not None:
            timers.append(make_timer(part.make(), part.end, False))
        long = cold and min([timer.count for timer in timers]) == 1
        least = plan.rounds * (1 if long else 2 if cold else samples_per_round)
        ours, theirs, *rest = [m * 1e6 / per for m in medians(timers, least, plan.rounds * seconds)]
        return Pair(ours, theirs, tuple([f"{part.name}: {figure:.3g} us" for figure in rest if part is not None]))

    return measure


def medians(timers: Sequence[Timer], least: int, seconds: float = 0.0, rest: float = 0.0) -> list[float]:
    """The median sample of each timer, in seconds per call; the timers take turns, in alternating order.

    ``rest``: seconds before each sample, which is of calls after a first one, so that the threads of another library,
    which spin for a while when it has returned, do not take part in it.
    """
    samples: list[list[float]] = [[] for _ in timers]
    gc.collect()
    for i in _numbers(least, seconds):
        for which in range(len(timers)) if i % 2 == 0 else reversed(range(len(timers))):
            if rest:
                time.sleep(rest)
                timers[which].once()
            samples[which].append(timers[which].once())
    return [statistics.median(s) for s in samples]


def _numbers(least: int, seconds: float) -> Iterator[int]:
    """0, 1, 2, ...: so many at least, and until the seconds are over."""
    end = time.perf_counter() + seconds
    number = 0
    while number < least or time.perf_counter() < end:
        yield number
        number += 1


@dataclass(frozen=True)
class Timer:
    """One sample: ``once`` is the seconds per call, over ``count`` calls."""

    count: int
    once: Callable[[], float]


def make_timer(prepare: Prepare, end: Callable[[Any], Any], cold: bool) -> Timer:
    if cold:
        count = _batch(prepare)
        return Timer(count, lambda: _each([prepare() for _ in range(count)]))
    count = _repetitions(prepare(), end)
    return Timer(count, lambda: _once(prepare(), count, end))


def _batch(prepare: Prepare, target: float = 0.01) -> int:
    """How many new functions make a sample of a cold row long enough for the clock."""
    elapsed = min(_each([prepare()]) for _ in range(2))
    return max(1, min(20, int(target / elapsed)))


def _each(thunks: list[Callable[[], Any]]) -> float:
    """Seconds per thunk, each called once; the collector stays on, with nothing left over from earlier samples."""
    gc.collect()
    start = time.perf_counter()
    for thunk in thunks:
        thunk()
    return (time.perf_counter() - start) / len(thunks)


def _once(thunk: Callable[[], Any], count: int, end: Callable[[Any], Any]) -> float:
    """Seconds per call over ``count`` calls, the last result awaited."""
    calls = range(count)
    start = time.perf_counter()
    for _ in calls:
        result = thunk()
    end(result)
    elapsed = time.perf_counter() - start
    del result
    return elapsed / count


def _repetitions(thunk: Callable[[], Any], end: Callable[[Any], Any], target: float = 0.001) -> int:
    """How many calls make a sample long enough for the clock, by the least of three times."""
    end(thunk())
    count = 1
    while True:
        elapsed = min([_once(thunk, count, end) for _ in range(3)])
        if elapsed * count >= target or count >= 4096:
            return count
        count = max(count * 2, min(4096, int(target / max(elapsed, 1e-7))))


def single(measure: Callable[[Plan], float]) -> Measure:
    """A figure of handlax alone, with an absolute bar."""
    return lambda plan: Pair(measure(plan), 1.0)
