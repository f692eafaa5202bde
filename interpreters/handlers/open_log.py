"""The log of a handler with ``moves=append`` inside a body that is traced: clauses extend it, and cannot read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from .log_axes import LogAxes


class UnknownLog(CannotCross, TypeError):
    """The error of a clause that reads or drops entries of a log of which only those of the current body are known."""


class _Earlier:
    """The unknown entries before a body: the item that stands for them when an open log is unpacked."""

    __slots__ = ("label",)

    def __init__(self, label: str):
        self.label = label

    def _read(self, *_: Any) -> Any:
        raise _unknown(self.label)

    __getattr__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _read
    __add__ = __radd__ = __mul__ = __rmul__ = __float__ = __int__ = _read
    __hash__ = None  # type: ignore[assignment]


class OpenLog:
    """A log of which only the entries that were appended in this body are known, each with its axes.

        (*log, entry)        log + (entry,)

    It can be unpacked once, at the head of its extension. Everything else raises CannotCross.
    """

    __slots__ = ("entries", "axes", "label", "unpacked")

    def __init__(self, label: str, entries: Sequence[Any] = (), axes: Sequence[LogAxes] = ()):
        self.label = label
        self.entries = tuple(entries)
        self.axes = (*axes, *[()] * (len(self.entries) - len(axes)))  # what this body appends has none yet
        self.unpacked = False

    def __iter__(self) -> Iterator[Any]:
        if self.unpacked:
            raise _unknown(self.label)
        self.unpacked = True
        return iter((_Earlier(self.label), *self.entries))

    def __add__(self, entries: Any) -> OpenLog:
        if self.unpacked:
            raise _unknown(self.label)
        return OpenLog(self.label, (*self.entries, *entries), self.axes)

    def extended(self, log: Any) -> OpenLog:
        """The open log after a clause returned ``log``, which must extend this one."""
        if isinstance(log, OpenLog):
            known = None if log.unpacked else log.entries
        else:
            known = tuple(log[1:]) if isinstance(log, (tuple, list)) and log and type(log[0]) is _Earlier else None
        before = self.entries
        if known is None or len(known) < len(before) or any([x is not y for x, y in zip(before, known)]):
            raise _unknown(self.label)
        return OpenLog(self.label, known, self.axes)

    def _read(self, *_: Any) -> Any:
        raise _unknown(self.label)

    __len__ = __getitem__ = __contains__ = __reversed__ = __eq__ = __lt__ = __gt__ = __bool__ = _read
    __handlax_array__ = _read  # an answer that holds the log
    __hash__ = None  # type: ignore[assignment]


def _unknown(label: str) -> UnknownLog:
    return UnknownLog(
        f"append: a clause of {label} may only append to its log in a body that is traced: the entries before are not "
        "known there.",
        hint="return (*log, entry); what a clause reads is kept by a handler of its own, with moves=hx.carry.",
    )


def known_entries(log: Any) -> tuple[Any, ...]:
    """The entries that were appended in the body of an open log; all entries of another log."""
    return log.entries if type(log) is OpenLog else tuple(log)


def with_entries(log: Any, entries: Sequence[Any], axes: Sequence[LogAxes] = ()) -> Any:
    """The log extended by ``entries``, whose leading axes are ``axes``."""
    if type(log) is not OpenLog:
        return (*log, *entries)
    return OpenLog(log.label, (*log.entries, *entries), (*log.axes, *axes))
