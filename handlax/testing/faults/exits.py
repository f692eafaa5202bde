"""Interpreters that end while other threads work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .injection import Fault, Injection, place_of
from .moments import at_calls
from .new_processes import every_process, tell


def exits(program: str, *, daemon: bool = True, every: int = 100, patience: float = 60.0) -> Iterator[Fault]:
    """Execute a program in a thread of new processes, whose main thread ends at a later moment each time.

        for fault in exits(program): the process ended with status 0, and told of no error

    Args:
        program: Python's source.
        daemon: whether Python does not wait for the thread, which stops then wherever it is.
        every: n for every n-th call of a function of the package.
        patience: the seconds in which a process must end.

    Raises: AssertionError: a process does not end, is ended by a signal, or tells of another error; or the program
    fails by itself. BadArgument: ``every`` is below 1.

    >>> len([*exits("import handlax as hx; hx.jit(lambda x: x + 1)(1.0)", every=10**6)])
    1
    """
    source_of = lambda number: f"from {__name__} import end_at\nend_at({number}, {daemon}, {program!r})"
    return every_process(source_of, lambda end: end.status == 0 and not end.errors, every, patience)


def end_at(number: int, daemon: bool, program: str) -> None:
    """Execute a program in another thread; return at its ``number``-th call of the package, or at its end."""
    injection, reached, errors = Injection(number), threading.Event(), []

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if at_calls(frame, event, argument) and injection.due():
            sys.setprofile(None)
            tell(f"the interpreter ends while at {place_of(frame)}")
            reached.set()

    def work() -> None:
        sys.setprofile(watch)
        try:
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        except BaseException as error:
            if reached.is_set():
                raise
            errors.append(error)
        finally:
            sys.setprofile(None)
            reached.set()

    threading.Thread(target=work, daemon=daemon, name="exits").start()
    reached.wait()
    if errors:
        raise errors[0]
