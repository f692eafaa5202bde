"""Handlers that users write: immutable maps from operation types to clauses.

    twice_sin = handler({Sin: lambda op, x: 2 * perform(op, x)})          stateless
    counter = handler({Tick: lambda n, op: (n + op.by, None)})            state in, state out
    worlds = handler({Choose: ctl(lambda resume, op, xs: stack([resume(x) for x in xs]))})

Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009), section 3.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrsistent import PMap, pmap

from ...effects.base.errors import BadArgument, BadCall, need_operation_type, text_of
from ...effects.base.immutables import ImmutableObject
from ...effects.base.later_layers import displayed
from ...effects.core.operation import Operation
from .state_movements import Movement, carry, tally

Clause = Callable[..., Any]


class ClauseKind(ImmutableObject):
    """A clause that is no plain function: ``ctl`` takes the rest of the program, ``final`` discards it."""

    __slots__ = ("f",)
    _guard = ("clauses", "make another one of the function that it is to have.")
    f: Clause

    def __init__(self, f: Clause):
        if not callable(f):
            raise BadArgument(f"{type(self).__name__.lower()}: a clause must be callable, got {text_of(f)}.")
        self._fill(f=f)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.f == other.f

    def __hash__(self) -> int:
        return hash((type(self), self.f))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.f, '__name__', self.f)})"


class ctl(ClauseKind):
    """A clause that takes the rest of the program as ``resume``, and calls it never, once or many times.

        (resume, op, *xs) -> answer        resume(y) -> answer
        (resume, s, op, *xs) -> answer     resume(s, y) -> answer

    ``answer`` is the result of the handled program. After a branch chosen by a traced value the rest is compiled once
    if every branch resumes once; else once for each ``resume`` in it, so that ``n`` such branches in a row may take
    ``2**n`` times as long.

    Args:
        support: the clause resumes with one of the integers ``0, 1, ..., n - 1``, or with False or True where ``n`` is
            2: the integer ``n``, or a function ``(op, *types) -> n``. The clause then crosses loops of known length, by
            tables of the answers after each iteration; see ``handle``. A traced number that is none of these counts as
            the nearest one.
    """

    __slots__ = ("support",)
    support: int | Callable[..., int] | None

    def __init__(self, f: Clause, *, support: int | Callable[..., int] | None = None):
        if not (support is None or callable(support) or (type(support) is int and support > 0)):
            raise BadArgument(
                f"{type(self).__name__}: the support must be a positive integer or a function, got {support!r}.",
                hint="support=n, or support=lambda op, *types: n.",
            )
        super().__init__(f)
        self._fill(support=support)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.support == other.support  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.support))


class once(ctl):
    """A clause that takes the rest of the program as ``ctl`` does, and calls it at most once.

    ``(resume, op, *xs) -> answer``, ``(resume, s, op, *xs) -> answer``. Under ``hx.direct`` nothing is logged then, and
    nothing executed twice.

    Raises: BadCall: ``resume`` is called again.
    """

    __slots__ = ()


class final(ClauseKind):
    """A clause that never resumes: an exception as a value. ``(op, *xs) -> answer``, ``(s, op, *xs) -> answer``.

    ``answer`` has the types of the result of the handled program, after ``returns``.

    Order: lanes of a ``vmap`` around the handler part after a statement that may have ended some of them: what follows,
    up to and including the next such statement, each lane performs before the next lane does.
    """

    __slots__ = ()


def every(op: Operation) -> bool:
    return True


@displayed
class Handler(ImmutableObject):
    """Clauses by operation type, a default clause, and a function of the result.

    An immutable value: merged by ``|``, hashable if its clauses and its movement are.
    """

    __slots__ = (
        "clauses", "otherwise", "over", "returns", "moves", "resumes", "aborts", "tallies", "scopes", "table", "label",
    )
    _guard = ("handlers", "use |.")
    clauses: PMap[type, Clause | ClauseKind]
    otherwise: Clause | None
    over: Callable[[Operation], bool]
    returns: Clause | None
    moves: Movement
    resumes: bool  # a clause takes the rest of the program
    aborts: bool  # a clause never resumes
    tallies: bool  # clauses return static values that are tallied
    scopes: bool  # a clause answers an effect that takes functions
    table: dict[type, Clause | ClauseKind]  # the clauses, for runs, which look up fastest in it and do not change it
    label: str

    def __init__(self, clauses: PMap[type, Any], otherwise: Any, over: Any, returns: Any, moves: Movement):
        resumes, aborts = [any([isinstance(each, kind) for each in clauses.values()]) for kind in (ctl, final)]
        scoped = sorted([kind.name for kind in clauses if kind.scopes])  # type: ignore[attr-defined]
        if scoped and (resumes or aborts):
            raise BadArgument(
                f"handler: an effect that takes functions is answered by clauses that answer once, got {scoped[0]} "
                "in a handler with ctl or final clauses.",
                hint="nest two handlers; a clause may call its function under a handler with final clauses.",
            )
        self._fill(clauses=clauses, otherwise=otherwise, over=over, returns=returns, moves=moves, scopes=bool(scoped))
        self._fill(resumes=resumes, aborts=aborts, tallies=isinstance(moves, tally))
        names = [op.__name__ for op in clauses] + (["otherwise"] if otherwise else [])
        self._fill(table=dict(clauses), label=f"handler({', '.join(sorted(names))})")

    def takes_rest_in(self, op: Any) -> bool:
        """Whether a body of ``op`` performs an operation whose clause takes, or drops, the rest of the program."""
        clause = self.table.get
        return any([isinstance(clause(kind), ClauseKind) for body in op.bodies for kind in body.operations])

    def __or__(self, other: Handler) -> Handler:
        """One handler with the clauses of both, on the same state; the right one's take precedence."""
        if not isinstance(other, Handler):
            return NotImplemented
        if self.moves != other.moves and carry not in (self.moves, other.moves):
            raise BadArgument(
                f"handler: handlers that are merged must move their state alike, got {self.moves} and {other.moves}."
            )
        return Handler(
            self.clauses.update(other.clauses),
            other.otherwise or self.otherwise,
            other.over if other.otherwise else self.over,
            other.returns or self.returns,
            self.moves if other.moves == carry else other.moves,
        )

    def _parts(self) -> tuple[Any, ...]:
        return (self.clauses, self.otherwise, self.over, self.returns, self.moves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handler) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return self.label


def handler(
    clauses: Mapping[Any, Clause | ClauseKind] | None = None,
    *,
    otherwise: Clause | None = None,
    over: Callable[[Operation], bool] = every,
    returns: Clause | None = None,
    moves: Movement = carry,
) -> Handler:
    """A handler with clauses ``(op, *xs) -> y``, or ``(s, op, *xs) -> (s, y)`` for one with a state.

    Whether it has a state is decided where it is installed: ``handle(h)`` or ``handle(h, state)``.

    Args:
        clauses: operation type -> clause; ``ctl(f)`` takes the rest of the program, ``once(f)`` calls it at most once,
            ``final(f)`` ends it.
        otherwise: the clause of every operation that has no clause in ``clauses`` and satisfies ``over(op)``.
        returns: applied to the result at the end, ``(y) -> answer`` or ``(s, y) -> answer``.
        moves: how the state moves through loops, branches and lanes: ``carry``, ``append``, ``merge(op, unit)``,
            ``split(f)``, ``tally(...)``. With ``tally`` a clause takes types, ``(op, *types) -> value``.

    Raises: BadArgument: a key is no operation type, or a clause cannot be called.
    """
    checked = _checked({} if clauses is None else clauses)
    for name, value, default in (("otherwise", otherwise, None), ("returns", returns, None), ("over", over, every)):
        if value is not default and not callable(value):
            raise BadArgument(f"handler: {name} must be callable, got {text_of(value)}.")
    if isinstance(over, type) and issubclass(over, Operation):
        raise BadArgument(
            f"handler: over is a predicate of operations, got the class {over.__name__}.",
            hint=f"over=lambda op: isinstance(op, {over.__name__}).",
        )
    if not isinstance(moves, Movement):
        raise BadArgument(
            f"handler: moves must be a movement of state, got {text_of(moves)}.",
            hint="it is hx.carry, hx.append, hx.merge(op, unit), hx.split(f) or hx.tally(...).",
        )
    return Handler(pmap(checked), otherwise, over, returns, moves)


def _checked(clauses: Mapping[Any, Any]) -> dict[Any, Any]:
    if not isinstance(clauses, Mapping):
        raise BadArgument(
            f"handler: clauses are a mapping from operation types, got {text_of(clauses)}.",
            hint="hx.handler({Sin: clause}).",
        )
    for op, clause in clauses.items():
        need_operation_type("handler", "clauses", op)
        if not (callable(clause) or isinstance(clause, ClauseKind)):
            raise BadArgument(f"handler: the clause of {op.__name__} must be callable, got {text_of(clause)}.")
    return dict(clauses)


def check_arity(op: Operation, clause: Any, types: Sequence[Any], stateful: bool) -> None:
    """Raises BadCall if the operands are not those that the effect declares, or do not fit the clause's signature."""
    operands = ("op", *map(str, types))
    kind: Any = type(op)
    if op.effectful and not _takes(kind.result_tree, operands):
        raise BadCall(
            f"{op.name}: its result_type takes {inspect.signature(kind.result_tree)}, it is performed with "
            f"({', '.join(operands)}).",
            hint="hx.perform(op, *operands) takes the operands that result_type names; op has the fields.",
        ) from None
    resumes = isinstance(clause, ctl)
    clause = clause.f if isinstance(clause, ClauseKind) else clause
    arguments = (*["resume"] * resumes, *["state"] * stateful, *operands)
    if not _takes(clause, arguments):
        otherwise = (*["resume"] * resumes, *["state"] * (not stateful), *operands)
        first = "resume, " * resumes
        if not resumes and "resume" in inspect.signature(clause).parameters:
            hint = "a clause that takes the rest of the program is hx.ctl(lambda resume, op: ...), with resume first."
        elif _takes(clause, otherwise):
            under = f"hx.handle(h{', state' * (not stateful)})(f)"
            hint = f"under {under} it would be called with ({', '.join(otherwise)}), which it takes."
        else:
            hint = f"a clause is ({first}op, *operands), and ({first}state, op, *operands) under hx.handle(h, state)."
        raise BadCall(
            f"{op.name}: the clause takes {inspect.signature(clause)}, it is called with ({', '.join(arguments)}).",
            hint=hint,
        ) from None


def check_returns(returns: Clause, stateful: bool) -> None:
    """Raises BadCall if ``returns`` of a handler does not take the result, after the state if there is one."""
    arguments = ("state",) * stateful + ("y",)
    if not _takes(returns, arguments):
        raise BadCall(
            f"handler: returns= takes {inspect.signature(returns)}, it is called with ({', '.join(arguments)}).",
            hint="it is (y) -> answer under hx.handle(h), and (state, y) -> answer under hx.handle(h, state).",
        ) from None


def _takes(f: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether a function can be called with these arguments; True for a builtin without a signature."""
    try:
        inspect.signature(f).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        return True
    return True
