"""Where in the user's code something happened.

A *site* is the pair (code object, instruction offset): two pointers, taken without formatting anything.
Lines and names are worked out only when somebody reads them. What handlers have rewritten carries a *spot* in place of
the code object, which says through which of them it came; whoever passes sites on passes it on unseen.
"""

from __future__ import annotations

import linecache
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

_EFFECTS = os.path.dirname(os.path.abspath(__file__))
_PARENT = os.path.dirname(_EFFECTS)
# In a source tree the four folders stand side by side with tests and examples; installed, they are one package.
_ROOTS = tuple(
    root + os.sep
    for root in (
        (_PARENT,)
        if os.path.basename(_PARENT) == "handlax"
        else (_EFFECTS, *(os.path.join(_PARENT, name) for name in ("interpreters", "lowering", "api")))
    )
)
# Machinery between the user's line and ours that is nobody's line: tree maps, partial functions, context managers.
_MACHINERY = ("functools.py", "contextlib.py")


class Spot:
    """A code object as seen through handlers: the labels of those, innermost first; and the calls that led to it."""

    __slots__ = ("code", "under", "calls")

    def __init__(self, code: CodeType | None, under: tuple[str, ...], calls: tuple[str, ...] | None = None):
        self.code = code
        self.under = under
        self.calls = calls  # known of operations with bodies that have effects


class Seen(dict[int, Any]):
    """Spots as some handlers see them, by the identity of a code object or of the spot that it was before."""

    __slots__ = ("under", "_kept")

    def __init__(self, under: tuple[str, ...]):
        self.under = under
        self._kept: list[Any] = []  # what the identities belong to; by value, a code object is hashed whole every time

    def add(self, code: Any) -> Any:
        """The spot of what is seen for the first time; through a spot the handlers see those it came through before."""
        before = code if type(code) is Spot else Spot(code, ())
        spot = self[id(code)] = Spot(before.code, before.under + self.under, before.calls) if self.under else code
        self._kept.append(code)
        return spot


class Site(NamedTuple):
    """A place in a program: a code object, or the spot that it is, and the offset of the instruction in it."""

    spot: CodeType | Spot | None
    offset: int

    @property
    def code(self) -> CodeType | None:
        return self.spot.code if isinstance(self.spot, Spot) else self.spot

    @property
    def under(self) -> tuple[str, ...]:
        """The handlers that it came through on its way into the program, innermost first."""
        return self.spot.under if isinstance(self.spot, Spot) else ()

    @property
    def calls(self) -> tuple[str, ...] | None:
        """The calls that led there, outermost first, where they were kept."""
        return self.spot.calls if isinstance(self.spot, Spot) else None

    @property
    def file(self) -> str:
        return self.code.co_filename if self.code is not None else "<unknown>"

    @property
    def function(self) -> str:
        return self.code.co_name if self.code is not None else "<unknown>"

    @property
    def line(self) -> int:
        if self.code is None:
            return 0
        for index, (_, _, line) in enumerate_lines(self.code):
            if index > self.offset:
                return line or self.code.co_firstlineno
        return self.code.co_firstlineno

    @property
    def full(self) -> str:
        """The line, and what it came through: ``model.py:17, under grad > vmap('batch')``."""
        return f"{self}, under {' > '.join(self.under)}" if self.under else str(self)

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def enumerate_lines(code: CodeType) -> list[tuple[int, tuple[int, int, int | None]]]:
    """The line table of ``code`` as (end offset, entry), in order."""
    return [(entry[1], entry) for entry in code.co_lines()]


NOWHERE = Site(None, 0)

# file name -> is it ours; filled on first sight, one entry per source file of the process
_INTERNAL: dict[str, bool] = {}


def is_internal(file: str) -> bool:
    """Whether ``file`` belongs to handlax itself."""
    known = _INTERNAL.get(file)
    if known is None:
        known = file.startswith(_ROOTS) or file.endswith(_MACHINERY) or file.startswith("<handlax")
        _INTERNAL[file] = known
    return known


class Sites:
    """The places of many equations, 12 bytes each: code objects, and offsets as machine integers."""

    __slots__ = ("codes", "offsets")

    def __init__(self, sites: Iterable[tuple[Any, int]] = ()):
        self.codes: list[Any] = []
        self.offsets = array("i")
        for code, offset in sites:
            self.codes.append(code)
            self.offsets.append(offset)

    def copy(self) -> Sites:
        made = Sites()
        made.codes, made.offsets = list(self.codes), self.offsets[:]
        return made

    def append(self, site: tuple[Any, int]) -> None:
        code, offset = site
        self.codes.append(code)
        self.offsets.append(offset)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.codes[index], self.offsets[index]

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return zip(self.codes, self.offsets)

    def through(self, seen: Seen) -> Iterator[tuple[Any, int]]:
        """The same places as some handlers see them."""
        if not seen.under:
            return iter(self)
        known = seen.get
        return zip([known(id(code)) or seen.add(code) for code in self.codes], self.offsets)

    def __reversed__(self) -> Iterator[tuple[Any, int]]:
        return zip(reversed(self.codes), reversed(self.offsets))


def _walk(depth: int = 1) -> tuple[CodeType, int]:
    frame = sys._getframe(depth)
    internal = _INTERNAL
    while True:
        code = frame.f_code
        known = internal.get(code.co_filename)
        if known is None:
            known = is_internal(code.co_filename)
        back = frame.f_back
        if not known or back is None:
            return code, frame.f_lasti
        frame = back


# module name -> is it ours
_MODULES: dict[str | None, bool] = {}


def _step(depth: int = 1) -> tuple[CodeType | None, int]:
    """By the names of modules: few frame objects are made, which are what a walk costs most."""
    name_at = sys._getframemodulename  # type: ignore[attr-defined,unused-ignore]
    modules = _MODULES
    while True:
        while modules.get(name := name_at(depth)):
            depth += 1
        if name not in modules:
            if name is None:  # beyond the outermost frame, or code without a module
                try:
                    return _walk(depth + 1)
                except ValueError:  # a thread of the runtime has no line of a user's
                    return None, 0
            modules[name] = name.partition(".")[0] == "handlax" or name in ("functools", "contextlib")
            continue
        frame = sys._getframe(depth)
        code = frame.f_code
        file = code.co_filename
        if _INTERNAL.get(file) is False or not is_internal(file):  # functools.wraps gives our wrappers the user's
            return code, frame.f_lasti
        depth += 1


# The innermost frame outside handlax, as (code, offset); ``depth`` frames are skipped unseen.
user_site: Callable[..., tuple[Any, int]] = _step if hasattr(sys, "_getframemodulename") else _walk


def call_path(name: str | None = None) -> tuple[str, ...] | None:
    """The user's calls that lead here, outermost first: each function, and the text of its line.

    It begins where a function was recorded or given its keys; None where a program is interpreted. ``name`` stands for
    the text of the innermost line.
    """
    path: list[str] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            path.append(_call(frame) if path or name is None else f"{code.co_qualname}: {name}")
        elif code.co_name in _STARTS and frame.f_back.f_code.co_name != "run_reified":
            if not path and code.co_name == "interpret":
                return None
            break
        frame = frame.f_back
    return tuple(reversed(path))


def with_calls(code: Any) -> Any:
    """The place of an operation with bodies, by the calls that lead there; as it is where they are not to be seen."""
    before = code if type(code) is Spot else Spot(code, ())
    calls = call_path() if before.calls is None else None
    return code if calls is None else Spot(before.code, before.under, calls)


_STARTS = ("record", "seeded", "interpret")  # functions of ours from which a path of calls begins


# (identity of a code object, offset) -> the object, and how the call there is named: as when it was first seen, though
# its file be edited or its source go
_CALLS: dict[tuple[int, int], tuple[CodeType, str]] = {}


def _call(frame: Any) -> str:
    code, offset = frame.f_code, frame.f_lasti
    found = _CALLS.get((id(code), offset))
    if found is None:
        if len(_CALLS) > 16384:
            _CALLS.clear()
        name = f"{code.co_qualname}: {line_text(code.co_filename, frame.f_lineno) or offset}"
        found = _CALLS[id(code), offset] = (code, name)
    return found[1]


def line_text(file: str, line: int) -> str:
    """A line of source without its indentation; nothing where there is no source."""
    return linecache.getline(file, line).strip()
