"""NumPy's handling of floating-point errors, switched off around evaluate rules: infinities and NaNs are values.

    IN_OWN_CONTEXT.run(f, *xs) == IN_CALLERS_CONTEXT.run(f, *xs) == f(*xs), without a warning for 1 / 0
    IN_ANY_CONTEXT.run(f, *xs) == f(*xs)

NumPy keeps this setting in a context variable. Entering a context in which the variable is set takes a fifth of the
time of setting it anew, but all other context variables have their defaults there, and the context cannot be entered
twice. So ``IN_OWN_CONTEXT`` is for functions that NumPy implements in C, during which Python executes nothing, and
``IN_CALLERS_CONTEXT`` for all others: during these, signal handlers and finalizers may perform operations, which have
to see the settings in force. ``IN_ANY_CONTEXT`` changes nothing: it is for functions declared ``silent``, which never
warn about NumPy's own dtypes.
"""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.wrapping import ERRORS, SILENT, errors_ignored
from ...effects.core.operation import Operation


class ErrorContext(NamedTuple):
    """How to call a function with respect to NumPy's floating-point errors: ``run(f, *xs)`` is ``f(*xs)``."""

    run: Callable[..., Any]


class OwnContext(threading.local):
    """A context that ignores floating-point errors, one per thread, since two threads cannot be in one together."""

    run: Callable[..., Any] = staticmethod(errors_ignored)  # until the thread has its own

    def __init__(self) -> None:
        context = Context()
        context.run(ERRORS.set, SILENT)
        self.run = context.run


IN_OWN_CONTEXT = OwnContext()
IN_CALLERS_CONTEXT, IN_ANY_CONTEXT = ErrorContext(errors_ignored), ErrorContext(operator.call)
_FINALIZES_IN_C = sys.version_info < (3, 12)  # garbage is collected in the midst of functions implemented in C


def context_for(kind: type[Operation], function: Callable[..., Any], types: Sequence[Any]) -> Any:
    """The one of these three contexts for a function that evaluates ``kind`` on operands of ``types``."""
    while isinstance(function, partial):
        function = function.func
    if getattr(function, "silent", False) and _NUMPYS.issuperset([t.dtype for t in types]):
        return IN_ANY_CONTEXT
    ours = kind.__module__.startswith("handlax.effects.operations.")
    return IN_OWN_CONTEXT if ours and isinstance(function, _NATIVE) and not _FINALIZES_IN_C else IN_CALLERS_CONTEXT


_NUMPYS = frozenset(map(np.dtype, "?bhilqBHILQefdFD"))

# during which no Python function is called: ufuncs, their reductions, views of arrays
_NATIVE = (np.ufunc, BuiltinFunctionType, operator.methodcaller)
