"""Processes of a group that die: the others end with an error that names them."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ...effects.base.errors import ProcessFailure
from ...effects.base.lazy_module import late_module
from ...launch import free_port, start_process
from .injection import Fault, Injection, turns
from .new_processes import Ending, ending, tell

_WITHIN = 0.02  # seconds after the beginning of a joint action


def deaths(
    program: str, processes: int = 2, *, victim: int = 1, within: bool = False, patience: float = 60.0
) -> Iterator[Fault]:
    """Execute a program as several processes, one of which is killed at a later joint action each time.

        for fault in deaths(program): every other process ended by itself, by fault.left, which names the victim

    Joint actions are barriers, programs with collectives and the end. The processes are those of ``handlax.launch``,
    without the launcher, which would end all when one has failed.

    Args:
        program: Python's source, which calls ``distributed.initialize()``.
        victim: the index of the process that is killed.
        within: whether it is killed when it has begun to take part, instead of before that.
        patience: the seconds in which the others must end.

    Raises: AssertionError: one of the others does not end, ends by a signal, or fails otherwise; or, when none is
    killed, one fails; or the victim takes part in no joint action.
    """
    assert 0 <= victim < processes, f"deaths: the victim must be one of {processes} processes, got {victim}."

    def befall(number: int) -> Fault | None:
        sources = [f"from {__name__} import die_at\ndie_at({number}, {within})\n" if index == victim else ""
                   for index in range(processes)]
        address = f"127.0.0.1:{free_port()}"
        started = [start_process(["-c", source + program], processes, index, address, None)
                   for index, source in enumerate(sources)]
        try:
            ends = [ending(process, patience) for process in started]
        finally:
            for process in started:
                process.kill()
        place = ends[victim].place
        if place is None:
            assert not any([end.status for end in ends]), "\n".join([end.errors for end in ends])
            return None
        fault = Fault(number, place, None)
        del ends[victim]
        return fault._replace(left=_failure(fault, victim, ends))

    return turns(befall)


_FAILURE = re.compile(r"^\S*\bProcessFailure: (.*)", re.MULTILINE)


def _failure(fault: Fault, victim: int, ends: list[Ending]) -> ProcessFailure | None:
    """The error with which the others ended; None: they needed the victim no more. Raises: AssertionError."""
    said = [None if end.status == 0 else _FAILURE.findall(end.errors) for end in ends]
    for end, texts in zip(ends, said):
        named = texts is None or (end.status > 0 and texts and re.search(rf"process {victim}\b", texts[-1]))
        assert named, f"{fault}: the others must name process {victim}, got the status {end.status}.\n{end.errors}"
    return next((ProcessFailure(texts[-1]) for texts in said if texts), None)


def die_at(number: int, within: bool) -> None:
    """Have this process killed at the joint action with others that is the ``number``-th from now on."""
    injection, joined = Injection(number), late_module("handlax.lowering.clients.processes").Connection

    def dying(name: str) -> Callable[..., Any]:
        method = getattr(joined, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            if injection.due():
                tell(f"process {os.environ['HANDLAX_LAUNCH_PROCESS']} killed {'within' if within else 'before'} {name}")
                if not within:
                    os.kill(os.getpid(), signal.SIGKILL)
                threading.Timer(_WITHIN, os.kill, (os.getpid(), signal.SIGKILL)).start()
            return method(*arguments, **keywords)

        return call

    for name in ("take_part", "close"):
        setattr(joined, name, dying(name))
