"""Exceptions at every moment of a call: those of signals, such as Control-C, and of memory that is used up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, MappingProxyType
from typing import Any

from ...effects.base.errors import need_one_of
from ...effects.base.wrapping import is_scoped
from .injection import Fault, Injection, every_fault, place_of

Moment = Callable[[FrameType, str, Any], bool]
"""Whether an event, as ``sys.setprofile`` and ``sys.settrace`` tell of it, is a moment."""


def _ours(frame: FrameType | None) -> bool:
    """Whether a frame is one of the package, and not of what tests it."""
    name = "" if frame is None else f"{frame.f_globals.get('__name__', '')}."
    return name.startswith("handlax.") and not name.startswith("handlax.testing.")


def at_blocks(frame: FrameType, event: str, argument: Any) -> bool:
    """Where a block of a ``with`` begins or ends, or a scoped variable has been set."""
    if event == "call":
        return frame.f_code.co_name in ("__enter__", "__exit__") and (_ours(frame) or _ours(frame.f_back))
    return event == "c_return" and is_scoped(getattr(argument, "__self__", None))


def at_calls(frame: FrameType, event: str, argument: Any) -> bool:
    """Where any function of the package is entered, or a scoped variable has been set."""
    return (event == "call" and _ours(frame)) or at_blocks(frame, event, argument)


def at_lines(frame: FrameType, event: str, argument: Any) -> bool:
    """Before each line of the package."""
    return event == "line" and _ours(frame)


def at_instructions(frame: FrameType, event: str, argument: Any) -> bool:
    """Before each instruction of the package's functions, between which Python handles signals."""
    frame.f_trace_opcodes = _ours(frame)
    return event == "opcode"


MOMENTS: Mapping[str, Moment] = MappingProxyType({
    "blocks": at_blocks, "calls": at_calls, "lines": at_lines, "instructions": at_instructions,
})
"""The moments at which a call can be interrupted, by name, each more than those before."""


def interrupts(
    f: Callable[[], object],
    *,
    at: str = "blocks",
    every: int = 1,
    error: type[BaseException] = KeyboardInterrupt,
) -> Iterator[Fault]:
    """Call ``f()`` again and again, with an exception at a later moment each time, until it ends before that.

        for fault in interrupts(f): the library is whole, whatever f() was doing

    Args:
        at: the moments: ``"blocks"``, where a ``with`` begins or ends, ``"calls"``, ``"lines"`` or ``"instructions"``
            of the package.
        every: 1 for each of the moments, n for every n-th.
        error: what is raised: ``KeyboardInterrupt``, as by Control-C, or ``MemoryError``.

    Raises: AssertionError: an exception left something changed: handlers, settings, caches, threads, or the values of
    a program; or there is no moment in the thread of the caller, such as in a function that calls in another one.
    BadArgument: ``at`` is none of these; ``every`` is below 1.

    >>> import handlax as hx
    >>> f = hx.jit(hx.grad(lambda x: x * x))
    >>> {type(fault.left).__name__ for fault in interrupts(lambda: f(3.0), at="calls")}
    {'KeyboardInterrupt'}
    """
    need_one_of("interrupts: at", at, MOMENTS)
    return every_fault(f, lambda injection: _raising(injection, MOMENTS[at], error), every=every)


@contextmanager
def _raising(injection: Injection, moment: Moment, error: type[BaseException]) -> Iterator[None]:
    """A block in which an exception is raised at the moment at which the fault is due."""
    by_profile = moment in (at_blocks, at_calls)
    listen: Callable[[Any], None] = sys.setprofile if by_profile else sys.settrace
    outside: Any = sys.getprofile() if by_profile else sys.gettrace()

    def watch(frame: FrameType, event: str, argument: Any) -> Any:
        if moment(frame, event, argument) and injection.due():
            listen(None)
            injection.place = place_of(frame)
            raise error
        return watch

    listen(watch)
    try:
        yield
    finally:
        listen(outside)
