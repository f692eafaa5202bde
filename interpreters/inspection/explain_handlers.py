"""``explain_handlers``: which effects a function performs, and which clause of which handler answers each.

The function is recorded while every handler is installed with watched clauses. A watched clause records an
event, ``ClauseAnswers``, before it answers. Events are effects themselves: they cross loops, branches and
transformations as what they stand for does, so that the table is read off the recorded program. Nothing is executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pyrsistent import pmap

from ...effects.base.errors import need_function
from ...effects.base.immutables import ImmutableObject
from ...effects.base.source_locations import NOWHERE, Site
from ...effects.base.stack import Run, current, inside, perform, runs
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import wraps
from ...effects.core.columns import DEFAULT
from ...effects.core.operation import Operation, effect
from ...effects.programs.higher_order import Call
from ...effects.programs.program import Program
from ..core.record import Record
from ..handlers.default_clauses import DefaultClauses, answer_of_default, needs_default, with_defaults
from ..handlers.handle import INSTRUMENT
from ..handlers.handler import ClauseKind, Handler, ctl
from ..transformations.make_program import trace
from .outline import sub_programs


class ClauseEvent(Operation):
    """The family of effects that say what a clause does."""

    __slots__ = ()

    def batch(op, dims):  # a clause is called once for all lanes
        return perform(op), ()


# a clause of ``handler``, which was installed at ``installed``, answers ``op``
@effect(vmap="per_lane", diff="stop")
class ClauseAnswers(ClauseEvent):
    op: Any
    handler: str
    installed: Any
    clause: Any  # the site of its first line

    def result_type(op):
        return None


# a clause of ``handler`` performs ``op``
@effect(vmap="per_lane", diff="stop")
class ClausePerforms(ClauseEvent):
    op: Any
    handler: str

    def result_type(op):
        return None


_BY_DEFAULT = "default clause"


def _note(event: ClauseEvent, outer: Run) -> None:
    """Record an event in the innermost program that is being recorded under ``outer``, past the handlers in between."""
    records = [run for run in runs(outer) if isinstance(run, Record) and run.records_everything]
    records[0].answer(event, ())


def _without_bodies(op: Any) -> Any:
    """An operation as it is listed: an effect that takes functions without them, others with bodies by their class."""
    return op if not op.bodied else op.with_bodies(()) if op.scopes else type(op)


class _ClauseRun(Run):
    """Stands innermost while a clause of the handler ``by`` is called, and notes the effects that it performs."""

    __slots__ = ("by",)
    owns_boxes = False

    def __init__(self, outer: Run, by: str):
        super().__init__(outer, "")
        self.by = by

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.effectful and not isinstance(op, ClauseEvent):
            _note(ClausePerforms(_without_bodies(op), self.by), self.outer)
        return self.outer.answer(op, operands)


def _first_line(clause: Any) -> Site:
    """Where a clause is written; nowhere for a callable that is no function of Python's."""
    return Site(clause.__code__, 0) if hasattr(clause, "__code__") else NOWHERE


def _outside(f: Any, outer: Run) -> Any:
    """``f``, the rest of the program or a function that an effect takes, which is not part of the clause."""

    def called(*args: Any, **named: Any) -> Any:
        with inside(outer):
            return f(*args, **named)

    if hasattr(f, "tail"):
        called.tail = f.tail  # type: ignore[attr-defined]
    return called


def _watched_clause(clause: Any, handler: str, installed: Any, takes_rest: bool = False) -> Any:
    """A clause that notes what it answers, and what it performs."""
    if isinstance(clause, ClauseKind):
        return type(clause)(_watched_clause(clause.f, handler, installed, isinstance(clause, ctl)))

    @wraps(clause)
    def called(*args: Any) -> Any:
        outer = current()
        at = next(i for i, x in enumerate(args) if isinstance(x, Operation))
        _note(ClauseAnswers(_without_bodies(args[at]), handler, installed, _first_line(clause)), outer)
        functions = {*range(takes_rest), *range(at + 1, at + 1 + args[at].scopes)}
        with inside(_ClauseRun(outer, handler)):
            return clause(*[_outside(x, outer) if i in functions else x for i, x in enumerate(args)])

    return called


def watched(handler: Handler, installed: Any) -> Handler:
    """The handler, installed at this site, with clauses that note what they answer and perform."""
    clauses = {kind: _watched_clause(clause, handler.label, installed) for kind, clause in handler.clauses.items()}
    otherwise = handler.otherwise and _watched_clause(handler.otherwise, f"{handler.label}, otherwise", installed)
    over = lambda op: not isinstance(op, ClauseEvent) and handler.over(op)
    return Handler(pmap(clauses), otherwise, over, handler.returns, handler.moves)


class _WatchedDefaults(DefaultClauses):
    """The default clauses of effects, which note what they answer and perform."""

    __slots__ = ()

    def key(self) -> str:
        return "watched default clauses"

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if not needs_default(op):
            return super().answer(op, operands)
        _note(ClauseAnswers(_without_bodies(op), _BY_DEFAULT, None, _first_line(DEFAULT.find(type(op)))), self.outer)
        with inside(_ClauseRun(self, _BY_DEFAULT)):
            return answer_of_default(op, operands)


class EffectAnswer(NamedTuple):
    """An operation that is performed, and who answers it.

    ``operation``: without the functions that it takes; the class of an operation with bodies. ``site``: the user's
    line. ``recorded``: how often, in ``within``: bodies and named scopes, outermost first. ``performer``: the handler
    whose clause performs it; empty: the function. ``handler``: the one that answers it, whose clause begins at
    ``clause``, and which was ``installed`` there; empty: none does.
    """

    operation: Any
    site: Site
    recorded: int
    within: tuple[str, ...]
    performer: str
    handler: str
    clause: Site
    installed: Site | None

    @property
    def answered_by(self) -> str:
        """The handler, its clause and its installation as text."""
        if not self.handler:
            return "unanswered"
        at = f", installed at {self.installed}" if self.installed else ""
        return f"{self.handler}, clause at {self.clause}{at}"

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of its line in a table."""
        shown = self.operation.__name__ if isinstance(self.operation, type) else repr(self.operation)
        by = f" by {self.performer}" if self.performer else ""
        return shown, f"{self.site}{by}", str(self.recorded), " > ".join(self.within), self.answered_by


class HandlerExplanation(ImmutableObject):
    """The effects of a function on arguments of some types, and who answers each. A value, which prints as a table.

    ``answers``: what is performed, in the order of the program. ``unanswered``: the effect row of the function, as
    ``effects_of`` has it, without effects that a default clause answers.
    """

    __slots__ = ("answers", "unanswered")
    _guard = ("explanations", "explain_handlers(f)(*args) makes another one.")
    answers: tuple[EffectAnswer, ...]
    unanswered: frozenset[Any]

    def __init__(self, program: Program):
        counts = Counter(_answers(program))
        row = frozenset([each for each in program.effects if not isinstance(each, ClauseEvent)])
        self._fill(answers=tuple([each._replace(recorded=n) for each, n in counts.items()]), unanswered=row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HandlerExplanation) and (self.answers, self.unanswered) == (
            other.answers, other.unanswered
        )

    def __hash__(self) -> int:
        return hash((self.answers, self.unanswered))

    def __repr__(self) -> str:
        head = ("operation", "performed at", "times", "in", "answered by")
        table = [head, *[each.cells for each in self.answers]]
        widths = [max(map(len, column)) for column in zip(*table)]
        return "\n".join(["  ".join([f"{x:<{n}}" for x, n in zip(line, widths)]).rstrip() for line in table])


def _answers(program: Program, around: tuple[str, ...] = ()) -> Iterator[EffectAnswer]:
    """What is performed by the equations of a program, which stands in these bodies and scopes; each once."""
    performers: list[Any] = []
    for op, raw in zip(program.ops, program.sites):
        site = Site(*raw)
        within = (*around, *site.scopes)
        at = Site(site.code, _first_offset(site))
        if isinstance(op, ClausePerforms):  # the next event is its answer, or the next effect it
            performers.append(op)
        elif isinstance(op, ClauseAnswers) or op.effectful:
            listed = op.op if isinstance(op, ClauseAnswers) else _without_bodies(op)
            performer = performers.pop().handler if performers and performers[-1].op == listed else ""
            who: tuple[Any, ...] = ("", NOWHERE, None)
            if isinstance(op, ClauseAnswers):
                who = op.handler, op.clause, op.installed and Site(*op.installed)
            yield EffectAnswer(listed, at, 1, within, performer, *who)
        if op.bodied:
            for role, body in sub_programs(op):
                yield from _answers(body, (*within, _body_text(op, role)))


def _first_offset(site: Site) -> int:
    """The offset at which the line of a site begins: equal for all that is performed there."""
    lines = [] if site.code is None else site.code.co_lines()
    return next((start for start, _, line in lines if line == site.line), site.offset)


def _body_text(op: Any, role: str) -> str:
    """A body as text: ``jit(f)``, ``scan, 10 times``, ``cond, branch 1``."""
    name = f"jit({op.label})" if isinstance(op, Call) else op.name
    role = role.removeprefix("body").removeprefix(", ")
    return f"{name}, {role}" if role else name


def explain_handlers(fun: Callable[..., Any]) -> Callable[..., HandlerExplanation]:
    """``explain_handlers(f)(*args)``: each effect that ``f`` performs, and who answers it, on arguments of these types.

    It prints as a table: each effect, and each operation that a clause answers, the user's line, how often it is
    recorded and in which loops, branches, compiled functions and scopes, and the clause that answers it. What no clause
    answers is the effect row of ``f``, ``explain_handlers(f)(*args).unanswered``. The handlers are those that ``f``
    installs: for handlers around it explain ``handle(h)(f)``, or ``compose(...)(f)``.

    Nothing is performed: ``f`` is recorded, on values of which only the types are known.

    Raises: NotAFunction: ``fun`` is no function. ConcretizationTypeError: ``f`` needs a value, as a function under
    ``direct`` may.

    >>> import handlax as hx
    >>> @hx.effect
    ... class Tick:
    ...     def result_type(op):
    ...         return None
    >>> def f(x):
    ...     hx.perform(Tick())
    ...     return hx.numpy.sin(x)
    >>> counting = hx.handler({Tick: lambda n, op: (n + 1, None)})
    >>> explained = hx.explain_handlers(hx.handle(counting, 0)(f))(1.0)
    >>> [(each.operation, each.handler) for each in explained.answers], explained.unanswered
    ([(Tick(), 'handler(Tick)')], frozenset())
    >>> hx.explain_handlers(f)(1.0).unanswered
    frozenset({Tick()})
    """
    need_function("explain_handlers", fun)

    @wraps(fun)
    @unnamed_boundary
    def explained(*args: Any, **kwargs: Any) -> HandlerExplanation:
        with INSTRUMENT(watched):
            program = trace(fun, args, kwargs, label="explain_handlers").program
            return HandlerExplanation(with_defaults(program, _WatchedDefaults))

    return explained
