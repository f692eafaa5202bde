"""The values of a tree, one after the other: a generator out of a recursive function.

    $ python examples/effects/generator.py 5
    57

``hx.steps`` executes ``visit`` up to the next ``Yield``, at any depth of its recursion, and gives it as a value. The
generators of Python leave one function, so that each level of a recursion would pass each value on.

The large size is 25, with 67108837: 33 million steps, an estimated eight minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import handlax as hx

Tree = tuple["Tree", int, "Tree"] | None


@hx.effect
class Yield:
    """Give a value to whoever reads the generator."""

    value: int

    def result_type(op):
        return None


def complete_tree(height: int) -> Tree:
    """The tree with ``height`` at its root, one less a level below; both subtrees are the same object."""
    tree: Tree = None
    for value in range(1, height + 1):
        tree = (tree, value, tree)
    return tree


def visit(tree: Tree) -> None:
    if tree is not None:
        left, value, right = tree
        visit(left)
        hx.perform(Yield(value))
        visit(right)


def values(tree: Tree) -> Iterator[int]:
    """The values of the tree, from left to right."""
    step = hx.steps(Yield)(visit)(tree)
    while isinstance(step, hx.Step):
        yield step.op.value
        step = step.resume()


def generator(height: int = 5) -> int:
    """The sum of the values of the complete tree."""
    return sum(values(complete_tree(height)))


if __name__ == "__main__":
    print(generator(*map(int, sys.argv[1:])))
