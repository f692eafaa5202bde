"""What a call leaves behind: handlers and settings in force, threads, files, compilations, values of traces.

    before = Before(*IN_FORCE)
    f()
    before.changes()        # a message for each thing that f() left behind; what can be put back is

A kind of thing is a generator function: it notes what there is and yields once; when it goes on, after the call, it
yields a message for each thing that has been left, and puts it back. Kinds are nested as blocks are, outermost first.
"""

from __future__ import annotations

import _thread
import gc
import os
import re
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import ref

from ...effects.base.caches import CACHES
from ...effects.base.config import CONFIG, DEFAULTS, PROCESS, Configuration, SettingScope
from ...effects.base.stack import STACK, Run, runs, watched_runs
from ...effects.base.wrapping import changed, put_back
from ...effects.core.escaped_boxes import boxes_of, leak_error
from ...lowering.compile.executable_cache import ExecutableCache

PATIENCE = 5.0
"""The seconds in which threads that were started must end."""
_REGISTRIES = ("containers", "tables")  # what stands among the settings and grows, as classes do, by what is defined

T = TypeVar("T")
Kind = Callable[[], Iterator[str]]


class Before:
    """What there is of some kinds at the moment at which this is made: ``changes`` says later what has been left."""

    def __init__(self, *kinds: Kind):
        self._observed = [kind() for kind in kinds]
        for each in self._observed:
            next(each)

    def changes(self) -> list[str]:
        """A message for each thing that has been left behind, which is put back where that is possible; once."""
        return [message for each in reversed(self._observed) for message in each]

    def check(self, what: str, cause: BaseException | None = None) -> None:
        """Raise AssertionError, from ``cause``, where something has been left behind: what, by ``what``."""
        if found := self.changes():
            raise AssertionError("\n  ".join([f"{what}: the library must be left whole, changed:", *found])) from cause


# handlers, settings, contexts


def contexts() -> Iterator[str]:
    """Handlers and blocks of ``hx.configure`` in force that were not, those that are no longer, other contexts."""
    before, site = copy_context(), _site()
    yield ""
    for variable, value in changed(before):
        tell = _TELLING.get(variable, lambda _: [])
        yield from tell(value) or [f"the context {variable.name} must be put back."]
    put_back(before)
    if _site() != site:
        yield "the site of the innermost handler must be put back."


def _site() -> object:
    cell = STACK.get().cell
    return cell and cell.site


def _handlers(top: Run) -> list[str]:
    """What is in force now and was not when the stack was ``top``, and the other way round."""
    before, now = list(runs(top)), list(runs())
    left = [f"{run.described} must not be left in force, installed at {run.installed_at}."
            for run in now if run not in before]
    return left + [f"{run.described} must still be in force, as before." for run in before if run not in now]


def _scopes(scope: SettingScope) -> list[str]:
    """Messages for the settings in force that differ from those of ``scope``, the scope of ``hx.configure`` before."""
    said = _different("hx.configure", scope.settings, CONFIG.get().settings, "use it in a with block.")
    return said or ["a block of hx.configure must end, got one that is in force."]


_TELLING: Mapping[Any, Callable[[Any], list[str]]] = MappingProxyType({STACK: _handlers, CONFIG: _scopes})


def settings() -> Iterator[str]:
    """The settings of the process."""
    before = PROCESS.settings
    yield ""
    now = PROCESS.settings
    yield from _different("hx.config.update", before, now, "put it back, or use hx.configure.")
    PROCESS.update(**{name: getattr(before, name) for name in _differences(before, now)})


def _different(where: str, before: Configuration, now: Configuration, hint: str) -> list[str]:
    return [
        f"the setting {name} must be left at {getattr(before, name)!r}, got {getattr(now, name)!r}, "
        f"as by {where}.\n  hint: {hint}" for name in _differences(before, now)
    ]


def _differences(before: Configuration, now: Configuration) -> list[str]:
    """The names of the settings that differ between two records."""
    return [name for name in DEFAULTS if name not in _REGISTRIES and getattr(before, name) != getattr(now, name)]


def _umask() -> str:
    """The mask of the modes of new files; "" where the system does not tell it: ``os.umask`` changes it to read it."""
    status = Path("/proc/self/status")
    mask = re.search(r"^Umask:\s*(\w+)", status.read_text(), re.MULTILINE) if status.exists() else None
    return mask[1] if mask else ""


_SURROUNDINGS: Mapping[str, Callable[[], object]] = MappingProxyType({
    "the recursion limit": sys.getrecursionlimit,
    "the filters of warnings": lambda: list(warnings.filters),
    "the collector of garbage": lambda: (gc.isenabled(), gc.get_threshold()),
    "the handlers of signals": lambda: [signal.getsignal(number) for number in sorted(signal.valid_signals())],
    "the alarm": lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 0,
    "the time between switches of threads": sys.getswitchinterval,
    "the environment": lambda: dict(os.environ),
    "the working directory": os.getcwd,
    "the modes of new files": _umask,
})


def surroundings() -> Iterator[str]:
    """What is the process's own and no call of the package may change."""
    before = {name: read() for name, read in _SURROUNDINGS.items()}
    yield ""
    yield from [f"{name} must be left as it was." for name, read in _SURROUNDINGS.items() if read() != before[name]]


def tracers() -> Iterator[str]:
    """The functions of ``sys.settrace`` and ``sys.setprofile``, by which interrupts come, too."""
    tracer, profiler = sys.gettrace(), sys.getprofile()
    yield ""
    if sys.gettrace() is not tracer:
        yield "the tracer must be left as it was."
    if sys.getprofile() is not profiler:
        yield "the profiler must be left as it was."


# compilations, values of traces


def compilations() -> Iterator[str]:
    """Compilations that have not ended, for which other threads would wait, and caches that are too full."""
    yield ""
    for cache in CACHES:
        if isinstance(cache, ExecutableCache) and cache.compiling:
            yield f"the cache of {cache.name} must not be left with a compilation in progress."
        if len(cache) > cache.capacity:
            yield f"the cache of {cache.name} must have at most {cache.capacity} entries, got {len(cache)}."


def traced_values() -> Iterator[str]:
    """Values to which something refers although their trace, begun since, has ended."""
    with watched_runs() as begun:
        yield ""
    for generation in (1, 2):  # what garbage alone refers to is freed: the young of it, in little time, as a rule all
        if not _ended(begun):
            return
        gc.collect(generation)
    errors = [leak_error(box) for box in boxes_of(_ended(begun)) if box.run.ended]
    yield from [f"{error.what}\n  hint: {error.hint}" for error in errors]  # not where it is found: in this module


def _ended(begun: list[ref[Run]]) -> list[Run]:
    """Those of the runs that have ended and are in memory, as they are as long as their boxes."""
    return [run for reference in begun if (run := reference()) is not None and run.ended]


# threads, processes, files


def threads() -> Iterator[str]:
    """Threads that were started and do not end within ``PATIENCE``."""
    before, count = {*threading.enumerate()}, _thread._count()
    yield ""
    until = time.monotonic() + PATIENCE
    for thread in {*threading.enumerate()} - before - {threading.current_thread()}:
        if isinstance(thread, threading._DummyThread):  # one of the runtime, in which a callback was called
            continue
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            count += 1
            yield f"the thread {thread.name!r} must have ended.\n  hint: join it."
    if _lasting(lambda: {*range(count, _thread._count())}):  # also those that the module threading does not know
        yield "a thread must have ended, got one that was started by _thread."


def _lasting(read: Callable[[], set[T]]) -> set[T]:
    """What there is after ``PATIENCE``, if there is something until then; the garbage is collected first."""
    until = time.monotonic() + PATIENCE
    if read():
        gc.collect()
    while (left := read()) and time.monotonic() < until:
        time.sleep(0.001)
    return left


def children() -> Iterator[str]:
    """Processes that this one has started, and that do not end, or whose end is not awaited, within ``PATIENCE``."""
    before = _children()
    yield ""
    for number in sorted(_lasting(lambda: _children() - before)):
        yield f"the process {number} must have ended.\n  hint: wait for it."


def _children() -> set[int]:
    """The numbers of the processes that this one has started; none where the system does not tell them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # it has none: the tables take milliseconds
        return set()
    numbers: set[int] = set()
    for table in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # of a thread that has ended
            numbers.update(map(int, table.read_text().split()))
    return numbers


def open_files() -> Iterator[str]:
    """Files that were opened and are not closed within ``PATIENCE``, devices and what has no name excepted."""
    before = _open_files()
    yield ""
    for number, path in sorted(_lasting(lambda: _open_files() - before)):
        yield f"the file {path} must be closed, got it open as {number}."


def _open_files() -> set[tuple[int, str]]:
    """The descriptors and paths of the open files; none where the system does not tell them."""
    files = set()
    for entry in os.scandir("/proc/self/fd") if os.path.exists("/proc/self/fd") else ():
        with suppress(OSError):  # closed meanwhile
            path = os.readlink(entry.path)
            if path.startswith("/") and not path.startswith(("/dev/", "/proc/", "/memfd:")):
                files.add((int(entry.name), path))
    return files


def temporary_files() -> Iterator[str]:
    """Temporary files and folders that are not removed, of this process or of those that it starts.

    Until the call has ended ``tempfile`` has a folder of its own, which is removed then.
    """
    outside, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="handlax-") as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        yield ""
        left = [path.name for path in sorted(Path(folder).iterdir()) if not path.name.startswith("pytest-of-")]
        tempfile.tempdir = outside
        os.environ.pop("TMPDIR")
        if variable is not None:
            os.environ["TMPDIR"] = variable
    hint = "tmp_path is kept by pytest."
    yield from [f"a temporary file must be removed, got {name!r}.\n  hint: {hint}" for name in left]


def hidden_files(*folders: str | os.PathLike[str]) -> Kind:
    """Hidden files in some folders and those below, such as those that are being written."""

    def kind() -> Iterator[str]:
        yield ""
        yield from [f"a hidden file must be removed, got {file}."
                    for folder in folders for file in sorted(Path(folder).rglob(".*"))]

    return kind


IN_FORCE: tuple[Kind, ...] = (
    threads, children, open_files, compilations, surroundings, settings, contexts,
)
"""What no call of the package may leave behind, however it ends."""

OF_TESTS: Mapping[str, tuple[Kind, ...]] = MappingProxyType({
    "files": (temporary_files,), "threads": (threads,), "leaks": (traced_values, settings, contexts),
})
"""What a test may not leave behind, by the words with which it asks for that."""
