"""A parser that reads, emits and stops: three effects in a loop without an end, which is compiled.

    $ python examples/effects/parsing_dollars.py 10
    55
    $ python examples/effects/parsing_dollars.py 20000
    200010000

The parser knows none of the three handlers: what it reads is made up, what it emits is summed, and ``Stop``, whose
clause never resumes, becomes the test of the loop. 200 million characters take some seconds.
"""

from __future__ import annotations

import sys
from typing import Any

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

END, NEWLINE, DOLLAR = 0, 10, 36


@hx.effect
class Read:
    def result_type(op):
        return hx.ArrayType((), hnp.int32)


@hx.effect
class Emit:
    def result_type(op, x):
        return None


@hx.effect
class Stop:
    def result_type(op):
        return None


def parse() -> None:
    """Emit the number of dollars of each line, up to a character that is neither dollar nor newline."""

    def step(dollars: Any) -> Any:
        character = hx.perform(Read())
        line = lambda: (hx.perform(Emit(), dollars), hnp.zeros_like(dollars))[1]
        stop = lambda: (hx.perform(Stop()), dollars)[1]
        other = lambda: lax.cond(character == NEWLINE, line, stop)
        return lax.cond(character == DOLLAR, lambda: dollars + 1, other)

    lax.while_loop(lambda _: True, step, hnp.int32(0))


@hx.jit
def dollars_of(lines: Any) -> Any:
    def read(state: Any, op: Any) -> Any:
        i, left = state  # line i has i dollars
        character = hnp.where(i > lines, END, hnp.where(left > 0, DOLLAR, NEWLINE))
        return lax.cond(left > 0, lambda: (i, left - 1), lambda: (i + 1, i + 1)), character

    reading = hx.handle(hx.handler({Read: read}, returns=lambda state, y: y), (hnp.int32(1), hnp.int32(1)))
    stopping = hx.handle(hx.handler({Stop: hx.final(lambda op: None)}))
    summing = hx.handle(hx.handler({Emit: lambda total, op, x: (total + x, None)}), hnp.int64(0))
    return summing(stopping(reading(parse)))()[0]


def parsing_dollars(n: int = 10) -> int:
    """The number of dollars of a text of ``n`` lines."""
    return int(dollars_of(n))


if __name__ == "__main__":
    print(parsing_dollars(*map(int, sys.argv[1:])))
