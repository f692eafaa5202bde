"""The errors of the package, as all of it imports them, and functions that check arguments.

The second line of each message is said here, by the stack: the user's line and the handlers in force.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from typing import Any

from ..errors.argument_errors import *
from ..errors.effect_errors import *
from ..errors.error import HandlaxError as HandlaxError
from ..errors.error import shortened as shortened
from ..errors.execution_errors import *
from ..errors.shape_errors import *
from ..errors.storage_errors import *
from ..errors.tracing_errors import *
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


HandlaxError.place = staticmethod(_where)


def text_of(x: object) -> str:
    """``repr(x)``, for messages about any object of a user's; one whose ``repr`` raises is called by its class."""
    try:
        return repr(x)
    except Exception as error:
        return f"an object of {type(x).__qualname__}, whose repr raises {type(error).__name__}"


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


def nearest(name: object, names: Iterable[object]) -> str | None:
    """The hint that says which of ``names`` a misspelt ``name`` may mean; None: no text among them is near.

    >>> nearest("perlane", ["once", "per_lane"]), nearest(3, ["once"])
    ("did you mean 'per_lane'?", None)
    """
    texts = [text for text in names if isinstance(text, str)]
    # imported here, so that importing the package does not wait for it
    near = import_module("difflib").get_close_matches(name, texts, 2) if isinstance(name, str) else []
    return f"did you mean {' or '.join(map(repr, near))}?" if near else None


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
        hint = "pass the function itself, f, not what a call returns, f(x)."
        raise NotAFunction(f"{where}: a function is needed, got {type(fun).__name__}.", hint=hint)


def need_one_of(where: str, value: object, choices: Collection[object]) -> None:
    """Raises BadArgument if ``value`` is none of ``choices``: ``where`` must be 'a', 'b' or 'c'.

    None, where it is a choice, is the default, and not said.
    """
    if not isinstance(value, tuple({type(choice) for choice in choices})) or value not in choices:
        *others, last = [repr(choice) for choice in choices if choice is not None]
        hint = nearest(value, choices)
        raise BadArgument(f"{where} must be {', '.join(others)} or {last}, got {text_of(value)}.", hint=hint)


def need_operation_type(where: str, what: str, op: Any) -> None:
    """Raises BadArgument unless ``op`` is the class of an operation, or a base class of several."""
    if not (isinstance(op, type) and hasattr(op, "_cells")):
        if hasattr(type(op), "_cells"):
            hint = f"use the class {type(op).__name__}, not an instance."
        else:
            hint = "decorate it with @hx.effect." if isinstance(op, type) else "use the class Sin, not sin or Sin()."
        raise BadArgument(f"{where}: {what} belong to operation types, got {text_of(op)}.", hint=hint)
