"""The errors of the package, one tree under ``HandlaxError``; a message has three lines.

    dot_general: contracting sizes must agree, got 4 (lhs f32[3,4], dim 1) and 2 (rhs f32[2,5], dim 0).
      at model.py:17, under vmap('batch') > grad
      hint: rhs would fit transposed.

What must hold and what was found; the user's line and the handlers in force, taken from the stack when the error is
created; the remedy, where one is known.
"""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Self

from . import stack
from .source_locations import RawSite, Site, is_internal, user_site


def _where() -> str:
    """The second line of the message of an error that is being created: the user's line and the handlers in force."""
    handlers = " > ".join(run.label for run in stack.runs() if run.label)
    return f"at {Site(*_user_site(3))}" + (f", under {handlers}" if handlers else "")


def _user_site(depth: int) -> RawSite:
    """``user_site``, past the methods of runs: they answer what a line performs, and the error is about that line.

    In a body that was recorded it is the site of the equation.
    """
    frame: Any = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            run = _run_of(frame)
            if run is None:
                return code, frame.f_lasti
            if run.cell is not None and run.cell.site is not None:
                return run.cell.site
        frame = frame.f_back
    return user_site(depth)


def _run_of(frame: Any) -> stack.Run | None:
    """The run of which a frame executes a method, or a comprehension in one; None: it does not."""
    while frame.f_code.co_varnames[:1] == (".0",):
        frame = frame.f_back
    code = frame.f_code
    owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return owner if isinstance(owner, stack.Run) else None


def shortened(text: str, most: int) -> str:
    """``text``, without its middle if it is longer than ``most`` characters.

    >>> shortened("abcdefghijklmnopqrstuvwxyz", 14)
    'abcdef ... xyz'
    """
    if len(text) <= most:
        return text
    tail = (most - 5) // 3
    return f"{text[: most - 5 - tail]} ... {text[len(text) - tail :]}"


def text_of(x: object) -> str:
    """``repr(x)``, for messages about any object of a user's; one whose ``repr`` raises is called by its class."""
    try:
        return repr(x)
    except Exception as error:
        return f"an object of {type(x).__qualname__}, whose repr raises {type(error).__name__}"


class HandlaxError(Exception):
    """The base of all errors of handlax.

    ``what``: what must hold and what was found. ``where``: the user's line and the handlers in force. ``hint``: the
    remedy, or None. Long ones lose their middle, unless ``quotes``: the text is the user's, or XLA's.
    """

    quotes = False

    def __init__(self, what: str, *, hint: str | None = None):
        self.what = what if self.quotes else shortened(what, 1200)
        self.where = _where()
        self.hint = hint if hint is None or self.quotes else shortened(hint, 700)
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [self.what, f"  {self.where}"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint)

    def moved(self, where: str) -> Self:
        """The error itself, which now says ``where``: another line than the one at which it was created."""
        self.where = where
        self.args = (str(self),)
        return self


def _rebuild(cls: type[HandlaxError], what: str, where: str, hint: str | None) -> HandlaxError:
    return cls(what, hint=hint).moved(where)


class ShapeMismatch(HandlaxError, TypeError, ValueError):
    """Shapes, sizes or ranks that do not fit together."""


class ShardingTypeError(HandlaxError, TypeError, ValueError):
    """Values cut along explicit axes of a mesh in ways that do not fit together."""


class RankMismatch(HandlaxError, TypeError, ValueError):
    """An array of a rank that Python's protocol does not accept: ``float`` of a vector, ``len`` of a scalar."""


class DTypeMismatch(HandlaxError, TypeError, ValueError):
    """A dtype that an operation does not accept, or dtypes that differ where they must agree."""


class IntegerOverflow(HandlaxError, OverflowError):
    """An integer that its dtype cannot hold."""


class TreeMismatch(HandlaxError, TypeError, ValueError):
    """Pytrees whose structures must agree, and do not."""


class NotAnArray(HandlaxError, TypeError, ValueError):
    """A value that is neither a number nor an array."""


class NotAFunction(HandlaxError, TypeError):
    """An argument that must be a function and is not callable."""


class BadArgument(HandlaxError, ValueError):
    """A static argument (axis, name, mode, ...) outside the range of its values."""


class NotProvided(BadArgument, TypeError, NotImplementedError):
    """A parameter of NumPy's that has no meaning here, as ``out``. NumPy's own functions then take the data."""


class BadAxis(BadArgument, TypeError, IndexError):
    """An axis that an array does not have, or that is no integer."""


class BadShape(BadArgument, TypeError):
    """A shape that is no sequence of integers."""


class NotAnInteger(BadArgument, TypeError):
    """A number that counts, or a place along an axis, that is no integer."""


class UnknownSharding(BadArgument, TypeError):
    """An argument that comes without a spec, and does not lie on the mesh in a known way."""


class BadCall(HandlaxError, TypeError):
    """Too many arguments, too few, or ``perform`` of what is no operation."""


class DonatedTwice(BadArgument, RuntimeError):
    """One array as two arguments of a call that donates one of them."""


class MissingUserRule(BadCall, AttributeError):
    """A call of a function with a custom rule before that rule is defined."""


class BadIndex(HandlaxError, IndexError):
    """An index with too many entries, or out of bounds."""


class Immutable(HandlaxError, TypeError, dataclasses.FrozenInstanceError):
    """An attempt to change an array, a program, a type or another immutable value in place."""

    @classmethod
    def of(cls, what: str, name: str, change: str, hint: str) -> Immutable:
        """The error of an attempt to change an attribute; ``change`` is ``set`` or ``deleted``."""
        return cls(f"{what} are immutable, {name!r} cannot be {change}.", hint=hint)


class DeviceMismatch(HandlaxError, ValueError):
    """Arrays on different devices in one computation."""


class ProcessesDiffer(HandlaxError, AssertionError):
    """A value that is not the same in every process."""


class NotAddressable(HandlaxError, RuntimeError):
    """The data of an array of which other processes hold a part, asked for in this one."""


class ProcessFailure(HandlaxError, RuntimeError):
    """Processes that cannot be joined, or one of them that has failed or is missing."""


class BadStaticArgument(HandlaxError, TypeError, ValueError):
    """A static argument that cannot be hashed, or a field that cannot be compared."""


class ConcretizationError(HandlaxError, TypeError):
    """A conversion of a box, of which only the type is known, to a Python or NumPy value."""


class TracerBoolConversionError(ConcretizationError):
    """A Python ``if``, ``while``, ``and`` or ``assert`` on a box."""


class TracerIntegerConversionError(ConcretizationError):
    """A box where Python needs an integer, such as a list index or a shape."""


class TracerArrayConversionError(ConcretizationError):
    """A box passed to a function of NumPy."""


class NonConcreteBooleanIndexError(ConcretizationError, IndexError):
    """A boolean mask as an index, the values of which are unknown while tracing."""


class EscapedBox(HandlaxError, RuntimeError):
    """A box was used after its transformation ended, or in another thread's stack."""


class MissingRule(HandlaxError, LookupError):
    """An operation for which the column of a handler has no rule."""


class NotSparse(HandlaxError, NotImplementedError, ValueError):
    """An operation that would make a sparse array dense, or has no meaning for a sparse array."""


class UnhandledEffect(HandlaxError, LookupError, ValueError):
    """An effect that no handler on the stack answers, or that is left in a program to be compiled."""


class UnboundAxis(UnhandledEffect, NameError):
    """A named axis that no ``vmap`` or mesh around the program binds."""


class CannotCross(HandlaxError, RuntimeError):
    """A handler or an effect that cannot cross an operation or a transformation."""


class EndlessCalls(HandlaxError, RecursionError):
    """Rules or clauses that call each other deeper than any stack."""


class PythonAnswer(CannotCross):
    """An effect whose answer is a Python object, since ``result_type`` gives ``object``, where types are needed."""


class StateTypeError(HandlaxError, TypeError, ValueError):
    """A state of a handler, or a carry of a loop, that changes its type or structure from one step to the next."""


class NotDifferentiable(HandlaxError, TypeError):
    """A derivative of a function or value that has none."""


class RegistrationError(HandlaxError, ValueError):
    """A second registration of the same thing, or one that is not possible."""


class ParseError(HandlaxError, ValueError):
    """A text that is not a program; ``line`` and ``column`` of the first mistake, counted from 1."""

    line: int = 0
    column: int = 0


class TypeCheckError(HandlaxError, TypeError):
    """A program whose equations do not have the types that it declares."""


class XlaError(HandlaxError, RuntimeError):
    """A program that failed while it was compiled or executed, as XLA or a callback reports it."""

    quotes = True


class BadArtifact(HandlaxError, ValueError):
    """Bytes that are no exported function: damaged, cut off, of another format, or of a later version of it."""


class NotSaved(HandlaxError, OSError):
    """A tree that cannot be saved: its folder cannot be written to, or another save is writing to it."""


class BadCheckpoint(HandlaxError, ValueError):
    """A folder or file without a saved tree that is whole: it is damaged, of a later version, or not there."""


class DamagedCheckpoint(BadCheckpoint):
    """A saved tree whose bytes were read, or are missing, and are not as they were saved: no later try will differ."""


class NotExportable(HandlaxError, ValueError, NotImplementedError):
    """A function, or a part of one, that cannot be exported, or an exported one that cannot be called here."""


class NotSerializable(NotExportable, TypeError):
    """A tree of arguments or results with a key or a type of nodes that has no form in bytes."""


class CompileError(XlaError):
    """XLA refused a program."""


class ExecutionError(XlaError):
    """A compiled program that failed while it was executed, as where a foreign function returns an error."""


class OutOfMemory(XlaError, MemoryError):
    """A device without the memory for a program's results or intermediate arrays."""


class CallbackError(XlaError):
    """A callback that raised, its error being ``__cause__``, or returned other types than declared."""


class DeletedArray(HandlaxError, RuntimeError):
    """A use of an array that was donated or deleted."""


class ConfigurationError(HandlaxError, AttributeError):
    """A setting that does not exist, or a value that it cannot have."""


class PlatformUnavailable(ConfigurationError, RuntimeError):
    """A platform that is unknown, not allowed here, or without a plug-in or a device."""


class TracingRefused(HandlaxError, RuntimeError):
    """``no_tracing``: a call that has to be traced."""


class ExecutionRefused(HandlaxError, RuntimeError):
    """``no_execution``: an operation or a compiled function that is to be executed."""


class TransferRefused(HandlaxError, RuntimeError):
    """``transfer_guard``: data that would have to be brought to or from a device."""


class Leak(HandlaxError, RuntimeError):
    """``checking_leaks``: a box outlived its transformation."""


class CheckFailed(HandlaxError, ValueError):
    """``check``, ``check_finite``, ``check_bounds`` or ``raise_``: a condition that must hold does not."""

    quotes = True


class FoundNaN(HandlaxError, FloatingPointError):
    """``debug_nans``: an operation whose result has a NaN."""


class ProfilerMisuse(HandlaxError, RuntimeError, ValueError):
    """A profile or a server that is started twice, or ended without being started."""


class NotRegistered(BadArgument, AssertionError):
    """A listener of events that was never registered, or not for events of this kind."""


class JaxIsLoaded(HandlaxError, ImportError):
    """``as_jax``: JAX itself is loaded in the process in which handlax is to stand for it."""


class MissingModule(HandlaxError, ModuleNotFoundError):
    """A module or name of JAX's that is not there: handlax does not have it for ``as_jax``, or JAX is not installed."""


JAXTypeError = HandlaxError
JaxRuntimeError = XlaError
JAXIndexError = BadIndex
JaxprTypeError = TypeCheckError
UnexpectedTracerError = EscapedBox
ConcretizationTypeError = ConcretizationError

__all__ = [name for name, x in globals().items() if isinstance(x, type) and issubclass(x, HandlaxError)]


def whole_number(where: str, x: Any) -> int:
    """``x`` as a Python integer; ``where`` names the function and its parameter.

    Raises: NotAnInteger: it is none. ConcretizationError: it is one whose value is not known.
    """
    try:
        return operator.index(x)
    except ConcretizationError:
        raise
    except TypeError:
        raise NotAnInteger(f"{where} must be an integer, got {getattr(x, 'type', None) or text_of(x)}.") from None


def whole_numbers(where: str, xs: Iterable[Any]) -> tuple[int, ...]:
    """The elements of ``xs`` as Python integers, each as by ``whole_number``.

    >>> whole_numbers("f: a size", [2, True])
    (2, 1)
    """
    return tuple([whole_number(where, x) for x in xs])


def as_tuple(xs: Any, name: str, what: str) -> tuple[Any, ...]:
    """The elements of an argument that must be a sequence. Raises BadArgument: it is not one.

    >>> as_tuple([2, 3], "f", "the sizes")
    (2, 3)
    """
    try:
        return tuple(xs)
    except TypeError:
        raise BadArgument(f"{name}: {what} must be a sequence, got {text_of(xs)}.") from None


def some_of(names: Sequence[str]) -> str:
    """The names, for messages; of more than four the first three, and how many there are beside.

    >>> some_of(["a", "b", "c", "d", "e"])
    'a, b, c, 2 more'
    """
    return ", ".join(names if len(names) < 5 else [*names[:3], f"{len(names) - 3} more"])


def need_count(where: str, x: Any, least: int = 0) -> int:
    """``x`` as a Python integer, at least ``least``; ``where`` names the function and its parameter.

    Raises: NotAnInteger: it is none. BadArgument: it is less.
    """
    count = whole_number(where, x)
    if count < least:
        raise BadArgument(f"{where} must be at least {least}, got {count}.")
    return count


def need_function(where: str, fun: object) -> None:
    """Raises NotAFunction if ``fun`` is not callable."""
    if not callable(fun) or isinstance(fun, staticmethod):
        raise NotAFunction(f"{where}: a function is needed, got {type(fun).__name__}.")


def need_one_of(where: str, value: object, choices: Collection[object]) -> None:
    """Raises BadArgument if ``value`` is none of ``choices``: ``where`` must be 'a', 'b' or 'c'.

    None, where it is a choice, is the default, and not said.
    """
    if not isinstance(value, tuple({type(choice) for choice in choices})) or value not in choices:
        *others, last = [repr(choice) for choice in choices if choice is not None]
        raise BadArgument(f"{where} must be {', '.join(others)} or {last}, got {text_of(value)}.")


def need_operation_type(where: str, what: str, op: Any) -> None:
    """Raises BadArgument unless ``op`` is the class of an operation, or a base class of several."""
    if not (isinstance(op, type) and hasattr(op, "_cells")):
        got = text_of(op)
        raise BadArgument(f"{where}: {what} belong to operation types, got {got}.", hint="use Sin, not sin or Sin().")
