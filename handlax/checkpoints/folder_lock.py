"""The place of what is saved, the right to write to it, and what is said where it cannot be written to."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..effects.base.errors import BadArgument, NotSaved


def place_of(where: str, path: Any) -> Path:
    """The absolute path. Raises: BadArgument: it is none, or one that TensorStore does not write to."""
    try:
        text = os.fspath(path)
        fits = b"\0" not in text.encode() and not any([name.endswith("__lock") for name in text.split(os.sep)])
    except (TypeError, AttributeError, UnicodeEncodeError):
        fits = False
    if not fits:
        raise BadArgument(f"{where}: a path must be a text of Unicode without NUL, none of whose names ends in __lock, "
                          f"got {path!r}.")
    return Path(os.path.abspath(text))


_HELD: set[FolderLock] = set()


def _leave_to_parent() -> None:
    """Close the files of held locks in a forked child: while it had them open, a killed parent would not free them."""
    for lock in [*_HELD]:
        lock.close()


os.register_at_fork(after_in_child=_leave_to_parent)


class FolderLock:
    """The right to write to a folder, or to one file in it, which one process has at a time, until it releases it or
    ends. Its forked children do not have it.

    Args:
        file: the name of the file in the folder that is locked, which is made if it is not there.
    """

    def __init__(self, folder: Path, file: str = "lock"):
        self.file = folder / file
        self._number: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether the file that is there now is locked: not one that was removed or renamed since."""
        with suppress(FileNotFoundError):
            return self._number is not None and os.path.samestat(os.fstat(self._number), os.stat(self.file))
        return False

    def acquire(self) -> None:
        """Lock the file, so that no other save writes there; it does not wait for one.

        Raises: NotSaved: another save has locked it.
        """
        _HELD.add(self)
        self._number = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(BlockingIOError):
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.is_held:
                return
        self.release()
        raise NotSaved(
            f"save: one save at a time may write to {self.file.parent}, got another one that goes on.",
            hint="wait for its result(), or save in another folder.",
        )

    def remove(self) -> None:
        """Remove the lock's file, which ``acquire`` makes empty; one with contents is not a lock, and stays."""
        if os.stat(self.file).st_size == 0:
            self.file.unlink()

    def release(self) -> None:
        """Does nothing if none was acquired."""
        if self._number is not None:
            fcntl.flock(self._number, fcntl.LOCK_UN)  # which a program that was just forked may have open, too
        self.close()

    def close(self) -> None:
        """Close the file, which leaves the lock to others that have it open."""
        number, self._number = self._number, None
        _HELD.discard(self)
        if number is not None:
            os.close(number)


@contextmanager
def refusals(place: Path) -> Iterator[None]:
    """A block whose failures to write are NotSaved."""
    try:
        yield
    except NotSaved:
        raise
    except OSError as error:
        raise NotSaved(f"save: files must be written to {place}, got {error.strerror or error}.") from error


def sync_folder(folder: Path) -> None:
    """Wait until the names of the files in a folder are on the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
