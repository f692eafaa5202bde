"""Three modes of a call: operation by operation, under ``jit``, and as one lane of ``vmap``."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .call_case import Case, function, leaves


def eager(case: Case, library: ModuleType) -> list[Any] | None:
    call, arrays = function(case, library)
    return leaves(call(*arrays))


def jit(case: Case, library: ModuleType) -> list[Any] | None:
    """None where the call does not accept traced arrays."""
    call, arrays = function(case, library)
    return leaves(library.jit(call)(*arrays)) if case.jit else None


def vmap(case: Case, library: ModuleType) -> list[Any] | None:
    """The second of two lanes; the first has every array's entries in another order. None where there are no arrays."""
    call, arrays = function(case, library)
    if not case.mapped:
        return None
    lanes = [np.stack([np.roll(a.ravel(), 1).reshape(a.shape), a]) for a in arrays]
    return [leaf[1] for leaf in leaves(library.vmap(call)(*lanes))]


MODES: dict[str, Callable[[Case, ModuleType], list[Any] | None]] = {"eager": eager, "jit": jit, "vmap": vmap}
