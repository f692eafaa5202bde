"""Effects whose result type only their handler knows: it is resolved when the effect is performed.

    perform_typed(Get("n"))  ==  perform(Get("n", like=i32[]))        where the state's leaf n has this type now

The type is written into the field ``like`` of the operation, so a recorded program keeps its types wherever it is
handled. To find the type, the clause of the innermost handler is recorded on the current state and the record is
discarded; if the clause forwards the effect, the handlers outside it resolve the type first.
"""

from __future__ import annotations

from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import Run, current, installed, runs
from ...effects.core.arrays import as_array, perform
from ...effects.core.operation import Operation
from ...effects.core.result_trees import UnresolvedType
from ...effects.programs.unhandled_effects import unhandled
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ..core.record import Record
from .handler import ClauseKind, ctl
from .installation import NO_STATE, HandlerRun, pair
from .open_log import OpenLog


class _ResumedAnswer(BaseException):
    """Leaves a ``ctl`` clause at its first call of ``resume``; ``args`` has the argument of that call alone.

    No error, so that no ``except Exception`` of a clause takes it.
    """


def typed(op: Any, *operands: Any) -> Any:
    """The effect with its field ``like`` set to the types that the handlers in force would answer with now.

    Raises: UnhandledEffect: no handler in force has a clause for it.
    """
    return _typed(op, tuple([as_array(x) for x in operands]), current())


def perform_typed(op: Any, *operands: Any) -> Any:
    """Resolve the result type of an effect by the handlers in force, and perform it.

    Raises: UnhandledEffect: no handler in force has a clause for it.
    """
    xs = tuple([as_array(x) for x in operands])
    return perform(_typed(op, xs, current()), *xs)


def _typed(op: Any, operands: tuple[Any, ...], top: Run) -> Any:
    for run in runs(top):
        clause = _clause(run, op)
        if clause is None:
            continue
        try:
            return _like(op, _answer(run, clause, op, operands))
        except UnresolvedType:  # the clause forwards the effect
            outer = _typed(op, operands, run.outer)
            return _like(op, _answer(run, clause, outer, operands))
    raise unhandled(op.name, [op])


def _clause(run: Run, op: Operation) -> Any:
    """The clause by which a run answers an operation; None if it forwards it."""
    if not isinstance(run, HandlerRun) or run.handler.tallies:
        return None
    clause = run.clauses.get(type(op))
    return clause if clause is not None or not run.handler.over(op) else run.handler.otherwise


def _like(op: Any, answer: Any) -> Any:
    """The effect with its field ``like`` set to the types of an answer."""
    types = pytrees.map(lambda x: as_array(x).type, answer)
    like = types if isinstance(types, ArrayType) else pytrees.freeze(types)
    return type(op)(*[like if name == "like" else getattr(op, name) for name in op._names])


def _answer(run: Any, clause: Any, op: Operation, operands: tuple[Any, ...]) -> Any:
    """The types of a clause's answer on the current state, by recording the clause and discarding what it performed."""
    current_state = run.merged_state()
    if type(current_state) is OpenLog:
        current_state = OpenLog(current_state.label, current_state.entries, current_state.axes)
    state = () if current_state is NO_STATE else (current_state,)
    with installed(Record(run.outer, "", run.site, run)):
        if not isinstance(clause, ClauseKind):
            answer = clause(*state, op, *operands)
            return pair(op, answer)[1] if state else answer
        if isinstance(clause, ctl):
            try:
                clause.f(_resume, *state, op, *operands)
            except _ResumedAnswer as resumed:
                return resumed.args[0]
    raise CannotCross(
        f"{op.name}: the clause of {run.label} never resumes, so its answer has no type.",
        hint="write the type into the operation, in its field like.",
    )


def _resume(*args: Any) -> Any:
    raise _ResumedAnswer(args[-1] if args else None)

