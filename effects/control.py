"""Higher-order operations: those that carry sub-programs, with the one declaration by which handlers cross them.

    operands = selects + shared + carry + each
    body     : shared + carry + each -> carry + out
    results  = carry + out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from .operations import EMPTY_ROW, Operation, operation
from .programs import Program
from .types import ArrayType


class HigherOrder(Operation):
    """An operation over sub-programs. ``runs`` says how often a body runs, the counts which operand plays which part.

    ``runs``: ``once``, ``one`` of several, ``loop``, ``until`` a test fails, ``lanes``.
    """

    __slots__ = ()
    bodied: ClassVar[bool] = True
    multiple: ClassVar[bool] = True
    runs: ClassVar[str] = "once"
    selects: ClassVar[int] = 0  # leading operands that choose and that no body sees
    prunes: ClassVar[bool] = False  # operands and results that nobody needs may go: no field speaks of single ones
    bodies: tuple[Program, ...]
    shared: int = 0
    carry: int = 0

    @property
    def effects(self) -> frozenset[Any]:
        return EMPTY_ROW.union(*[body.effects for body in self.bodies])

    def with_bodies(self, bodies: tuple[Program, ...]) -> HigherOrder:
        """The same operation over other bodies of the same signature."""
        return type(self)(*[bodies if name == "bodies" else getattr(self, name) for name in self._names])


# (y, ...) = body(x, ...): a function that is traced, transformed and compiled once
@operation
class Call(HigherOrder):
    bodies: tuple[Program, ...]
    label: str = "call"
    inline: bool = False
    prunes = True
    shared = 0
    carry = 0

    def result_type(op, *types: ArrayType) -> tuple[ArrayType, ...]:
        return op.bodies[0].out_types

    def lower(op, emit, *values):
        return emit.call(op.bodies[0], op.label, values)


class Bodies(NamedTuple):
    """What operations with bodies need of the interpreters, which know how to make programs of programs.

    ``record(f, in_types, name)`` is the program of a function of flat arrays. ``jvp(program, nonzero)`` takes primals
    and the tangents marked, gives results and their tangents, and tells which results have one.
    ``batch(program, dims, size)`` is the program for all lanes, with the mapped dimension of each result.
    """

    record: Callable[..., Program]
    jvp: Callable[[Program, Sequence[bool]], tuple[Program, tuple[bool, ...]]]
    batch: Callable[..., tuple[Program, tuple[int | None, ...]]]


class _Installed:
    bodies: Bodies


def install_bodies(bodies: Bodies) -> None:
    """Called once by the package."""
    _Installed.bodies = bodies


def bodies() -> Bodies:
    return _Installed.bodies


def record_body(f: Callable[..., Sequence[Any]], in_types: Sequence[ArrayType], name: str = "body") -> Program:
    """The program of a body, for the surface functions of higher-order operations."""
    return _Installed.bodies.record(f, in_types, name)
