"""Who may use the runtime: not forked children, which lack its threads, nor daemon threads when Python ends.

    if REFUSALS: check_access()         before each call that lets other threads of Python go on
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from importlib.machinery import ExtensionFileLoader
from itertools import count
from types import CodeType, FrameType
from typing import Any

from ...effects.base.deep_calls import caller_of, raise_in
from ...effects.base.errors import PlatformUnavailable
from ...effects.base.source_locations import is_ours
from ...effects.base.wrapping import context_variable

REFUSALS: list[Callable[[], None]] = []
"""What raises where the runtime may not be used; empty until then."""


CURRENT_HOST_CALL: ContextVar[Any] = context_variable("current_host_call", None)
"""The call of the host, by a compiled program, within which this is; None outside of callbacks."""


def check_access() -> None:
    """Raise if the runtime may not be used: PlatformUnavailable in a forked child, SystemExit when Python ends."""
    for refuse in REFUSALS:
        refuse()


# Forks: a child has the locks of the runtime's threads without the threads, and would wait for them

_INHERITED: list[Any] = []  # in a forked child what is the parent's: freeing it would wait for its threads


def empty_in_children(holder: dict[Any, Any] | list[Any] | deque[Any]) -> None:
    """Have ``holder`` empty in forked children: what it holds of the runtime is the parent's."""
    os.register_at_fork(after_in_child=partial(_inherit, holder))


def _inherit(holder: Any) -> None:
    if holder:
        _INHERITED.append(holder.copy())
        holder.clear()
        REFUSALS[:] = [_refuse_child]


def _refuse_child() -> None:
    raise PlatformUnavailable(
        "a process must use devices of its own, got one that was forked when its parent had used a device.",
        hint="multiprocessing.get_context('spawn') starts new processes; or fork before a device is used.",
    )


# The end: Python ends a daemon thread where it next needs the interpreter's lock. Within jaxlib's C++, which frees
# arrays too, that aborts the process, up to Python 3.13, so that threads which use the package are ended before it.

_PATIENCE = 60  # seconds for what the runtime computes or compiles at the end
_GLANCES = 20  # so often, a millisecond apart, other threads are looked at: they use the package now and then
_WITH_THREADS = ("handlax.effects.", "handlax.lowering.")  # packages that begin threads of their own
UNINTERRUPTED: set[CodeType] = {ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__}
"""Functions that end before their thread does: those that note what they have begun, and extension modules' beginning,
which may call Python without a look at what it raises.
"""
AT_END: list[Callable[[], None]] = []  # called when other threads have ended


def _end_threads() -> None:
    """End other threads that use the package, by SystemExit, wait until they have ended, and call the functions in
    ``AT_END``.
    """
    REFUSALS.append(partial(_refuse_others, threading.get_ident()))
    until = time.monotonic() + _PATIENCE
    own = threading.current_thread()
    threads = [each for each in threading.enumerate() if each is not own and type(each) is not threading._DummyThread]
    executing = _told_to_end(until)
    for thread in threads:
        if thread.is_alive() and thread.ident not in executing:  # it frees what it holds
            thread.join(max(until - time.monotonic(), 0.0))
    for function in AT_END:
        function()


def end_threads_at_exit() -> None:
    """Have threads that use the package ended when Python ends, before what has been registered until now is called."""
    atexit.unregister(_end_threads)
    atexit.register(_end_threads)


end_threads_at_exit()  # a thread may begin to use the runtime when functions can no longer be registered


def _told_to_end(until: float) -> set[int]:
    """Have SystemExit raised in threads that use the package, until none does or the time ``until`` has come.

    The result are the identifiers of the other threads that execute Python then.
    """
    told = set[int]()
    for glance in count():
        stacks = {thread: _stack(frame) for thread, frame in sys._current_frames().items()}
        executing = {*stacks} - {threading.get_ident()}
        users = {thread for thread in executing if _is_to_end(stacks[thread])}
        for thread in users - told:
            if not any([frame.f_code in UNINTERRUPTED for frame in stacks[thread]]):
                raise_in(thread, SystemExit)
                told.add(thread)
        if not executing or time.monotonic() > until or (glance >= _GLANCES and not (users | told) & executing):
            break
        del stacks
        time.sleep(0.001)
    return executing


def _refuse_others(last: int) -> None:
    if threading.get_ident() != last:
        raise SystemExit


def _is_to_end(stack: list[FrameType]) -> bool:
    """Whether a thread uses the package. One of the package's own, or of the runtime's in a callback, begins there."""
    modules = [frame.f_globals.get("__name__", "") for frame in stack]
    outermost = next((module for module in reversed(modules) if module != "threading"), "")
    return any(map(is_ours, modules)) and not outermost.startswith(_WITH_THREADS)


def _stack(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = caller_of(frame)
    return frames
