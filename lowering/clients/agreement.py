"""What the processes of a program say to each other: texts that all get, and the check that all say the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import zip_longest
from typing import TypeVar

from ...effects.base.errors import HandlaxError, NotSaved, ProcessesDiffer
from .processes import connection

T = TypeVar("T")


def check_same(facts: list[tuple[str, str, str]], message: str) -> None:
    """Check that all processes pass equal ``facts``: tuples (path, digest, description), compared without descriptions.

    Raises: ProcessesDiffer, in every process: the facts of some process differ from those of process 0.
    """
    said = said_by_all(digest(repr([fact[:2] for fact in facts]).encode()))
    others = [number for number in said if said[number] != said[0]]
    if others:
        joined = connection()
        number = joined.index if joined is not None and joined.index in others else others[0]
        texts = said_by_all(json.dumps(facts))
        pairs = zip_longest(json.loads(texts[number]), json.loads(texts[0]), fillvalue=("", "", "nothing"))
        here, first = next(pair for pair in pairs if pair[0][:2] != pair[1][:2])
        where = here[0] or first[0]
        raise ProcessesDiffer(
            f"{message}, got {here[2]} in process {number} where the first has {first[2]}"
            f"{f', at {where}' if where else ''}."
        )


def said_by_all(text: str) -> dict[int, str]:
    """The ``text`` of each process, by process index; every process must call this function."""
    joined = connection()
    return {0: text} if joined is None else joined.all_say(text, frozenset(range(joined.count)), "multihost_utils")


def exchanged(text: str, name: str) -> dict[int, str]:
    """``said_by_all`` in a thread beside what the processes do together, by a name that no other call has."""
    joined = connection()
    return {0: text} if joined is None else joined.exchange(text, name)


def together(act: Callable[[], T], name: str = "", failed: type[HandlaxError] = NotSaved) -> T:
    """The result of ``act()``, when it has ended in all processes; with a name, which is used once, in a thread of
    each.

    Raises ``failed``: it failed in another process; its own error, if it failed in this one.
    """
    failure: Exception | None = None
    try:
        result = act()
    except Exception as error:
        failure = error
    text = "" if failure is None else str(getattr(failure, "what", failure)) or type(failure).__name__
    told = exchanged(text, name) if name else said_by_all(text)
    if failure is not None:
        raise failure
    for number, text in told.items():
        if text:
            raise failed(f"{text.rstrip('.')}, in process {number}.")
    return result


def digest(data: bytes) -> str:
    """The SHA-256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
