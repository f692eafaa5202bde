"""Recorded runs: ``record(f, *args)`` executes a program, and keeps the results of every equation in it.

The program becomes a function that returns, besides its results, a log: for each equation its results and the logs of
its bodies, those of a loop stacked over its iterations, those of a branch that is not taken zeros. Loops of unknown
length, and bodies that run in lanes or on meshes, are one equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import lax
from .. import numpy as hnp
from ..effects.core.arrays import as_array, perform
from ..effects.programs.equation_views import Literal
from ..effects.trees import pytrees
from ..effects.types.dtypes import named
from ..interpreters.transformations.make_program import make_program
from ..lowering.jit.ahead_of_time import eval_shape
from .closeness import data

Transformation = Callable[[Callable[..., Any]], Callable[..., Any]]


def plain(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def logged(program: Any, *xs: Any) -> tuple[list[Any], list[Any]]:
    """The results of a program; and for each equation its results with the logs of its bodies."""
    values, log = dict(zip(program.invars, xs)), []
    value = lambda v: v.val if isinstance(v, Literal) else values[v]
    for eqn in program.eqns:
        results, inside = executed(eqn.op, [*map(value, eqn.operands)])
        log.append((list(results), inside))
        values.update(zip(eqn.outvars, results))
    return [*map(value, program.outvars)], log


def executed(op: Any, xs: list[Any]) -> tuple[Any, list[Any]]:
    """The results of an operation, and the logs of its bodies: of a loop stacked, of a branch not taken zeros."""
    if op.bodied and op.runs == "once":
        results, log = logged(op.bodies[0], *xs)
        return results, [log]
    if op.bodied and op.runs == "loop":
        _, shared, carry, each = op.groups(xs)
        split = lambda results, log: (results[: op.carry], (results[op.carry :], log))
        step = lambda c, slices: split(*logged(op.bodies[0], *shared, *c, *slices))
        carry, (out, log) = lax.scan(step, carry, each, op.length, reverse=op.backwards)
        return [*carry, *out], [pytrees.map(lambda x: x[::-1], log) if op.backwards else log]
    if op.bodied and op.runs == "one":
        bodies: list[Any] = [lambda body=body: logged(body, *xs[1:]) for body in op.bodies]
        types = [eval_shape(body)[1] for body in bodies]
        branches = [partial(chosen, i, bodies, types) for i in range(len(bodies))]
        return lax.switch(hnp.asarray(xs[0]).astype("int32"), branches)
    return pytrees.leaves(perform(op, *xs)), []


def chosen(i: int, bodies: Sequence[Callable[[], Any]], types: Sequence[Any]) -> Any:
    """The results of a branch, and the logs of all branches, of the others zeros."""
    results, log = bodies[i]()
    zeros = lambda t: hnp.zeros(t.shape, t.dtype)
    return results, [log if j == i else pytrees.map(zeros, other) for j, other in enumerate(types)]


def names(program: Any) -> Iterator[str]:
    """The names of the operations of a program, in order, each before those in its bodies."""
    for eqn in program.eqns:
        yield eqn.op.name
        for body in eqn.op.bodies if eqn.op.bodied else ():
            yield from names(body)


class Recording(NamedTuple):
    """A run: the names of its operations, and the leaves of its log, bit for bit in the dtypes that they had."""

    names: Sequence[str]
    leaves: Sequence[np.ndarray]

    def save(self, file: Any) -> None:
        """Write it; ``file``: a path, or a file that is open for writing."""
        dtypes = [x.dtype.name for x in self.leaves]
        np.savez(file, *map(stored, self.leaves), names=np.array(self.names), dtypes=np.array(dtypes))


def load(file: Any) -> Recording:
    """The recording that was saved."""
    with np.load(file) as saved:
        leaves = [saved[f"arr_{i}"].view(named(dtype)) for i, dtype in enumerate(saved["dtypes"].tolist())]
        return Recording(saved["names"].tolist(), leaves)


def is_numpys(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy itself has a dtype."""
    return dtype.kind in "biufc"


def stored(x: np.ndarray) -> np.ndarray:
    """An array as NumPy writes it: of another library's dtype, its bits."""
    return x if is_numpys(x.dtype) else x.view(f"uint{8 * x.dtype.itemsize}")


def numbers(x: np.ndarray) -> np.ndarray:
    """An array in a dtype in which NumPy computes."""
    return x if is_numpys(x.dtype) else x.astype(np.float64)


def logged_run(program: Any, args: Any, otherwise: Transformation = plain) -> tuple[Recording, Any]:
    """A run of a program under a transformation, and the structure of its log."""
    log = otherwise(lambda *xs: logged(program, *xs)[1])(*map(as_array, pytrees.leaves(args)))
    leaves, structure = pytrees.flatten(log)
    return Recording([*names(program)], [*map(data, leaves)]), structure


def record(f: Callable[..., Any], *args: Any, otherwise: Transformation = plain) -> Recording:
    """The values of all equations of ``f(*args)``, executed under a transformation ``otherwise`` such as ``jit``.

        record(f, *args).leaves[-1] == f(*args)         bit for bit, where f ends with the operation that it returns

    Numbers among the arguments are inputs of the program, weakly typed as those of ``jit``. In which order the results
    stand, and those in bodies, follows from the program.

    >>> from handlax import numpy as hnp
    >>> record(lambda x: hnp.sin(2.0 * x), 0.5).names
    ['mul', 'sin']
    """
    return logged_run(make_program(f)(*args), args, otherwise)[0]
