"""The operation and the source line that produced the first NaN, detected in a single execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....effects.base.errors import FoundNaN, need_function
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.core.arrays import as_array, perform
from ....effects.core.operation import is_pure
from ....effects.operations.elementwise.conversion import convert
from ....effects.operations.foundations.shapes import reshape
from ....effects.operations.reductions.reductions import argmax, reduce_or
from ....effects.trees import pytrees
from ....effects.types.dtypes import int32
from ...handlers.answer_types import user_line
from ...handlers.handle import handle
from ...handlers.handler import handler
from ...ragged.ragged_array import Ragged, with_zeros_behind
from ..effectful.automatic_checks import made_here, may_be_nan
from ..effectful.failures import unravel_index
from ..effectful.first_event import (
    EventNote,
    EventState,
    FirstEvent,
    FirstEventMovement,
    after_event,
    event_error,
    is_nan,
    no_event,
)


def nan_origin(f: Callable[..., Any]) -> Callable[..., Any]:
    """``nan_origin(f)(*args)`` gives ``(origin, f(*args))``; ``origin.get()`` names the operation that made the first
    NaN.

    A NaN originates at an operation whose result contains NaN and whose operands do not, or at an argument. Operations
    in loops, branches, compiled functions and gradients are checked too. ``origin.throw()`` raises FoundNaN.

    >>> from handlax import numpy
    >>> origin, y = nan_origin(lambda x: numpy.sqrt(x - 2.0) * 3.0)(1.0)
    >>> origin.get().splitlines()[0]
    'sqrt made the first NaN, in f32[]~.'
    """
    need_function("nan_origin", f)

    @wraps(f)
    @unnamed_boundary
    def traced(*args: Any, **kwargs: Any) -> Any:
        notes: dict[EventNote, int] = {}

        def check_result(state: EventState, op: Any, *operands: Any) -> Any:
            y = perform(op, *operands)
            for result in op.as_results(y):
                if may_be_nan(result):
                    message = f"{op.name} made the first NaN, in {result.type}"
                    state = _note(state, notes, message, result, operands)
            return state, y

        start = _check_arguments(notes, (args, kwargs))
        state, y = handle(handler(otherwise=check_result, over=is_pure, moves=FirstEventMovement()), start)(f)(
            *args, **kwargs
        )
        return FirstEvent(state["number"], state["payload"], tuple(notes), _error), y

    return traced


def _check_arguments(notes: dict[EventNote, int], arguments: Any) -> EventState:
    """The initial state, whose event is the first argument that contains NaN, if any."""
    state = no_event()
    is_ragged = lambda x: isinstance(x, Ragged)
    arguments = pytrees.tree_map(lambda x: with_zeros_behind(x) if is_ragged(x) else x, arguments, is_leaf=is_ragged)
    for path, leaf in pytrees.leaves_with_path(arguments):
        x = as_array(leaf)
        if may_be_nan(x):
            state = _note(state, notes, f"the argument {pytrees.keystr(path[1:])} came with a NaN, in {x.type}", x, ())
    return state


def _note(state: EventState, notes: dict[EventNote, int], message: str, y: Any, operands: Sequence[Any]) -> EventState:
    """The state after the possible event that ``y`` contains NaN and no operand does; its index is that of the first
    NaN.
    """
    t = y.type
    at = reshape(is_nan(y), (t.size,))
    new = made_here(reduce_or(at, (0,)), operands)
    index = unravel_index(argmax(convert(at, int32), 0, int32), t.shape)
    note = EventNote(message, user_line(), 0, len(t.shape), tuple([i.type for i in index]))
    return after_event(state, notes, note, new, index)


_error = partial(event_error, FoundNaN)
