"""Compiled programs on disk, shared between processes: setting ``compilation_cache_dir``.

The key of an entry is all that it depends on: the program's text, the compile options, the devices, the machine and the
version of jaxlib. An entry is written to a temporary file that is then renamed: readers see a complete entry or none,
and concurrent writers do not conflict. An entry that is truncated, corrupt or of another machine is never loaded; its
program is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from returns.result import Failure, Result, Success

from ...effects.base.errors import CompileError
from ...effects.base.monitoring import HIT, MISSED, record_event
from .lazy import runtime

COUNTS: Counter[str] = Counter()
"""Counts of look-ups and entries: "hit", "miss", "written", "rejected"."""

_MAGIC = b"handlax program 1\n"
_DIGEST = hashlib.sha256().digest_size


def compile(
    folder: str | os.PathLike[str],
    text: str,
    devices: Sequence[Any],
    results: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    places: Any = None,
) -> Any:
    """``runtime.compile`` of a program without host functions, cached in ``folder``."""
    facts = runtime.cache_key_facts(devices, options)
    path = pathlib.Path(folder) / entry_name(text, facts)
    found = load(path, facts)
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
    store(path, facts, compiled.serialize())
    return compiled


def entry_name(text: str, facts: bytes) -> str:
    """The file name of a program: equal texts under equal facts have equal names."""
    return hashlib.sha256(text.encode() + b"\0" + facts).hexdigest() + ".xla"


def load(path: pathlib.Path, facts: bytes) -> Result[bytes, str | None]:
    """The program that ``store`` wrote under equal facts; else a failure with its reason, None: no such file."""
    try:
        content = path.read_bytes()
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
    if content[head : head + _DIGEST] != hashlib.sha256(facts).digest():
        return Failure("it was written on another machine or by another version")
    blob = content[body:]
    if content[head + _DIGEST : body] != hashlib.sha256(blob).digest():
        return Failure("its checksum does not match its content")
    return Success(blob)


def store(path: pathlib.Path, facts: bytes, blob: bytes) -> Result[pathlib.Path, str]:
    """Write a complete entry or none. A folder that cannot be written to is a warning, not an error."""
    content = _MAGIC + hashlib.sha256(facts).digest() + hashlib.sha256(blob).digest() + blob
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            pathlib.Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        warnings.warn(f"compilation cache: {path.parent} cannot be written to: {error}", stacklevel=2)
        return Failure(str(error))
    COUNTS["written"] += 1
    return Success(path)


def _reject(path: pathlib.Path, why: str | None) -> None:
    """Count and warn of an entry that exists but is not loaded."""
    COUNTS["rejected"] += 1
    warnings.warn(f"compilation cache: the entry {path.name} is not used, {why}; the program is compiled", stacklevel=3)
