"""Processes that end in the midst of what they write, as by ``kill -9`` or when the power fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from .failures import changes_file, watches
from .injection import Fault, Injection

_KILLED = -signal.SIGKILL


def kills(program: str, folder: str | os.PathLike[str]) -> Iterator[Fault]:
    """Execute a program in processes, each killed before a later change of a file below a folder, until one ends.

        for fault in kills(program, folder): the files of the folder are whole, or not there

    Changes are those of ``failing_files``; each process begins with what the ones before have left.

    Args:
        program: Python's source.

    Raises: AssertionError: the process failed, other than by its end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "entry")
    ...     [path.exists() for fault in kills(f"open({str(path)!r}, 'w').write('whole')", folder)], path.read_text()
    ([False], 'whole')
    """
    for number in count():
        source = f"from {__name__} import kill_at\nkill_at({number}, {os.fspath(folder)!r})\n{program}"
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
        if done.returncode != _KILLED:
            assert done.returncode == 0, done.stderr
            break
        yield Fault(number, f"killed before change {number} of a file", None)


def kill_at(number: int, folder: str) -> None:
    """Have this process killed before the change of a file below a folder that is the ``number``-th from now on."""
    injection = Injection(number)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if changes_file(event, arguments, Path(os.path.abspath(folder))) and injection.due():
            os.kill(os.getpid(), signal.SIGKILL)

    watches().append(watch)
