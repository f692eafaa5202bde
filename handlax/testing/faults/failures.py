"""What fails around the package: the compiler, and the files of a folder."""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...effects.base.caches import clear_caches, per_process
from ...effects.base.lazy_module import late_module
from .injection import Fault, Injection, every_fault


def failing_compilations(f: Callable[[], object]) -> Iterator[Fault]:
    """Call ``f()`` with empty caches again and again; XLA fails to compile the first program, the second, and so on.

        for fault in failing_compilations(f): f() as before, also with all that was compiled

    Raises: AssertionError: a failure left something changed; or nothing is compiled.

    >>> import handlax as hx
    >>> f = hx.jit(lambda x: x * 17)
    >>> [type(fault.left).__name__ for fault in failing_compilations(lambda: f(3.0))]
    ['CompileError']
    """

    def from_nothing() -> None:
        clear_caches()
        f()

    return every_fault(from_nothing, _refused)


@contextmanager
def _refused(injection: Injection) -> Iterator[None]:
    """A block in which XLA refuses the program at which the fault is due."""
    executables = late_module("handlax.lowering.xla.executables")
    original = executables.backend_compile_and_load

    def compile(backend: Any, module: Any, *arguments: Any) -> Any:
        if injection.due():
            injection.place = "in the compiler"
            raise executables._jax.JaxRuntimeError("INTERNAL: a fault of the compiler")
        return original(backend, module, *arguments)

    executables.backend_compile_and_load = compile
    try:
        yield
    finally:
        executables.backend_compile_and_load = original


def failing_files(
    f: Callable[[], object], folder: str | os.PathLike[str], error: int = errno.ENOSPC
) -> Iterator[Fault]:
    """Call ``f()`` again and again; the first change of a file below a folder fails, the second one, and so on.

        for fault in failing_files(f, folder): the files of the folder are whole, or not there

    Changes are what makes, opens for writing, links, renames and removes files and folders, from or to elsewhere too,
    and what sets their modes, owners and times. A path relative to an open folder, by ``dir_fd``, is not seen.

    Args:
        error: the number of the failure: ``errno.ENOSPC``, the disk is full, ``errno.EROFS``, it is read-only, or
            another one of ``errno``.

    Raises: AssertionError: a failure left something changed, or a hidden file in the folder; or nothing changes a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write = lambda: Path(folder, "entry").write_text("whole")
    ...     [fault.left.strerror for fault in failing_files(write, folder)]
    ['No space left on device']
    """
    place = Path(os.path.abspath(folder))
    return every_fault(f, lambda injection: _failing(injection, place, error), folders=(folder,))


@contextmanager
def _failing(injection: Injection, folder: Path, error: int) -> Iterator[None]:
    """A block in which the change of a file fails at which the fault is due."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        path = changed_file(event, arguments, folder)
        if path is not None and injection.due():
            injection.place = f"{event} of {path.name}"
            raise OSError(error, os.strerror(error), str(path))

    watches().append(watch)
    try:
        yield
    finally:
        watches().remove(watch)


def changed_file(event: str, arguments: tuple[Any, ...], folder: Path) -> Path | None:
    """The file below a folder that is changed as an audit event of Python tells, None if there is none."""
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITES):
        return None
    for path in [arguments[number] for number in _CHANGES.get(event, ())]:
        if isinstance(path, str | bytes | os.PathLike):
            absolute = Path(os.path.abspath(os.fsdecode(path)))
            if folder in absolute.parents:
                return absolute
    return None


_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES: Mapping[str, tuple[int, ...]] = MappingProxyType({
    "os.rename": (0, 1), "os.link": (1,), "os.symlink": (1,),
    **dict.fromkeys(
        ("open", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime"), (0,)
    ),
})
"""The audit events that are changes of files, and which of their arguments are the changed ones."""


@per_process
def watches() -> list[Callable[[str, tuple[Any, ...]], None]]:
    """The functions that are told of the audit events of the process; a hook cannot be removed, they can."""
    told: list[Callable[[str, tuple[Any, ...]], None]] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        for watch in told:
            watch(event, arguments)

    sys.addaudithook(hook)
    return told


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """A block in which no file of the process can have more than so many bytes: what is written beyond fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, full_disk(4):
    ...     os.write(os.open(f"{folder}/file", os.O_WRONLY | os.O_CREAT), b"whole")
    4
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
