"""Certified bounds: ``bounds(f)(lo, hi)`` contains f(x), in exact arithmetic, for every x with lo <= x <= hi.

    python examples/interpreters/interval_bounds.py

A value is a pair of ends, and an operation acts on ends by its rule, in interval_rules.py. The ends are rounded
outwards by more than the error of the operation, so that the bounds hold for real numbers. Operations without a rule
that consist of others, such as softmax, are interpreted by their decomposition.
"""

from __future__ import annotations

from typing import Any

from interval_rules import BOUNDS, hull

import handlax as hx
from handlax import nn
from handlax import numpy as hnp
from handlax.extend import STACK, BodyTransformer, Box, as_array, cross, inside, installed, interpret
from handlax.operations import ConvertElementType


class Interval(Box):
    __slots__ = ("ends",)

    def __init__(self, run: Any, lo: Any, hi: Any):
        self.run, self.type, self.ends = run, lo.type, (lo, hi)


class Intervals(BodyTransformer):
    """Answers operations on its boxes by the column ``bounds``, else by their decomposition."""

    __slots__ = ()

    def key(self) -> str:
        return "bounds"

    def ends(self, x: Any) -> Any:
        return x.ends if x.run is self else (x, x)

    def split(self, x: Any) -> Any:
        return (True, x.ends) if x.run is self else (None, (x,))

    def box(self, mark: Any, parts: Any) -> Any:
        return Interval(self, *parts) if mark else parts[0]

    def part_types(self, mark: Any, type: Any) -> Any:
        return (type, type) if mark else (type,)

    def force(self, x: Any, mark: Any) -> Any:
        return self.ends(x) if mark else (x,)

    def answer(self, op: Any, operands: Any) -> Any:
        if all([x.run is not self for x in operands]):
            return self.outer.answer(op, operands)
        with inside(self.outer):
            if op.bodied:
                return cross(self, op, operands)
            if hx.columns.DECOMPOSE.has(type(op)) and not BOUNDS.has(type(op)):
                return self.decompose(op, operands)
            ends = BOUNDS.find(type(op))(op, *map(self.ends, operands))
            return self.interval(ends, op.result_type(*[x.type for x in operands]))

    def interval(self, ends: Any, type: Any) -> Any:
        return Interval(self, *[hx.perform(ConvertElementType(type.dtype, type.weak), end) for end in ends])

    def choose(self, op: Any, operands: Any) -> Any:
        """Where an interval chooses the branch, the hull of what all pure branches give."""
        if op.runs != "one" or op.effects:
            return super().choose(op, operands)
        with inside(self):
            results = [interpret(body, operands[op.selects :]) for body in op.bodies]
        with inside(self.outer):
            hulls = [hull(*[end for y in ys for end in self.ends(y)]) for ys in zip(*results)]
            return tuple(map(self.interval, hulls, op.bodies[0].out_types))


def bounds(f: Any) -> Any:
    """``bounds(f)(lo, hi) == (least, largest)``, trees like the result of ``f(x)``."""

    def bounded(lo: Any, hi: Any) -> Any:
        run = Intervals(STACK.get(), "bounds")
        with installed(run):
            y = f(hx.tree.map(lambda a, b: Interval(run, as_array(a), as_array(b)), lo, hi))
        return tuple([hx.tree.map(lambda y: run.ends(as_array(y))[i], y) for i in (0, 1)])

    return bounded


def network(x: Any) -> Any:
    """Two layers, the second one twice, and the probability of the first class."""
    w = hnp.sin(hnp.arange(64.0).reshape(8, 8)) / 2
    x = hx.lax.fori_loop(0, 2, lambda i, h: hnp.tanh(w @ h), nn.relu(w[:, :3] @ x))
    return nn.softmax(x)[0]


def main() -> None:
    x = hnp.array([0.3, -0.2, 0.5])
    for radius in (1e-3, 1e-2):
        lo, hi = hx.jit(bounds(network))(x - radius, x + radius)
        least, largest = bounds(hx.grad(network))(x - radius, x + radius)
        slope = hnp.maximum(abs(least), abs(largest)).sum()
        print(f"+-{radius}: between {float(lo):.4f} and {float(hi):.4f}, with a slope of at most {float(slope):.3f}")
        assert lo <= network(x) <= hi


if __name__ == "__main__":
    main()
