"""Where a program, computed otherwise, goes another way: ``first_difference(f, *args, otherwise=g)``.

Two runs of one program are compared equation by equation, in bodies too, and iteration by iteration. The other run
is made here, by ``otherwise``: a transformation of functions, such as ``jit`` with options, ``handle(h)``, or
``handle(autocast(dtype))``; or it was recorded before, by ``record_run``, in whatever process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..effects.base.errors import BadArgument
from ..interpreters.transformations.make_program import make_program
from .closeness import equal
from .recordings import EquationPath, Recording, Transformation, bodies_of, logged_run, plain


class Difference(NamedTuple):
    """The operation that differs first: its line, the iterations of the loops around it, and both results."""

    op: Any
    file: str
    line: int
    iterations: tuple[int, ...]
    expected: Sequence[Any]
    actual: Sequence[Any]

    def __str__(self) -> str:
        around = "".join([f" in iteration {i}" for i in self.iterations])
        return f"{self.op.name} at {self.file.rpartition('/')[2]}:{self.line}{around}: {self.expected} != {self.actual}"


class Comparison(NamedTuple):
    """How far a value may be from the expected one."""

    tolerance: float

    def differences(
        self, program: Any, ys: Any, zs: Any, path: EquationPath = ()
    ) -> Iterator[tuple[tuple[float, ...], Difference]]:
        """Of each equation of a program, and of its bodies, the first difference of two logs, and when it is executed.

        The times of two differences are ordered as these are: an operation that has bodies ends after them.
        """
        loops = path.count(None)
        for k, (eqn, (expected, inside), (actual, other)) in enumerate(zip(program.eqns, ys, zs)):
            for (body, y, place), z in zip(bodies_of(eqn.op, inside, (*path, k)), other):
                yield from self.differences(body, y, z, place)
            pairs = [in_both(y, z, loops) for y, z in zip(expected, actual)]
            same = [self.close(y, z, loops) for y, z in pairs]
            if not np.all(same):
                iterations = tuple(np.argwhere(~np.all(same, axis=0))[0].tolist())
                counters = iter(iterations)
                time = [next(counters) if number is None else number for number in path]
                values = [[pair[i][iterations] for pair in pairs] for i in (0, 1)]
                yield (*time, k, inf), Difference(eqn.op, eqn.site.file, eqn.site.line, iterations, *values)

    def close(self, y: Any, z: Any, loops: int) -> Any:
        """Whether values are close, for each iteration of the loops around them, relative to their largest element."""
        return equal(z, y, self.tolerance, loops).all(tuple(range(loops, y.ndim)))


def in_both(y: Any, z: Any, loops: int) -> tuple[Any, Any]:
    """The iterations for which there is room in both logs. Raises: BadArgument: values are of other shapes."""
    common = tuple([slice(min(sizes)) for sizes in zip(y.shape[:loops], z.shape[:loops])])
    if y.ndim != z.ndim or y.shape[loops:] != z.shape[loops:]:
        raise BadArgument(
            f"first_difference: the run was recorded of other shapes, got {y.shape} there and {z.shape} here.",
            hint="record it again, with arguments of these shapes.",
        )
    return y[common], z[common]


def first_difference(
    f: Callable[..., Any], *args: Any, otherwise: Transformation = plain, expected: Recording | None = None,
    tolerance: float = 1.0,
) -> Difference | None:
    """The first operation of ``otherwise(f)(*args)`` whose result is not the ``expected`` one; None: there is none.

    The first that is executed: in a body of a loop, a branch or a call, too, even if what comes after it hides the
    difference.

    Args:
        otherwise: a transformation that ``f`` is executed under.
        expected: another run of the program, by default that of ``f(*args)``.
        tolerance: how many times the tolerance of their dtypes results may differ; see ``assert_close``.

    Raises: BadArgument: ``expected`` was recorded of another program, or of other shapes.
    """
    program = make_program(f)(*args)
    actual, structure = logged_run(program, args, otherwise)
    expected = logged_run(program, args)[0] if expected is None else expected
    for k, (there, here) in enumerate(zip_longest(expected.names, actual.names, fillvalue="none")):
        if there != here:
            raise BadArgument(
                f"first_difference: the run was recorded of another program: its operation {k} is {there}, not {here}.",
                hint="record it again, of this program.",
            )
    logs = [structure.unflatten(recording.leaves) for recording in (expected, actual)]
    return min(Comparison(tolerance).differences(program, *logs), key=itemgetter(0), default=(None, None))[1]
