"""The kind of cache for what is derived from programs and operations with bodies, by value."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..base.caches import Cache
from ..core.operation import Operation
from .program import Program, has_rule, holds_rules, memoised


class ProgramCache(Cache):
    """A cache by keys with programs or operations among their elements: equal programs share what is derived from them.

    What is derived from a program with a user's rule or policy, a function that may hold data of any size, is kept by
    that program alone, and freed with it.
    """

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        holder = _holder(key)
        return super().get(key, make) if holder is None else memoised(holder, (self.name, key), make)


def _holder(key: Any) -> Program | None:
    """The program that keeps what is derived by this key: one with a rule, or a body of an operation with one."""
    for x in key if isinstance(key, tuple) else (key,):
        if isinstance(x, Program) and holds_rules(x):
            return x
        if isinstance(x, Operation) and x.bodied:
            bodies: tuple[Program, ...] = x.bodies  # type: ignore[attr-defined]
            if has_rule(x) or any(map(holds_rules, bodies)):
                return bodies[0]
    return None
