"""What a test may not leave behind, as its marker and the ini file ask for it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from .leaks import files_are_removed, state_is_kept, threads_have_ended, values_are_freed


class AskedChecks(Protocol):
    """What is asked for, by name; ``handlax_pytest`` reads it."""

    leaks: bool
    threads: bool
    files: bool


def blocks(checks: AskedChecks, found: list[str]) -> list[AbstractContextManager[None]]:
    """The blocks, outermost first, in which a test is executed; what they find they add to ``found``."""
    made: list[AbstractContextManager[None]] = []
    if checks.files:
        made.append(files_are_removed(found))
    if checks.threads:
        made.append(threads_have_ended(found))
    if checks.leaks:
        made += [values_are_freed(found), state_is_kept(found)]
    return made
