"""Queens that do not attack each other: a search that is written as if every choice were right.

    $ python examples/effects/nqueens.py 5
    10

The clause of ``Pick`` resumes the rest of the search once for each row, and adds up what each finds. The first
resumption goes on where the search stands; each later one executes it again, with the rows that it had so far.

The large size is 12, with 14200: ten million resumptions, an estimated ten minutes.
"""

from __future__ import annotations

import sys

import handlax as hx


@hx.effect
class Pick:
    """One of the numbers 1, 2, ..., n."""

    n: int

    def result_type(op):
        return object


@hx.effect
class Fail:
    """Give up what was picked."""

    def result_type(op):
        return None


counting = hx.handler(
    {
        Pick: hx.ctl(lambda resume, op: sum(resume(row) for row in range(1, op.n + 1))),
        Fail: hx.final(lambda op: 0),
    },
    returns=lambda board: 1,
)


def board(n: int) -> list[int]:
    """The row of the queen in each column."""
    rows: list[int] = []
    for column in range(n):
        row = hx.perform(Pick(n))
        if any(row in (other, other + column - i, other - column + i) for i, other in enumerate(rows)):
            hx.perform(Fail())
        rows.append(row)
    return rows


def nqueens(n: int = 5) -> int:
    """The number of ways to place ``n`` queens."""
    return hx.direct(counting)(board)(n)


if __name__ == "__main__":
    print(nqueens(*map(int, sys.argv[1:])))
