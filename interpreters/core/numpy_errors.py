"""NumPy's handling of floating-point errors, switched off around evaluate rules: infinities and NaNs are values.

    IN_OWN_CONTEXT.run(f, *xs) == IN_CALLERS_CONTEXT.run(f, *xs) == f(*xs), without a warning for 1 / 0

NumPy keeps this setting in a context variable. To enter a context in which it was made once takes a fifth of the time
of making it anew, but other variables have their defaults there. So the first is for rules of the package, which read
none and call NumPy alone, the second for all others: a user's rules, bodies and callbacks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np


class OwnContext(threading.local):
    """A context of each thread, since two cannot be in one at the same time; nor can a function enter it again."""

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


def context_for(kind: type) -> Any:
    """The one of the two in which the evaluate rule of this class of operations is to be called."""
    return IN_OWN_CONTEXT if kind.__module__.startswith("handlax.effects.operations.") else IN_CALLERS_CONTEXT
