"""Type variables and callable types by which type checkers know the signatures of transformed functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, TypeVarTuple

from .array_interface import Array

F = TypeVar("F", bound=Callable[..., Any])  # a function that is given back
P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")  # auxiliary results
C = TypeVar("C")  # a carry
X = TypeVar("X")  # an argument: a tree of arrays
Y = TypeVar("Y")
Ts = TypeVarTuple("Ts")
_X = TypeVar("_X", contravariant=True)
_Y = TypeVar("_Y", covariant=True)


class FirstArgument(Protocol[_X, P, _Y]):
    """A function whose first argument is positional: the one with respect to which it is differentiated."""

    def __call__(self, x: _X, /, *args: P.args, **kwargs: P.kwargs) -> _Y: ...


# of an array, or of a Python number, which becomes one
OfNumber: TypeAlias = Callable[Concatenate[Array, P], R] | Callable[Concatenate[float, P], R]
OfTree: TypeAlias = Callable[Concatenate[X, P], R]
