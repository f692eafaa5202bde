"""Asking: the type of an answer that only the handler in force knows, asked while the effect is performed.

    ask(Get("n"))  ==  perform(Get("n", like=i32[]))        where the state's leaf n has this type now

The type is written into the operation, and nobody asks later: what a program records keeps its types wherever it is
handled. The clause of the innermost handler is evaluated on the present state under a record that is thrown away; what
it forwards is asked of the handlers outside it.
"""

from __future__ import annotations

from typing import Any

from ..effects import trees
from ..effects.arrays import lift, perform
from ..effects.errors import BadCall, CannotCross, UnhandledEffect
from ..effects.operations import Operation
from ..effects.sources import Site, user_site
from ..effects.stack import Run, current, installed, runs
from ..effects.types import ArrayType
from .handler import Kind, ctl
from .handling import NO_STATE, Handling, pair
from .record import Record


class _NotAsked(BadCall):
    """The type of an answer was needed before anybody was asked for it."""


class _Resumed(Exception):
    """Carries what a clause resumes with out of the clause."""

    def __init__(self, answer: Any):
        self.answer = answer


def answer_type(op: Any) -> Any:
    """The tree of types in the field ``like`` of an effect: its ``result_type``.

    Raises: BadCall: it was performed without having been asked for.
    """
    like = op.like
    if like is None:
        raise _NotAsked(f"{op.name}: nobody says which type the answer has.", hint="perform it by its own function.")
    return like if type(like) is ArrayType else like.thaw()


def typed(op: Any, *operands: Any) -> Any:
    """The effect with the types of its answer in its field ``like``, as the handlers in force would give it now.

    Raises: UnhandledEffect: nobody handles it.
    """
    return _typed(op, tuple([lift(x) for x in operands]), current())


def ask(op: Any, *operands: Any) -> Any:
    """Perform an effect whose answer has the type that the handlers in force give it.

    Raises: UnhandledEffect: nobody handles it.
    """
    xs = tuple([lift(x) for x in operands])
    return perform(_typed(op, xs, current()), *xs)


def _typed(op: Any, operands: tuple[Any, ...], top: Run) -> Any:
    for run in runs(top):
        clause = _clause(run, op)
        if clause is None:
            continue
        try:
            return _like(op, _answer(run, clause, op, operands))
        except _NotAsked:  # the clause forwards it
            outer = _typed(op, operands, run.outer)
            return _like(op, _answer(run, clause, outer, operands))
    raise UnhandledEffect(
        f"{op.name}: nobody handles {op}.",
        hint=getattr(op, "remedy", "run it under hx.handle(handler)(f), with a clause for it."),
    )


def _clause(run: Run, op: Operation) -> Any:
    if not isinstance(run, Handling) or run.handler.tallies:
        return None
    clause = run.clauses.get(type(op))
    return clause if clause is not None or not run.handler.over(op) else run.handler.otherwise


def _like(op: Any, answer: Any) -> Any:
    types = trees.map(lambda x: lift(x).type, answer)
    like = types if type(types) is ArrayType else trees.freeze(types)
    return type(op)(*[like if name == "like" else getattr(op, name) for name in op._names])


def _answer(run: Any, clause: Any, op: Operation, operands: tuple[Any, ...]) -> Any:
    """What the clause gives, on a record that nobody keeps."""
    state = () if run.current is NO_STATE else (run.current,)
    with installed(Record(run.outer, "")):
        if not isinstance(clause, Kind):
            answer = clause(*state, op, *operands)
            return pair(op, answer)[1] if state else answer
        if isinstance(clause, ctl):
            try:
                clause.f(_resume, *state, op, *operands)
            except _Resumed as resumed:
                return resumed.answer
    raise CannotCross(
        f"{op.name}: the clause of {run.label} never resumes, so nobody knows the type of its answer.",
        hint="write the type into the operation, in its field like.",
    )


def _resume(*args: Any) -> Any:
    raise _Resumed(args[-1] if args else None)


def place() -> str:
    """The user's line of what is being performed: ``model.py:17``; in a clause, of what it answers."""
    cell = current().cell
    return str(Site(*(cell.site if cell is not None and cell.site is not None else user_site(2))))
