"""Lanes: one run of a body for each lane, in any order; what ``vmap`` makes of an effect that is performed per lane."""

from __future__ import annotations

from .control import HigherOrder
from .loops import Scan
from .operations import operation
from .programs import Program


# y[i] = body(s, x[i])  for every lane i
@operation
class Lanes(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    length: int
    runs = "lanes"
    carry = 0

    def as_loop(op):
        """The same lanes one after the other, in index order."""
        return Scan(op.bodies, op.shared, 0, op.length)
