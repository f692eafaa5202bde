"""Rooflines: ``roofline(f, *args)`` estimates for each line of the source what its operations cost on a device.

    python examples/interpreters/roofline_by_line.py

An operation takes as long as its arithmetic or as its memory traffic, whichever is longer. Nothing is computed: the
program is recorded, and its equations are interpreted by their types, those of a body once for each iteration.
Source: Williams, Waterman & Patterson, Roofline: an insightful visual performance model (2009).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp


class Device(NamedTuple):
    """Operations and bytes for each second."""

    flops: float
    bytes: float


class Cost(NamedTuple):
    """Of the operations of a line: arithmetic, bytes read and written, and seconds without any fusion."""

    flops: float = 0
    bytes: float = 0
    seconds: float = 0

    def plus(self, other: Cost, times: float = 1) -> Cost:
        return Cost(*[mine + times * theirs for mine, theirs in zip(self, other)])


Line = tuple[str, int]


def cost(op: Any, operands: Any, results: Any, device: Device) -> Cost:
    """The cost of one equation, from the types of its operands and results."""
    flops = hx.columns.FLOPS.find(type(op))(op, operands, results)
    moved = sum([t.size * t.dtype.itemsize for t in (*operands, *results)])
    return Cost(flops, moved, max(flops / device.flops, moved / device.bytes))


def costs(program: Any, device: Device) -> dict[Line, Cost]:
    """The cost of each line of a program; of several branches the one that takes longest."""
    found: dict[Line, Cost] = defaultdict(Cost)
    for eqn in program.eqns:
        operands, results = tuple([v.aval for v in eqn.operands]), tuple([v.aval for v in eqn.outvars])
        if not eqn.op.bodied:
            line = (eqn.site.file, eqn.site.line)
            found[line] = found[line].plus(cost(eqn.op, operands, results, device))
            continue
        bodies = [costs(body, device) for body in eqn.op.bodies]
        if eqn.op.runs == "one":
            bodies = [max(bodies, key=lambda lines: sum([c.seconds for c in lines.values()]))]
        for line, c in [item for body in bodies for item in body.items()]:
            found[line] = found[line].plus(c, eqn.op.times(*operands))
    return found


def roofline(f: Callable[..., Any], *args: Any, device: Device) -> dict[Line, Cost]:
    """The cost of each line that performs operations of ``f(*args)``; of a loop of unknown length, one iteration."""
    return dict(costs(hx.make_program(f)(*args), device))


def table(lines: dict[Line, Cost], device: Device) -> str:
    """A row for each line, the slowest first, with what limits it."""
    rows = [f"{'line':>24} {'Mflop':>9} {'MB':>9} {'us':>9}  limited by"]
    for (file, line), c in sorted(lines.items(), key=lambda item: -item[1].seconds):
        limit = "arithmetic" if c.flops / device.flops >= c.bytes / device.bytes else "memory"
        place = f"{file.rpartition('/')[2]}:{line}"
        rows.append(f"{place:>24} {c.flops / 1e6:9.2f} {c.bytes / 1e6:9.2f} {c.seconds * 1e6:9.2f}  {limit}")
    return "\n".join(rows)


def model(x: Any, w: Any, v: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        h = x @ w
        return nn.gelu(h) + x, None

    x, _ = lax.scan(layer, x, w)
    return nn.softmax(x @ v).sum()


def main() -> None:
    device = Device(flops=20e12, bytes=1e12)
    x, w, v = hnp.ones((64, 512)), hnp.ones((8, 512, 512)), hnp.ones((512, 16))
    for f in (model, hx.grad(model)):
        lines = roofline(f, x, w, v, device=device)
        print(table(lines, device))
    forward = roofline(model, x, w, v, device=device)
    assert max(c.flops for c in forward.values()) == 8 * 2 * 64 * 512 * 512


if __name__ == "__main__":
    main()
