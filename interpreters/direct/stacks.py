"""Python stacks that a clause leaves and comes back to: those of greenlets.

A function that performs an operation with a ``ctl`` clause is left where it stands, and goes on when it is resumed.
Without the package ``greenlet`` it is unwound instead, and executed again from its start.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ...effects.base.caches import once
from ...effects.base.lazy_module import LazyModule

greenlet: Any = LazyModule("greenlet")

# Resumptions within each other after which the next one gets a stack of its own.
NESTED = 16


@once
def have_greenlets() -> bool:
    """Whether the package ``greenlet`` is installed."""
    return importlib.util.find_spec("greenlet") is not None


def new_stack(f: Callable[..., Any], *, parent: Any = None) -> Any:
    """A greenlet for ``f`` with a copy of the context in force; a new greenlet's own context is empty."""
    stack = greenlet.greenlet(f, parent)
    stack.gr_context = copy_context()
    return stack


class Nesting:
    """How many resumptions of one handled function are within each other, and the stack from which stacks start.

    A new stack inherits the recursion depth of the one that starts it, and leaving a stack costs time for each of its
    frames. So every ``NESTED``-th resumption is executed on a stack that ``spawner``, which is shallow, starts.
    """

    __slots__ = ("depth", "spawner")

    def __init__(self) -> None:
        self.depth = 0
        self.spawner: Any = None

    def call(self, f: Callable[..., Any], *args: Any) -> Any:
        """``f(*args)``, one resumption within those of this nesting."""
        self.depth += 1
        try:
            if self.depth % NESTED:
                return f(*args)
            if self.spawner is None:
                self.spawner = new_stack(_spawn)
            return self.spawner.switch(new_stack(f, parent=greenlet.getcurrent()), args)
        finally:
            self.depth -= 1

    def close(self) -> None:
        """Drop the spawner, which keeps the stack that it started last."""
        self.spawner = None


def _spawn(stack: Any, args: tuple[Any, ...]) -> None:
    """Start one stack after the other. What a stack returns goes to its parent; this one waits for the next."""
    while True:
        stack, args = stack.switch(*args)
