"""Debugging of executing programs: printing values, and calling a function for its side effects.

    debug.print("x = {}", x)      debug.callback(f, x)

Both are effects: performed once each time that execution reaches them, whatever transformations are applied.
"""

from __future__ import annotations

import functools
import logging
import string
import sys
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np

from ..base.errors import BadArgument, need_function
from ..base.stack import perform
from ..core.operation import effect
from .callbacks import (
    Callback,
    CallbackArguments,
    flattened_arguments,
    hashable,
    once_where_shared,
)

_LOGGER = logging.getLogger("handlax")


# function(x), for its side effects
@effect(vmap="per_lane", diff="stop")
class DebugCallback(Callback):
    """The effect of ``debug.callback``: calls a Python function on values, and ignores its result.

    Performed once per lane under ``vmap``, and in the primal pass of a derivative.
    """

    function: Callable[..., Any]
    arguments: CallbackArguments | None = None
    ordered: bool = False

    batch = once_where_shared


# print(format.format(x)), or the same to the logger
@effect(vmap="per_lane", diff="stop")
class DebugPrint(Callback):
    """The effect of ``debug.print`` and ``debug.log``: a text formatted from values, printed or logged.

    A clause for it can collect the texts: ``op.text(*operands)``.
    """

    format: str
    arguments: CallbackArguments | None = None
    ordered: bool = False
    logged: bool = False
    options: tuple[tuple[str, Any], ...] = ()  # NumPy's print options that are not the default

    batch = once_where_shared

    label = property(lambda op: repr(op.format))

    def text(op, *values):
        """The text that is printed for these operands."""
        args, kwargs = op.bound(values)
        return op.formatted(args, kwargs)

    def formatted(op, args, kwargs):
        options: Any = {name: dict(value) if isinstance(value, tuple) else value for name, value in op.options}
        with np.printoptions(**options):
            return op.format.format(*args, **kwargs)

    def invoke(op, *args, **kwargs):
        text = op.formatted(args, kwargs)
        if op.logged:
            _LOGGER.info(text)
        else:
            sys.stdout.write(text + "\n")  # one call: other threads print too


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function on values of the program for its side effects; its result is ignored.

        debug.callback(f, x)         debug.callback(ordered=True)(f, x)

    Leaves of the arguments that are no arrays are passed unchanged.

    Effects: never removed, merged or repeated. Under ``vmap`` once per lane if an operand is mapped, otherwise once; in
    a derivative once, on primals; in a branch only if it is executed. Ordered ones keep their order, across the
    programs of a thread too; others may be reordered. Of several devices the first one calls, on whole values; in
    ``shard_map`` each does, on its pieces, and ordered ones keep their order on each.

    Args:
        partitioned: no effect: pieces are passed in ``shard_map``, whole values elsewhere.

    Raises: CallbackError: the callback raised; at ``effects_barrier``, or where a result of the program is read.

    >>> seen = []
    >>> callback(seen.append, 3)
    >>> seen
    [Array(3, dtype=int32)]
    """
    if callback is None:
        return functools.partial(_callback, ordered, {"partitioned": partitioned, **kwargs}, args)
    return _callback(ordered, {"partitioned": partitioned}, (), callback, *args, **kwargs)


def _callback(
    ordered: bool, options: Any, curried: Any, callback: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> None:
    _check_options("debug.callback", curried, options)
    need_function("debug.callback", callback)
    arguments, operands = flattened_arguments(args, kwargs)
    perform(DebugCallback(hashable(callback), arguments, bool(ordered)), *operands)


def _check_options(name: str, args: Any, options: dict[str, Any]) -> None:
    """Raises BadArgument for anything but options in a call without the first argument."""
    unknown = sorted(set(options) - {"partitioned"})
    if args or unknown:
        raise BadArgument(f"{name}: without its first argument it takes only options, got {(*args, *unknown)}.")


class _AnyValue:
    """A stand-in for a value while a format is checked: every format specification and attribute is accepted."""

    def __format__(self, spec: str) -> str:
        return ""

    __str__ = __repr__ = lambda self: ""

    def __getattr__(self, name: str) -> _AnyValue:
        return self

    def __getitem__(self, key: Any) -> _AnyValue:
        return self


class _ArgumentChecker(string.Formatter):
    """Formatting that raises LookupError for an argument that the format does not use."""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [*[str(i) for i in range(len(args)) if i not in used_args], *sorted(set(kwargs) - set(used_args))]
        if unused:
            raise LookupError(f"nothing for argument {', '.join(unused)}")

    def convert_field(self, value: Any, conversion: Any) -> Any:
        super().convert_field("", conversion)
        return value


def _check(name: str, fmt: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Raises BadArgument where the fields of a format do not match the arguments."""
    stand_ins: Any = [_AnyValue() for _ in args], {key: _AnyValue() for key in kwargs}
    try:
        fmt.format(*stand_ins[0], **stand_ins[1])
        _ArgumentChecker().vformat(fmt, *stand_ins)
    except (LookupError, ValueError) as error:
        raise BadArgument(
            f"{name}: the format must have a field for each argument, and an argument for each field, "
            f"got {fmt!r}: {error}.",
            hint="it is formatted when the program is executed, so it is no f-string; write {{ for a brace.",
        ) from error


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values of the program, as ``print(fmt.format(*args, **kwargs))`` would.

        debug.print("x = {:.2f}", x)         debug.print(ordered=True)("x = {x}", x=x)

    Effects: as ``debug.callback``. A handler can answer ``DebugPrint``: ``op.text(*operands)`` is the text.

    Raises: BadArgument: the format has a field without an argument, or an argument without a field.

    >>> print("x = {} and {y:.1f}", 3, y=0.25)
    x = 3 and 0.2
    """
    flags = (bool(ordered), bool(_use_logging), bool(skip_format_check))
    if fmt is None:
        return functools.partial(_print, flags, {"partitioned": partitioned, **kwargs}, args)
    return _print(flags, {"partitioned": partitioned}, (), fmt, *args, **kwargs)


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """As ``debug.print``, to the logger ``handlax`` at level INFO."""
    options: Any = dict(partitioned=partitioned, skip_format_check=skip_format_check, _use_logging=True)
    return print(fmt, *args, ordered=ordered, **options, **kwargs)


def _print(flags: tuple[bool, bool, bool], options: Any, curried: Any, fmt: str, /, *args: Any, **kwargs: Any) -> None:
    ordered, logged, unchecked = flags
    _check_options("debug.print", curried, options)
    if not isinstance(fmt, str):
        raise BadArgument(f"debug.print: the format must be a string, got {type(fmt).__name__}.", hint='print("{}", x)')
    if not unchecked:
        _check("debug.print", fmt, args, kwargs)
    arguments, operands = flattened_arguments(args, kwargs)
    perform(DebugPrint(fmt, arguments, ordered, logged, _print_options()), *operands)


def _as_items(value: Any) -> Any:
    """A print option as a hashable value: a dictionary as its sorted items."""
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


_DEFAULTS = {name: _as_items(value) for name, value in Context().run(np.get_printoptions).items()}


def _print_options() -> tuple[tuple[str, Any], ...]:
    """NumPy's print options in force in this thread, where they differ from the defaults."""
    options = [(name, _as_items(value)) for name, value in np.get_printoptions().items()]
    return tuple([(name, value) for name, value in options if value != _DEFAULTS[name]])
