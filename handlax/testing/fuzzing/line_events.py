"""The lines that Python executes, as events.

This file imports nothing of the package, as ``mutant_worker`` loads it by its path.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from types import CodeType, FrameType
from typing import Any, ClassVar, Self


class LineEvents(ABC):
    """In a ``with`` block, ``reached`` is called for the lines that all threads execute.

    Python 3.12 tells of a line once in a block, and executes it at full speed from then on (``sys.monitoring``, PEP
    669); 3.11 traces the functions of which ``reached`` wants more lines, and threads that are started in the block.
    ``tool``: a number of PEP 669, for each class its own, so that a block of one may stand in a block of another.
    """

    tool: ClassVar[int]
    before: tuple[Any, Any]

    @abstractmethod
    def reached(self, code: CodeType, line: int) -> bool:
        """Take note of a line of a function; whether others of the function are wanted."""

    if sys.version_info >= (3, 12):

        def __enter__(self) -> Self:
            monitoring = sys.monitoring

            def line(code: CodeType, number: int) -> Any:
                self.reached(code, number)
                return monitoring.DISABLE

            monitoring.use_tool_id(self.tool, type(self).__name__)
            monitoring.register_callback(self.tool, monitoring.events.LINE, line)
            monitoring.set_events(self.tool, monitoring.events.LINE)
            monitoring.restart_events()
            return self

        def __exit__(self, *error: object) -> None:
            sys.monitoring.set_events(self.tool, 0)
            sys.monitoring.free_tool_id(self.tool)

    else:

        def __enter__(self) -> Self:
            def trace(frame: FrameType, event: str, argument: object) -> Any:
                return trace if self.reached(frame.f_code, frame.f_lineno) else None

            self.before = threading.gettrace(), sys.gettrace()
            threading.settrace(trace)
            sys.settrace(trace)
            return self

        def __exit__(self, *error: object) -> None:
            for module, trace in zip((threading, sys), self.before):
                module.settrace(trace)
