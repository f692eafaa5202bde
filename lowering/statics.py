"""Which arguments of a function are static, and which are donated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..effects.errors import BadArgument, BadStaticArgument
from ..effects.operations import bits

Positions = int | Sequence[int] | None
Names = str | Iterable[str] | None


class Choice(NamedTuple):
    """Arguments chosen by position (negative ones count from the last) and by name."""

    positions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def at(self, count: int) -> frozenset[int]:
        """The positions among ``count`` positional arguments."""
        return frozenset([p + count if p < 0 else p for p in self.positions if -count <= p < count])

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The signature, None where Python knows none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def choose(fun: Callable[..., Any], what: str, positions: Positions, names: Names) -> Choice:
    """The arguments given by position, by name, or both; what is given one way is found the other way too.

    Raises: BadArgument: a position or name that the function has not, or one that is named twice.
    """
    if positions is None and names is None:
        return Choice()
    numbers = _positions(positions, what)
    words = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(word, str) for word in words):
        raise BadArgument(f"{what}_argnames: names must be strings, got {names!r}.")
    signature = signature_of(fun)
    if signature is None:
        return Choice(numbers, words)
    parameters = list(signature.parameters.values())
    ordered = [p.name for p in parameters if p.kind in _POSITIONAL]
    by_position_only = {p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY}
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for number in numbers:
            if not -len(ordered) <= number < len(ordered):
                raise BadArgument(
                    f"{what}_argnums: {_called(fun)} has {len(ordered)} positional parameters, got {number}.",
                    hint=f"name it by {what}_argnames if it is keyword-only.",
                )
    known = {p.name for p in parameters if p.kind in (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for word in words:
            if word not in known or word in by_position_only:
                raise BadArgument(
                    f"{what}_argnames: {_called(fun)} must have a parameter that can be given as {word!r}, it has "
                    f"{', '.join(map(str, signature.parameters)) or 'none'}."
                )
    if names is None:
        found = [ordered[n] for n in numbers if -len(ordered) <= n < len(ordered)]
        return Choice(numbers, tuple([name for name in found if name not in by_position_only]))
    if positions is None:
        return Choice(tuple([i for i, name in enumerate(ordered) if name in words]), words)
    return Choice(numbers, words)


def _positions(positions: Positions, what: str) -> tuple[int, ...]:
    if positions is None:
        return ()
    listed = (positions,) if hasattr(positions, "__index__") else tuple(positions)
    try:
        return tuple([n.__index__() for n in listed])
    except AttributeError:
        raise BadArgument(f"{what}_argnums: positions must be integers, got {positions!r}.") from None


def check_disjoint(fun: Callable[..., Any], static: Choice, donated: Choice) -> None:
    """Raises BadArgument where an argument is both static and donated."""
    both = [repr(n) for n in static.positions if n in donated.positions]
    both += [repr(name) for name in static.names if name in donated.names]
    if both:
        raise BadArgument(
            f"jit: an argument of {_called(fun)} cannot be both static and donated, got {', '.join(both)}.",
            hint="only arrays can be donated.",
        )


class Parts(NamedTuple):
    """A call taken apart: the key of its static arguments, and its dynamic ones."""

    key: Any
    static_args: tuple[tuple[int, Any], ...]
    static_kwargs: tuple[tuple[str, Any], ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def merge(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The whole arguments again, with these for the dynamic ones."""
        whole = list(args)
        for position, value in self.static_args:
            whole.insert(position, value)
        return whole, {**kwargs, **dict(self.static_kwargs)}


def split(fun: Callable[..., Any], static: Choice, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts:
    """Take a call apart.

    Raises: BadStaticArgument: a static argument that cannot be hashed.
    """
    places = static.at(len(args))
    fixed = tuple([(i, args[i]) for i in sorted(places)])
    named = tuple([(name, kwargs[name]) for name in sorted(kwargs) if name in static.names]) if kwargs else ()
    try:
        key = (
            len(args),
            tuple([(i, type(x), bits(x)) for i, x in fixed]),
            tuple([(n, type(x), bits(x)) for n, x in named]),
        )
        hash(key)
    except TypeError:
        raise _unhashable(fun, fixed, named) from None
    rest = tuple([x for i, x in enumerate(args) if i not in places])
    return Parts(key, fixed, named, rest, {n: x for n, x in kwargs.items() if n not in static.names})


def _unhashable(
    fun: Callable[..., Any], fixed: tuple[tuple[int, Any], ...], named: tuple[tuple[str, Any], ...]
) -> BadStaticArgument:
    names = argument_names(fun)
    places: list[tuple[Any, Any]] = [*fixed, *named]
    for place, value in places:
        try:
            hash(bits(value))
        except TypeError:
            called = place if isinstance(place, str) else names(place)
            return BadStaticArgument(
                f"jit: static argument {called!r} of {_called(fun)} must be hashable, got {type(value).__name__}.",
                hint="pass a tuple or a frozen value, or leave it dynamic.",
            )
    return BadStaticArgument(f"jit: static arguments of {_called(fun)} must be hashable.")


def argument_names(fun: Callable[..., Any]) -> Callable[[int], str]:
    """How the positional argument at a place is called."""
    signature = signature_of(fun)
    parameters = [] if signature is None else list(signature.parameters.values())
    ordered = [p.name for p in parameters if p.kind in _POSITIONAL]
    spread = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")
    return lambda i: ordered[i] if i < len(ordered) else f"{spread}[{i - len(ordered)}]"


def _called(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", type(fun).__name__)
