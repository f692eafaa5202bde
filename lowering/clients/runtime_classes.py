"""What of jaxlib users see as it is: the class of devices, and its guard of arrays that are freed late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...effects.base.errors import ConfigurationError
from .jaxlib_modules import Device as Device
from .jaxlib_modules import _jax


@contextmanager
def array_garbage_collection_guard(new_val: str) -> Iterator[None]:
    """Within it, say what happens when Python's garbage collector frees an array, which should have been freed before.

    Args:
        new_val: "allow"; "log": an error is written to the standard error output; "fatal": the process is aborted.

    Raises: ConfigurationError: it is none of these.
    """
    levels = _jax.guard_lib.GarbageCollectionGuardLevel
    if new_val not in ("allow", "log", "fatal"):
        raise ConfigurationError(
            f"array_garbage_collection_guard: it must be 'allow', 'log' or 'fatal', got {new_val!r}."
        )
    state = _jax.guard_lib.thread_local_state()
    before = state.garbage_collect_array
    state.garbage_collect_array = getattr(levels, new_val.upper())
    try:
        yield
    finally:
        state.garbage_collect_array = before
