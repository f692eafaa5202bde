"""Settings that watch tracing and compiling. They change no result, so they are in no cache key."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import MappingProxyType
from typing import Any

from .caches import once


class Watch:
    """A setting that is on or off: for the process by ``set``, within a block by ``scope``."""

    __slots__ = ("_process", "_scoped")

    def __init__(self, name: str):
        self._process = False
        self._scoped: ContextVar[bool | None] = ContextVar(f"handlax_{name}", default=None)

    @property
    def on(self) -> bool:
        scoped = self._scoped.get()
        return self._process if scoped is None else scoped

    def set(self, value: Any) -> None:
        self._process = bool(value)

    @contextmanager
    def scope(self, value: Any) -> Iterator[None]:
        """The setting for the extent of a ``with`` block, in this thread or task."""
        token = self._scoped.set(bool(value))
        try:
            yield
        finally:
            self._scoped.reset(token)


NO_TRACING, LOG_COMPILES, EXPLAIN_CACHE_MISSES = map(Watch, ("no_tracing", "log_compiles", "explain_cache_misses"))
WATCHES: Mapping[str, Watch] = MappingProxyType({
    "no_tracing": NO_TRACING, "log_compiles": LOG_COMPILES, "explain_cache_misses": EXPLAIN_CACHE_MISSES,
    "jax_no_tracing": NO_TRACING, "jax_log_compiles": LOG_COMPILES,
    "jax_explain_cache_misses": EXPLAIN_CACHE_MISSES,
})  # fmt: skip


@once
def logger() -> Any:
    """The logger ``handlax``; ``logging`` is loaded when it is first needed."""
    return import_module("logging").getLogger("handlax")


def log_step(message: str, *arguments: Any) -> None:
    """A line about tracing or compiling in the log ``handlax``: a warning under ``log_compiles``, else at DEBUG."""
    if LOG_COMPILES.on:
        logger().warning(message, *arguments)
    elif "logging" in sys.modules:  # otherwise nobody can read it
        logger().debug(message, *arguments)


def no_tracing(new_val: bool = True) -> Any:
    """Within it, a call of a jitted function that has to be traced is an error, ``TracingRefused``.

    >>> from handlax import jit
    >>> f = jit(lambda x: x + 1)
    >>> y = f(1.0)
    >>> with no_tracing():
    ...     y = f(2.0)
    """
    return NO_TRACING.scope(new_val)


def log_compiles(new_val: bool = True) -> Any:
    """Within it, each trace and each compilation is a warning in the log ``handlax``; without it they are at DEBUG."""
    return LOG_COMPILES.scope(new_val)


def explain_cache_misses(new_val: bool = True) -> Any:
    """Within it, each call that is compiled anew is a warning in the log ``handlax``, with what changed in the call."""
    return EXPLAIN_CACHE_MISSES.scope(new_val)
