"""``wraps`` for transformed functions: they have the name, signature and docstring of the original, no more."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def wraps(fun: Callable[..., Any]) -> Callable[[Any], Any]:
    """``functools.wraps`` without attributes: ``grad(jit(f))`` must not have the method ``lower`` of ``jit(f)``."""
    return functools.wraps(fun, updated=())
