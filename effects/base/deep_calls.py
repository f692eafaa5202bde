"""Calls at any depth: where Python's stack is nearly used up, a call goes on with a stack of its own.

    on_deep_stack(f, *args) == f(*args)

What nests in a program, such as 1,000 jitted functions that call each other or 1,000 operations whose clauses resume,
nests in Python too, which allows 1,000 frames. Each thread has a stack of its own, so the call goes on in a new thread,
for which the caller waits. Recursion without end is an error, as in Python: ``MOST_STACKS`` threads wait at most.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

R = TypeVar("R")

# Frames for what a call does until the next call that goes through here, the user's code included. Python 3.11 and 3.12
# limit nested calls in C too, such as comparisons of tuples, of which there are up to two for each frame.
RESERVE = 400 if sys.version_info >= (3, 13) else 750

MOST_STACKS = 256  # some 3,000 to 8,000 nested bodies; they take 200 MB


class _Depth(threading.local):
    """Per thread: how many threads wait for it, each for the next."""

    stacks = 0


_DEPTH = _Depth()


def _frame_object_at(depth: int) -> Any:
    try:
        return sys._getframe(depth)
    except ValueError:
        return None


# something of the frame at this depth, None where there is none; the name of its module is read three times as fast
frame_at: Callable[[int], Any] = getattr(sys, "_getframemodulename", _frame_object_at)


def on_deep_stack(f: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
    """``f(*args, **kwargs)``, on the stack of a new thread if fewer than ``RESERVE`` frames are left on this one.

    The thread has the context of the caller; an exception is raised in the caller.

    Raises: RecursionError: ``MOST_STACKS`` are in use.
    """
    if frame_at(sys.getrecursionlimit() - RESERVE) is None:  # the stack is not that deep
        return f(*args, **kwargs)
    depth = _DEPTH.stacks + 1
    if depth > MOST_STACKS:
        raise RecursionError(
            "calls must end, got thousands within each other; a jitted function that calls itself is traced without "
            "end: lax.cond and lax.while_loop decide by values."
        )
    call = _Call(partial(copy_context().run, f, *args, **kwargs), depth)
    _thread.start_new_thread(_bottom, (call, sys._getframe()))
    call.running.acquire()
    if call.error is None:
        return call.result
    try:
        raise call.error
    finally:
        call.error = None  # its traceback refers to this frame


class _Call:
    """A call on another thread's stack; ``running`` is locked until the call has a result or an error."""

    __slots__ = ("f", "depth", "result", "error", "running")
    result: Any

    def __init__(self, f: Callable[[], Any], depth: int):
        self.f = f
        self.depth = depth
        self.error: BaseException | None = None
        self.running = _thread.allocate_lock()
        self.running.acquire()


def _bottom(call: _Call, caller: Any) -> None:
    """The outermost frame of a new thread; ``caller`` is the frame that waits for it."""
    _DEPTH.stacks = call.depth
    try:
        call.result = call.f()
    except BaseException as error:
        call.error = error
    finally:
        call.running.release()


def caller_of(frame: Any) -> Any:
    """The frame that called ``frame``, which may be on another stack; None for the outermost."""
    return frame.f_locals["caller"] if frame.f_code is _bottom.__code__ else frame.f_back
