"""Processes that end in the midst of what they write, as by ``kill -9`` or when the power fails."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

from .failures import changed_file, watches
from .injection import Fault, Injection
from .new_processes import PIPES, ending, every_process, tell


def kills(program: str, folder: str | os.PathLike[str], *, patience: float = 300.0) -> Iterator[Fault]:
    """Execute a program in processes, each killed before a later change of a file below a folder, until one ends; then
    in processes killed in the midst of what they write, when a file has more bytes each time, until one ends.

        for fault in kills(program, folder): the files of the folder are whole, or not there

    Changes are those of ``failing_files``. A file of any folder may have 0, 1, 16, 256, ... bytes, and the process is
    killed where it writes beyond. Each process begins with what the ones before have left.

    Args:
        program: Python's source.
        patience: the seconds in which a process must end.

    Raises: AssertionError: the process failed, other than by its end, or does not end; or it changes no file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "entry")
    ...     write = f"open({str(path)!r}, 'w').write('whole')"
    ...     [path.read_text() if path.exists() else None for fault in kills(write, folder)], path.read_text()
    ([None, '', 'w'], 'whole')
    """
    source_of = lambda number: f"from {__name__} import kill_at\nkill_at({number}, {os.fspath(folder)!r})\n{program}"
    changes = 0
    for fault in every_process(source_of, lambda end: end.status == -signal.SIGKILL, 1, patience):
        changes += 1
        yield fault
    for number, size in zip(count(changes), chain([0], (16**power for power in count()))):
        source = f"from {__name__} import kill_beyond\nkill_beyond({size})\n{program}"
        end = ending(subprocess.Popen([sys.executable, "-B", "-c", source], **PIPES), patience)
        if end.status == 0:
            break
        place = f"killed where a file has {size} bytes"
        assert end.status == -signal.SIGXFSZ, f"fault {number}, {place}: got the status {end.status}.\n{end.errors}"
        yield Fault(number, place, None)


def kill_at(number: int, folder: str) -> None:
    """Have this process killed before the change of a file below a folder that is the ``number``-th from now on."""
    injection = Injection(number)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        path = changed_file(event, arguments, Path(os.path.abspath(folder)))
        if path is not None and injection.due():
            tell(f"killed before {event} of {path.name}")
            os.kill(os.getpid(), signal.SIGKILL)

    watches().append(watch)


def kill_beyond(size: int) -> None:
    """Have the system kill this process where it writes to any file beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which Python ignores, so that a write fails
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
