"""Ending a program at the first failure: a real early exit, also of loops of unknown length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects import trees
from ...effects.arrays import perform, scalar
from ...effects.branches import cond
from ...effects.columns import zeros_like
from ...effects.dtypes import int32
from ...effects.operations import effect
from ..handle import handle
from ..handler import final, handler
from ..staging import trace
from .first import Note, nothing, packed


# the program ends here, with the operands as the values of the note
@effect(vmap="per_lane", diff="stop")
class Stop:
    note: Note

    def result_type(op, *values):
        return None


def stopped(
    f: Callable[..., Any], kind: type, note_of: Callable[..., Note], notes: dict[Note, int], args: Any, kwargs: Any
) -> tuple[Any, Any]:
    """State and result of ``f``, which ends where an effect of this kind has a first operand that does not hold.

    What it gives then is zeros.
    """
    program, tree = trace(handle(handler({kind: lambda op, *xs: None}))(f), args, kwargs)

    def tested(op: Any, ok: Any, *values: Any) -> None:
        note = note_of(op, values)
        cond(ok, lambda *xs: None, lambda *xs: perform(Stop(note), *xs), *values)

    def ended(op: Any, *values: Any) -> Any:
        number = notes.setdefault(op.note, len(notes) + 1)
        return _state(scalar(number, int32), values), trees.unflatten(tree, [zeros_like(t) for t in program.out_types])

    ending = handler({Stop: final(ended)}, returns=lambda y: (nothing(), y))
    return handle(ending)(handle(handler({kind: tested}))(f))(*args, **kwargs)


def _state(number: Any, values: Sequence[Any]) -> dict[str, Any]:
    return {**nothing(), "number": number, "words": packed(values)}
