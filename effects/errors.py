"""One tree of errors, three lines each.

    dot_general: contracting sizes must agree, got 4 (lhs f32[3,4], dim 1) and 2 (rhs f32[2,5], dim 0).
      at model.py:17, under vmap('batch') > grad
      hint: rhs would fit transposed.

The first line is the caller's; the second is taken from the stack when the error is made; the third is the remedy.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from . import stack
from .sources import Site, user_site


def _where() -> str:
    handlers = " > ".join(run.label for run in stack.runs() if run.label)
    return f"at {Site(*user_site(3))}" + (f", under {handlers}" if handlers else "")


class HandlaxError(Exception):
    """What every error of handlax is.

    ``what`` says what must hold and what was found; ``where`` the user's line and the handlers in force;
    ``hint`` the remedy.
    """

    def __init__(self, what: str, *, hint: str | None = None):
        self.what = what
        self.where = _where()
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [self.what, f"  {self.where}"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint)


def _rebuild(cls: type[HandlaxError], what: str, where: str, hint: str | None) -> HandlaxError:
    error = cls(what, hint=hint)
    error.where = where
    error.args = (str(error),)
    return error


class ShapeMismatch(HandlaxError, ValueError):
    """Shapes, sizes or ranks that do not fit together."""


class RankMismatch(HandlaxError, TypeError, ValueError):
    """An array of a rank that Python's protocol does not take: ``float`` of a vector, ``len`` of a scalar."""


class DTypeMismatch(HandlaxError, TypeError):
    """A dtype that an operation does not take, or dtypes that differ where they must not."""


class IntegerOverflow(HandlaxError, OverflowError):
    """An integer that its dtype cannot hold."""


class TreeMismatch(HandlaxError, ValueError):
    """Pytrees whose structures must agree, and do not."""


class NotAnArray(HandlaxError, TypeError):
    """A value that cannot be understood as an array."""


class NotAFunction(HandlaxError, TypeError):
    """A transformation was given something that cannot be called."""


class BadArgument(HandlaxError, ValueError):
    """A static argument (axis, name, mode, ...) outside what it may be."""


class BadCall(HandlaxError, TypeError):
    """Too many arguments, too few, or something performed that is no operation."""


class BadIndex(HandlaxError, IndexError):
    """An index with too many entries, or one that no element has."""


class Immutable(HandlaxError, TypeError, dataclasses.FrozenInstanceError):
    """An array, a program, a type or another value was to be changed in place."""

    @classmethod
    def of(cls, what: str, name: str, done: str, hint: str) -> Immutable:
        """The error for an attribute that was to be ``set`` or ``deleted``."""
        return cls(f"{what} are immutable, {name!r} cannot be {done}.", hint=hint)


class DeviceMismatch(HandlaxError, ValueError):
    """Arrays on different devices in one computation."""


class BadStaticArgument(HandlaxError, TypeError, ValueError):
    """A static argument that cannot be hashed, or a field that cannot be compared."""


class ConcretizationError(HandlaxError, TypeError):
    """The value of a box was asked for where only its type is known."""


class TracerBoolConversionError(ConcretizationError):
    """A Python ``if``, ``while``, ``and`` or ``assert`` on a box."""


class TracerIntegerConversionError(ConcretizationError):
    """A box where Python needs an integer, such as a list index or a shape."""


class TracerArrayConversionError(ConcretizationError):
    """A box given to NumPy."""


class NonConcreteBooleanIndexError(ConcretizationError, IndexError):
    """A boolean mask as index whose values are not known while tracing."""


class EscapedBox(HandlaxError, RuntimeError):
    """A box was used after its transformation ended, or in another thread's stack."""


class MissingRule(HandlaxError, LookupError):
    """A handler met an operation for which its column has no cell."""


class UnhandledEffect(HandlaxError, LookupError):
    """An effect reached the bottom of the stack, or a device, and nobody answered it."""


class UnboundAxis(UnhandledEffect, NameError):
    """A named axis that no ``vmap`` or mesh around the program binds."""


class CannotCross(HandlaxError, RuntimeError):
    """A handler or an effect meets an operation or a transformation that it cannot cross."""


class StateTypeError(HandlaxError, TypeError, ValueError):
    """The state of a handler, or what a loop carries, changes its type or structure on the way."""


class NotDifferentiable(HandlaxError, TypeError):
    """A derivative was asked of something that has none."""


class RegistrationError(HandlaxError, ValueError):
    """Something was registered twice, or cannot be registered."""


class ParseError(HandlaxError, ValueError):
    """A text that is not a program; ``line`` and ``column``, counted from 1, say where it stops being one."""

    line: int = 0
    column: int = 0


class TypeCheckError(HandlaxError, TypeError):
    """A program whose equations do not have the types they state."""


class CompileError(HandlaxError, RuntimeError):
    """XLA refused a program."""


class CallbackError(HandlaxError, RuntimeError):
    """A function of Python that a program called raised, which is ``__cause__``, or gave what it had not promised."""


class DeletedArray(HandlaxError, RuntimeError):
    """An array that was donated or deleted is used again."""


class ConfigurationError(HandlaxError, AttributeError):
    """A setting that does not exist, or a value that it cannot have."""


class Leak(HandlaxError, RuntimeError):
    """``checking_leaks``: a box outlived its transformation."""


class CheckFailed(HandlaxError, ValueError):
    """``check``, ``check_finite``, ``check_bounds`` or ``raise_``: something that must hold did not."""


class FoundNaN(HandlaxError, FloatingPointError):
    """``debug_nans``: an operation made a NaN."""


JAXTypeError = HandlaxError
UnexpectedTracerError = EscapedBox
ConcretizationTypeError = ConcretizationError


def need_function(where: str, fun: object) -> None:
    """Raises NotAFunction where ``fun`` cannot be called."""
    if not callable(fun):
        raise NotAFunction(f"{where}: a function is needed, got {type(fun).__name__}.")
