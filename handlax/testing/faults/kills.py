"""Processes that end in the midst of what they write, as by ``kill -9`` or when the power fails."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .failures import changes_file, watches
from .injection import Fault, Injection
from .new_processes import every_process, tell


def kills(program: str, folder: str | os.PathLike[str], *, patience: float = 300.0) -> Iterator[Fault]:
    """Execute a program in processes, each killed before a later change of a file below a folder, until one ends.

        for fault in kills(program, folder): the files of the folder are whole, or not there

    Changes are those of ``failing_files``; each process begins with what the ones before have left.

    Args:
        program: Python's source.
        patience: the seconds in which a process must end.

    Raises: AssertionError: the process failed, other than by its end, or does not end; or it changes no file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "entry")
    ...     [path.exists() for fault in kills(f"open({str(path)!r}, 'w').write('whole')", folder)], path.read_text()
    ([False], 'whole')
    """
    source_of = lambda number: f"from {__name__} import kill_at\nkill_at({number}, {os.fspath(folder)!r})\n{program}"
    return every_process(source_of, lambda end: end.status == -signal.SIGKILL, 1, patience)


def kill_at(number: int, folder: str) -> None:
    """Have this process killed before the change of a file below a folder that is the ``number``-th from now on."""
    injection = Injection(number)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if changes_file(event, arguments, Path(os.path.abspath(folder))) and injection.due():
            tell(f"killed before {event} of {Path(os.fsdecode(arguments[0])).name}")
            os.kill(os.getpid(), signal.SIGKILL)

    watches().append(watch)
