"""The lines of the package that execution reaches for the first time."""

from __future__ import annotations

from pathlib import Path
from types import CodeType

from ...effects.base.source_locations import is_internal
from .line_events import LineEvents

_TESTING = str(Path(__file__).parents[1])


def is_covered(file: str) -> bool:
    """Whether a file is one of the package, and not of what tests it."""
    return is_internal(file) and not file.startswith(_TESTING)


class LineCoverage(LineEvents):
    """Counts the lines of the package, without those of what tests it, that a ``with`` block executes, each once.

        with LineCoverage() as coverage:
            f()
            coverage.take()      how many there were
            f()
            coverage.take()      0, where f does the same again
    """

    tool = 4

    def __init__(self) -> None:
        self.left: dict[CodeType, set[int]] = {}
        self.new = 0

    def take(self) -> int:
        """The number of lines that were reached since this was last asked."""
        new, self.new = self.new, 0
        return new

    def reached(self, code: CodeType, line: int) -> bool:
        """Count a line of a function, unless it was counted; whether there are others."""
        if not is_covered(code.co_filename):
            return False
        lines = self.left.get(code)
        if lines is None:
            lines = self.left[code] = {number for *_, number in code.co_lines() if number is not None}
        if line in lines:
            lines.remove(line)
            self.new += 1
        return bool(lines)
