"""Targets of fuzzing, functions of bytes, and the law that holds of them for any input.

    check_input(target, data)      AssertionError: not for these bytes
"""

from __future__ import annotations

import re
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...effects.base.config import configure
from ...effects.base.errors import HandlaxError
from ..faults import IN_FORCE, Before

_LINES = re.compile(r"(?s)\S.*\n  at .+?(?:\n  hint: .+)?")
_MEGABYTE = 2**20 if sys.platform == "darwin" else 2**10  # in what getrusage counts, bytes or kilobytes


class Target(NamedTuple):
    """A function of bytes that is to be fuzzed.

    ``run``: the function; it may raise errors of handlax, and ``refusals``. ``seeds`` gives inputs from which others
    are made. ``words`` mean something to the function. ``seconds`` and ``megabytes`` bound what one input may take.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]] = lambda: ()
    words: tuple[bytes, ...] = ()
    refusals: tuple[type[BaseException], ...] = ()
    seconds: float = 10.0
    megabytes: int = 1024


class OverTime(BaseException):
    """An input takes longer than it may. No ``Exception``, which what is tested could catch."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A block that raises ``OverTime`` where it takes longer; in the main thread, and in Python, not within C."""

    def stop(number: int, frame: Any) -> None:
        raise OverTime(f"{seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(target: Target, data: bytes) -> str:
    """How the function ends: "a result", or the class of the error that it raises.

    Raises: any other error, or ``OverTime``. AssertionError: an error of handlax does not have its lines.
    """
    allowed: tuple[type[BaseException], ...] = (HandlaxError, *target.refusals)
    with warnings.catch_warnings(), configure(traceback_filtering="off"), at_most(target.seconds):
        warnings.simplefilter("ignore")
        try:
            target.run(data)
        except allowed as error:
            end, text = type(error).__name__, str(error) if isinstance(error, HandlaxError) else None
        else:
            end, text = "a result", None
    assert text is None or _LINES.fullmatch(text), f"an error must have its lines, got {text}"
    return end


def check_input(target: Target, data: bytes) -> str:
    """The law of fuzzing: any input has a result or is refused, the second time as the first, and leaves nothing.

        outcome(target, data) == outcome(target, data)    a result, or an error of handlax with its lines

    within ``target.seconds`` and ``target.megabytes``; handlers, settings, caches and threads are as they were before.

    Returns: the outcome: "a result", or the class of the error.

    Raises: AssertionError: a part of the law fails. Any other error: that of the function.

    >>> check_input(Target("numbers", lambda data: int(data), refusals=(ValueError,)), b"12 apples")
    'ValueError'
    """
    before, memory = Before(*IN_FORCE), _peak()
    first = outcome(target, data)
    before.check("an input")
    taken = (_peak() - memory) // _MEGABYTE
    assert taken <= target.megabytes, f"an input may take {target.megabytes} MB, got {taken}"
    again = outcome(target, data)
    assert again == first, f"the second time must be as the first, got {again} after {first}"
    return first


def _peak() -> int:
    """The most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
