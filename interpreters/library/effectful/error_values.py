"""Errors as values, with JAX's names: the functions of ``handlax.experimental.checkify``.

    error, y = checkify(f, errors)(*xs):  y == f(*xs),  error.throw() raises the first of these errors that happened
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....effects.base.errors import BadCall, CheckFailed, DTypeMismatch, NotAnArray, ShapeMismatch, need_function
from ....effects.base.stack import current, site
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import as_array, perform, scalar
from ....effects.core.operation import effect, is_pure
from ....effects.operations.elementwise.bitwise import bitwise_not
from ....effects.operations.elementwise.comparison import gt
from ....effects.operations.elementwise.conversion import convert
from ....effects.operations.foundations.shapes import reshape
from ....effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ....effects.operations.manipulation.creation import full
from ....effects.operations.manipulation.slicing import concatenate, lanes_first
from ....effects.operations.reductions.reductions import argmax
from ....effects.trees import pytrees
from ....effects.trees.registration import register_dataclass
from ....effects.types.dtypes import bool_, int32, uint32
from ...handlers.handle import handle
from ...handlers.handler import handler
from .automatic_checks import ErrorCategory, NaNFlags, failures_of
from .failures import Check, failure, note_of
from .first_event import (
    PAYLOAD,
    EventNote,
    EventState,
    FirstEvent,
    FirstEventMovement,
    Note,
    after_event,
    no_event,
    recorded,
    words_of,
)

user_checks: frozenset[ErrorCategory] = frozenset({ErrorCategory.USER})
"""Conditions that the program checks: ``check``, ``debug_check``."""
nan_checks: frozenset[ErrorCategory] = frozenset({ErrorCategory.NAN})
"""NaN that an operation makes of operands without one: an operand that is already NaN is not reported again."""
div_checks: frozenset[ErrorCategory] = frozenset({ErrorCategory.DIV})
"""Divisions by zero, of integers too."""
index_checks: frozenset[ErrorCategory] = frozenset({ErrorCategory.INDEX})
"""Indices and windows out of bounds, of reads and of writes."""
float_checks: frozenset[ErrorCategory] = nan_checks | div_checks
"""``nan_checks | div_checks``."""
automatic_checks: frozenset[ErrorCategory] = float_checks | index_checks
"""All that is looked for in operations: ``float_checks | index_checks``."""
all_checks: frozenset[ErrorCategory] = automatic_checks | user_checks
"""``automatic_checks | user_checks``."""


class Error(FirstEvent):
    """The error of a checkified function, or none: ``get()`` is its message, ``throw()`` raises it. A pytree.

    A result of ``vmap`` has one for each lane, and its message has a line for each lane that failed.
    """

    def get_exception(self) -> Any:
        """The error as an exception, which is not raised; None if there is none."""
        return self.exception()

    def exception(self) -> Any:
        first = super().exception()  # None if there is no error; raises under tracing
        numbers = np.asarray(self.number)
        if first is None or not numbers.shape:
            return first
        payloads, lines = np.asarray(self.payload), []
        for lane in map(tuple, np.argwhere(numbers)):
            other = FirstEvent(numbers[lane], payloads[lane], self.notes, self.error).exception()
            lines.append(f"in lane {', '.join(map(str, lane))}: {other}")
        first.args = ("\n".join(lines),)
        first.__class__ = _SeveralFailed
        return first


class _SeveralFailed(CheckFailed):
    """Failed checks of several lanes; its text has a line for each."""

    def __str__(self) -> str:
        return str(self.args[0])


register_dataclass(Error, ("number", "payload"), ("notes", "error"))

init_error = Error(scalar(0, int32), as_array(np.zeros(PAYLOAD, np.uint32)), (), failure)
"""The error before the first check: none."""


# as Check, but does nothing if no checkify handles it
@effect(vmap="per_lane", diff="stop")
class DebugCheck(Check):
    message: str
    where: str
    lanes: int = 0
    rank: int = 0

    def evaluate(op, ok, *values):
        return ()

    def lower(op, emit, ok, *values):
        return ()


# reports the note with this number, if it is not 0, to an outer checkify; operands: an error's number and payload
@effect(vmap="per_lane", diff="stop")
class Reported:
    notes: tuple[Note, ...]
    remedy = "look at it around the function: error, y = checkify(f)(x); error.throw()."

    def result_type(op, number, payload):
        return None

    def evaluate(op, number, payload):
        Error(number, payload, op.notes, failure).throw()
        return ()

    def batch(op, dims, number, payload):
        """One report, of the first lane with an error."""
        first = _first_lane(*lanes_first((number, payload), dims))
        return current().answer(op, first), ()


def _first_lane(numbers: Any, payloads: Any) -> tuple[Any, Any]:
    """The number and payload of the first lane with an error, or of the first lane if there is none."""
    first = argmax(convert(gt(numbers, scalar(0, int32)), int32), 0, int32)
    return dynamic_index_in_dim(numbers, first, 0, False), dynamic_index_in_dim(payloads, first, 0, False)


class _Text:
    """A leaf that formats itself as the replacement field ``{index}``, to build a message template."""

    def __init__(self, index: int):
        self.index = index

    def __repr__(self) -> str:
        return f"\0{self.index}\1"


def _positional(message: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[str, list[Any]]:
    """The message with its fields numbered, one for each array, and these arrays."""
    leaves, tree = pytrees.flatten((tuple(args), kwargs))
    try:
        values = [as_array(x) for x in leaves]
    except NotAnArray as error:
        raise NotAnArray(f"check: values of the message must be trees of arrays. {error.what}") from None
    positional, named = pytrees.unflatten(tree, map(_Text, range(len(leaves))))
    parts, following = [], 0
    for literal, field, spec, conversion in string.Formatter().parse(message):
        parts.append(literal.replace("{", "{{").replace("}", "}}"))
        if field is None:
            continue
        if field == "":
            field, following = str(following), following + 1
        try:
            text, _ = string.Formatter().get_field(field, positional, named)
        except (IndexError, KeyError, AttributeError) as error:
            raise BadCall(f"check: the message must have a value for each field, got none for {field!r}.") from error
        ending = (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        shown = repr(text).replace("{", "{{").replace("}", "}}")
        parts.append(shown.replace("\0", "{").replace("\1", ending + "}"))
    return "".join(parts), values


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check that the scalar ``pred`` is true. A failure raises; under ``checkify`` it becomes a value instead.

    Args:
        msg: what must hold; ``{}`` and ``{name}`` show the further arguments, trees of arrays.
        debug: do nothing if no ``checkify`` handles it.

    Raises: CheckFailed: it is false. ShapeMismatch, DTypeMismatch: it is no scalar bool. NotAnArray, BadCall: the
    arguments do not fit the message.

    >>> error, _ = checkify(lambda x: check(x > 0, "x must be positive, got {x:.1f}", x=x))(-1.0)
    >>> error.get().splitlines()[0]
    'x must be positive, got -1.0.'
    """
    name = "debug_check" if debug else "check"
    ok = as_array(pred)
    if ok.type.shape:
        raise ShapeMismatch(f"{name}: the predicate must be a scalar, got {ok.type}.", hint="reduce it: pred.all().")
    if ok.type.dtype != bool_:
        raise DTypeMismatch(f"{name}: the predicate must be a bool, got {ok.type}.")
    message, values = _positional(msg, fmt_args, fmt_kwargs)
    perform((DebugCheck if debug else Check)(message, site().scoped), ok, *values)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """``check(..., debug=True)``: a check that does nothing if no ``checkify`` handles it."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise an error that a checkified function returned: at once, or as a value under another ``checkify``.

    Raises: CheckFailed: the error happened.
    """
    number, payload = as_array(error.number), as_array(error.payload)
    if number.type.size == 0 or not error.notes:
        return
    if number.type.shape:
        lanes = number.type.size
        number, payload = _first_lane(reshape(number, (lanes,)), reshape(payload, (lanes, payload.type.shape[-1])))
    perform(Reported(error.notes), number, payload)


class _TooSmall(Exception):
    """Raised while tracing to retry with a payload of `words` uint32s."""

    def __init__(self, words: int):
        self.words = words


def checkify(
    f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """``checkify(f, errors)(*args)`` gives ``(error, f(*args))``, where ``error`` is the first of these categories that
    happened.

    Args:
        errors: a union of ``user_checks``, ``nan_checks``, ``div_checks``, ``index_checks``; ``float_checks`` are the
            second and third, ``automatic_checks`` all but the first, ``all_checks`` all.

    >>> from handlax import numpy as hnp
    >>> error, y = checkify(lambda x, i: hnp.sin(x)[i], index_checks)(hnp.arange(3.0), 5)
    >>> error.get().splitlines()[0]
    'out-of-bounds indexing of f32[3]: index 5 on axis 0 with size 3.'
    """
    need_function("checkify", f)

    @wraps(f)
    @unnamed_boundary
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        words = PAYLOAD
        while True:
            try:
                return _checked(f, frozenset(errors), words, args, kwargs)
            except _TooSmall as error:
                words = error.words

    return checked


def _checked(
    f: Callable[..., Any], errors: frozenset[ErrorCategory], words: int, args: Any, kwargs: Any
) -> tuple[Error, Any]:
    notes: dict[EventNote, int] = {}
    nans = NaNFlags()

    def event(state: EventState, note: EventNote, happens: Any, values: Sequence[Any]) -> EventState:
        needed = len(state["lanes"]) + sum(map(words_of, note.types))
        if needed > words:
            raise _TooSmall(needed)
        return after_event(state, notes, note, happens, values)

    def user_check(state: EventState, op: Any, ok: Any, *values: Any) -> Any:
        if ErrorCategory.USER not in errors:
            return state, None
        return event(state, note_of(op, values), bitwise_not(ok), values), None

    def reported(state: EventState, op: Any, number: Any, payload: Any) -> Any:
        if payload.type.size > words:
            raise _TooSmall(payload.type.size)
        table = np.array([0, *[notes.setdefault(note, len(notes) + 1) for note in op.notes]], np.int32)
        happens = gt(number, scalar(0, int32))
        wide = concatenate([payload, full((words - payload.type.size,), 0, uint32)], 0)
        number = dynamic_index_in_dim(as_array(table), number, 0, False)
        return recorded(state, happens, number=number, payload=wide), None

    def automatic(state: EventState, op: Any, *operands: Any) -> Any:
        y = perform(op, *operands)
        for failed in failures_of(op, operands, y, errors, nans):
            types = tuple([x.type for x in failed.values])
            note = EventNote(failed.message, site().scoped, types=types)
            state = event(state, note, failed.happens, failed.values)
        return state, y

    watched = handler(
        {Check: user_check, DebugCheck: user_check, Reported: reported},
        otherwise=automatic if errors & automatic_checks else None,
        over=lambda op: is_pure(op) and not op.bodied,
        moves=FirstEventMovement(),
    )
    state, y = handle(watched, no_event(words=words))(f)(*args, **kwargs)
    return Error(state["number"], state["payload"], tuple(notes), failure), y
