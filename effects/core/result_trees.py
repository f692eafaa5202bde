"""The result of an effect as its block declares it: None, a type, a tree of types, or ``object``.

Of an ``AnswerTyped`` effect the handlers in force determine it.
"""

from __future__ import annotations

from typing import Any

from ..base.caches import AttachedCache
from ..base.errors import BadCall
from ..trees import pytrees
from ..types.array_type import ArrayType
from .operation import MEMOS, Operation

_TREES = AttachedCache("result trees", "result_trees", 1 << 16, MEMOS)
"""What an effect declares of its result by the types of its operands, attached to the effect."""
_UNKNOWN: Any = object()


def result_tree(op: Any, types: tuple[Any, ...]) -> Any:
    """``op.result_tree(*types)`` of an effect, cached on ``op.memo``."""
    memo = op.memo
    if memo is None:
        return op.result_tree(*types)
    tree = memo.result_trees.get(types, _UNKNOWN)
    return _TREES.add(memo.result_trees, types, op.result_tree(*types)) if tree is _UNKNOWN else tree


def as_declared(op: Any, types: tuple[Any, ...], results: Any) -> Any:
    """The results of an effect, a sequence, as its block declares them."""
    tree = result_tree(op, types)
    if tree is None or isinstance(tree, ArrayType) or tree is object:  # the most frequent ones, without a call
        return results[0] if results else None
    return pytrees.unflatten(pytrees.structure(tree), results)


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
