"""Handlers of the user's: immutable maps from operations to clauses.

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

from ..effects.errors import BadArgument, BadCall, Immutable
from ..effects.operations import Operation
from .movements import Movement, Tally, carry

Clause = Callable[..., Any]


class Kind:
    """A clause of a kind of its own: it takes, or never takes, the rest of the program."""

    __slots__ = ("f",)
    f: Clause

    def __init__(self, f: Clause):
        if not callable(f):
            raise BadArgument(f"{type(self).__name__.lower()}: a clause must be callable, got {f!r}.")
        object.__setattr__(self, "f", f)

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("clauses", name, "set", "make another one of the function that it is to have.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("clauses", name, "deleted", "make another one of the function that it is to have.")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.f == other.f

    def __hash__(self) -> int:
        return hash((type(self), self.f))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.f, '__name__', self.f)})"


class ctl(Kind):
    """A clause that takes the rest of the program, and calls it never, once or many times.

        (resume, op, *xs) -> answer        resume(y) -> answer
        (resume, s, op, *xs) -> answer     resume(s, y) -> answer

    ``answer`` is what the whole handled program gives.
    """

    __slots__ = ()


class final(Kind):
    """A clause that never resumes: an exception as a value. ``(op, *xs) -> answer``, ``(s, op, *xs) -> answer``.

    ``answer`` has the types of what the whole handled program gives, after ``returns``.
    """

    __slots__ = ()


def every(op: Operation) -> bool:
    return True


class Handler:
    """Clauses by operation type, one for what has no clause, and one for the result. A value: hashable, mergeable."""

    __slots__ = ("clauses", "otherwise", "over", "returns", "moves", "resumes", "escapes", "tallies")
    clauses: PMap[type, Clause | Kind]
    otherwise: Clause | None
    over: Callable[[Operation], bool]
    returns: Clause | None
    moves: Movement
    resumes: bool  # a clause takes the rest of the program
    escapes: bool  # a clause never resumes
    tallies: bool  # clauses give static values

    def __init__(self, clauses: PMap[type, Any], otherwise: Any, over: Any, returns: Any, moves: Movement):
        kinds = set(map(type, clauses.values()))
        parts = (clauses, otherwise, over, returns, moves)
        for name, value in zip(self.__slots__, (*parts, ctl in kinds, final in kinds, isinstance(moves, Tally))):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise Immutable.of("handlers", name, "set", "use handler.set or |.")

    def __delattr__(self, name: str) -> None:
        raise Immutable.of("handlers", name, "deleted", "make another one of the clauses that it is to have.")

    def __or__(self, other: Handler) -> Handler:
        """Both, for the same state; clauses of the right one win."""
        if not isinstance(other, Handler):
            return NotImplemented
        if self.moves != other.moves and carry not in (self.moves, other.moves):
            raise BadArgument(f"handler: one state moves in one way, got {self.moves} and {other.moves}.")
        return Handler(
            self.clauses.update(other.clauses),
            other.otherwise or self.otherwise,
            other.over if other.otherwise else self.over,
            other.returns or self.returns,
            self.moves if other.moves == carry else other.moves,
        )

    def set(self, op: type[Operation], clause: Clause | Kind) -> Handler:
        """The handler with one clause replaced or added."""
        return Handler(
            self.clauses.update(_checked({op: clause})), self.otherwise, self.over, self.returns, self.moves
        )

    def _parts(self) -> tuple[Any, ...]:
        return (self.clauses, self.otherwise, self.over, self.returns, self.moves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handler) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        names = [op.__name__ for op in self.clauses] + (["otherwise"] if self.otherwise else [])
        return f"handler({', '.join(sorted(names))})"


def handler(
    clauses: Mapping[Any, Clause | Kind] | None = None,
    *,
    otherwise: Clause | None = None,
    over: Callable[[Operation], bool] = every,
    returns: Clause | None = None,
    moves: Movement = carry,
) -> Handler:
    """A handler from clauses ``(op, *xs) -> y``, or with a state ``(s, op, *xs) -> (s, y)``.

    Whether there is a state is decided where the handler is installed: ``handle(h)`` or ``handle(h, state)``.

    Args:
        clauses: operation type -> clause; ``ctl(f)`` takes the rest of the program, ``final(f)`` ends it.
        otherwise: the clause of every operation without one of its own, for which ``over(op)`` holds.
        returns: applied to the result at the end, ``(y) -> answer`` or ``(s, y) -> answer``.
        moves: how the state moves through loops, branches and lanes: ``carry``, ``append``, ``merge(op, unit)``,
            ``split(f)``, ``tally(...)``. A tallying clause gets types, ``(op, *types) -> value``.

    Raises: BadArgument: a key is no operation type, or a clause cannot be called.
    """
    found = _checked(clauses or {})
    for name, value in (("otherwise", otherwise), ("returns", returns), ("over", over)):
        if value is not None and not callable(value):
            raise BadArgument(f"handler: {name} must be callable, got {value!r}.")
    if not isinstance(moves, Movement):
        raise BadArgument(
            f"handler: moves says how the state moves, got {moves!r}.",
            hint="it is hx.carry, hx.append, hx.merge(op, unit), hx.split(f) or hx.tally(...).",
        )
    made = Handler(pmap(found), otherwise, over, returns, moves)
    if made.resumes and made.escapes:
        raise BadArgument(
            "handler: ctl and final clauses need handlers of their own, got both.", hint="nest two handlers."
        )
    return made


def _checked(clauses: Mapping[Any, Any]) -> dict[Any, Any]:
    if not isinstance(clauses, Mapping):
        raise BadArgument(
            f"handler: clauses are a mapping from operation types, got {clauses!r}.", hint="hx.handler({Sin: clause})."
        )
    for op, clause in clauses.items():
        if not (isinstance(op, type) and issubclass(op, Operation)):
            raise BadArgument(
                f"handler: clauses belong to operation types, got {op!r}.", hint="use Sin, not sin or Sin()."
            )
        if not (callable(clause) or isinstance(clause, Kind)):
            raise BadArgument(f"handler: the clause of {op.__name__} must be callable, got {clause!r}.")
    return dict(clauses)


def check_arity(op: Operation, clause: Any, types: Sequence[Any], stateful: bool) -> None:
    """Raises BadCall where a clause does not take what it is given: often a state too many or too few."""
    clause = clause.f if isinstance(clause, Kind) else clause
    given = (*(("state",) if stateful else ()), "op", *map(str, types))
    try:
        inspect.signature(clause).bind(*given)
    except TypeError:
        raise BadCall(
            f"{op.name}: the clause takes {inspect.signature(clause)}, it is given ({', '.join(given)}).",
            hint="a clause is (op, *operands), and (state, op, *operands) under hx.handle(h, state).",
        ) from None
    except ValueError:  # a builtin without a signature
        return
