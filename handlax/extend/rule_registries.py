"""Registries of rules: the cells of one column, by primitive, as functions in JAX's form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from ..effects.base.wrapping import wraps
from ..effects.core.columns import Column, Rule
from ..effects.core.operation import OPERATIONS
from ..effects.programs.primitives import Primitive, primitive_of


class RuleRegistry(MutableMapping[Primitive, Rule]):
    """``registry[primitive] = rule`` makes ``cell(rule)`` the cell of the primitive's operation in a column.

    It holds from then on, also for programs that were traced before. The operation keeps it, not the registry.
    ``rule(primitive)`` is the rule in JAX's form of an operation that has another cell.
    """

    def __init__(self, column: Column, cell: Callable[[Rule], Rule], rule: Callable[[Primitive], Rule]):
        self.column, self.cell, self.rule = column, cell, rule

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        cell = wraps(rule)(self.cell(rule))
        cell.registry = self
        self.column.assign(primitive.operation, cell)

    def __getitem__(self, primitive: Primitive) -> Rule:
        cell = self.column.cell(primitive.operation)
        if cell is None:
            raise KeyError(primitive)
        return cell.__wrapped__ if getattr(cell, "registry", None) is self else self.rule(primitive)

    def __delitem__(self, primitive: Primitive) -> None:
        if primitive not in self:
            raise KeyError(primitive)
        self.column.assign(primitive.operation, None)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(dict.fromkeys([p for p in map(primitive_of, OPERATIONS.values()) if p in self]))

    def __len__(self) -> int:
        return len(list(iter(self)))
