"""Replays: ``first_difference(f, *args, otherwise=g)`` finds where a program, computed otherwise, goes another way.

    python examples/interpreters/first_difference.py

``otherwise`` is any transformation of functions, such as ``jit`` or ``handle(h)``. Both computations are followed
equation by equation, each with its own values, into calls, branches and loops; in a loop the first iteration after
which they differ is found by bisection, in as many runs as its length has digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax import operations as o
from handlax.core import Literal
from handlax.extend import as_array

Transformation = Callable[[Callable[..., Any]], Callable[..., Any]]


class Difference(NamedTuple):
    """The operation that differs first: its line, the iterations of the loops around it, and both results."""

    op: Any
    file: str
    line: int
    iterations: tuple[int, ...]
    expected: Sequence[Any]
    found: Sequence[Any]

    def __str__(self) -> str:
        around = "".join([f" in iteration {i}" for i in self.iterations])
        return f"{self.op.name} at {self.file.rpartition('/')[2]}:{self.line}{around}: {self.expected} != {self.found}"


class Comparison(NamedTuple):
    """How the other computation is made, and how far a value of it may be from that of the first one."""

    otherwise: Transformation
    tolerance: float

    def differ(self, ys: Any, zs: Any) -> bool:
        close = lambda y, z: np.allclose(y, z, rtol=self.tolerance, atol=self.tolerance, equal_nan=True)
        return not all(map(close, ys, zs))

    def results(self, op: Any, xs: Any, zs: Any) -> Any:
        """The results of an operation on the operands of each computation."""
        perform = lambda *operands: op.as_results(hx.perform(op, *operands))
        return perform(*xs), self.otherwise(perform)(*zs)

    def follow(self, program: Any, xs: Any, zs: Any, iterations: tuple[int, ...] = ()) -> Difference | None:
        """The first difference in a program, of which the two computations have the arguments ``xs`` and ``zs``."""
        values = dict(zip(program.invars, zip(xs, zs)))
        for eqn in program.eqns:
            pairs = [(v.val, v.val) if isinstance(v, Literal) else values[v] for v in eqn.invars]
            xs, zs = [x for x, _ in pairs], [z for _, z in pairs]
            expected, found = self.results(eqn.op, xs, zs)
            if self.differ(expected, found):
                within = self.within(eqn.op, xs, zs, iterations) if eqn.op.bodied else None
                site = eqn.site
                return within or Difference(eqn.op, site.file, site.line, iterations, expected, found)
            values.update(zip(eqn.outvars, zip(expected, found)))
        return None

    def within(self, op: Any, xs: Any, zs: Any, iterations: tuple[int, ...]) -> Difference | None:
        """The first difference in a body; None where no single run of one has it, as where the tests differ."""
        if op.runs == "once":
            return self.follow(op.bodies[0], xs, zs, iterations)
        if op.runs == "one" and xs[0] == zs[0]:
            return self.follow(op.bodies[int(np.clip(xs[0], 0, len(op.bodies) - 1))], xs[1:], zs[1:], iterations)
        if op.runs != "loop":
            return None
        same, differs = 0, op.length
        while differs - same > 1:
            middle = (same + differs) // 2
            shorter, operands = first_iterations(op, middle, xs), first_iterations(op, middle, zs)
            if self.differ(*self.results(shorter[0], shorter[1], operands[1])):
                differs = middle
            else:
                same = middle
        inputs = [entering(op, same, operands, transform) for operands, transform in ((xs, None), (zs, self.otherwise))]
        return self.follow(op.bodies[0], *inputs, (*iterations, same))


def first_iterations(op: Any, count: int, operands: Any) -> Any:
    """The loop of the first ``count`` iterations, and its operands: fewer slices."""
    _, shared, carry, each = op.groups(operands)
    sliced = [x[len(x) - count :] if op.backwards else x[:count] for x in each]
    return op.with_bodies(op.bodies, length=count), [*shared, *carry, *sliced]


def entering(op: Any, iteration: int, operands: Any, transform: Transformation | None) -> list[Any]:
    """What the body is given in an iteration of a loop."""
    _, shared, carry, each = op.groups(operands)
    if iteration:
        shorter, fewer = first_iterations(op, iteration, operands)
        perform = lambda *xs: hx.perform(shorter, *xs)
        carry = list((transform or (lambda f: f))(perform)(*fewer))[: op.carry]
    at = op.length - 1 - iteration if op.backwards else iteration
    return [*shared, *carry, *[x[at] for x in each]]


def first_difference(
    f: Callable[..., Any], *args: Any, otherwise: Transformation, tolerance: float = 1e-4
) -> Difference | None:
    """The first operation of ``f(*args)`` whose result is another one in ``otherwise(f)``; None: there is none."""
    leaves = [*map(as_array, hx.tree.leaves(args))]
    return Comparison(otherwise, tolerance).follow(hx.make_program(f)(*args), leaves, leaves)


def main() -> None:
    worse = hx.handler({o.Exp: lambda op, x: hx.perform(op, x) * hnp.where(x > 1.5, 1.01, 1.0)})

    def f(x: Any) -> Any:
        x = lax.fori_loop(0, 1000, lambda i, c: c + 2e-3 * hnp.exp(-c) * hnp.cos(c), x)
        return lax.fori_loop(0, 1000, lambda i, c: c + 1e-3 * hnp.log(hnp.exp(c)) * hnp.sin(c), x)

    print(first_difference(f, 0.5, otherwise=hx.handle(worse)))
    assert first_difference(f, 0.5, otherwise=hx.jit) is None


if __name__ == "__main__":
    main()
