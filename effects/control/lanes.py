"""``Lanes``: a body executed once per lane, in any order. ``vmap`` performs it for an effect that is per lane."""

from __future__ import annotations

from ..core.operation import operation
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from .loops import Scan


# y[i] = body(s, x[i])  for every lane i
@operation
class Lanes(HigherOrder):
    """Lanes of a ``vmap`` that is around ``crossed`` loops in which the operation stands."""

    bodies: tuple[Program, ...]
    shared: int
    length: int
    crossed: int = 0
    runs = "lanes"
    carry = 0

    def in_order(op):
        """The loop that executes the lanes one after another in index order."""
        return LaneLoop(op.bodies, op.shared, 0, op.length, crossed=op.crossed)


# the same in index order, with a carry
@operation
class LaneLoop(Scan):
    crossed: int = 0
