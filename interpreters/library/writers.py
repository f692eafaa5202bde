"""Writer: a log of values.

    handle(writer, ())(f)(x) = (log, y)

Loops and lanes stack what they tell, branches give ``When(taken, value)``; a loop of unknown length is refused.
"""

from __future__ import annotations

from typing import Any

from ...effects import trees
from ...effects.arrays import perform
from ...effects.operations import effect
from ...effects.treedefs import TreeDef
from ..handler import handler
from ..movements import append


# the tree of the operands goes into the log
@effect(vmap="per_lane", diff="stop")
class Tell:
    tree: TreeDef
    remedy = "collect it around the function: hx.handle(hx.library.writer, ())(f)."

    def result_type(op, *leaves):
        return None


def tell(value: Any) -> None:
    """Put a value, a tree of arrays, into the log.

    ``handle(writer, ())(lambda: tell(v))() == ((v,), None)``. It has no derivative.
    Raises: UnhandledEffect: there is no log around.
    """
    leaves, tree = trees.flatten(value)
    perform(Tell(tree), *leaves)


writer = handler({Tell: lambda log, op, *leaves: ((*log, trees.unflatten(op.tree, leaves)), None)}, moves=append)
"""Answers ``tell`` by appending to its state, a tuple."""
