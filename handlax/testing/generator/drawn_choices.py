"""Random choices that Hypothesis makes, so that what an author of random programs writes shrinks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
STEPS = 256  # of a number between 0 and 1: Hypothesis draws integers up to there uniformly, larger ones rarely


class DrawnChoices(Random):
    """The choices of an author: they shrink to the first item, the lowest integer, and False of ``random() < p``."""

    drawn: Random

    def _randbelow(self, n: int) -> int:
        return self.drawn.randint(0, n - 1)

    def random(self) -> float:
        return 1 - (self._randbelow(STEPS) + 1) / STEPS

    def getrandbits(self, k: int) -> int:
        return self._randbelow(1 << k)

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        bounds = [*accumulate(weights or [1.0] * len(population))] if cum_weights is None else cum_weights
        return [population[bisect_right(bounds, self._randbelow(STEPS) / STEPS * bounds[-1])] for _ in range(k)]


def written(write: Callable[[Random], T]) -> st.SearchStrategy[T]:
    """What a function of random choices writes, of choices that Hypothesis draws and shrinks."""

    def by(drawn: Random) -> T:
        choices = DrawnChoices()
        choices.drawn = drawn
        return write(choices)

    return st.randoms(use_true_random=False).map(by)
