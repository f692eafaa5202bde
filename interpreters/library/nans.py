"""Where the first NaN comes from: the operation and the line that made it, without a second run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects import trees
from ...effects.arrays import lift, perform
from ...effects.bitwise import bitwise_and, bitwise_not
from ...effects.conversion import convert
from ...effects.dtypes import int32, is_inexact
from ...effects.errors import FoundNaN, need_function
from ...effects.operations import is_pure
from ...effects.reductions import argmax, reduce_or
from ...effects.shapes import reshape
from ...effects.wrapping import wraps
from ..asking import place
from ..handle import handle
from ..handler import handler
from .failures import unravelled
from .first import First, KeepsFirst, Note, State, is_nan, noted, nothing


def nan_origin(f: Callable[..., Any]) -> Callable[..., Any]:
    """``nan_origin(f)(*args)`` gives ``(origin, f(*args))``; ``origin.get()`` says which operation made the first NaN.

    An operation makes a NaN where its result has one and no operand has; an argument may bring one. Loops, branches,
    compiled functions and gradients are looked into, in the same run. ``origin.throw()`` raises FoundNaN.

    >>> from handlax import numpy
    >>> origin, y = nan_origin(lambda x: numpy.sqrt(x - 2.0) * 3.0)(1.0)
    >>> origin.get().splitlines()[0]
    'sqrt made the first NaN, in f32[]~.'
    """
    need_function("nan_origin", f)

    @wraps(f)
    def traced(*args: Any, **kwargs: Any) -> Any:
        notes: dict[Note, int] = {}

        def looked(state: State, op: Any, *operands: Any) -> Any:
            y = perform(op, *operands)
            for made in y if op.multiple else (y,):
                if is_inexact(made.type.dtype) and made.type.size:
                    message = f"{op.name} made the first NaN, in {made.type}"
                    state = _note(state, notes, message, made, operands)
            return state, y

        start = _given(notes, (args, kwargs))
        state, y = handle(handler(otherwise=looked, over=is_pure, moves=KeepsFirst()), start)(f)(*args, **kwargs)
        return First(state["number"], state["words"], tuple(notes), _found), y

    return traced


def _given(notes: dict[Note, int], arguments: Any) -> State:
    """The state at the start: an argument may have a NaN."""
    state = nothing()
    for path, leaf in trees.leaves_with_path(arguments):
        x = lift(leaf)
        if is_inexact(x.type.dtype) and x.type.size:
            state = _note(state, notes, f"the argument {trees.keystr(path[1:])} came with a NaN, in {x.type}", x, ())
    return state


def _note(state: State, notes: dict[Note, int], message: str, y: Any, operands: Sequence[Any]) -> State:
    t = y.type
    at = reshape(is_nan(y), (t.size,))
    new = reduce_or(at, (0,))
    for x in operands:
        if is_inexact(x.type.dtype) and x.type.size:
            before = is_nan(x)
            new = bitwise_and(new, bitwise_not(reduce_or(before, range(len(x.type.shape)))))
    index = unravelled(argmax(convert(at, int32), 0, int32), t.shape)
    note = Note(message, place(), 0, len(t.shape), tuple([i.type for i in index]))
    return noted(state, notes, note, new, index)


def _found(note: Note, values: Sequence[Any], lane: Sequence[int] = ()) -> FoundNaN:
    error = FoundNaN(note.text(values, lane))
    error.where = f"at {note.where}"
    error.args = (str(error),)
    return error
