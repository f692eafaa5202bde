"""Registries of rules: the cells of one column, by primitive, as functions in JAX's form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from ..effects.core.columns import Column, Rule
from ..effects.programs.primitives import Primitive


class RuleRegistry(MutableMapping[Primitive, Rule]):
    """``registry[primitive] = rule`` makes ``cell(rule)`` the cell of the primitive's operation in a column.

    It holds from then on, also for programs that were traced before.
    """

    def __init__(self, column: Column, cell: Callable[[Rule], Any]):
        self.column, self.cell = column, cell
        self.rules: dict[Primitive, Rule] = {}

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        self.column.assign(primitive.operation, self.cell(rule))
        self.rules[primitive] = rule

    def __getitem__(self, primitive: Primitive) -> Rule:
        return self.rules[primitive]

    def __delitem__(self, primitive: Primitive) -> None:
        del self.rules[primitive]
        self.column.assign(primitive.operation, None)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)
