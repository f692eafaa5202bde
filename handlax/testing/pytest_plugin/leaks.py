"""What a test leaves behind: handlers and settings in force, values of traces, threads, temporary files.

    found = []
    with state_is_kept(found), values_are_freed(found):
        test()
    found                  # what was left, a message for each

Each is a ``with`` block that puts back what it can, so that the next test does not find it. Where an exception leaves
the block, nothing is added: what failed may leave anything.
"""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any
from weakref import ref

from ...effects.base.config import CONFIG, DEFAULTS, PROCESS, Configuration, SettingScope
from ...effects.base.stack import STACK, Run, runs, watched_runs
from ...effects.base.wrapping import changed, put_back
from ...effects.core.escaped_boxes import boxes_of, leak_error

REGISTRIES = ("containers",)  # what stands among the settings and grows, as classes do, by what a program defines
PATIENCE = 1.0  # seconds for threads that are about to end


# handlers, settings, contexts


@contextmanager
def state_is_kept(found: list[str]) -> Iterator[None]:
    """Add to ``found`` the handlers, settings and contexts in force that were not, and those that are no longer."""
    before, process = copy_context(), PROCESS.settings
    try:
        yield
        for variable, value in changed(before):
            tell = _TELLING.get(variable)
            found += [f"the context {variable.name} must be put back."] if tell is None else tell(value)
        found += _settings("hx.config.update", process, PROCESS.settings, "put it back, or use hx.configure.")
    finally:
        put_back(before)
        now = PROCESS.settings
        PROCESS.update(**{name: getattr(process, name) for name in _differences(process, now)})


def _handlers(top: Run) -> list[str]:
    """What is in force now and was not when the stack was ``top``, and the other way round."""
    before, now = list(runs(top)), list(runs())
    left = [f"{run.described} must not be left in force, installed at {run.installed_at}."
            for run in now if run not in before]
    return left + [f"{run.described} must still be in force, as before the test." for run in before if run not in now]


def _scopes(scope: SettingScope) -> list[str]:
    """Messages for the settings in force that differ from those of ``scope``, the scope of ``hx.configure`` before."""
    said = _settings("hx.configure", scope.settings, CONFIG.get().settings, "use it in a with block.")
    return said or ["a block of hx.configure must end with the test, got one that is in force."]


def _settings(where: str, before: Configuration, now: Configuration, hint: str) -> list[str]:
    return [
        f"the setting {name} must be left at {getattr(before, name)!r}, got {getattr(now, name)!r}, "
        f"as by {where}.\n  hint: {hint}" for name in _differences(before, now)
    ]


def _differences(before: Configuration, now: Configuration) -> list[str]:
    """The names of the settings that differ between two records."""
    return [name for name in DEFAULTS if name not in REGISTRIES and getattr(before, name) != getattr(now, name)]


_TELLING: Mapping[Any, Callable[[Any], list[str]]] = {STACK: _handlers, CONFIG: _scopes}


# values of traces


@contextmanager
def values_are_freed(found: list[str]) -> Iterator[None]:
    """Add to ``found`` each value to which something refers although its trace, begun in the block, has ended."""
    with watched_runs() as begun:
        yield
    for generation in (1, 2):  # what garbage alone refers to is freed: the young of it, in little time, as a rule all
        if not _ended(begun):
            return
        gc.collect(generation)
    errors = [leak_error(box) for box in boxes_of(_ended(begun)) if box.run.ended]
    found += [f"{error.what}\n  hint: {error.hint}" for error in errors]  # not where it is found: in this module


def _ended(begun: list[ref[Run]]) -> list[Run]:
    """Those of the runs that have ended and are in memory, as they are as long as their boxes."""
    return [run for reference in begun if (run := reference()) is not None and run.ended]


# threads, files


@contextmanager
def threads_have_ended(found: list[str]) -> Iterator[None]:
    """Add to ``found`` the threads that were started and do not end within a second."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + PATIENCE
    for thread in set(threading.enumerate()) - before - {threading.current_thread()}:
        if isinstance(thread, threading._DummyThread):  # one of the runtime, in which a callback was called
            continue
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            found.append(f"a thread must end with the test, got {thread.name!r}.\n  hint: join it.")


@contextmanager
def files_are_removed(found: list[str]) -> Iterator[None]:
    """Add to ``found`` the temporary files and folders that are not removed, of this process or of those it starts.

    Within the block ``tempfile`` has a folder of its own, which is removed at the end.
    """
    outside, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="handlax-") as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            yield
            left = [path for path in sorted(Path(folder).iterdir()) if not path.name.startswith("pytest-of-")]
            found += [f"a temporary file must be removed, got {path.name!r}.\n  hint: tmp_path is kept by pytest."
                      for path in left]
        finally:
            tempfile.tempdir = outside
            os.environ.pop("TMPDIR")
            if variable is not None:
                os.environ["TMPDIR"] = variable
