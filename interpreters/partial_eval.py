"""Partial evaluation: what depends on unknown values is recorded, the rest is performed outside.

A tape is a record that answers by ownership; its residuals are what it captured.
"""

from __future__ import annotations

from typing import Any

from ..effects.operations import Operation
from .record import Record


class Tape(Record):
    """Records the operations that have one of its boxes as operand; what it captures are the residuals."""

    __slots__ = ()
    name = "partial_eval"

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        for x in operands:
            if x.run is self:
                return Record.answer(self, op, operands)
        return self.outer.answer(op, operands)
