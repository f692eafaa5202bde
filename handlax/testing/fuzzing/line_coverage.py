"""The lines of the package that execution reaches for the first time.

Python 3.12 tells of a line once and executes it at full speed from then on (``sys.monitoring``, PEP 669); 3.11 traces
the functions that have lines left.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ...effects.base.source_locations import is_internal

_TESTING = str(Path(__file__).parents[1])


def is_covered(file: str) -> bool:
    """Whether a file is one of the package, and not of what tests it."""
    return is_internal(file) and not file.startswith(_TESTING)


class LineCoverage:
    """Counts the lines of the package, without those of what tests it, that a ``with`` block executes, each once.

        with LineCoverage() as coverage:
            f()
            coverage.take()      how many there were
            f()
            coverage.take()      0, where f does the same again
    """

    __slots__ = ("left", "new", "before")
    tool = 4  # a number that PEP 669 leaves to whoever comes

    def __init__(self) -> None:
        self.left: dict[CodeType, set[int]] = {}
        self.new = 0

    def take(self) -> int:
        """The number of lines that were reached since this was last asked."""
        new, self.new = self.new, 0
        return new

    def reached(self, code: CodeType, line: int | None) -> None:
        """Count a line of a function, unless it was counted; ``left`` has the others."""
        if is_covered(code.co_filename):
            lines = self.left.get(code)
            if lines is None:
                lines = self.left[code] = {number for *_, number in code.co_lines() if number is not None}
            if line in lines:
                lines.remove(line)
                self.new += 1

    if sys.version_info >= (3, 12):

        def __enter__(self) -> LineCoverage:
            monitoring = sys.monitoring

            def line(code: CodeType, number: int) -> Any:
                self.reached(code, number)
                return monitoring.DISABLE

            monitoring.use_tool_id(self.tool, __name__)
            monitoring.register_callback(self.tool, monitoring.events.LINE, line)
            monitoring.set_events(self.tool, monitoring.events.LINE)
            monitoring.restart_events()
            return self

        def __exit__(self, *error: object) -> None:
            sys.monitoring.set_events(self.tool, 0)
            sys.monitoring.free_tool_id(self.tool)

    else:

        def __enter__(self) -> LineCoverage:
            def trace(frame: FrameType, event: str, argument: object) -> Any:
                code = frame.f_code
                self.reached(code, frame.f_lineno)
                return trace if self.left.get(code) else None

            self.before = sys.gettrace()
            sys.settrace(trace)
            return self

        def __exit__(self, *error: object) -> None:
            sys.settrace(self.before)
