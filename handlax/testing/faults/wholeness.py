"""What a call must leave as it found it, however it ends: handlers, settings, caches, files and threads.

    with whole(): ...           AssertionError: the block left something behind
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.base.caches import CACHES
from ...effects.base.config import DEFAULTS, PROCESS
from ...effects.base.stack import STACK
from ...effects.base.wrapping import changed
from ...effects.core.arrays import as_array, perform
from ...effects.core.operation import effect
from ...effects.types.array_type import ArrayType, array_type
from ...interpreters.handlers.handle import handle
from ...interpreters.handlers.handler import handler
from ...interpreters.transformations.derivatives import value_and_grad
from ...interpreters.transformations.vmap import vmap
from ...lowering.compile.executable_cache import ExecutableCache
from ...lowering.jit.jit import jit

PATIENCE = 10.0
"""The seconds in which threads that a block has started must end."""

_CHOSEN = tuple([name for name in DEFAULTS if name not in ("tables", "containers")])  # registries, which modules extend

SETTINGS: Mapping[str, Callable[[], object]] = MappingProxyType({
    "the settings of the process": lambda: {name: getattr(PROCESS.settings, name) for name in _CHOSEN},
    "the recursion limit": sys.getrecursionlimit,
    "the filters of warnings": lambda: list(warnings.filters),
    "the collector of garbage": lambda: (gc.isenabled(), gc.get_threshold()),
    "the handler of Control-C": lambda: signal.getsignal(signal.SIGINT),
    "the environment": lambda: dict(os.environ),
    "the working directory": os.getcwd,
})
"""What is the process's own and that no call may leave changed, by its name in messages."""


class Before(NamedTuple):
    """What is in force at some moment: scoped variables, the site of the innermost handler, settings, threads."""

    context: Context
    site: object
    settings: dict[str, object]
    threads: frozenset[threading.Thread]

    @classmethod
    def now(cls) -> Before:
        settings = {name: read() for name, read in SETTINGS.items()}
        return cls(copy_context(), _site(), settings, frozenset(threading.enumerate()))

    def changes(self) -> list[str]:
        """What is no longer as it was, in words; what threads that were started since still do is waited for."""
        found = [variable.name for variable, _ in changed(self.context)]
        if _site() != self.site:
            found.append("the site of the innermost handler")
        found += [name for name, read in SETTINGS.items() if read() != self.settings[name]]
        found += [f"the cache of {cache.name}: a compilation in progress"
                  for cache in CACHES if isinstance(cache, ExecutableCache) and cache.compiling]
        found += [f"the cache of {name}: {size} entries of {most}" for name, size, most in _overfull()]
        return found + [f"the thread {thread.name}" for thread in _alive(self.threads)]


def _site() -> object:
    cell = STACK.get().cell
    return cell and cell.site


def _overfull() -> Iterator[tuple[str, int, int]]:
    for cache in CACHES:
        if len(cache) > cache.capacity:
            yield cache.name, len(cache), cache.capacity


def _alive(before: frozenset[threading.Thread]) -> list[threading.Thread]:
    """The threads that were started since, and do not end."""
    started = [thread for thread in threading.enumerate() if thread not in before
               and not isinstance(thread, threading._DummyThread)]
    end = time.monotonic() + PATIENCE
    for thread in started:
        thread.join(max(0.0, end - time.monotonic()))
    return [thread for thread in started if thread.is_alive()]


@contextmanager
def whole(*folders: str | os.PathLike[str]) -> Iterator[None]:
    """A block that must leave the library whole, whether it returns or raises.

        handlers, settings, threads after == before,    probe() after == probe() before

    Args:
        folders: in which no hidden file may remain, such as one that is being written.

    Raises: AssertionError: what the block left behind, in words; from the exception that the block raised, if any.

    >>> with whole():
    ...     jit(lambda x: x + 1)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    before, expected = Before.now(), probe()
    try:
        yield
    except BaseException as error:
        _check(before, expected, folders, error)
        raise
    _check(before, expected, folders, None)


def _check(before: Before, expected: object, folders: tuple[Any, ...], error: BaseException | None) -> None:
    found = before.changes()
    found += hidden_files(*folders)
    if not found and probe() != expected:
        found.append("other values of a program")
    if found:
        raise AssertionError(f"the library must be left whole, changed: {', '.join(found)}.") from error


def hidden_files(*folders: str | os.PathLike[str]) -> list[str]:
    """The hidden files in some folders, in words."""
    return [f"the file {file}" for folder in folders for file in sorted(Path(folder).glob(".*"))]


@effect(vmap="per_lane", diff="stop")
class ProbeTick:
    """Counts."""

    def result_type(op) -> ArrayType:
        return array_type((), np.dtype("int32"))


_TICKING = handler({ProbeTick: lambda n, op: (n + 1, n)})


def _summed(x: Any) -> Any:
    def step(total: Any, y: Any) -> tuple[Any, Any]:
        perform(ProbeTick())
        return lax.cond(y > 0, lambda: total + hnp.sin(y), lambda: total * y), y

    return lax.scan(step, 1.0, x)[0] + lax.while_loop(lambda n: n < 3, lambda n: n + 1, 0)


def probe() -> object:
    """The values of a program with a handled effect, loops, a branch, lanes and a derivative, executed and compiled."""
    f = handle(_TICKING, 0)(value_and_grad(_summed))
    lanes = as_array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    return [np.asarray(y).tolist() for g in (vmap(f), jit(vmap(f))) for n, (y, dy) in [g(lanes)] for y in (n, y, dy)]
