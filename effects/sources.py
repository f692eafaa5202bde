"""Where in the user's code something happened.

A *site* is the pair (code object, instruction offset): two pointers, taken without formatting anything.
Lines and names are worked out only when somebody reads them.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import NamedTuple

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


class Site(NamedTuple):
    """A place in a program: ``code`` and the offset of the instruction in it."""

    code: CodeType | None
    offset: int

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

    def __init__(self, sites: Iterable[tuple[CodeType | None, int]] = ()):
        self.codes: list[CodeType | None] = []
        self.offsets = array("i")
        for code, offset in sites:
            self.codes.append(code)
            self.offsets.append(offset)

    def copy(self) -> Sites:
        made = Sites()
        made.codes, made.offsets = list(self.codes), self.offsets[:]
        return made

    def append(self, site: tuple[CodeType | None, int]) -> None:
        code, offset = site
        self.codes.append(code)
        self.offsets.append(offset)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: int) -> tuple[CodeType | None, int]:
        return self.codes[index], self.offsets[index]

    def __iter__(self) -> Iterator[tuple[CodeType | None, int]]:
        return zip(self.codes, self.offsets)

    def __reversed__(self) -> Iterator[tuple[CodeType | None, int]]:
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


def _step(depth: int = 1) -> tuple[CodeType, int]:
    """By the names of modules: few frame objects are made, which are what a walk costs most."""
    name_at = sys._getframemodulename  # type: ignore[attr-defined,unused-ignore]
    modules = _MODULES
    while True:
        name = name_at(depth)
        known = modules.get(name)
        if known is None:
            if name is None:  # beyond the outermost frame, or code without a module
                return _walk(depth + 1)
            known = modules[name] = name.partition(".")[0] == "handlax" or name in ("functools", "contextlib")
        if not known:
            frame = sys._getframe(depth)
            code = frame.f_code
            if not is_internal(code.co_filename):  # functools.wraps gives our wrappers the user's module
                return code, frame.f_lasti
        depth += 1


# The innermost frame outside handlax, as (code, offset); ``depth`` frames are skipped unseen.
user_site: Callable[..., tuple[CodeType, int]] = _step if hasattr(sys, "_getframemodulename") else _walk
