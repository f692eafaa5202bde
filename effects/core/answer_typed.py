"""Effects whose result type the handlers in force determine."""

from __future__ import annotations

from typing import Any

from ..base.errors import BadCall
from ..types.array_type import ArrayType
from .operation import Operation


class UnresolvedType(BadCall):
    """The result type of an effect was needed while its field ``like`` is None."""


class AnswerTyped(Operation):
    """An effect whose result type the handlers in force determine; ``perform_typed`` writes it into ``like``."""

    __slots__ = ()
    like: Any

    def result_tree(self, *types: Any) -> Any:
        """The tree of types in the field ``like``.

        Raises: BadCall: the field is None, the type has not been resolved.
        """
        if self.like is None:
            raise UnresolvedType(
                f"{self.name}: its result type is not resolved, the field like is None.",
                hint="perform it by its public function, or by perform_typed(op).",
            )
        return self.like if isinstance(self.like, ArrayType) else self.like.thaw()
