"""Errors as values: what must hold is checked on the device, and raised outside.

    error, y = checkify(f)(x);  error.throw()        raises where a check in f failed, with its line, lane and index

The first failure is kept; the program runs on to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects import trees
from ...effects.arithmetic import is_finite
from ...effects.arrays import lift, perform
from ...effects.bitwise import bitwise_and, bitwise_not
from ...effects.comparison import ge, lt
from ...effects.complexes import imag, real
from ...effects.conversion import convert
from ...effects.dtypes import bool_, float32, int32, is_complex, is_inexact, itemsize_bits
from ...effects.dynamic import dynamic_index_in_dim
from ...effects.errors import BadArgument, CheckFailed, DTypeMismatch, need_function
from ...effects.operations import effect
from ...effects.reductions import argmin, reduce_and
from ...effects.shapes import move_axis, reshape
from ...effects.slicing import axis_at
from ...effects.stack import current
from ...effects.wrapping import wraps
from ..asking import place
from ..handle import handle
from ..handler import handler
from .first import First, KeepsFirst, Note, noted, nothing
from .stopping import stopped


# the first operand must hold; then follow the lanes, an index of this rank, and the values that the message shows
@effect(vmap="per_lane", diff="stop")
class Check:
    message: str
    where: str
    lanes: int = 0
    rank: int = 0
    remedy = "look at it around the function: error, y = hx.checkify(f)(x); error.throw()."

    def result_type(op, ok, *values):
        if ok.shape or ok.dtype != bool_ or any(x.shape for x in values):
            raise DTypeMismatch(f"check: a bool and scalars are needed, got {', '.join(map(str, (ok, *values)))}.")
        return None

    def evaluate(op, ok, *values):
        if not ok:
            raise failure(Note(op.message, op.where, op.lanes, op.rank), values)
        return ()

    def batch(op, dims, ok, *values):
        """One check for all lanes, of the first that fails."""
        size = next(x.type.shape[d] for x, d in zip((ok, *values), dims) if d is not None)
        first, *rest = [x if d is None else move_axis(x, d, 0) for x, d in zip((ok, *values), dims)]
        lanes = axis_at(first, None if dims[0] is None else 0, 0, size)
        lane = argmin(convert(lanes, int32), 0, int32)
        shown = [x if d is None else dynamic_index_in_dim(x, lane, 0, False) for x, d in zip(rest, dims[1:])]
        made = Check(op.message, op.where, op.lanes + 1, op.rank)
        return current().answer(made, (reduce_and(lanes, (0,)), lane, *shown)), ()


def failure(note: Note, values: Sequence[Any], lane: Sequence[int] = ()) -> CheckFailed:
    """The error that a failure is raised as."""
    error = CheckFailed(note.text(values, lane))
    error.where = f"at {note.where}"
    error.args = (str(error),)
    return error


def check(pred: Any, message: str, *values: Any) -> None:
    """Something must hold, in every element of ``pred``.

    Eagerly it raises at once; inside a compiled program ``checkify`` around it makes the failure a value.

    Args:
        message: what must hold, with ``{}`` for each of the values.
        values: scalars; or arrays of the shape of ``pred``, of which the element is shown where it fails first.

    Raises: CheckFailed: it does not hold. BadArgument: the values do not fit.

    >>> check(lift(2) > 1, "x must be above 1, got {}", 2)
    """
    _check(place(), pred, message, values)


def _check(where: str, pred: Any, message: str, values: Sequence[Any]) -> None:
    p = convert(pred, bool_)
    shape = p.type.shape
    given = [lift(x) for x in values]
    for x in given:
        if x.type.shape not in ((), shape):
            raise BadArgument(
                f"check: values are scalars or have the shape of what is checked, {shape}, got {x.type}.",
                hint="reduce them before: x.min(), x.max().",
            )
    if p.type.size == 0:
        return
    try:
        message.format(*given)
    except (IndexError, KeyError, ValueError) as error:
        raise BadArgument(
            f"check: the message must fit to the values, got {message!r} and {len(given)} values.",
            hint="write {} for each value, and braces twice.",
        ) from error
    if not shape:
        perform(Check(message, where), p, *given)
        return
    flat = reshape(p, (p.type.size,))
    at = argmin(convert(flat, int32), 0, int32)
    shown = [dynamic_index_in_dim(reshape(x, (p.type.size,)), at, 0, False) if x.type.shape else x for x in given]
    perform(Check(message, where, 0, len(shape)), reduce_and(flat, (0,)), *unravelled(at, shape), *shown)


def unravelled(at: Any, shape: Sequence[int]) -> list[Any]:
    """The index in an array of this shape of its element number ``at``."""
    index = []
    for size in reversed(shape):
        index.append(at % size)
        at = at // size
    return index[::-1]


def check_finite(x: Any, name: str = "the value") -> Any:
    """Every element of a tree of arrays must be finite; gives the tree back.

    Raises: CheckFailed: an element is NaN or infinite.
    """
    where = place()
    for path, leaf in trees.leaves_with_path(x):
        y = lift(leaf)
        if is_inexact(y.type.dtype):
            shown = (name + trees.keystr(path)).replace("{", "{{").replace("}", "}}")
            _check(where, _finite(y), shown + " must be finite, got {}", (y,))
    return x


def _finite(x: Any) -> Any:
    if is_complex(x.type.dtype):
        return bitwise_and(is_finite(real(x)), is_finite(imag(x)))
    return is_finite(x if itemsize_bits(x.type.dtype) > 8 else convert(x, float32))


def check_bounds(index: Any, size: int, name: str = "the index") -> Any:
    """Every index must be one of an axis of this size, counted from the end where it is negative; gives it back.

    Raises: CheckFailed: an index is outside.
    """
    i = lift(index)
    if i.type.dtype.kind not in "iu":
        raise DTypeMismatch(f"check_bounds: the index must be an integer, got {i.type}.")
    within = lt(i, convert(lift(size), i.type.dtype))
    if i.type.dtype.kind == "i":
        within = bitwise_and(within, ge(i, convert(lift(-size), i.type.dtype)))
    shown = name.replace("{", "{{").replace("}", "}}")
    _check(place(), within, shown + " must be within an axis of size {}, got {}", (size, i))
    return index


def raise_(message: str, *values: Any) -> None:
    """Fail, wherever the program comes to it: ``check(False, message, *values)``.

    Raises: CheckFailed: always, eagerly.
    """
    _check(place(), False, message, values)


def checkify(f: Callable[..., Any], *, stop: bool = False) -> Callable[..., Any]:
    """``checkify(f)(*args)`` gives ``(error, f(*args))``; ``error.throw()`` raises the first failure, if there is one.

    It works inside and around ``jit``, ``grad``, ``vmap`` and the loops. Inside ``vmap`` every lane has its own error.

    Args:
        stop: end the program at the first failure, loops too, and give zeros; else it runs on with what it has. Lanes
            that go different ways come one after the other then.

    >>> error, y = checkify(lambda x: check(x > 0, "x must be positive, got {}", x))(-1.0)
    >>> error.get().splitlines()[0]
    'x must be positive, got -1.0.'
    """
    need_function("checkify", f)

    @wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        notes: dict[Note, int] = {}

        def fails(state: Any, op: Any, ok: Any, *values: Any) -> Any:
            return noted(state, notes, _note(op, values), bitwise_not(ok), values), None

        if stop:
            state, y = stopped(f, Check, _note, notes, args, kwargs)
        else:
            state, y = handle(handler({Check: fails}, moves=KeepsFirst()), nothing())(f)(*args, **kwargs)
        return First(state["number"], state["words"], tuple(notes), failure), y

    return checked


def _note(op: Any, values: Sequence[Any]) -> Note:
    return Note(op.message, op.where, op.lanes, op.rank, tuple([x.type for x in values]))
