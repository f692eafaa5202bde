"""Recorded runs: ``record_run(f, *args)`` executes a program, and keeps the results of every equation in it.

The program becomes a function that returns, besides its results, a log: for each equation its results and the logs of
its bodies, those of a loop stacked over its iterations, those of a branch that is not taken zeros. In the log of a loop
of unknown length there is room for some iterations; a run with more is executed again, with more room. Bodies that run
on meshes are one equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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


# where an equation stands: of it and of those in whose bodies it is, the numbers among their equations, each but the
# last with None, for the iteration, if its bodies run in a loop, and the number of the body
EquationPath = tuple[int | None, ...]
ROOM = 8  # iterations that there is room for in the log of a loop of unknown length, where not more are known


class Logging(NamedTuple):
    """Executes programs and keeps what their equations give; ``room``: for iterations of loops of unknown length."""

    room: Mapping[EquationPath, int]

    def run(self, program: Any, xs: Sequence[Any], path: EquationPath = ()) -> tuple[list[Any], list[Any]]:
        """The results of a program; and for each equation its results with the logs of its bodies."""
        values, log = dict(zip(program.invars, xs)), []
        value = lambda v: v.val if isinstance(v, Literal) else values[v]
        for k, eqn in enumerate(program.eqns):
            results, inside, *count = self.executed(eqn.op, [*map(value, eqn.operands)], (*path, k))
            log.append(([*results, *count], inside))
            values.update(zip(eqn.outvars, results))
        return [*map(value, program.outvars)], log

    def executed(self, op: Any, xs: list[Any], path: EquationPath) -> tuple[Any, ...]:
        """The results of an operation, the logs of its bodies, and, if their number is unknown, of its iterations."""
        runs = op.runs if op.bodied else None
        if runs == "lanes":
            op, runs = op.in_order(), "loop"
        if runs == "once":
            results, log = self.run(op.bodies[0], xs, (*path, 0))
            return results, [log]
        if runs == "loop":
            _, shared, carry, each = op.groups(xs)
            split = lambda results, log: (results[: op.carry], (results[op.carry :], log))
            step = lambda c, slices: split(*self.run(op.bodies[0], [*shared, *c, *slices], (*path, None, 0)))
            carry, (out, log) = lax.scan(step, carry, each, op.length, reverse=op.backwards)
            return [*carry, *out], [pytrees.map(lambda x: x[::-1], log) if op.backwards else log]
        if runs == "until":
            return self.until(op, xs, path)
        if runs == "one":
            bodies: list[Any] = [partial(self.run, body, xs[1:], (*path, i)) for i, body in enumerate(op.bodies)]
            types = [eval_shape(body)[1] for body in bodies]
            branches = [partial(chosen, i, bodies, types) for i in range(len(bodies))]
            return lax.switch(hnp.asarray(xs[0]).astype("int32"), branches)
        return pytrees.leaves(perform(op, *xs)), []

    def until(self, op: Any, xs: list[Any], path: EquationPath) -> tuple[Any, ...]:
        """``executed`` for a loop of unknown length: its test is computed once more than its body."""
        _, shared, carry, _ = op.groups(xs)
        room = self.room.get(path, ROOM)
        test, body = [lambda c, i=i: self.run(op.bodies[i], [*shared, *c], (*path, None, i)) for i in (0, 1)]

        def put(logs: Any, log: Any, i: Any) -> Any:
            return pytrees.map(lambda rows, x: rows.at[i].set(x, mode="drop"), logs, log)

        def step(state: Any) -> Any:
            carry, _, i, (tests, steps) = state
            carry, log = body(carry)
            (more,), tested = test(carry)
            return carry, more, i + 1, (put(tests, tested, i + 1), put(steps, log, i))

        (more,), tested = test(carry)
        logs = put(zeros(eval_shape(lambda: test(carry)[1]), room + 1), tested, 0)
        state = carry, more, 0, (logs, zeros(eval_shape(lambda: body(carry)[1]), room))
        carry, _, count, logs = lax.while_loop(lambda state: state[1], step, state)
        return carry, [*logs], count


def zeros(types: Any, *sizes: int) -> Any:
    """Zeros of these types, as many as ``sizes`` says along new first axes."""
    return pytrees.map(lambda t: hnp.zeros((*sizes, *t.shape), t.dtype), types)


def chosen(i: int, bodies: Sequence[Callable[[], Any]], types: Sequence[Any]) -> Any:
    """The results of a branch, and the logs of all branches, of the others zeros."""
    results, log = bodies[i]()
    return results, [log if j == i else zeros(other) for j, other in enumerate(types)]


def bodies_of(op: Any, inside: Sequence[Any], path: EquationPath) -> Iterator[tuple[Any, Any, EquationPath]]:
    """The bodies of an operation that are recorded, the log of each, and the path to it."""
    for j, (body, log) in enumerate(zip(op.bodies if inside else (), inside)):
        yield body, log, (*path, None, j) if op.runs in ("loop", "lanes", "until") else (*path, j)


def counts(program: Any, log: Any, path: EquationPath = ()) -> Iterator[tuple[EquationPath, int]]:
    """The greatest number of iterations of each loop of unknown length in a log."""
    for k, (eqn, (results, inside)) in enumerate(zip(program.eqns, log)):
        if inside and eqn.op.runs == "until":
            yield (*path, k), int(np.max(results[-1], initial=0))
        for body, entries, place in bodies_of(eqn.op, inside, (*path, k)):
            yield from counts(body, entries, place)


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


def logged_run(program: Any, args: Any, otherwise: Transformation = plain) -> tuple[Recording, Any]:
    """A run of a program under a transformation, and the structure of its log."""
    operands, room = [*map(as_array, pytrees.leaves(args))], dict[EquationPath, int]()
    while True:
        leaves, structure = pytrees.flatten(otherwise(lambda *xs: Logging(room).run(program, xs)[1])(*operands))
        recording = Recording([*names(program)], [*map(data, leaves)])
        iterations = dict(counts(program, structure.unflatten(recording.leaves)))
        if all([count <= room.get(path, ROOM) for path, count in iterations.items()]):
            return recording, structure
        room |= {path: count for path, count in iterations.items() if count > ROOM}


def record_run(f: Callable[..., Any], *args: Any, otherwise: Transformation = plain) -> Recording:
    """The values of all equations of ``f(*args)``, executed under a transformation ``otherwise`` such as ``jit``.

        record_run(f, *args).leaves[-1] == f(*args)         bit for bit, where f ends with the operation that it returns

    Numbers among the arguments are inputs of the program, weakly typed as those of ``jit``. In which order the results
    stand, and those in bodies, follows from the program.

    >>> from handlax import numpy as hnp
    >>> record_run(lambda x: hnp.sin(2.0 * x), 0.5).names
    ['mul', 'sin']
    """
    return logged_run(make_program(f)(*args), args, otherwise)[0]
