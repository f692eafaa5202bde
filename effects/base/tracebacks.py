"""Tracebacks of exceptions that leave the package: the frames of the user's code alone.

    @boundary
    def scan(f, ...): ...      # what f raises has frames of the caller, and of f

Where an exception leaves the outermost boundary, the setting ``traceback_filtering`` says what becomes of it. Until
then nothing is done: a call that succeeds pays for its frame alone, and one that is written out with
``except Exception as error: leave(error); raise`` for nothing. Causes and contexts are filtered as the exception is.

A boundary that is not written out is ``unwound``, too: an exception, an interrupt among them, leaves it with the
handlers and settings in force that were so at the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextvars import copy_context
from types import TracebackType
from typing import Any, TypeVar

from .config import current
from .deep_calls import caller_of
from .source_locations import is_internal
from .wrapping import put_back, wraps

F = TypeVar("F", bound=Callable[..., Any])

NOTE = (
    "For simplicity, this traceback leaves out the frames of handlax; "
    "HANDLAX_TRACEBACK_FILTERING=off, or hx.config.update('jax_traceback_filtering', 'off'), shows them."
)


class UnfilteredStackTrace(Exception):
    """The cause of an exception under ``remove_frames``: its traceback is that of the exception, with all frames."""


_BOUNDARIES: set[int] = set()  # by the identity of the code objects, which is cheaper to hash than their values


def boundary(function: F) -> F:
    """Decorator of public functions: an exception that leaves the outermost one has its traceback filtered.

    How is said by the setting ``traceback_filtering``. The function keeps its name, signature and docstring.
    """
    return wraps(function)(unnamed_boundary(function))


def unnamed_boundary(function: F) -> F:
    """``boundary`` for a function that ``wraps`` gives the name of another."""

    def call(*args: Any, **kwargs: Any) -> Any:
        before = copy_context()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            put_back(before)
            if isinstance(error, Exception):
                leave(error)
            raise

    return call  # type: ignore[return-value]


def written_boundary(function: F) -> F:
    """Decorator: ``function`` calls ``leave`` with each exception that leaves it, itself."""
    _BOUNDARIES.add(id(function.__code__))
    return function


written_boundary(unnamed_boundary(len))  # the code of all of them


def leave(error: Exception) -> None:
    """Filter the traceback of an exception that is about to leave the outermost boundary, the caller."""
    frame: Any = caller_of(sys._getframe(1))
    while frame is not None:
        if id(frame.f_code) in _BOUNDARIES:
            return
        frame = caller_of(frame)
    mode = current().traceback_filtering
    if mode == "auto":
        mode = "tracebackhide" if _in_ipython() else "quiet_remove_frames"
    if mode == "off":
        return
    whole = error.__traceback__
    for link in _chain(error):
        if mode == "tracebackhide":
            _hide_frames(link.__traceback__)
        else:
            link.__traceback__ = _of_user(link.__traceback__)
    if mode == "quiet_remove_frames" and NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)
    elif mode == "remove_frames":
        _attach(error, whole)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, its causes and its contexts, each once."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        link = pending.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            pending += (link.__cause__, link.__context__)
            yield link


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _of_user(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the entries for the package's frames."""
    kept: TracebackType | None = None
    for entry in reversed(list(_entries(traceback))):
        if not is_internal(entry.tb_frame.f_code.co_filename):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _hide_frames(traceback: TracebackType | None) -> None:
    """Set in the package's frames the local variable that makes IPython and pytest hide a frame."""
    for entry in _entries(traceback):
        if is_internal(entry.tb_frame.f_code.co_filename):
            variables = entry.tb_frame.f_locals
            if type(variables) is dict:  # before Python 3.13 a copy, which would keep the exception alive
                for name in [name for name, value in variables.items() if isinstance(value, BaseException)]:
                    del variables[name]
            variables["__tracebackhide__"] = True


def _attach(error: Exception, whole: TracebackType | None) -> None:
    """Make an exception with the full traceback the cause of ``error``, before the cause that it has."""
    unfiltered = UnfilteredStackTrace(f"{type(error).__name__}, with the frames of handlax")
    unfiltered.__cause__, unfiltered.__context__ = error.__cause__, error.__context__
    unfiltered.__suppress_context__ = error.__suppress_context__
    error.__cause__ = unfiltered.with_traceback(whole)


def _in_ipython() -> bool:
    return "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None
