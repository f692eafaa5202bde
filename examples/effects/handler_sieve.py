"""The primes below a number: each that is found installs a handler, which sorts its multiples out.

    $ python examples/effects/handler_sieve.py 10
    17

What is known of the primes is nowhere but in the handlers in force. A clause that performs its own operation forwards
it, to the handler of the prime before.

The large size is 60000, with 171848738: 175 million calls of clauses, an estimated ten minutes.
"""

from __future__ import annotations

import sys

import handlax as hx


@hx.effect
class Prime:
    """Whether n is a prime, a bool."""

    n: int

    def result_type(op):
        return object


every = hx.handler({Prime: lambda op: True})


def besides(prime: int) -> hx.Handler:
    """No multiple of this prime is one."""
    return hx.handler({Prime: lambda op: op.n % prime != 0 and hx.perform(op)})


def primes(start: int, n: int) -> int:
    """The sum of the primes from ``start`` on, below ``n``."""
    for i in range(start, n):
        if hx.perform(Prime(i)):
            return i + hx.handle(besides(i))(primes)(i + 1, n)
    return 0


def handler_sieve(n: int = 10) -> int:
    """The sum of the primes below ``n``."""
    return hx.handle(every)(primes)(2, n)


if __name__ == "__main__":
    print(handler_sieve(*map(int, sys.argv[1:])))
