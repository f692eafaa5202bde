"""Compiled programs on disk, shared between processes: setting ``compilation_cache_dir``.

The key of an entry is all that it depends on: the program's text, the compile options, the devices, the machine and the
version of jaxlib. It is the file's name and stands in the file too, which may have been renamed. An entry is written to
a temporary file that is then renamed: readers see a complete entry or none, and concurrent writers do not conflict. An
entry that is truncated, corrupt, of another program or machine is never loaded; its program is compiled again.

What is loaded is executed: the folder must belong to the user, and no one else may write to it.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from returns.result import Failure, Result, Success

from ...effects.base.caches import cached
from ...effects.base.errors import CompileError
from ...effects.base.monitoring import HIT, MISSED, record_event
from ...effects.base.source_locations import warn_user
from .lazy import runtime

COUNTS: Counter[str] = Counter()
"""Counts of look-ups and entries: "hit", "miss", "written", "rejected"."""

_MAGIC = b"handlax program 2\n"
_DIGEST = hashlib.sha256().digest_size
_WRITING, _FORGOTTEN = ".writing-", 3600  # how temporary files begin, and after how many seconds nobody writes one
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def compile(
    folder: str | os.PathLike[str],
    text: str,
    devices: Sequence[Any],
    results: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    places: Any = None,
) -> Any:
    """``runtime.compile`` of a program without host functions, cached in ``folder``."""
    key = entry_key(text, runtime.cache_key_facts(devices, options))
    safe = made_safe(pathlib.Path(folder))
    if isinstance(safe, Failure):
        warn_user(f"compilation cache: {folder} is not used, {safe.failure()}; programs are compiled")
        return runtime.compile(text, devices=devices, results=results, options=options, places=places)
    path = safe.unwrap() / (key.hex() + ".xla")
    found = load(path, key)
    if isinstance(found, Success):
        try:
            blob = found.unwrap()
            loaded = runtime.deserialize(
                blob, devices=devices, results=results, options=options, places=places, text=text
            )
        except CompileError as error:
            _reject(path, str(error))
        else:
            COUNTS["hit"] += 1
            record_event(HIT)
            return loaded
    elif found.failure() is None:
        COUNTS["miss"] += 1
        record_event(MISSED)
    else:
        _reject(path, found.failure())
    compiled = runtime.compile(text, devices=devices, results=results, options=options, places=places)
    store(path, key, compiled.serialize())
    return compiled


def made_safe(folder: pathlib.Path) -> Result[pathlib.Path, str]:
    """The folder, made with mode 0700 if it is missing; a failure with its reason if others may write programs to it.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.stat()
    except OSError as error:
        return Failure(f"it cannot be made: {error}")
    if facts.st_uid != os.geteuid():
        return Failure(f"it belongs to the user {facts.st_uid}, whose programs would be executed")
    if facts.st_mode & _OTHERS_MAY_WRITE:
        mode = stat.S_IMODE(facts.st_mode)
        return Failure(f"others may write to it (mode {mode:o}), whose programs would be executed")
    return Success(folder)


def entry_key(text: str, facts: bytes) -> bytes:
    """What names a program in the folder and in its file: equal texts under equal facts have equal keys."""
    return hashlib.sha256(text.encode() + b"\0" + facts).digest()


def load(path: pathlib.Path, key: bytes) -> Result[bytes, str | None]:
    """The program that ``store`` wrote under this key; else a failure with its reason, None: no such file."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a FIFO would not be opened otherwise
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return Failure("it is not a file")
            content = file.read()
    except FileNotFoundError:
        return Failure(None)
    except OSError as error:
        return Failure(f"it cannot be read: {error}")
    if not content.startswith(_MAGIC):
        return Failure("it is not a file of this cache")
    head = len(_MAGIC)
    body = head + 2 * _DIGEST
    if len(content) < body:
        return Failure("it is truncated")
    if content[head : head + _DIGEST] != key:
        return Failure("it has another program, or one of another machine or version")
    blob = content[body:]
    if content[head + _DIGEST : body] != hashlib.sha256(blob).digest():
        return Failure("its checksum does not match its content")
    return Success(blob)


def store(path: pathlib.Path, key: bytes, blob: bytes) -> Result[pathlib.Path, str]:
    """Write a complete entry or none. A folder that cannot be written to is a warning, not an error."""
    content = _MAGIC + key + hashlib.sha256(blob).digest() + blob
    _remove_forgotten(path.parent)
    try:
        handle, temporary = tempfile.mkstemp(prefix=_WRITING, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            pathlib.Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        warn_user(f"compilation cache: {path.parent} cannot be written to: {error}")
        return Failure(str(error))
    COUNTS["written"] += 1
    return Success(path)


@cached("folders of compiled programs", 64)
def _remove_forgotten(folder: pathlib.Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote, an hour ago or earlier."""
    for file in folder.glob(f"{_WRITING}*"):
        with suppress(OSError):  # another process removes it, too
            if time.time() - file.stat().st_mtime > _FORGOTTEN:
                file.unlink()


def _reject(path: pathlib.Path, why: str | None) -> None:
    """Count and warn of an entry that exists but is not loaded."""
    COUNTS["rejected"] += 1
    warn_user(f"compilation cache: the entry {path.name} is not used, {why}; the program is compiled")
