"""Targets of fuzzing, functions of bytes, and the law that holds of them for any input.

    check_input(target, data)      AssertionError: not for these bytes
"""

from __future__ import annotations

import re
import signal
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...effects.base.config import configure
from ...effects.base.errors import BadCall, HandlaxError
from ..faults import IN_FORCE, Before

_LINES = re.compile(r"(?s)\S.*\n  at .+?(?:\n  hint: .+)?")
_OWN = Path("/proc/self")  # what Linux says of this process
_REPEATED = 0.1  # seconds after which OverTime is raised again, where a finalizer or a handler has caught it


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
    """An input takes longer than it may.

    It is no ``Exception``, which the function that is fuzzed could catch.

    >>> from time import sleep
    >>> from handlax.testing.fuzzing import Target, check_input
    >>> check_input(Target("sleep", lambda data: sleep(10 * len(data)), seconds=0.1), b"four")
    Traceback (most recent call last):
    handlax.testing.fuzzing.fuzz_targets.OverTime: 0.1 s

    Remedy: bound the work by the length of the input, or give the target more ``seconds``.

    >>> check_input(Target("sleep", lambda data: sleep(0.001 * len(data)), seconds=10.0), b"four")
    'a result'
    """


class TimeLimit:
    """A block that raises ``OverTime`` where it takes longer, again and again until it ends.

    In Python, not within C. An alarm that was set before goes on afterwards.

    Raises: BadCall: it is begun in another thread than the main one, which alone hears signals.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise BadCall(
                f"fuzzing: inputs must be tried in the main thread, got {threading.current_thread().name!r}.",
                hint="a process of its own, as of python -m handlax.testing.fuzzing.")
        self.outer, self.interval = signal.setitimer(signal.ITIMER_REAL, 0)  # or it might end in ``stop``, unheard
        self.begun, self.handler = time.monotonic(), signal.signal(signal.SIGALRM, self.stop)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, _REPEATED)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.handler)
        if self.outer:
            left = self.outer - (time.monotonic() - self.begun)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), self.interval)

    def stop(self, number: int, frame: Any) -> None:
        if frame is None or frame.f_code.co_filename != __file__:  # the block itself, not its beginning or end
            raise OverTime(f"{self.seconds} s")


def outcome(target: Target, data: bytes) -> str:
    """How the function ends: "a result", or the class of the error that it raises.

    Raises: any other error, or ``OverTime``. AssertionError: an error of handlax does not have its lines. BadCall: it
    is called in another thread than the main one.
    """
    allowed: tuple[type[BaseException], ...] = (HandlaxError, *target.refusals)
    with warnings.catch_warnings(), configure(traceback_filtering="off"), TimeLimit(target.seconds):
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

    Raises: AssertionError: a part of the law fails. BadCall: not in the main thread. Any other error: that of the
    function.

    >>> check_input(Target("numbers", lambda data: int(data), refusals=(ValueError,)), b"12 apples")
    'ValueError'
    """
    before = Before(*IN_FORCE)
    with _memory() as peak:
        first = outcome(target, data)
        taken = peak() // 2**20
    before.check("an input")
    assert taken <= target.megabytes, f"an input may take {target.megabytes} MB, got {taken}"
    again = outcome(target, data)
    assert again == first, f"the second time must be as the first, got {again} after {first}"
    return first


@contextmanager
def _memory() -> Iterator[Callable[[], int]]:
    """A block with a function that gives the most bytes that the process has had in it, above those at its start.

    Where the system does not count them anew from the start of a block, they are those that Python allocates.
    """
    try:
        (_OWN / "clear_refs").write_text("5")  # proc(5): the peak is what the process has now
    except OSError:
        started = tracemalloc.is_tracing()
        tracemalloc.start()
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        try:
            yield lambda: tracemalloc.get_traced_memory()[1] - start
        finally:
            if not started:
                tracemalloc.stop()
    else:
        start = _resident_peak()
        yield lambda: _resident_peak() - start


def _resident_peak() -> int:
    """The most bytes in memory that this process has had since its count was set back."""
    peak = re.search(r"VmHWM:\s*(\d+) kB", (_OWN / "status").read_text())
    return 1024 * int(peak[1]) if peak else 0
