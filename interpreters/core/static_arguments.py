"""Which arguments of a function are static, and which are donated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import BadArgument, BadStaticArgument
from ...effects.base.value_identity import bits
from ...effects.base.wrapping import name_of
from ...effects.core.arrays import Array

Positions = int | Sequence[int] | None
ArgumentNames = str | Iterable[str] | None


class ArgumentChoice(NamedTuple):
    """Arguments chosen by position (negative ones count from the end) and by name."""

    positions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def at(self, count: int) -> frozenset[int]:
        """The chosen positions of a call with ``count`` positional arguments."""
        return frozenset([p + count if p < 0 else p for p in self.positions if -count <= p < count])

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function; None where Python has none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def choose(fun: Callable[..., Any], what: str, positions: Positions, names: ArgumentNames) -> ArgumentChoice:
    """The arguments chosen by position, by name or both; if by one alone, the signature gives the other.

    Raises: BadArgument: a position or name that the function does not have.
    """
    if positions is None and names is None:
        return ArgumentChoice()
    return choose_by(signature_of(fun), name_of(fun), what, positions, names)


def choose_by(
    signature: inspect.Signature | None, function: str, what: str, positions: Positions, names: ArgumentNames
) -> ArgumentChoice:
    """``choose`` for a function that is known by its signature; ``function`` is its name in messages."""
    chosen = listed_positions(positions, what)
    chosen_names = listed_names(names, what)
    if signature is None:
        return ArgumentChoice(chosen, chosen_names)
    parameters = list(signature.parameters.values())
    ordered = [p.name for p in parameters if p.kind in _POSITIONAL]
    positional_only = {p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY}
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for number in chosen:
            if not -len(ordered) <= number < len(ordered):
                raise BadArgument(
                    f"{what}_argnums: {function} has {len(ordered)} positional parameters, got {number}.",
                    hint=f"name it by {what}_argnames if it is keyword-only.",
                )
    parameter_names = {p.name for p in parameters if p.kind in (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)}
    spread = {p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL}
    open_ended = inspect.Parameter.VAR_KEYWORD in kinds
    for name in chosen_names:
        if name in positional_only or name in spread or not (open_ended or name in parameter_names):
            raise BadArgument(
                f"{what}_argnames: {function} must have a parameter that can be given as {name!r}, it has "
                f"{', '.join(map(str, signature.parameters)) or 'none'}."
            )
    if names is None:
        chosen_names = tuple([ordered[n] for n in chosen if -len(ordered) <= n < len(ordered)])
        return ArgumentChoice(chosen, tuple([name for name in chosen_names if name not in positional_only]))
    if positions is None:
        return ArgumentChoice(tuple([i for i, name in enumerate(ordered) if name in chosen_names]), chosen_names)
    return ArgumentChoice(chosen, chosen_names)


def listed_positions(positions: Positions, what: str) -> tuple[int, ...]:
    """Positions of arguments as a tuple. Raises BadArgument: one is no integer; it names ``{what}_argnums``."""
    if positions is None:
        return ()
    try:
        listed = (positions,) if hasattr(positions, "__index__") else tuple(positions)
        return tuple([n.__index__() for n in listed])
    except (AttributeError, TypeError):
        raise BadArgument(f"{what}_argnums: positions must be integers, got {positions!r}.") from None


def listed_names(names: ArgumentNames, what: str) -> tuple[str, ...]:
    """Names of arguments as a tuple. Raises BadArgument: one is no string; it names ``{what}_argnames``."""
    if names is None or isinstance(names, str):
        return () if names is None else (names,)
    if not isinstance(names, Iterable) or not all([isinstance(name, str) for name in names]):
        raise BadArgument(f"{what}_argnames: names must be strings, got {names!r}.")
    return tuple(names)


def check_disjoint(fun: Callable[..., Any], static: ArgumentChoice, donated: ArgumentChoice) -> None:
    """Raises BadArgument where an argument is both static and donated."""
    both = [repr(n) for n in static.positions if n in donated.positions]
    both += [repr(name) for name in static.names if name in donated.names]
    if both:
        raise BadArgument(
            f"jit: an argument of {name_of(fun)} cannot be both static and donated, got {', '.join(both)}.",
            hint="only arrays can be donated.",
        )


class PartitionedCall(NamedTuple):
    """The arguments of a call, partitioned into static and dynamic ones; ``key`` identifies the static values."""

    key: Any
    static_args: tuple[tuple[int, Any], ...]
    static_kwargs: tuple[tuple[str, Any], ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def merge(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """All arguments of the call, with ``args`` and ``kwargs`` as the dynamic ones."""
        return merge_arguments(self.static_args, args), {**kwargs, **dict(self.static_kwargs)}


def merge_arguments(statics: Iterable[tuple[int, Any]], values: Sequence[Any]) -> list[Any]:
    """``values`` with each static argument inserted at its position; positions increase."""
    arguments = list(values)
    for position, value in statics:
        arguments.insert(position, value)
    return arguments


def _by_value(x: Any) -> Any:
    """The key of a static argument: its type and its value, bit by bit."""
    return type(x), bits(x)


def split(
    fun: Callable[..., Any],
    static: ArgumentChoice,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    key_of: Callable[[Any], Any] = _by_value,
) -> PartitionedCall:
    """Partition the arguments of a call; ``key_of`` maps a static argument to its part of the key.

    Raises: BadStaticArgument: a static argument is not hashable.
    """
    positions = static.at(len(args))
    fixed = tuple([(i, args[i]) for i in sorted(positions)])
    named = tuple([(name, kwargs[name]) for name in sorted(kwargs) if name in static.names]) if kwargs else ()
    try:
        key = (len(args), tuple([(i, key_of(x)) for i, x in fixed]), tuple([(n, key_of(x)) for n, x in named]))
        hash(key)
    except TypeError:
        raise _unhashable(fun, fixed, named) from None
    rest = tuple([x for i, x in enumerate(args) if i not in positions])
    return PartitionedCall(key, fixed, named, rest, {n: x for n, x in kwargs.items() if n not in static.names})


def _unhashable(
    fun: Callable[..., Any], fixed: tuple[tuple[int, Any], ...], named: tuple[tuple[str, Any], ...]
) -> BadStaticArgument:
    """The error that names the static argument which is not hashable."""
    names = argument_names(fun)
    arguments: list[tuple[Any, Any]] = [*fixed, *named]
    for position, value in arguments:
        try:
            hash(bits(value))
        except TypeError as error:
            called = position if isinstance(position, str) else names(position)
            found = f"the array {value.type}" if isinstance(value, Array) else f"{type(value).__name__} ({error})"
            return BadStaticArgument(
                f"jit: static argument {called!r} of {name_of(fun)} must be hashable, got {found}.",
                hint="pass a tuple or a frozen value, or leave it dynamic.",
            )
    return BadStaticArgument(f"jit: static arguments of {name_of(fun)} must be hashable.")


def argument_names(fun: Callable[..., Any]) -> Callable[[int], str]:
    """The map from the position of an argument to its name, such as ``x`` or ``args[0]``."""
    signature = signature_of(fun)
    parameters = [] if signature is None else list(signature.parameters.values())
    ordered = [p.name for p in parameters if p.kind in _POSITIONAL]
    spread = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "args")
    return lambda i: ordered[i] if i < len(ordered) else f"{spread}[{i - len(ordered)}]"


def dynamic_positions(partition: PartitionedCall | None, count: int) -> list[int]:
    """The positions of a call's ``count`` dynamic positional arguments among all its positional arguments."""
    fixed = set() if partition is None else {i for i, _ in partition.static_args}
    return [i for i in range(count + len(fixed)) if i not in fixed]
