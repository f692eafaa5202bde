"""Triples of a given sum, out of a coin: a choice among many is a sequence of flips.

    $ python examples/effects/triples.py 10
    779312

Both answers to each flip are followed, and their results added modulo a prime, so that no triple is kept.

The large size is 300, with 460212934: 4.5 million triples, an estimated half an hour, since each executes up to 300
flips again.
"""

from __future__ import annotations

import sys

import handlax as hx

MODULUS = 1_000_000_007


@hx.effect
class Flip:
    def result_type(op):
        return object


@hx.effect
class Fail:
    def result_type(op):
        return None


both = hx.ctl(lambda resume, op: (resume(True) + resume(False)) % MODULUS)
summing = hx.handler({Flip: both, Fail: hx.final(lambda op: 0)})


def choice(n: int) -> int:
    """One of n, n - 1, ..., 1."""
    while n >= 1:
        if hx.perform(Flip()):
            return n
        n -= 1
    hx.perform(Fail())
    raise AssertionError("Fail does not return")


def hashed_triple(n: int) -> int:
    """The hash of three numbers that decrease, from ``n`` at most, and have the sum ``n``."""
    i = choice(n)
    j = choice(i - 1)
    k = choice(j - 1)
    if i + j + k != n:
        hx.perform(Fail())
    return (53 * i + 53**2 * j + 53**3 * k) % MODULUS


def triples(n: int = 10) -> int:
    """The sum of the hashes of all triples."""
    return hx.direct(summing)(hashed_triple)(n)


if __name__ == "__main__":
    print(triples(*map(int, sys.argv[1:])))
