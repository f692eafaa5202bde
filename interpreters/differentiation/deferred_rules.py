"""Deferred rules: a user's derivatives, linear maps and batching rules, recorded only when a transformation needs them.

    derivative    run(operands, tangents) -> (results, tangents)                    None is the symbolic zero
    linear map    rule(residuals, values) -> values
    batching      rule(size, mapped, operands) -> (results, mapped)                 lanes along the first axis

A deferred rule is a field of an operation with bodies. When a handler crosses the operation, it transforms the body
now, but it cannot transform the rule, which is no program yet. So it replaces the rule by one that records the handler:
a transformed rule. To evaluate that, the handler is installed again over the stack in force (``Reinstallation``), the
operands are boxed from their parts, the inner rule is evaluated, and its results are partitioned again.

Rules are values, so that operations with rules can be cache keys. The user's function in one equals itself alone: a
program that is recorded again has rules that are asked again, and see what the function reads then.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ...effects.base.frozen_values import Value
from ...effects.base.source_locations import Site
from ...effects.core.columns import zeros_like
from ...effects.programs.printer import WRITERS
from ...effects.types.array_type import ArrayType


def describe_function(f: Any) -> str:
    """The name of a user's function in messages, such as ``f_jvp at model.py:17``."""
    name = getattr(f, "__qualname__", None) or type(f).__qualname__
    code = getattr(inspect.unwrap(f), "__code__", None)
    return f"{name} at {Site(code, 0)}" if code is not None else name


class DeferredRule(Value):
    """A user's rule that is recorded on demand; ``shown`` names the user's function in messages and program texts."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        WRITERS[cls] = lambda printer, value: f"?{value.shown!r}"

    @property
    def shown(self) -> str:
        """The name of the user's function; of a transformed rule, that of the inner one."""
        return self.inner.shown  # type: ignore[attr-defined]

    @property
    def by_user(self) -> Any:
        """The user's rule: the rule itself, or the rule that a handler transformed into this one."""
        return self if (inner := getattr(self, "inner", None)) is None else inner.by_user

    def __repr__(self) -> str:
        return f"<{self.shown}>"


def full(values: Sequence[Any], types: Sequence[ArrayType]) -> list[Any]:
    """``values`` with each None replaced by zeros of the corresponding type."""
    return [zeros_like(t) if x is None else x for x, t in zip(values, types)]
