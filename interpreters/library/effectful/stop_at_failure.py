"""Execution that stops at the first failure, by early exit from loops too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....effects.control.branches import cond
from ....effects.core.arrays import perform, scalar
from ....effects.core.columns import zeros_like
from ....effects.core.operation import effect
from ....effects.trees import pytrees
from ....effects.types.dtypes import int32
from ...handlers.handle import handle
from ...handlers.handler import final, handler
from ...transformations.make_program import trace
from .first_event import EventNote, LaneNumbers, in_lanes, no_event, packed


# ends the program; the operands are the values of the note
@effect(vmap="per_lane", diff="stop")
class Stop:
    note: EventNote

    def result_type(op, *operands):
        return None


def stopped(
    f: Callable[..., Any],
    kind: type,
    note_of: Callable[..., EventNote],
    notes: dict[EventNote, int],
    args: Any,
    kwargs: Any,
) -> tuple[Any, Any]:
    """The state and result of ``f``, which stops at the first effect of class ``kind`` whose first operand is False.

    If it stops, its result is zeros.
    """
    program, tree = trace(handle(handler({kind: lambda op, *xs: None}))(f), args, kwargs)

    def stop_unless(lanes: tuple[Any, ...], op: Any, ok: Any, *values: Any) -> Any:
        note = in_lanes(note_of(op, values), len(lanes))
        cond(ok, lambda *xs: None, lambda *xs: perform(Stop(note), *xs), *lanes, *values)
        return lanes, None

    def end(op: Any, *values: Any) -> Any:
        number = notes.setdefault(op.note, len(notes) + 1)
        zeros = [zeros_like(t) for t in program.out_types]
        return _state(scalar(number, int32), values), pytrees.unflatten(tree, zeros)

    ending = handler({Stop: final(end)}, returns=lambda y: (no_event(), y))
    checking = handle(handler({kind: stop_unless}, moves=LaneNumbers(), returns=lambda lanes, y: y), ())
    return handle(ending)(checking(f))(*args, **kwargs)


def _state(number: Any, values: Sequence[Any]) -> dict[str, Any]:
    return {**no_event(), "number": number, "payload": packed(values)}
