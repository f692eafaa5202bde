"""Handlers of the user's: immutable maps from operations to clauses.

    twice_sin = handler({Sin: lambda op, x: 2 * perform(op, x)})          stateless
    counter = handler({Tick: lambda n, op: (n + op.by, None)})            state in, state out
    n, y = handle(counter, 0)(f)(x)

While a clause runs, the stack is the one outside its handler: ``perform`` in it forwards.
Source: Plotkin & Pretnar, "Handlers of Algebraic Effects" (2009), section 3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrsistent import PMap, pmap

from ..effects import trees
from ..effects.arrays import lift
from ..effects.control import HigherOrder
from ..effects.conversion import convert
from ..effects.errors import BadArgument, DTypeMismatch
from ..effects.operations import Operation, result_type
from ..effects.sources import user_site
from ..effects.stack import BASE, STACK, Run, installed, runs
from ..effects.types import ArrayType
from .cross import Crossing, cross
from .rotate import rotated

Clause = Callable[..., Any]


class _NoState:
    """The state of a handler without one; ``None`` is a state like any other."""

    def __repr__(self) -> str:
        return "no state"


NO_STATE = _NoState()


class Handler:
    """Clauses by operation type, one for what has no clause, and one for the result. A value: hashable, mergeable."""

    __slots__ = ("clauses", "otherwise", "over", "returns")
    clauses: PMap[type, Clause]
    otherwise: Clause | None
    over: Callable[[Operation], bool]
    returns: Clause | None

    def __init__(self, clauses: PMap[type, Clause], otherwise: Any, over: Any, returns: Any):
        for name, value in zip(self.__slots__, (clauses, otherwise, over, returns)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"handlers are immutable; cannot set {name!r}; use handler.set or |")

    def __or__(self, other: Handler) -> Handler:
        """Both; clauses of the right one win."""
        if not isinstance(other, Handler):
            return NotImplemented
        return Handler(
            self.clauses.update(other.clauses),
            other.otherwise or self.otherwise,
            other.over if other.otherwise else self.over,
            other.returns or self.returns,
        )

    def set(self, op: type[Operation], clause: Clause) -> Handler:
        """The handler with one clause replaced or added."""
        return Handler(self.clauses.set(op, clause), self.otherwise, self.over, self.returns)

    def _parts(self) -> tuple[Any, ...]:
        return (self.clauses, self.otherwise, self.over, self.returns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handler) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        names = [op.__name__ for op in self.clauses] + (["otherwise"] if self.otherwise else [])
        return f"handler({', '.join(sorted(names))})"


def handler(
    clauses: Mapping[type[Operation], Clause] | None = None,
    *,
    otherwise: Clause | None = None,
    over: Callable[[Operation], bool] = lambda op: True,
    returns: Clause | None = None,
) -> Handler:
    """A handler from clauses ``(op, *xs) -> y``, or with a state ``(s, op, *xs) -> (s, y)``.

    Args:
        clauses: operation type -> clause.
        otherwise: the clause of every operation without one of its own, for which ``over(op)`` holds.
        returns: applied to the result at the end, ``(y) -> answer`` or ``(s, y) -> answer``.

    Raises: BadArgument: a key is no operation type, or a clause cannot be called.
    """
    found = dict(clauses or {})
    for op, clause in found.items():
        if not (isinstance(op, type) and issubclass(op, Operation)):
            raise BadArgument(
                f"handler: clauses belong to operation types, got {op!r}.", hint="use Sin, not sin or Sin()."
            )
        if not callable(clause):
            raise BadArgument(f"handler: the clause of {op.__name__} must be callable, got {clause!r}.")
    return Handler(pmap(found), otherwise, over, returns)


class Handling(Crossing):
    """One installation of a user's handler. Answers by clause; crosses higher-order operations by the law."""

    __slots__ = ("handler", "clauses", "current")

    def __init__(self, outer: Run, handler: Handler, state: Any, site: tuple[Any, int] | None = None):
        super().__init__(outer, repr(handler), site)
        self.handler = handler
        self.clauses = dict(handler.clauses)
        self.current = state

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        clause = self.clauses.get(type(op))
        if clause is None:
            if op.bodied and self.concerns(op):  # type: ignore[arg-type]
                return self.cross(op, operands)
            clause = self.handler.otherwise
            if clause is None or not self.handler.over(op):
                return self.outer.answer(op, operands)
        cell = self.cell
        site = cell.site
        if site is None:
            cell.site = user_site(2)
        token = STACK.set(self.outer)
        try:
            if self.current is NO_STATE:
                y = clause(op, *operands)
            else:
                self.current, y = _pair(op, clause(self.current, op, *operands))
            return _checked(op, operands, y)
        finally:
            STACK.reset(token)
            cell.site = site

    def concerns(self, op: HigherOrder) -> bool:
        """Whether a body performs something that has a clause here."""
        if self.handler.otherwise is not None:
            return True
        return any(kind in self.clauses for body in op.bodies for kind in body.operations)

    def cross(self, op: Any, operands: tuple[Any, ...]) -> Any:
        token = STACK.set(self.outer)
        try:
            if op.tests and any([kind in self.clauses for kind in op.tests[0].operations]):
                return rotated(self, op, operands)
            return cross(self, op, operands)
        finally:
            STACK.reset(token)

    def fresh(self, outer: Run) -> Handling:
        return Handling(outer, self.handler, self.current)

    def key(self) -> Any:
        return (self.handler, self.current is NO_STATE or self.state()[1]) if self.outer is BASE else None

    def state(self) -> tuple[Sequence[Any], Any]:
        if self.current is NO_STATE:
            return (), None
        leaves, structure = trees.flatten(self.current)
        return [lift(x) for x in leaves], structure

    def set_state(self, leaves: Sequence[Any], structure: Any) -> None:
        if self.current is not NO_STATE:
            self.current = trees.unflatten(structure, leaves)


def _pair(op: Operation, answer: Any) -> tuple[Any, Any]:
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer
    raise BadArgument(
        f"{op.name}: the clause of a handler with a state gives (state, answer), got {type(answer).__name__}.",
        hint="a handler without state is installed by hx.handle(h), without a second argument.",
    )


def _checked(op: Operation, operands: tuple[Any, ...], y: Any) -> Any:
    """The answer with exactly the type that the operation's result has; a weak number takes its dtype."""
    made = result_type(op, tuple([x.type for x in operands]))
    if not op.multiple:
        return _fitting(op, y, made)
    parts = list(y) if isinstance(y, tuple) and not op.effectful else trees.leaves(y)
    if len(parts) != len(made):
        raise DTypeMismatch(f"{op.name}: the clause must give {len(made)} results, got {len(parts)}.")
    return tuple([_fitting(op, part, t) for part, t in zip(parts, made)])


def _fitting(op: Operation, y: Any, made: ArrayType) -> Any:
    x = lift(y)
    if x.type is made or (x.type.shape == made.shape and x.type.dtype == made.dtype):
        return x
    if x.type.weak and x.type.shape == made.shape:
        return convert(x, made.dtype, made.weak)
    raise DTypeMismatch(
        f"{op.name}: the answer of a clause must have the type of the operation's result, {made}, got {x.type}.",
        hint="convert with astype, or broadcast, in the clause.",
    )


def handle(handler: Handler, state: Any = NO_STATE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Install a handler around a function.

        handle(h)(f)(x) = y              handle(h, s)(f)(x) = (s', y)

    The order of handlers is their meaning: ``handle(h)(grad(f))`` sees what ``grad`` performs outside,
    ``grad(handle(h)(f))`` differentiates what the clauses perform.
    """
    if not isinstance(handler, Handler):
        raise BadArgument(
            f"handle: a handler is needed, got {type(handler).__name__}.", hint="make one with hx.handler({...})."
        )

    def install(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def handled(*args: Any, **kwargs: Any) -> Any:
            run = Handling(STACK.get(), handler, state, user_site(2))
            with installed(run):
                y = f(*args, **kwargs)
            if run.current is NO_STATE:
                return y if handler.returns is None else handler.returns(y)
            return (run.current, y) if handler.returns is None else handler.returns(run.current, y)

        return handled

    return install


def handlers() -> tuple[str, ...]:
    """The handlers in force here, innermost first, as they are called in messages."""
    return tuple(run.label for run in runs() if run.label)
