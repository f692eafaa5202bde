"""Faults one after the other: a function is called again and again, and another part of what it does fails each time.

    for fault in every_fault(f, injected): ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from ...effects.base.errors import BadArgument
from .left_behind import IN_FORCE, Before, hidden_files, tracers
from .wholeness import values


class Fault(NamedTuple):
    """A fault in a call: its number, where it was, and the exception with which the call ended, None for a result."""

    number: int
    place: str
    left: BaseException | None

    def __str__(self) -> str:
        return f"fault {self.number}, {self.place}"


def place_of(frame: FrameType) -> str:
    """Where a frame is: ``module.py:17, in f``."""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}, in {frame.f_code.co_name}"


class Injection:
    """Counts the places at which a call can fail, and says of the ``number``-th, from 0, that it has to fail there.

    ``place``: where that was, as whoever makes it fail has noted; None: the call has not come so far.
    """

    def __init__(self, number: int):
        self.number, self.seen = number, 0
        self.place: str | None = None

    def due(self) -> bool:
        """Whether the call has to fail at this place, which is counted."""
        self.seen += 1
        return self.seen == self.number + 1


def turns(befall: Callable[[int], Fault | None], every: int = 1) -> Iterator[Fault]:
    """The faults ``befall(0)``, ``befall(every)`` and so on, until one is None: the call or program ended before it.

    Raises: AssertionError: there was none, so that nothing was checked. BadArgument: ``every`` is below 1.
    """
    if every < 1:
        raise BadArgument(f"faults: every must be at least 1, got {every!r}.", hint="1 is each fault, n each n-th.")
    for number in count(0, every):
        fault = befall(number)
        if fault is None:
            assert number, "a fault must be possible, got a call that passes no place of one in its own thread."
            return
        yield fault


def every_fault(
    f: Callable[[], object],
    injected: Callable[[Injection], AbstractContextManager[object]],
    *,
    every: int = 1,
    folders: tuple[str | os.PathLike[str], ...] = (),
) -> Iterator[Fault]:
    """Call ``f()`` with the first fault, with the second one, and so on, until it ends before its fault.

    Args:
        injected: the block in which a fault happens, which sets its ``place`` when it does.
        every: 1 for each of the faults, n for every n-th.
        folders: in which no hidden file may remain.

    Raises: AssertionError: a fault left something changed; or there is none. BadArgument: ``every`` is below 1.
    """
    f()
    computed = Before(values)

    def befall(number: int) -> Fault | None:
        injection, left, before = Injection(number), None, Before(*IN_FORCE, tracers, hidden_files(*folders))
        try:
            with injected(injection):
                f()
        except BaseException as caught:
            left = caught
        if injection.place is None:
            if left is not None:
                raise left
            return None
        fault = Fault(number, injection.place, left)
        before.check(str(fault))
        return fault

    yield from turns(befall, every)
    computed.check("after all faults")
