"""What the rule of a primitive gives, compared with the types that it must have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.base.errors import TreeMismatch
from ..effects.core.operation import result_type
from ..effects.types.array_type import ArrayType
from ..interpreters.core.rule_results import checked


def types_of_results(op: Any, operands: Sequence[ArrayType]) -> Sequence[ArrayType]:
    """The types of the results of ``op`` on operands of these types."""
    types: Sequence[ArrayType] = op.as_results(result_type(op, tuple(operands)))
    return types


def list_of(shown: str, what: str, given: Any, count: int) -> Sequence[Any]:
    """So many parts of what a rule gives. Raises: TreeMismatch: they are more or fewer, or no list."""
    if isinstance(given, (list, tuple)) and len(given) == count:
        return given
    got = len(given) if isinstance(given, (list, tuple)) else type(given).__name__
    raise TreeMismatch(f"{shown}: the rule must give a list of {count} {what}, got {got}.")


def checked_list(shown: str, given: Any, types: Sequence[ArrayType]) -> list[Any]:
    """The results that a rule gives, one of each type.

    Raises: TreeMismatch: they are more or fewer. ShapeMismatch, DTypeMismatch: one has another type. BadCall: one is no
    array.
    """
    return [checked(shown, "a result", y, t) for y, t in zip(list_of(shown, "results", given, len(types)), types)]


def checked_results(op: Any, rule: str, given: Any, types: Sequence[ArrayType]) -> Any:
    """The results of ``op`` that a rule gives, as a cell gives them. Raises: as ``checked_list``."""
    return op.from_results(checked_list(f"{op.name}, {rule}", given if op.multiple_results else [given], types))
