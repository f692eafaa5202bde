"""Programs in new processes, each of which a fault befalls at a later place than the one before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .injection import Fault, turns

_MARK = "fault: "
PIPES: dict[str, Any] = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Ending(NamedTuple):
    """How a process ended: its status, negative for a signal, its standard error, and the place at which the fault
    befell it, None where it ended before.
    """

    status: int
    errors: str
    place: str | None


def tell(place: str) -> None:
    """Tell the process that awaits the end of this one the place of the fault."""
    sys.stdout.write(f"\n{_MARK}{place}\n")
    sys.stdout.flush()


def ending(process: subprocess.Popen[str], patience: float) -> Ending:
    """The end of a process. Raises: AssertionError: it goes on after so many seconds; it is killed."""
    try:
        out, errors = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        errors = process.communicate(timeout=60)[1]  # its pipes may be open in what it has started
        raise AssertionError(f"a process must end, got one that goes on after {patience} s.\n{errors}") from None
    places = [line.removeprefix(_MARK) for line in out.splitlines() if line.startswith(_MARK)]
    return Ending(process.returncode, errors, places[0] if places else None)


def every_process(
    source_of: Callable[[int], str], may_end: Callable[[Ending], bool], every: int, patience: float
) -> Iterator[Fault]:
    """Execute ``source_of(0)``, ``source_of(every)`` and so on in new processes, until one ends before its fault.

    Raises: AssertionError: a process goes on after ``patience``, ends as ``may_end`` does not allow, or, without a
    fault, fails; or no fault befalls it.
    """

    def befall(number: int) -> Fault | None:
        end = ending(subprocess.Popen([sys.executable, "-c", source_of(number)], **PIPES), patience)
        if end.place is None:
            assert end.status == 0, f"a program must end by itself, got the status {end.status}.\n{end.errors}"
            return None
        assert may_end(end), f"fault {number}, {end.place}: got the status {end.status}.\n{end.errors}"
        return Fault(number, end.place, None)

    return turns(befall, every)
