"""Where a program, computed otherwise, goes another way: ``first_difference(f, *args, otherwise=g)``.

Two runs of one program are compared equation by equation, in bodies too, and iteration by iteration. The other run
is made here, by ``otherwise``: a transformation of functions, such as ``jit`` with options, ``handle(h)``, or
``handle(autocast(dtype))``; or it was recorded before, by ``record``, in whatever process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.errors import BadArgument
from ..interpreters.transformations.make_program import make_program
from .closeness import TOLERANCE
from .recordings import Recording, Transformation, logged_run, numbers, plain


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


# where an equation stands: of it and of those whose bodies it is in, the numbers among their equations, each but the
# last with that of the body, or None for a loop, in which the iteration takes this place
EquationPath = tuple[int | None, ...]


class Comparison(NamedTuple):
    """How far a value may be from the expected one."""

    tolerance: float

    def differences(
        self, program: Any, ys: Any, zs: Any, place: EquationPath = ()
    ) -> Iterator[tuple[tuple[float, ...], Difference]]:
        """Of each equation of a program, and of its bodies, the first difference of two logs, and when it is executed.

        The times of two differences are ordered as these are: an operation that has bodies ends after them.
        """
        loops = place.count(None)
        for k, (eqn, (expected, inside), (found, other)) in enumerate(zip(program.eqns, ys, zs)):
            for j, (body, y, z) in enumerate(zip(eqn.op.bodies if inside else (), inside, other)):
                yield from self.differences(body, y, z, (*place, k, None if eqn.op.runs == "loop" else j))
            same = [self.close(y, z, loops) for y, z in zip(expected, found)]
            if not np.all(same):
                iterations = tuple(np.argwhere(~np.all(same, axis=0))[0].tolist())
                counters = iter(iterations)
                time = [next(counters) if number is None else number for number in place]
                values = [[y[iterations] for y in each] for each in (expected, found)]
                site = eqn.site
                yield (*time, k, inf), Difference(eqn.op, site.file, site.line, iterations, *values)

    def close(self, y: Any, z: Any, loops: int) -> Any:
        """Whether values are close, for each iteration of the loops around them, relative to their largest element."""
        rate = self.tolerance * max([TOLERANCE.get(x.dtype.name, 0.0) for x in (y, z)])
        y, z = (numbers(x).reshape(*x.shape[:loops], prod(x.shape[loops:])) for x in (y, z))
        largest = np.abs(np.where(np.isfinite(y), y, 0)).max(-1, keepdims=True, initial=1e-30)
        return np.isclose(z, y, rtol=0, atol=rate * largest, equal_nan=True).all(-1)


def first_difference(
    f: Callable[..., Any], *args: Any, otherwise: Transformation = plain, expected: Recording | None = None,
    tolerance: float = 1.0,
) -> Difference | None:
    """The first operation of ``otherwise(f)(*args)`` whose result is not the ``expected`` one; None: there is none.

    The first that is executed: in a body of a loop, a branch or a call, too, even if what comes after it hides the
    difference. A loop of unknown length is one operation.

    Args:
        otherwise: a transformation that ``f`` is executed under.
        expected: another run of the program, by default that of ``f(*args)``.
        tolerance: how many times the tolerance of their dtypes results may differ; see ``assert_close``.

    Raises: BadArgument: ``expected`` was recorded of another program, or of other shapes.
    """
    program = make_program(f)(*args)
    found, structure = logged_run(program, args, otherwise)
    expected = logged_run(program, args)[0] if expected is None else expected
    shapes = [[x.shape for x in recording.leaves] for recording in (expected, found)]
    if found.names != expected.names or shapes[0] != shapes[1]:
        raise BadArgument("first_difference: the run was recorded of another program, or of other shapes.")
    logs = [structure.unflatten(recording.leaves) for recording in (expected, found)]
    return min(Comparison(tolerance).differences(program, *logs), key=itemgetter(0), default=(None, None))[1]
