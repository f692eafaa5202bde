"""Branches, chosen by a traced value, that perform operations with ``ctl`` clauses: the rest of the program after them.

    joined_branch     every body ends by resuming, as most do: one branch gives results and state, and one rest follows
    parted_branch     otherwise: in each body the rest is a call of one program, recorded once

Both take ``evaluate(body, values, state, resume)``, which evaluates a body and calls ``resume(results, state)`` for the
answer of what follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ...effects.base import config
from ...effects.base.errors import DTypeMismatch, TreeMismatch
from ...effects.base.stack import current, inside
from ...effects.control.branches import Cond
from ...effects.control.recorded_bodies import with_types
from ...effects.core.arrays import as_array
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.higher_order import Call
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ..core.record import Record, record
from .installation import NO_STATE
from .state_movements import leaves_of

Evaluate = Callable[..., Any]
Resume = Callable[[Sequence[Any], Any], Any]


def _leaves_of(state: Any) -> tuple[list[Any], Any]:
    """The leaves of a state and its structure, which is None where there is no state."""
    return ([], None) if state is NO_STATE else leaves_of(state)


def _state_of(structure: Any, leaves: Sequence[Any]) -> Any:
    return NO_STATE if structure is None else pytrees.unflatten(structure, leaves)


class _NotJoined(Exception):
    """A body does not end by resuming: it resumes twice or under another handler, or goes on afterwards."""


def joined_branch(op: Any, xs: tuple[Any, ...], state: Any, evaluate: Evaluate) -> tuple[Any, Any] | None:
    """Results and state after a branch whose bodies all end by resuming; None: one of them does not.

    A body ends by resuming if after ``resume`` nothing is performed, and if its answer is that of ``resume``. This
    answer is a token here, of which nothing can be computed.
    """
    leaves, structure = _leaves_of(state)
    index, *operands = (*xs, *leaves)
    structures: list[Any] = []

    def results_and_state(body: Program, values: Sequence[Any]) -> list[Any]:
        run = cast(Record, current())
        scope = config.current()
        token = object()
        ends: list[list[Any]] = []
        performed: list[int] = []  # the number of equations when it resumed

        def resume(results: Sequence[Any], after: Any) -> Any:
            if ends or current() is not run or config.current() is not scope:
                raise _NotJoined
            end, end_structure = _leaves_of(after)
            structures.append(end_structure)
            ends.append([*results, *end])
            performed.append(len(run.builder.ops))
            return token

        count = len(body.in_types)
        answer = evaluate(body, values[:count], _state_of(structure, values[count:]), resume)
        if answer is not token or performed != [len(run.builder.ops)]:
            raise _NotJoined
        return ends[0]

    try:
        programs = _recorded(op, operands, results_and_state)
    except Exception:  # something was computed of the token; or a clause is at fault, and its error comes once more
        return None
    types = programs[0].out_types
    if any([p.out_types != types for p in programs]) or any([other != structures[0] for other in structures]):
        return None
    results = _perform(programs, index, operands)
    count = len(op.bodies[0].outs)
    return results[:count], _state_of(structures[0], results[count:])


def parted_branch(op: Any, xs: tuple[Any, ...], state: Any, evaluate: Evaluate, resume: Resume) -> Any:
    """The answer of a branch whose bodies go on, each with the rest of the program, ``resume``.

    Raises: TreeMismatch, DTypeMismatch: the answers of the bodies differ in structure or type.
    """
    leaves, structure = _leaves_of(state)
    index, *operands = (*xs, *leaves)
    rest = _Rest(resume)
    trees: list[Any] = []

    def answer_of(body: Program, values: Sequence[Any]) -> list[Any]:
        count = len(body.in_types)
        ends, tree = leaves_of(evaluate(body, values[:count], _state_of(structure, values[count:]), rest.call))
        trees.append(tree)
        return ends

    programs = _recorded(op, operands, answer_of)
    for tree, program in zip(trees, programs):
        if tree != trees[0]:
            raise TreeMismatch(
                f"{op.name}: the branches must give answers of one structure, got {trees[0]} and {tree}.",
                hint="resume equally often in every branch.",
            )
        for t, u in zip(program.out_types, programs[0].out_types):
            if t.shape != u.shape or t.dtype != u.dtype:
                raise DTypeMismatch(f"{op.name}: the branches must give answers of one type, got {u} and {t}.")
    types = programs[0].out_types
    results = _perform([with_types(program, types) for program in programs], index, operands)
    return pytrees.unflatten(trees[0], results)


class _Rest:
    """The rest of the program after a branch, which its bodies call: recorded once for each type of the state."""

    def __init__(self, resume: Resume):
        self.resume = resume
        self.top = current()
        self.programs: dict[Any, tuple[Program, Any, Any]] = {}

    def call(self, results: Sequence[Any], state: Any) -> Any:
        """The answer of ``resume``, by a call of its program."""
        leaves, structure = _leaves_of(state)
        operands = [*results, *leaves]
        key = (tuple([x.type for x in operands]), structure, config.current())
        if key not in self.programs:
            self.programs[key] = self.recorded([x.type for x in operands], len(results), structure)
        program, captured, tree = self.programs[key]
        return pytrees.unflatten(tree, current().answer(Call((program,), "rest"), (*captured, *operands)))

    def recorded(self, types: Sequence[Any], count: int, structure: Any) -> tuple[Program, Any, Any]:
        """The program for ``count`` results and a state, what it captured, and the structure of the answer."""
        trees: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            answer, tree = leaves_of(self.resume(values[:count], _state_of(structure, values[count:])))
            trees.append(tree)
            return answer

        with inside(self.top):
            (program,), captured = close_all([record(flat, types, "rest", "handle")])
        return program, captured, trees[0]


def _recorded(op: Any, operands: Sequence[Any], f: Callable[[Program, Sequence[Any]], list[Any]]) -> list[Program]:
    """``f(body, values)`` for each body, recorded for operands of these types."""
    types = [x.type for x in operands]
    return [record(lambda *values, body=body: f(body, values), types, body.name, "handle") for body in op.bodies]


def _perform(programs: Sequence[Program], index: Any, operands: Sequence[Any]) -> Any:
    """The results of a ``Cond`` between these programs."""
    bodies, captured = close_all(programs)
    return current().answer(Cond(bodies, len(captured)), (index, *captured, *map(as_array, operands)))
