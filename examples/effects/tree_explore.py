"""All paths of a tree, and a state that outlives them: what a handler outside sees of a search.

    $ python examples/effects/tree_explore.py 5
    946
    $ python examples/effects/tree_explore.py 16
    1005

``Flip`` is answered by both bools, each with the rest of the path. The handler of the state stands outside: a path
starts with what the one before it left, and its updates are performed once, though its start is executed again.
"""

from __future__ import annotations

import sys
from typing import Any

import handlax as hx


@hx.effect
class Flip:
    def result_type(op):
        return object


@hx.effect
class Get:
    def result_type(op):
        return object


@hx.effect
class Put:
    value: int

    def result_type(op):
        return None


best = hx.handler({Flip: hx.ctl(lambda resume, op: max(resume(True), resume(False)))})
state = hx.handler({Get: lambda s, op: (s, s), Put: lambda s, op: (op.value, None)}, returns=lambda s, y: y)


def combine(x: int, y: int) -> int:
    return abs(x - 503 * y + 37) % 1009


def explore(tree: Any) -> int:
    """The values on a path to a leaf, combined from the right; that of a leaf is the state."""
    if tree is None:
        return hx.perform(Get())
    left, value, right = tree
    below = left if hx.perform(Flip()) else right
    hx.perform(Put(combine(hx.perform(Get()), value)))
    return combine(value, explore(below))


def tree_explore(height: int = 5) -> int:
    """The best path of the complete tree of values height, ..., 2, 1; ten times, each from the result before it."""
    tree: Any = None
    for value in range(1, height + 1):
        tree = (tree, value, tree)
    result = 0
    for _ in range(10):
        result = hx.handle(state, result)(hx.direct(best)(explore))(tree)
    return result


if __name__ == "__main__":
    print(tree_explore(*map(int, sys.argv[1:])))
