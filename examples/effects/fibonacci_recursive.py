"""Recursion without effects: what calls cost in Python, to compare the other programs with.

    $ python examples/effects/fibonacci_recursive.py 5
    8
    $ python examples/effects/fibonacci_recursive.py 42
    433494437
"""

from __future__ import annotations

import sys


def fibonacci_recursive(n: int = 5) -> int:
    """The ``n``-th Fibonacci number, where the first two are 1."""
    return 1 if n < 2 else fibonacci_recursive(n - 1) + fibonacci_recursive(n - 2)


if __name__ == "__main__":
    print(fibonacci_recursive(*map(int, sys.argv[1:])))
