"""A loop that counts its state down: the effect crosses the loop, which is compiled.

    $ python examples/effects/countdown.py 5
    0
    $ python examples/effects/countdown.py 200000000
    0

The loop performs ``Get`` and ``Put`` and carries nothing. The handler around it adds its state to what the loop
carries, so that XLA compiles a loop over one integer.
"""

from __future__ import annotations

import sys
from typing import Any

import handlax as hx
from handlax import lax
from handlax import numpy as hnp


@hx.effect
class Get:
    """The state."""

    def result_type(op):
        return hx.ArrayType((), hnp.int64)


@hx.effect
class Put:
    """Set the state to the operand."""

    def result_type(op, x):
        return None


state = hx.handler({Get: lambda s, op: (s, s), Put: lambda s, op, x: (x, None)}, returns=lambda s, y: s)


def count() -> None:
    lax.while_loop(lambda _: hx.perform(Get()) > 0, lambda _: hx.perform(Put(), hx.perform(Get()) - 1), None)


@hx.jit
def counted(n: Any) -> Any:
    return hx.handle(state, n)(count)()


def countdown(n: int = 5) -> int:
    """The state at the end, 0."""
    return int(counted(hnp.int64(n)))


if __name__ == "__main__":
    print(countdown(*map(int, sys.argv[1:])))
