"""Functions made of functions: they take over name, signature and documentation, and nothing else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def wraps(fun: Callable[..., Any]) -> Callable[[Any], Any]:
    """``functools.wraps`` without the attributes: ``grad(jit(f))`` has no ``lower`` that would lower ``f``."""
    return functools.wraps(fun, updated=())
