"""Where in the user's code something happened.

A *site* is the pair (code object, instruction offset): two pointers, taken without formatting anything.
Lines and names are worked out only when somebody reads them.
"""

from __future__ import annotations

import os
import sys
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


def user_site(depth: int = 1) -> tuple[CodeType, int]:
    """The innermost frame outside handlax, as (code, offset); ``depth`` frames are skipped unseen."""
    frame = sys._getframe(depth)
    internal = _INTERNAL
    while True:
        code = frame.f_code
        known = internal.get(code.co_filename)
        if known is None:
            known = is_internal(code.co_filename)
        if not known:
            return code, frame.f_lasti
        back = frame.f_back
        if back is None:
            return code, frame.f_lasti
        frame = back
