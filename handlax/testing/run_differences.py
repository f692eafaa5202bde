"""Replays: ``first_difference(f, *args, otherwise=g)`` finds where a program, computed otherwise, goes another way.

Two runs of one program are compared equation by equation; where one differs that has bodies, so are these, in the
first iteration that differs. The other run is made here, by ``otherwise``: a transformation of functions, such as
``jit`` with options, ``handle(h)``, or ``handle(autocast(dtype))``; or it was recorded before, by ``record``, in
whatever process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.errors import BadArgument
from ..effects.trees import pytrees
from ..interpreters.transformations.make_program import make_program
from .closeness import TOLERANCE
from .recordings import Recording, Transformation, logged_run, plain


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
    """How far a value may be from the expected one."""

    tolerance: float

    def close(self, y: Any, z: Any) -> Any:
        y, z = np.asarray(y), np.asarray(z)
        rate = self.tolerance * max([TOLERANCE.get(x.dtype.name, 0.0) for x in (y, z)])
        return np.isclose(z, y, rtol=0, atol=rate * np.abs(y[np.isfinite(y)]).max(initial=1e-30), equal_nan=True)

    def first(self, program: Any, ys: Any, zs: Any, iterations: tuple[int, ...] = ()) -> Difference | None:
        """The first difference between two logs of a program."""
        for eqn, (expected, inside), (found, other) in zip(program.eqns, ys, zs):
            if not all([self.close(y, z).all() for y, z in zip(expected, found)]):
                site, within = eqn.site, self.within(eqn.op, inside, other, iterations)
                return within or Difference(eqn.op, site.file, site.line, iterations, expected, found)
        return None

    def within(self, op: Any, inside: Any, other: Any, iterations: tuple[int, ...]) -> Difference | None:
        """The first difference in a body; None where none is recorded."""
        for body, ys, zs in zip(op.bodies if inside else (), inside, other):
            around = iterations
            if op.runs == "loop":
                pairs = zip(pytrees.leaves(ys), pytrees.leaves(zs))
                same = np.all([self.close(y, z).reshape(op.length, -1).all(1) for y, z in pairs], 0)
                i = int(np.argmin(same))
                around, (ys, zs) = (*iterations, i), pytrees.map(lambda x, i=i: x[i], (ys, zs))
            if (found := self.first(body, ys, zs, around)) is not None:
                return found
        return None


def first_difference(
    f: Callable[..., Any], *args: Any, otherwise: Transformation = plain, expected: Recording | None = None,
    tolerance: float = 1.0,
) -> Difference | None:
    """The first operation of ``otherwise(f)(*args)`` whose result is not the ``expected`` one; None: there is none.

    ``expected``: another run of the program, by default that of ``f(*args)``.
    """
    program = make_program(f)(*args)
    found, structure = logged_run(program, args, otherwise)
    expected = logged_run(program, args)[0] if expected is None else expected
    shapes = [[x.shape for x in recording.leaves] for recording in (expected, found)]
    if found.names != expected.names or shapes[0] != shapes[1]:
        raise BadArgument("first_difference: the run was recorded of another program, or of other shapes.")
    return Comparison(tolerance).first(program, structure.unflatten(expected.leaves), structure.unflatten(found.leaves))
