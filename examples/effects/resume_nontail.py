"""A clause that computes with what its continuation gives: as many clauses wait for each other as are performed.

    $ python examples/effects/resume_nontail.py 5
    37

``once`` declares that the clause resumes once: nothing is logged, and each resumption goes on where the loop stands.

The large size is 20000, with 357: a thousand times 20,000 resumptions within each other, an estimated eight minutes.
"""

from __future__ import annotations

import sys

import handlax as hx


@hx.effect
class Operator:
    """Combine this number with the result of what follows."""

    x: int

    def result_type(op):
        return None


combining = hx.handler({Operator: hx.once(lambda resume, op: abs(op.x - 503 * resume() + 37) % 1009)})


def loop(n: int, result: int) -> int:
    for i in range(n, 0, -1):
        hx.perform(Operator(i))
    return result


def resume_nontail(n: int = 5, times: int = 1000) -> int:
    """The result of the loop, a thousand times, each from the result before it."""
    result = 0
    for _ in range(times):
        result = hx.direct(combining)(loop)(n, result)
    return result


if __name__ == "__main__":
    print(resume_nontail(*map(int, sys.argv[1:])))
