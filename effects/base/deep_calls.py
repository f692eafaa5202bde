"""Calls at any depth: where Python's stack is nearly used up, a call goes on with a stack of its own.

    on_deep_stack(f, *args) == f(*args)

What nests in a program, such as 1,000 jitted functions that call each other or 1,000 operations whose clauses resume,
nests in Python too, which allows 1,000 frames. Each thread has a stack of its own, so the call goes on in a new thread,
for which the caller waits, and to which it passes on what a signal raises, such as Control-C. Recursion without end is
an error, as in Python: ``MOST_STACKS`` threads wait at most.
"""

from __future__ import annotations

import _thread
import ctypes
import os
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
    waiting = _THREAD.call
    depth, outer = waiting.depth + 1, waiting.inner
    if depth > MOST_STACKS:
        raise RecursionError(
            "calls must end, got thousands within each other; a jitted function that calls itself is traced without "
            "end: lax.cond and lax.while_loop decide by values."
        )
    call = _Call(partial(copy_context().run, f, *args, **kwargs), depth)
    try:
        waiting.inner = call
        interrupt = call.run(sys._getframe())
    finally:
        with call.ending:
            call.left, waiting.inner = True, outer  # a finalizer may call in the middle of another call
    error = call.pending or call.error
    if error is None:
        return call.result
    try:
        raise interrupt.with_traceback(error.__traceback__) if type(error) is type(interrupt) else error
    finally:
        call.error = call.pending = error = interrupt = None  # its traceback refers to this frame


class _Call:
    """A call on another thread's stack, the ``depth``-th of those that wait for each other.

    ``begun`` is locked by the thread that executes it, or by the caller if there is none. ``running`` is locked until
    the call is ``done``: it has a result or an error. ``thread``: that which executes it,
    as long as an exception may be raised there. ``pending``: one to be raised when it begins, or that came when it had
    ended. ``inner``: the call for which its thread waits. ``left``: its caller goes on. ``ending`` is locked while it
    begins, ends or is left, and while it is interrupted; each call has its own, since the thread that holds it may
    handle a signal that calls.
    """

    begun: Any
    running: Any
    ending: Any
    __slots__ = (
        "f", "depth", "result", "error", "begun", "running", "ending", "done", "thread", "pending", "inner", "left"
    )
    result: Any

    def __init__(self, f: Callable[[], Any], depth: int):
        self.f = f
        self.depth = depth
        self.error: BaseException | None = None
        self.begun, self.running, self.ending = [_thread.allocate_lock() for _ in range(3)]
        self.running.acquire()
        self.done = self.left = False
        self.thread: int | None = None
        self.pending: BaseException | None = None
        self.inner: _Call | None = None

    def run(self, caller: Any) -> BaseException | None:
        """Execute the call, and wait for it; the last exception of a signal that it was given meanwhile.

        Python handles signals in the thread that waits; what a handler raises, such as KeyboardInterrupt, is for the
        work that is waited for. Whatever may be interrupted stands in a ``try``, since a thread of which nobody waits
        for the end would go on changing the state of handlers.

        Raises: RuntimeError: there can be no more threads. Any error: that of a signal, before there is a thread.
        """
        interrupt: BaseException | None = None  # the last one
        arrived: BaseException | None = None  # one that is not passed on
        started = False
        while arrived is not None or not self.done:
            try:
                if arrived is not None:
                    self.interrupt(arrived)
                    arrived = None
                if not started:
                    _thread.start_new_thread(_bottom, (self, caller))
                    started = True
                if not self.done:
                    self.running.acquire()
            except BaseException as error:
                if not started and self.begun.acquire(blocking=False):
                    raise  # a thread that there may be does nothing
                started, arrived, interrupt = True, error, error
        return interrupt

    def interrupt(self, error: BaseException) -> None:
        """Raise an exception of the class of ``error`` in the thread that executes the innermost call."""
        passed_on = False
        while not passed_on:
            call = self
            while (inner := call.inner) is not None:
                call = inner
            with call.ending:
                if call.left:  # meanwhile
                    continue
                passed_on = True
                if call.thread is None:
                    call.pending = error
                else:
                    raise_in(call.thread, type(error))


class _WaitedFor(threading.local):
    """The call that this thread executes for one that waits for it."""

    def __init__(self) -> None:
        self.call = _Call(lambda: None, 0)  # of a thread that nobody here waits for


_THREAD = _WaitedFor()
os.register_at_fork(after_in_child=lambda: _THREAD.call.ending._at_fork_reinit())  # who holds it is not in the child


def raise_in(thread: int, kind: type[BaseException]) -> None:
    """Raise an exception of this class in a thread, at its next instruction in Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _bottom(call: _Call, caller: Any) -> None:
    """The outermost frame of a new thread; ``caller`` is the frame that waits for it."""
    if not call.begun.acquire(blocking=False):
        return
    try:
        try:
            _THREAD.call = call
            with call.ending:
                call.thread, early, call.pending = _thread.get_ident(), call.pending, None
            if early is not None:
                raise early
            call.result = call.f()
        except BaseException as error:
            call.error = error
        with call.ending:  # an exception that was raised in this thread arrives here at the latest
            call.thread = None
    except BaseException as error:
        call.error = error
        with call.ending:
            call.thread = None
    finally:
        call.done = True
        call.running.release()


def caller_of(frame: Any) -> Any:
    """The frame that called ``frame``, which may be on another stack; None for the outermost."""
    return frame.f_locals["caller"] if frame.f_code is _bottom.__code__ else frame.f_back
