"""Higher-order operations: those that carry sub-programs, with the one declaration by which handlers cross them.

    operands = selects + shared + carry + each
    body     : shared + carry + each -> carry + out
    results  = carry + out

``runs`` says how the bodies run: ``once``; ``one`` of several; a ``loop`` of known length; ``until`` a test, the first
body, fails; ``lanes``, in any order. Loops hand the carry from one run to the next; loops and lanes give every run its
slice of ``each``, and stack its ``out``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from .errors import RegistrationError
from .operations import EMPTY_ROW, Operation, operation
from .programs import Program
from .types import ArrayType


class Groups(NamedTuple):
    """The operands of a higher-order operation, or anything that goes with them, by the part that each plays."""

    selects: list[Any]
    shared: list[Any]
    carry: list[Any]
    each: list[Any]


class HigherOrder(Operation):
    """An operation over sub-programs: ``runs`` says how they run, the counts which operand plays which part."""

    __slots__ = ()
    bodied: ClassVar[bool] = True
    multiple: ClassVar[bool] = True
    runs: ClassVar[str] = "once"
    loops: ClassVar[bool] = False  # one run hands its carry to the next
    stacks: ClassVar[bool] = False  # every run has a slice of ``each`` and gives a slice of ``out``
    selects: ClassVar[int] = 0  # leading operands that choose and that no body sees
    prunes: ClassVar[bool] = True  # operands and results that nobody needs may go: no field speaks of single ones
    saves: ClassVar[Any] = None  # a policy: which values reverse mode may keep; None keeps all that it needs
    bodies: tuple[Program, ...]
    shared: int = 0
    carry: int = 0
    length: int = 1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "loops" not in vars(cls):
            cls.loops = cls.runs in ("loop", "until")
        cls.stacks = cls.runs in ("loop", "lanes")
        names = getattr(cls, "_names", ())
        counts = {"loop": ("shared", "carry"), "until": ("shared", "carry"), "lanes": ("shared",)}.get(cls.runs, ())
        if cls.prunes and "bodies" in names and not set(counts) <= set(names):
            raise RegistrationError(
                f"{cls.__name__}: an operation that runs its bodies in a {cls.runs} must have the fields "
                f"{' and '.join(counts)}: handlers that cross it change them.",
                hint="annotate them in its block, or say prunes = False and write all its cells.",
            )

    @property
    def effects(self) -> frozenset[Any]:
        found = EMPTY_ROW
        for body in self.bodies:
            found |= body.effects
        return found

    @property
    def tests(self) -> tuple[Program, ...]:
        return self.bodies[:1] if self.runs == "until" else ()

    @property
    def main(self) -> tuple[Program, ...]:
        """The bodies that give results: all but a test."""
        return self.bodies[1:] if self.runs == "until" else self.bodies

    def groups(self, items: Sequence[Any]) -> Groups:
        """Operands, or what goes with them, by the part they play."""
        first = self.selects
        second = first + self.shared
        third = second + self.carry
        return Groups(list(items[:first]), list(items[first:second]), list(items[second:third]), list(items[third:]))

    def result_type(op, *types: ArrayType) -> tuple[ArrayType, ...]:
        made = op.main[0].out_types
        return (*made[: op.carry], *map(op.stacked, made[op.carry :])) if op.stacks else made

    def stacked(self, type: ArrayType) -> ArrayType:
        """The type of an operand or result of which one run has ``type``."""
        return type.update(shape=(self.length, *type.shape)) if self.stacks else type

    def times(self, *types: ArrayType) -> int:
        """How often the body runs on operands of these types, where that is known."""
        return self.length if self.stacks else 1

    def with_bodies(self, bodies: Sequence[Program], **counts: Any) -> Any:
        """The same operation over other bodies; where their signature differs, with other counts."""
        fields = {"bodies": tuple(bodies), **counts}
        return type(self)(*[fields[name] if name in fields else getattr(self, name) for name in self._names])

    def maps(self, dims: Sequence[int | None]) -> bool:
        """Whether a batch rule of its own answers, where it has one, for operands mapped so; else the law does."""
        return True

    def plain(self) -> Any:
        """The operation without a policy of its own: reverse mode keeps what it needs."""
        return self

    def reversed(self) -> Any:
        """The operation that runs in the opposite order."""
        return self


# (y, ...) = body(x, ...): a function that is traced, transformed and compiled once
@operation
class Call(HigherOrder):
    bodies: tuple[Program, ...]
    label: str = "call"
    inline: bool = False
    shared = 0
    carry = 0


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
