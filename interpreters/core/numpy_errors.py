"""NumPy's handling of floating-point errors, switched off around evaluate rules: infinities and NaNs are values.

    IN_OWN_CONTEXT.run(f, *xs) == IN_CALLERS_CONTEXT.run(f, *xs) == f(*xs), without a warning for 1 / 0

NumPy keeps this setting in a context variable. To enter a context in which it was made once takes a fifth of the time
of making it anew, but other variables have their defaults there, and it cannot be entered again inside. So the first is
for rules of the package, which read none and call NumPy alone, the second for all others: a user's rules, those that
interpret a program, and callbacks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np

from ...effects.core.operation import Operation


class OwnContext(threading.local):
    """A context of each thread, since two cannot be in one at the same time."""

    run: Callable[..., Any]

    def __init__(self) -> None:
        self.run = Context().run
        self.run(np.seterr, all="ignore")


class CallersContext:
    """The context in force, with the setting made for the extent of the call."""

    @staticmethod
    def run(f: Callable[..., Any], *xs: Any) -> Any:
        with np.errstate(all="ignore"):
            return f(*xs)


IN_OWN_CONTEXT, IN_CALLERS_CONTEXT = OwnContext(), CallersContext()


def context_for(kind: type[Operation]) -> Any:
    """The one of the two in which the evaluate rule of this class of operations is to be called."""
    ours = kind.__module__.startswith("handlax.effects.operations.") and not (kind.bodied or kind.interprets)
    return IN_OWN_CONTEXT if ours else IN_CALLERS_CONTEXT
