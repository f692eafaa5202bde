"""The sum of numbers that a loop emits: an iterator that needs no array, and no Python while it runs.

    $ python examples/effects/iterator.py 5
    15
    $ python examples/effects/iterator.py 40000000
    800000020000000

The loop knows nothing of a sum: what becomes of the numbers is the handler's, whose state the loop carries.
"""

from __future__ import annotations

import sys
from typing import Any

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect
class Emit:
    """Give the operand to the consumer."""

    def result_type(op, x):
        return None


summing = hx.handler({Emit: lambda total, op, x: (total + x, None)}, returns=lambda total, y: total)


def numbers(lower: Any, upper: Any) -> None:
    lax.fori_loop(lower, upper + 1, lambda i, _: hx.perform(Emit(), i), None)


@hx.jit
def summed(n: Any) -> Any:
    return hx.handle(summing, hnp.zeros_like(n))(numbers)(0, n)


def iterator(n: int = 5) -> int:
    """The sum of 0, 1, ..., n."""
    return int(summed(hnp.int64(n)))


if __name__ == "__main__":
    print(iterator(*map(int, sys.argv[1:])))
