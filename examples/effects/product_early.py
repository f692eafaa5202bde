"""A product that ends at the first zero: a clause that never resumes leaves a thousand calls at once.

    $ python examples/effects/product_early.py 5
    0
    $ python examples/effects/product_early.py 100000
    0

``final`` is an exception as a value: the answer of its clause is the result of the handled function.
"""

from __future__ import annotations

import sys

import handlax as hx


@hx.effect
class Done:
    """End with this product."""

    product: int

    def result_type(op):
        return None


early = hx.handler({Done: hx.final(lambda op: op.product)})


def product(numbers: list[int], i: int = 0) -> int:
    """The product of the numbers from the ``i``-th on, one call within the other."""
    if i == len(numbers):
        return 1
    if numbers[i] == 0:
        hx.perform(Done(0))
    return numbers[i] * product(numbers, i + 1)


def product_early(n: int = 5) -> int:
    """The sum of ``n`` products of 1000, 999, ..., 0."""
    numbers = list(range(1000, -1, -1))
    return sum(hx.direct(early)(product)(numbers) for _ in range(n))


sys.setrecursionlimit(max(2000, sys.getrecursionlimit()))  # Python allows 1,000 calls within each other

if __name__ == "__main__":
    print(product_early(*map(int, sys.argv[1:])))
