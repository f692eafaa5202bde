"""Looking into programs while they run: printing, and calling a function for what it does.

    debug.print("x = {}", x)      debug.callback(f, x)

Both are effects: performed where they stand, once for each time that is reached, in whatever the program becomes.
"""

from __future__ import annotations

import functools
import logging
import string
import sys
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

import numpy as np

from .callbacks import Arguments, Callback, evaluate_callback, held, lane_body, lower_callback, taken_apart
from .errors import BadArgument, need_function
from .lanes import Lanes
from .operations import effect
from .stack import perform

_LOGGER = logging.getLogger("handlax")


def batch_looking(op: Callback, dims: Sequence[int | None], *xs: Any) -> Any:
    """Looking at values: at each lane's own where they differ, once where they are the same in all."""
    size = next((x.shape[d] for x, d in zip(xs, dims) if d is not None), None)
    if size is None:
        return perform(op, *xs), ()
    program, shared, each = lane_body(op, dims, xs, size)
    return perform(Lanes((program,), len(shared), size), *shared, *each), ()


# function(x), for what it does
@effect(vmap="per_lane", diff="stop")
class DebugCallback(Callback):
    """The effect that ``debug.callback`` performs: a function of Python that looks at values.

    Performed once for each lane under ``vmap``, and in the primal pass of a derivative.
    """

    function: Callable[..., Any]
    arguments: Arguments | None = None
    ordered: bool = False

    evaluate = evaluate_callback
    batch = batch_looking
    lower = lower_callback


# print(format.format(x)), or the same for the log
@effect(vmap="per_lane", diff="stop")
class DebugPrint(Callback):
    """The effect that ``debug.print`` and ``debug.log`` perform: a text made of values, printed or logged.

    A handler with a clause for it collects what is printed: ``op.text(*operands)`` is the text.
    """

    format: str
    arguments: Arguments | None = None
    ordered: bool = False
    logged: bool = False
    options: tuple[tuple[str, Any], ...] = ()  # NumPy's ways of printing, where they are not the usual ones

    evaluate = evaluate_callback
    batch = batch_looking
    lower = lower_callback

    label = property(lambda op: repr(op.format))

    def text(op, *values):
        """What is printed for these operands."""
        args, kwargs = op.bound(values)
        return op.formatted(args, kwargs)

    def formatted(op, args, kwargs):
        options: Any = {name: dict(value) if isinstance(value, tuple) else value for name, value in op.options}
        with np.printoptions(**options):
            return op.format.format(*args, **kwargs)

    def run(op, *args, **kwargs):
        text = op.formatted(args, kwargs)
        if op.logged:
            _LOGGER.info(text)
        else:
            sys.stdout.write(text + "\n")  # at once: other threads print too


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of Python on values of the program, for what it does; its result is dropped.

        debug.callback(f, x)         debug.callback(ordered=True)(f, x)

    Effects: never dropped, merged or repeated. Under ``vmap`` once for each lane where the values differ from lane to
    lane, else once; in a derivative once, with the value; in a branch only if that is taken. Ordered ones keep their
    order, those of one thread's programs too; others may change places. Leaves of the arguments that are no arrays are
    passed as they are.

    Args:
        partitioned: values are passed as each device has them; here every value lies on one device.

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
    ordered: bool, options: Any, before: Any, callback: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> None:
    _options_alone("debug.callback", before, options)
    need_function("debug.callback", callback)
    arguments, operands = taken_apart(args, kwargs)
    perform(DebugCallback(held(callback), arguments, bool(ordered)), *operands)


def _options_alone(name: str, args: Any, options: dict[str, Any]) -> None:
    unknown = sorted(set(options) - {"partitioned"})
    if args or unknown:
        raise BadArgument(f"{name}: without its first argument it takes options alone, got {(*args, *unknown)}.")


class _Anything:
    """Stands for a value while a format is checked."""

    def __format__(self, spec: str) -> str:
        return ""

    __str__ = __repr__ = lambda self: ""

    def __getattr__(self, name: str) -> _Anything:
        return self

    def __getitem__(self, key: Any) -> _Anything:
        return self


class _Checker(string.Formatter):
    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [*[str(i) for i in range(len(args)) if i not in used_args], *sorted(set(kwargs) - set(used_args))]
        if unused:
            raise LookupError(f"nothing for argument {', '.join(unused)}")

    def convert_field(self, value: Any, conversion: Any) -> Any:
        super().convert_field("", conversion)
        return value


def _check(name: str, fmt: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Raises BadArgument where a format does not fit its arguments, before anything is formatted."""
    stand_ins: Any = [_Anything() for _ in args], {key: _Anything() for key in kwargs}
    try:
        fmt.format(*stand_ins[0], **stand_ins[1])
        _Checker().vformat(fmt, *stand_ins)
    except (LookupError, ValueError) as error:
        raise BadArgument(
            f"{name}: the format must have a place for each argument, and an argument for each place, "
            f"got {fmt!r}: {error}.",
            hint="it is formatted when the program runs: no f-string; write {{ for a brace.",
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

    Effects: as ``debug.callback``. A handler may answer ``DebugPrint`` itself: ``op.text(*operands)`` is what would be
    printed.

    Raises: BadArgument: the format has a place without an argument, or the other way round.

    >>> print("x = {} and {y:.1f}", 3, y=0.25)
    x = 3 and 0.2
    """
    how = (bool(ordered), bool(_use_logging), bool(skip_format_check))
    if fmt is None:
        return functools.partial(_print, how, {"partitioned": partitioned, **kwargs}, args)
    return _print(how, {"partitioned": partitioned}, (), fmt, *args, **kwargs)


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


def _print(how: tuple[bool, bool, bool], options: Any, before: Any, fmt: str, /, *args: Any, **kwargs: Any) -> None:
    ordered, logged, unchecked = how
    _options_alone("debug.print", before, options)
    if not isinstance(fmt, str):
        raise BadArgument(f"debug.print: the format must be a string, got {type(fmt).__name__}.", hint='print("{}", x)')
    if not unchecked:
        _check("debug.print", fmt, args, kwargs)
    arguments, operands = taken_apart(args, kwargs)
    perform(DebugPrint(fmt, arguments, ordered, logged, _printing()), *operands)


def _parts(value: Any) -> Any:
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


_USUAL = {name: _parts(value) for name, value in Context().run(np.get_printoptions).items()}


def _printing() -> tuple[tuple[str, Any], ...]:
    """NumPy's ways of printing in force here, where they differ from its usual ones: they belong to a thread."""
    found = [(name, _parts(value)) for name, value in np.get_printoptions().items()]
    return tuple([(name, value) for name, value in found if value != _USUAL[name]])
