"""Children that are forked while another thread works: each computes, or is refused, and ends."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from typing import NoReturn

from ...effects.base.errors import HandlaxError
from .injection import Fault, place_of


def forks(
    f: Callable[[], object], child: Callable[[], object], *, pause: float = 0.005, patience: float = 20.0
) -> Iterator[Fault]:
    """Call ``f()`` in another thread, and fork this process again and again until that has ended, and once more.

        for fault in forks(f, child): child() had a result in the child, or fault.left, an error of handlax

    Args:
        child: what each child calls; then it ends.
        pause: the seconds from one fork to the next.
        patience: the seconds in which a child must end.

    Raises: AssertionError: a child does not end, is ended by a signal, or ends by another error. Any error: that of
    ``f``, when it has ended.

    >>> import handlax as hx
    >>> compiled = hx.jit(lambda x: x * 5)
    >>> [*forks(lambda: compiled(1.0), lambda: compiled(1.0))][-1].left.hint
    "multiprocessing.get_context('spawn') starts new processes; or fork before a device is used."
    """
    errors: list[BaseException] = []

    def work() -> None:
        try:
            f()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="forks")
    thread.start()
    for number in count():
        frame = sys._current_frames().get(thread.ident or 0) if thread.is_alive() else None
        place = "forked afterwards" if frame is None else f"forked while at {place_of(frame)}"
        fault = Fault(number, place, _forked(child, patience))
        assert fault.left is None or isinstance(fault.left, HandlaxError), f"{fault}: got {fault.left!r} in the child."
        yield fault
        if frame is None:
            break
        time.sleep(pause)
    if errors:
        raise errors[0]


def _forked(child: Callable[[], object], patience: float) -> BaseException | None:
    """The exception with which ``child()`` ends in a forked child, None for a result."""
    source, sink = os.pipe()
    said = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's: this process has several threads
        number = os.fork() or _end(child, sink)
    os.close(sink)
    try:
        said = _all_of(source, time.monotonic() + patience)
    finally:
        os.close(source)
        if said is None:
            os.kill(number, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    assert said is not None, f"a forked child must end, got one that goes on after {patience} s."
    assert status == 0, f"a forked child must not be ended by a signal, got {signal.Signals(-status).name}."
    error: BaseException | None = pickle.loads(said)
    return error


def _end(child: Callable[[], object], sink: int) -> NoReturn:
    """Call ``child()``, write the exception with which it ends, and end this process."""
    try:
        said = pickle.dumps(None)
        try:
            child()
        except BaseException as error:
            said = pickle.dumps(error)
        os.write(sink, said)
    finally:
        os._exit(0)


def _all_of(source: int, until: float) -> bytes | None:
    """All that can be read from a pipe; None if its other end is not closed in time."""
    said = b""
    while select.select([source], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(source, 1 << 16)
        if not part:
            return said
        said += part
    return None
