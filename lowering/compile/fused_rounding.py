"""Whether a program fused by XLA gives the same floats, bit for bit, as its operations executed one by one.

Integers and booleans are the same, and so are floats that are the nearest ones to the exact results. But within a
program XLA may round less often, or elsewhere:

    x y + z                  a multiply-add, rounded once; the sign of x y may be changed before
    (x + c) + d, (x c) d     x + (c + d) and x (c d) for constants c and d
    16 bits                  wider between one operation and the next

So no float has 16 bits, no sum takes the result of a product or of another sum, no product that of another product. A
product by a power of two is exact, and stands between what it takes and what takes it, unless it is by 1. What rounds
loosely may begin with a sum and end with a product of its own.
"""

from __future__ import annotations

import math
from typing import Any

from ...effects.core.columns import FLOPS, data_movement
from ...effects.programs.program import Program
from ...effects.types.dtypes import ANY_INEXACT, float32, float64

Roundings = frozenset[str]
EXACT: Roundings = frozenset()
REFUSED = {"correct": EXACT, "sum": {"sum", "product", "loose"}, "product": {"product"}, "loose": {"product", "loose"}}
"""For each ``rounding`` of an operation those of operands that it may be fused with to another result."""


def loose_operations(program: Program) -> list[int] | None:
    """The numbers of the operations that round loosely; if XLA executes these, all is the same fused and one by one.

    None: fused it may be otherwise.
    """
    loose: list[int] = []
    made: dict[int, Roundings] = {}
    for i, (op, args, numbers, types) in enumerate(program.steps()):
        floats = {t.dtype for t in types} & ANY_INEXACT
        rounding = "correct" if not floats or FLOPS.find(type(op)) is data_movement else op.rounding
        taken = EXACT.union(*[made.get(n, EXACT) for n in args])
        if op.bodied or not floats <= {float32, float64}:
            return None
        if rounding == "loose":
            loose.append(i)
        power = _power_of_two([program.consts[-1 - n] for n in args if n < 0]) if rounding == "product" else None
        if power is None and taken & REFUSED[rounding]:
            return None
        if not floats or power not in (None, 1):
            taken = EXACT
        elif rounding != "correct" and power is None:
            taken = frozenset([rounding])
        made.update(dict.fromkeys(numbers, taken))
    return loose


def _power_of_two(constants: list[Any]) -> float | None:
    """The size of a constant that is a power of two; None if there is none."""
    numbers = [abs(x.value.item()) for x in constants if not x.type.shape]
    return next((x for x in numbers if math.frexp(x)[0] == 0.5), None)
