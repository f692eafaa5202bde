"""The arguments by which functions are differentiated, as ``argnums`` selects them, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...effects.base.errors import BadArgument, BadCall, NotDifferentiable
from ...effects.core.arrays import Array, as_array
from ...effects.trees import pytrees
from ...effects.types import dtypes
from ..core.trace_cache import chosen_name

F = Callable[..., Any]


def of_argnums(
    where: str, fun: F, argnums: Any, args: tuple[Any, ...], kwargs: dict[str, Any], holomorphic: bool,
    allow_int: bool | None,
) -> tuple[tuple[Any, ...], F]:
    """The arguments that ``argnums`` selects, checked, and ``fun`` as a function of these arguments alone."""
    chosen, of_chosen = argnums_partial(where, fun, argnums, args, kwargs)
    for i, leaf in enumerate(pytrees.leaves(chosen)):
        _check_dtype(where, leaf, partial(chosen_name, fun, argnums, chosen, i), holomorphic, allow_int)
    return chosen, of_chosen


def argnums_partial(
    where: str, fun: F, argnums: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], F]:
    """The arguments that ``argnums`` selects, and ``fun`` as a function of these arguments alone."""
    which = _argnums(where, argnums, len(args))
    chosen = tuple([args[n] for n in which])

    def of_chosen(*xs: Any) -> Any:
        replaced = list(args)
        for n, x in zip(which, xs):
            replaced[n] = x
        return fun(*replaced, **kwargs)

    return chosen, of_chosen


def _argnums(where: str, argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    listed = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)
    for n in listed:
        if not isinstance(n, int):
            raise BadCall(f"{where}: argnums is an integer or a tuple of them, got {argnums!r}.")
        if not -count <= n < count:
            raise BadArgument(
                f"{where}: argnums must name one of {count} positional arguments, counted from 0, got {n}.",
                hint="pass the argument by position; keyword arguments are not differentiated.",
            )
    return tuple(n % count for n in listed)


def _check_dtype(where: str, x: Any, name: Callable[[], str], holomorphic: bool, allow_int: bool | None) -> None:
    """Raises: NotDifferentiable: there is no derivative by ``x``; ``allow_int`` is None where ``where`` lacks it."""
    dtype = differentiable(where, x).type.dtype
    if holomorphic and not dtypes.is_complex(dtype):
        raise NotDifferentiable(f"{where}: with holomorphic=True arguments are complex, got {dtype}.")
    if not dtypes.is_inexact(dtype) and not allow_int:
        example = f", {float(x)} instead of {x}" if type(x) in (bool, int) else ""
        others = "or leave it out of argnums" if allow_int is None else "leave it out of argnums, or set allow_int=True"
        raise NotDifferentiable(
            f"{where}: the derivative by {name()}, of dtype {dtype}, is not defined.",
            hint=f"use a floating-point argument{example}, {others}.",
        )


def differentiable(where: str, x: Any) -> Array:
    """``x`` as an array. Raises: NotDifferentiable: it is none."""
    try:
        return as_array(x)
    except TypeError as error:
        raise NotDifferentiable(f"{where}: arguments must be arrays or numbers, got {type(x).__name__}.") from error
