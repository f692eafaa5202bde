"""Boxes that outlive their run, and the error that says whose they were."""

from __future__ import annotations

from typing import Any

from .errors import EscapedBox
from .stack import Run, in_force


def check_foreign(box: Any, outside: Run | None) -> None:
    """A box of another run may be met only while its run lies further out in the stack.

    Raises: EscapedBox: its run has ended, or is no part of this stack.
    """
    run = box.run
    if run is not None and (outside is None or not in_force(run, outside)):
        raise escaped(box)


def escaped(box: Any) -> EscapedBox:
    run = box.run
    why = "which has ended" if run.ended else "which is not in this thread's stack"
    return EscapedBox(
        f"escaped box: a value {box.type} of {run.label}, installed at {run.installed_at}, {why}, was used again; "
        f"it was made at {box.made_at}.",
        hint="return values from the transformed function instead of keeping them in variables outside it.",
    )
