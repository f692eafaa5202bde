"""The checks of one test, as its marker and the ini file ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from .leaks import files_are_removed, state_is_kept, threads_have_ended, values_are_freed
from .trace_counts import counting, over_limits


class AskedChecks(Protocol):
    """What is asked for, by name; ``handlax_pytest`` reads it."""

    leaks: bool
    threads: bool
    files: bool
    max_traces: int | None
    max_compiles: int | None


def asked(checks: AskedChecks, found: list[str]) -> list[AbstractContextManager[None]]:
    """The blocks, outermost first, in which a test is executed; what they find they add to ``found``."""
    blocks: list[AbstractContextManager[None]] = []
    if checks.files:
        blocks.append(files_are_removed(found))
    if checks.threads:
        blocks.append(threads_have_ended(found))
    if checks.leaks:
        blocks += [values_are_freed(found), state_is_kept(found)]
    if checks.max_traces is not None or checks.max_compiles is not None:
        blocks.append(limited(found, checks.max_traces, checks.max_compiles))
    return blocks


@contextmanager
def limited(found: list[str], max_traces: int | None, max_compiles: int | None) -> Iterator[None]:
    """Add to ``found`` what was traced and compiled within the block, if that is more than is allowed."""
    with counting() as count:
        yield
    found += over_limits(count, max_traces, max_compiles)
