"""Python stacks that a clause leaves and comes back to: those of greenlets.

A function that performs an operation with a ``ctl`` clause is left where it stands, and goes on when it is resumed.
Without the package ``greenlet`` it is unwound instead, and executed again from its start.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextvars import Context, copy_context
from threading import get_ident
from typing import Any

from ...effects.base.caches import per_process
from ...effects.base.deep_calls import frame_at
from ...effects.base.lazy_module import LazyModule

greenlet: Any = LazyModule("greenlet")

# Calls within each other, and frames on one stack, after which the next call gets a stack that starts from the spawner.
NESTED = 16
FRAMES = 128


@per_process
def have_greenlets() -> bool:
    """Whether the package ``greenlet`` is installed."""
    return importlib.util.find_spec("greenlet") is not None


def new_stack(f: Callable[..., Any], *, parent: Any = None, context: Context | None = None) -> Any:
    """A greenlet for ``f`` with a context, by default a copy of that in force; a new greenlet's own is empty."""
    stack = greenlet.greenlet(f, parent)
    stack.gr_context = copy_context() if context is None else context
    return stack


def close_stacks(inner: Any, last: Any) -> None:
    """End a stack that is left and will not be resumed, and those in which it nests, up to ``last``.

    Each is kept by the one around it, in whose frames the call that waits for it stands: none is freed by itself.
    """
    while True:
        outer, inner.parent = inner.parent, greenlet.getcurrent()
        inner.throw()
        if inner is last:
            return
        inner = outer


class Nesting:
    """The stack from which new stacks start, for the functions under handlers in direct style within each other.

    A new stack inherits the recursion depth of the one that starts it, and leaving a stack costs time for each of its
    frames. So every ``NESTED``-th call, and one beyond ``FRAMES`` frames, is executed on a new stack that ``spawner``,
    which is shallow, starts. ``depth``: the number of calls within each other.
    """

    __slots__ = ("thread", "depth", "spawner", "closed")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.depth = 0
        self.spawner: Any = None
        self.closed = False

    @property
    def open(self) -> bool:
        """Whether calls can be made here: it is not closed, and of this thread."""
        return not self.closed and self.thread == get_ident()

    def call(self, f: Callable[..., Any], *args: Any) -> Any:
        """``f(*args)``, within the functions of this nesting."""
        self.depth += 1
        try:
            if self.depth % NESTED and frame_at(FRAMES) is None:
                return f(*args)
            if not self.spawner:  # there is none, or it was interrupted and has ended
                self.spawner = new_stack(_spawn)
            return self.spawner.switch(new_stack(f, parent=greenlet.getcurrent()), args)
        finally:
            self.depth -= 1

    def close(self) -> None:
        """Drop the spawner, which keeps the stack that it started last."""
        self.closed = True
        self.spawner = None


def _spawn(stack: Any, args: tuple[Any, ...]) -> None:
    """Start one stack after the other. What a stack returns goes to its parent; this one waits for the next."""
    while True:
        stack, args = stack.switch(*args)
