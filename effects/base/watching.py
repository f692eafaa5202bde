"""Logs and events of tracing and compiling, and the settings that ask for them."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from .caches import per_process
from .config import configure, current
from .monitoring import record_event_duration_secs
from .source_locations import Site, is_internal

COMPILED_ANEW = "%s: compiled anew\n%s"  # the message under ``explain_cache_misses``: the function, and what changed


class FunctionLabel(NamedTuple):
    """A function as events and the log tell of it: its name, the line of the user's that defines it, and its code.

    ``code`` is a number: equal for what the same source makes, such as a function that is made in a loop; different for
    two functions on one line, and for ``f`` and ``grad(f)``, which has the name and the line of ``f``.
    """

    name: str
    site: str = ""
    code: int = 0

    @property
    def placed(self) -> str:
        """The name with the line: ``"jit(f) at model.py:12"``."""
        return f"{self.name} at {self.site}" if self.site else self.name


def label_of(fun: Any, name: str) -> FunctionLabel:
    """The label of a function under a name; without a site where no code of the user's is found.

    >>> label_of(max, "jit(max)")
    FunctionLabel(name='jit(max)', site='', code=0)
    """
    codes = tuple([each.__code__ for each in _functions(fun)])
    users = [code for code in codes if not is_internal(code.co_filename)]
    return FunctionLabel(name, str(Site(users[-1], 0)) if users else "", hash(codes) if codes else 0)


def _functions(fun: Any) -> list[FunctionType]:
    """The functions written in Python that a call leads to, through methods, partial applications and what ``wraps``
    made, outermost first.
    """
    found: list[FunctionType] = []
    while not any([fun is each for each in found]):
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, MethodType):
            fun = fun.__func__
        elif isinstance(fun, FunctionType):
            found.append(fun)
            fun = fun.__dict__.get("__wrapped__")
        elif isinstance(call := type(fun).__call__, FunctionType):
            fun = call
        else:
            break
    return found


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


def finish_step(event: str, seconds: float, function: FunctionLabel, message: str) -> None:
    """Report that a function was traced, lowered or compiled: an event for listeners, and a line in the log."""
    name, site, code = function
    record_event_duration_secs(event, seconds, fun_name=name, fun_site=site, fun_code=code)
    log_step(message, name, 1e3 * seconds)


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
