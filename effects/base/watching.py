"""Logs and events of tracing and compiling, and the settings that ask for them."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .caches import per_process
from .config import configure, current
from .monitoring import record_event_duration_secs

COMPILED_ANEW = "%s: compiled anew\n%s"  # the message under ``explain_cache_misses``: the function, and what changed


@per_process
def logger() -> Any:
    """The logger ``handlax``; ``logging`` is loaded when it is first needed."""
    return import_module("logging").getLogger("handlax")


def log_step(message: str, *arguments: Any) -> None:
    """Log a line about tracing or compiling to ``handlax``: a warning under ``log_compiles``, else at DEBUG."""
    if current().log_compiles:
        logger().warning(message, *arguments)
    elif "logging" in sys.modules:  # otherwise nobody can read it
        logger().debug(message, *arguments)


def finish_step(event: str, seconds: float, fun_name: str, message: str) -> None:
    """Report that a function was traced, lowered or compiled: an event for listeners, and a line in the log."""
    record_event_duration_secs(event, seconds, fun_name=fun_name)
    log_step(message, fun_name, 1e3 * seconds)


def no_tracing(new_val: bool = True) -> Any:
    """Within the block, a call of ``jit`` or ``checkpoint`` that has to trace its function raises ``TracingRefused``.

    Functions that were traced before are called. Other transformations record functions as ever.

    >>> from handlax import jit
    >>> f = jit(lambda x: x + 1)
    >>> y = f(1.0)
    >>> with no_tracing():
    ...     y = f(2.0)
    """
    return configure(no_tracing=new_val)


def log_compiles(new_val: bool = True) -> Any:
    """Within the block, each trace and each compilation is logged as a warning to ``handlax``, instead of at DEBUG."""
    return configure(log_compiles=new_val)


def explain_cache_misses(new_val: bool = True) -> Any:
    """Within the block, each call that is compiled anew is logged as a warning, with what changed in the call."""
    return configure(explain_cache_misses=new_val)
