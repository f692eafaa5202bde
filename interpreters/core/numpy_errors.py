"""NumPy's handling of floating-point errors, switched off around evaluate rules: infinities and NaNs are values.

    IN_OWN_CONTEXT.run(f, *xs) == IN_CALLERS_CONTEXT.run(f, *xs) == f(*xs), without a warning for 1 / 0
    IN_ANY_CONTEXT.run(f, *xs) == f(*xs)

NumPy keeps this setting in a context variable. To enter a context in which it was set once takes a fifth of the time of
setting it anew, but other variables have their defaults there, and it cannot be entered again inside. So the first is
for functions that NumPy implements in C, during which Python executes nothing, the second for all others: during these,
signal handlers and finalizers may perform operations, and have to see the settings in force. Functions that are
declared ``silent`` never warn about NumPy's own dtypes, and need neither for these.
"""

from __future__ import annotations

import operator
import sys
import threading
import types
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Any

import numpy as np

from ...effects.core.operation import Operation


def _error_setting() -> Any:
    """NumPy's variable, and its value that ignores all errors: what a context holds in which nothing else was set."""
    context = Context()
    context.run(np.seterr, all="ignore")
    (setting,) = context.items()
    return setting


ERRORS, SILENT = _error_setting()


def _in_callers_context(f: Callable[..., Any], *xs: Any) -> Any:
    token = ERRORS.set(SILENT)
    try:
        return f(*xs)
    finally:
        ERRORS.reset(token)


class CallersContext:
    """The context in force, with the setting made for the extent of the call."""

    run: Callable[..., Any] = staticmethod(_in_callers_context)


class AnyContext:
    """The context in force, as it is."""

    run: Callable[..., Any] = staticmethod(operator.call)  # type: ignore[arg-type]


class OwnContext(threading.local):
    """A context of each thread, since two cannot be in one at the same time."""

    run: Callable[..., Any] = staticmethod(_in_callers_context)  # until the thread has its own

    def __init__(self) -> None:
        context = Context()
        context.run(ERRORS.set, SILENT)
        self.run = context.run


IN_OWN_CONTEXT, IN_CALLERS_CONTEXT, IN_ANY_CONTEXT = OwnContext(), CallersContext(), AnyContext()
_FINALIZES_IN_C = sys.version_info < (3, 12)  # garbage is collected in the midst of functions implemented in C


def context_for(kind: type[Operation], function: Callable[..., Any], types: Sequence[Any]) -> Any:
    """The one of the three for this function, which evaluates operations of this class on operands of these types."""
    while isinstance(function, partial):
        function = function.func
    if getattr(function, "silent", False) and _NUMPYS.issuperset([t.dtype for t in types]):
        return IN_ANY_CONTEXT
    ours = kind.__module__.startswith("handlax.effects.operations.")
    return IN_OWN_CONTEXT if ours and isinstance(function, _NATIVE) and not _FINALIZES_IN_C else IN_CALLERS_CONTEXT


_NUMPYS = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))

# during which no Python function is called: ufuncs, their reductions, views of arrays
_NATIVE = (np.ufunc, types.BuiltinFunctionType, operator.methodcaller)
