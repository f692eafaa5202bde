"""The operation and the source line that produced the first NaN, detected in a single execution."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ....effects.base.errors import FoundNaN, need_function
from ....effects.base.stack import site
from ....effects.base.tracebacks import unnamed_boundary
from ....effects.base.wrapping import wraps
from ....effects.control.branches import cond
from ....effects.core.arrays import as_array, perform
from ....effects.core.operation import is_pure
from ....effects.operations.elementwise.conversion import convert
from ....effects.operations.foundations.shapes import reshape
from ....effects.operations.reductions.reductions import argmax
from ....effects.trees import pytrees
from ....effects.types.array_type import array_type
from ....effects.types.dtypes import int32
from ...handlers.handle import handle
from ...handlers.handler import handler
from ...ragged.ragged_array import Ragged, with_zeros_behind
from ..effectful.automatic_checks import NaNFlags, may_be_nan
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
        nans = NaNFlags()

        def check_result(state: EventState, op: Any, *operands: Any) -> Any:
            y = perform(op, *operands)
            for result in op.as_results(y):
                happens = nans.made(op, operands, (result,))
                if happens is not None:
                    state = _note(state, notes, f"{op.name} made the first NaN, in {result.type}", result, happens)
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
            message = f"the argument {pytrees.keystr(path[1:])} came with a NaN, in {x.type}"
            state = _note(state, notes, message, x, NaNFlags().of(x))
    return state


def _note(state: EventState, notes: dict[EventNote, int], message: str, y: Any, happens: Any) -> EventState:
    """The state after the possible event, which ``happens`` or not, that ``y`` is the first array with a NaN.

    Only where it does is the index of the NaN looked for, and the payload of the event made.
    """
    rank = len(y.type.shape)
    note = EventNote(message, site().scoped, 0, rank, (array_type((), int32),) * rank)

    def event(y: Any) -> tuple[Any, Any]:
        new = after_event(state, notes, note, True, _first_nan(y))
        return new["number"], new["payload"]

    number, payload = cond(happens, event, lambda y: (state["number"], state["payload"]), y)
    return {**state, "number": number, "payload": payload}


def _first_nan(y: Any) -> tuple[Any, ...]:
    """The index of the first NaN of an array."""
    at = reshape(is_nan(y), (y.type.size,))
    return tuple(unravel_index(argmax(convert(at, int32), 0, int32), y.type.shape))


_error = partial(event_error, FoundNaN)
