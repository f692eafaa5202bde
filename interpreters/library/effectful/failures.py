"""Errors as values: conditions are checked on the device, and the first failure is raised outside the program.

    error, y = checkify(f)(x);  error.throw()        raises if a check in f failed, with its line, lane and index

The program is executed to its end after a failure, unless ``stop`` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ....effects.base.errors import BadArgument, CheckFailed, DTypeMismatch, need_function
from ....effects.base.stack import current, site
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import as_array, perform
from ....effects.core.operation import effect
from ....effects.operations.elementwise.arithmetic import is_finite
from ....effects.operations.elementwise.bitwise import bitwise_and, bitwise_not
from ....effects.operations.elementwise.comparison import ge, lt
from ....effects.operations.elementwise.complex_parts import imag, real
from ....effects.operations.elementwise.conversion import convert
from ....effects.operations.foundations.shapes import move_axis, reshape
from ....effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ....effects.operations.manipulation.slicing import axis_at, lane_count
from ....effects.operations.reductions.reductions import argmin, reduce_and
from ....effects.trees import pytrees
from ....effects.types.dtypes import bool_, float32, int32, is_complex, is_inexact, itemsize_bits
from ...handlers.handle import handle
from ...handlers.handler import handler
from .first_event import EventNote, FirstEvent, FirstEventMovement, after_event, event_error, no_event
from .stop_at_failure import stopped


# operands: a bool that must be True, the lane indices, an index of this rank, the values that the message shows
@effect(vmap="per_lane", diff="stop")
class Check:
    message: str
    where: str
    lanes: int = 0
    rank: int = 0
    remedy = "look at it around the function: error, y = hx.checkify(f)(x); error.throw()."

    def result_type(op, ok, *values):
        if ok.shape or ok.dtype != bool_:
            raise DTypeMismatch(f"check: a scalar bool is needed, got {ok}.")
        return None

    def evaluate(op, ok, *values):
        if not ok:
            raise failure(note_of(op, ()), values)
        return ()

    def batch(op, dims, ok, *values):
        """One check of all lanes; its values are those of the first lane that fails."""
        size = lane_count((ok, *values), dims)
        first, *rest = [x if d is None else move_axis(x, d, 0) for x, d in zip((ok, *values), dims)]
        lanes = axis_at(first, None if dims[0] is None else 0, 0, size)
        lane = argmin(convert(lanes, int32), 0, int32)
        shown = [x if d is None else dynamic_index_in_dim(x, lane, 0, False) for x, d in zip(rest, dims[1:])]
        joint = replace(op, lanes=op.lanes + 1)
        return current().answer(joint, (reduce_and(lanes, (0,)), lane, *shown)), ()


failure = partial(event_error, CheckFailed)
"""The exception of a failed check: ``failure(note, values)``."""


def check(pred: Any, message: str, *values: Any) -> None:
    """Check that every element of ``pred`` is True.

    Outside of tracing a failure is raised at once; in a compiled program, ``checkify`` around it makes it a value.

    Args:
        message: what must hold, with ``{}`` for each of the values.
        values: scalars; or arrays of the shape of ``pred``, of which the first failing element is shown.

    Raises: CheckFailed: an element is False. BadArgument: message or shapes of the values do not fit.

    >>> from handlax import numpy as hnp
    >>> check(hnp.int32(2) > 1, "x must be above 1, got {}", 2)
    """
    _check(site().scoped, pred, message, values)


def _check(where: str, pred: Any, message: str, values: Sequence[Any]) -> None:
    p = convert(pred, bool_)
    shape = p.type.shape
    shown = [as_array(x) for x in values]
    for x in shown:
        if x.type.shape not in ((), shape):
            raise BadArgument(
                f"check: values must be scalars or have the shape of the predicate, {shape}, got {x.type}.",
                hint="reduce them first: x.min(), x.max().",
            )
    if p.type.size == 0:
        return
    if not isinstance(message, str):
        raise BadArgument(f"check: the message must be a string, got {message!r}.")
    try:
        message.format(*shown)
    except (IndexError, KeyError, ValueError) as error:
        raise BadArgument(
            f"check: the message must have one {{}} for each value, got {message!r} and {len(shown)} values.",
            hint="write {} for each value, and braces twice.",
        ) from error
    if not shape:
        perform(Check(message, where), p, *shown)
        return
    flat = reshape(p, (p.type.size,))
    at = argmin(convert(flat, int32), 0, int32)
    shown = [dynamic_index_in_dim(reshape(x, (p.type.size,)), at, 0, False) if x.type.shape else x for x in shown]
    perform(Check(message, where, 0, len(shape)), reduce_and(flat, (0,)), *unravel_index(at, shape), *shown)


def unravel_index(at: Any, shape: Sequence[int]) -> list[Any]:
    """The multi-index of the element with row-major index ``at`` in an array of this shape."""
    index = []
    for size in reversed(shape):
        index.append(at % size)
        at = at // size
    return index[::-1]


def check_finite(x: Any, name: str = "the value") -> Any:
    """Check that every element of a tree of arrays is finite; returns the tree.

    Raises: CheckFailed: an element is NaN or infinite.
    """
    where = site().scoped
    for path, leaf in pytrees.leaves_with_path(x):
        y = as_array(leaf)
        if is_inexact(y.type.dtype):
            shown = (name + pytrees.keystr(path)).replace("{", "{{").replace("}", "}}")
            _check(where, _finite(y), shown + " must be finite, got {}", (y,))
    return x


def _finite(x: Any) -> Any:
    if is_complex(x.type.dtype):
        return bitwise_and(is_finite(real(x)), is_finite(imag(x)))
    return is_finite(x if itemsize_bits(x.type.dtype) > 8 else convert(x, float32))


def check_bounds(index: Any, size: int, name: str = "the index") -> Any:
    """Check that every index is within an axis of this size; negative ones count from the end. Returns the index.

    Raises: CheckFailed: an index is out of bounds. DTypeMismatch: it is no integer.
    """
    i = as_array(index)
    if i.type.dtype.kind not in "iu":
        raise DTypeMismatch(f"check_bounds: the index must be an integer, got {i.type}.")
    within = lt(i, convert(as_array(size), i.type.dtype))
    if i.type.dtype.kind == "i":
        within = bitwise_and(within, ge(i, convert(as_array(-size), i.type.dtype)))
    shown = name.replace("{", "{{").replace("}", "}}")
    _check(site().scoped, within, shown + " must be within an axis of size {}, got {}", (size, i))
    return index


def raise_(message: str, *values: Any) -> None:
    """Fail unconditionally: ``check(False, message, *values)``.

    Raises: CheckFailed: always, outside of tracing.
    """
    _check(site().scoped, False, message, values)


def checkify(f: Callable[..., Any], *, stop: bool = False) -> Callable[..., Any]:
    """``checkify(f)(*args)`` gives ``(error, f(*args))``; ``error.throw()`` raises the first failure, if there is one.

    It composes with ``jit``, ``grad``, ``vmap`` and loops, on either side. Inside ``vmap`` every lane has its
    own error.

    Args:
        stop: end the program, loops included, at the first failure, with zeros as its result; else it continues. Lanes
            that check under a mapped ``cond`` or ``while`` are then evaluated one after the other.

    >>> error, y = checkify(lambda x: check(x > 0, "x must be positive, got {}", x))(-1.0)
    >>> error.get().splitlines()[0]
    'x must be positive, got -1.0.'
    """
    need_function("checkify", f)

    @wraps(f)
    @unnamed_boundary
    def checked(*args: Any, **kwargs: Any) -> Any:
        notes: dict[EventNote, int] = {}

        def record_failure(state: Any, op: Any, ok: Any, *values: Any) -> Any:
            return after_event(state, notes, note_of(op, values), bitwise_not(ok), values), None

        if stop:
            state, y = stopped(f, Check, note_of, notes, args, kwargs)
        else:
            checks = handler({Check: record_failure}, moves=FirstEventMovement())
            state, y = handle(checks, no_event())(f)(*args, **kwargs)
        return FirstEvent(state["number"], state["payload"], tuple(notes), failure), y

    return checked


def note_of(op: Any, values: Sequence[Any]) -> EventNote:
    """The note of a check that shows these values when it fails."""
    return EventNote(op.message, op.where, op.lanes, op.rank, tuple([x.type for x in values]))
