"""Python stacks that a clause leaves and comes back to: those of greenlets.

A function that performs an operation with a ``ctl`` clause is left where it stands, and goes on when it is resumed.
Without the package ``greenlet`` it is unwound instead, and executed again from its start.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextvars import Context, copy_context
from threading import local
from typing import Any

from ...effects.base.caches import per_process
from ...effects.base.deep_calls import frame_at, on_deep_stack
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
    """The calls of one thread, within each other, of functions under handlers in direct style and of their rests.

    A new stack inherits the recursion depth of the one that starts it, and leaving a stack costs time for each of its
    frames. So every ``NESTED``-th call, and one beyond ``FRAMES`` frames, is executed on a new stack that ``spawner``,
    which is shallow, starts. ``depth``: the number of calls within each other.
    """

    __slots__ = ("depth", "spawner")

    def __init__(self) -> None:
        self.depth = 0
        self.spawner: Any = None

    def call(self, f: Callable[..., Any], *args: Any) -> Any:
        """``f(*args)``, within the calls of this nesting."""
        self.depth += 1
        try:
            if self.depth % NESTED and frame_at(FRAMES) is None:
                return f(*args)
            return self.start(new_stack(f, parent=greenlet.getcurrent()), *args)
        finally:
            self.depth -= 1

    def start(self, stack: Any, *args: Any) -> Any:
        """``stack.switch(*args)`` of a new stack, which starts from the spawner if this one may be deep."""
        if self.depth < NESTED:
            return stack.switch(*args)
        if not self.spawner:  # there is none, or it was interrupted and has ended
            self.spawner = new_stack(_spawn)
        return self.spawner.switch(stack, args)


class _ThreadNesting(local):
    """The nesting of a thread, from its outermost call to the end of that: the spawner keeps the stack it started last.
    """

    nesting: Nesting | None = None


_THREAD = _ThreadNesting()


def start(stack: Any) -> Any:
    """Start a new stack; what is switched to this one first, or what it returns."""
    return stack.switch() if _THREAD.nesting is None else _THREAD.nesting.start(stack)


def nested(f: Callable[..., Any], *args: Any) -> Any:
    """``f(*args)``, a call of a function under a handler in direct style, or of its rest, in this thread's nesting."""
    if _THREAD.nesting is not None:
        return _THREAD.nesting.call(f, *args)
    _THREAD.nesting = Nesting()
    try:
        return on_deep_stack(f, *args)
    finally:
        _THREAD.nesting = None


def _spawn(stack: Any, args: tuple[Any, ...]) -> None:
    """Start one stack after the other. What a stack returns goes to its parent; this one waits for the next."""
    while True:
        stack, args = stack.switch(*args)
