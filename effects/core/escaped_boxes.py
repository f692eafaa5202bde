"""Escaped boxes: boxes that are used after their run has ended, or where it is not on the stack; always an error."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from ..base.errors import EscapedBox, Leak
from ..base.source_locations import NOWHERE
from ..base.stack import Run, in_force
from .arrays import Box


def check_not_escaped(box: Any, outside: Run | None) -> None:
    """Raise unless the handler installation that owns ``box`` is still active and is ``outside`` or encloses it.

    Arrays without an owner pass.

    Raises: EscapedBox: the box is used where its handler does not answer any more, or not yet.
    """
    run = box.run
    if run is not None and (outside is None or not in_force(run, outside)):
        raise escaped_box_error(box)


def check_leaks(run: Run) -> None:
    """Check that nothing refers to a box of a run that has ended; called where ``check_leaks`` is set.

    Raises: Leak: a box is still referenced.
    """
    if boxes_of([run]):
        gc.collect()  # boxes to which garbage alone refers are freed; it takes several times as long as the search
        for x in boxes_of([run]):
            raise leak_error(x)


def boxes_of(owners: Sequence[Run]) -> list[Box]:
    """The boxes in memory that belong to these runs; it looks through all objects."""
    return [x for x in gc.get_referrers(*owners) if isinstance(x, Box)]


def leak_error(box: Box) -> Leak:
    """The error for a box that is still referenced after its run has ended."""
    return Leak(
        f"{box.run.described}: no value of a trace may outlive it, got {box.type}, made at {box.made_at}, "
        "still referenced.",
        hint="return it, instead of keeping it in a variable outside the function.",
    )


def escaped_box_error(box: Any) -> EscapedBox:
    """The error for an escaped box: names its run, where that was installed, and where the box was created."""
    run = box.run
    why = "which has ended" if run.ended else "which is not in this thread's stack"
    installed = "" if run.site is None else f", installed at {run.installed_at}"
    made = "" if box.made_at == NOWHERE else f"; it was made at {box.made_at}"
    return EscapedBox(
        f"escaped box: a value {box.type} of {run.described}{installed}, {why}, was used again{made}.",
        hint=run.advice
        or "return values from the transformed function instead of storing them in variables outside it.",
    )
