"""Writer: a log of values that a program appends to.

    handle(writer, ())(f)(x) = (log, y)

Values told in loops and lanes are stacked as if they were returned from there, in branches they are
``When(taken, value)``; loops of unknown length are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....effects.core.arrays import perform
from ....effects.core.operation import effect
from ....effects.trees import pytrees
from ...handlers.handler import handler
from ...handlers.state_movements import append

if TYPE_CHECKING:
    from ....effects.trees.cpp_pytrees import PyTreeDef


# appends the tree of the operands to the log
@effect(vmap="per_lane", diff="stop")
class Tell:
    tree: PyTreeDef
    remedy = "collect it around the function: hx.handle(hx.library.writer, ())(f)."

    def result_type(op, *operands):
        return None


def tell(value: Any) -> None:
    """Append a value, a tree of arrays, to the log.

    ``handle(writer, ())(lambda: tell(v))() == ((v,), None)``. It is not differentiated.
    Raises: UnhandledEffect: there is no log around.
    """
    leaves, tree = pytrees.flatten(value)
    perform(Tell(tree), *leaves)


writer = handler({Tell: lambda log, op, *leaves: ((*log, pytrees.unflatten(op.tree, leaves)), None)}, moves=append)
"""Handles ``tell``: appends to its state, a tuple."""
