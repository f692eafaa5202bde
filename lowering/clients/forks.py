"""Forked processes: a child has the locks of the runtime's threads without the threads, so it uses no device.

    need_own_runtime()          in a child of a process that has used a device: PlatformUnavailable

Everything else works there: what NumPy computes, and the elements of arrays that were computed before the fork.
"""

from __future__ import annotations

import os
from collections import deque
from functools import partial
from typing import Any, TypeVar

from ...effects.base.errors import PlatformUnavailable

H = TypeVar("H", bound=dict[Any, Any] | list[Any] | deque[Any])

INHERITED: list[Any] = []
"""In a forked child what the parent's runtime is, which is never freed: it would wait for its threads. Else empty."""


def of_this_process(holder: H) -> H:
    """``holder``, which is empty in a forked child: what it holds of the runtime is the parent's."""
    os.register_at_fork(after_in_child=partial(_inherit, holder))
    return holder


def _inherit(holder: Any) -> None:
    if holder:
        INHERITED.append(holder.copy())
        holder.clear()


def need_own_runtime() -> None:
    """Raise PlatformUnavailable in a forked child: it would wait for threads that it does not have."""
    if INHERITED:
        raise PlatformUnavailable(
            "a process must use devices of its own, got one that was forked when its parent had used a device.",
            hint="multiprocessing.get_context('spawn') starts new processes; or fork before a device is used.",
        )
