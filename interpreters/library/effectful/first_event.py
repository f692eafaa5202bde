"""A state of fixed type that records the first event of a program, such as a failed check or the first NaN.

Each possible event has a static note, numbered when the program is traced. The state on the device is the number of the
first event that happened, 0 for none, and a payload with the values that its message shows, 64 bytes by default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ....effects.base.errors import BadArgument, ConcretizationError, HandlaxError
from ....effects.core.arrays import as_array, concrete, scalar
from ....effects.core.columns import zeros_like
from ....effects.operations.elementwise.bitwise import bitwise_and
from ....effects.operations.elementwise.comparison import eq, ne, select
from ....effects.operations.elementwise.complex_parts import imag, real
from ....effects.operations.elementwise.conversion import bitcast_convert_type, convert
from ....effects.operations.foundations.shapes import reshape
from ....effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim
from ....effects.operations.manipulation.creation import full, iota
from ....effects.operations.manipulation.slicing import concatenate
from ....effects.operations.reductions.reductions import argmax
from ....effects.programs.higher_order import HigherOrder
from ....effects.trees.registration import register_dataclass
from ....effects.types.array_type import ArrayType, array_type
from ....effects.types.dtypes import ExtendedDType, float32, int32, itemsize_bits, uint32
from ...core.state_flow import StateFlow
from ...handlers.state_movements import PARALLEL, CarriedState, Movement

PAYLOAD = 16  # uint32 words of a payload, unless a handler makes room for more
LANE = array_type((), int32)
EventState = dict[str, Any]


class Note(Protocol):
    """The static description of a possible event: the user's line, the types of its payload, and its message."""

    @property
    def where(self) -> str: ...
    @property
    def types(self) -> Sequence[ArrayType]: ...
    def text(self, values: Sequence[Any], outer: Sequence[int] = ()) -> str:
        """The message with the values of the payload; ``outer``: lane indices of an enclosing ``vmap``."""


class EventNote(NamedTuple):
    """The static description of a possible event: its message, the user's line, and the layout of its payload.

    The payload is ``lanes`` lane indices, an array index of ``rank`` numbers, then the values that the message shows.
    """

    message: str
    where: str
    lanes: int = 0
    rank: int = 0
    types: tuple[ArrayType, ...] = ()
    split: int = 0  # the first ``split`` lane indices belong to vmaps of unknown nesting

    def text(self, values: Sequence[Any], outer: Sequence[int] = ()) -> str:
        """The message with its values, index and lanes; ``outer``: lane indices of an enclosing ``vmap``."""
        inner = self.lanes + self.rank
        index = ", ".join([str(int(x)) for x in values[self.lanes : inner]])
        text = self.message.format(*map(as_array, values[inner:]))
        lanes = [int(x) for x in values[: self.lanes]]
        return text.removesuffix(".") + (f" at index [{index}]" if index else "") + self._in_lane(lanes, outer) + "."

    def _in_lane(self, lanes: Sequence[int], outer: Sequence[int]) -> str:
        groups = [[lane] for lane in lanes[: self.split]]
        if lanes[self.split :]:
            groups.append(list(lanes[self.split :]))
        if len(groups) > 1:
            first, *others = [list(outer), *groups] if outer else groups
            return f" in lane {_several(first)} of one vmap" + "".join([f", {_several(g)} of another" for g in others])
        indices = [*outer, *lanes]
        return f" in lane {_several(indices)}" if indices else ""


def _several(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else str(tuple(numbers))


@dataclasses.dataclass(frozen=True, repr=False)
class FirstEvent:
    """The first event that happened, or none: ``get()`` is its message, ``throw()`` raises it. A pytree.

    A result of ``vmap`` has one for each lane; then it is the event of the first lane that has one.
    """

    number: Any
    payload: Any
    notes: tuple[Note, ...]
    error: Callable[..., HandlaxError]

    def _event(self) -> tuple[Note, list[Any], list[int]] | None:
        """The note, payload and lane index of the event. Raises: ConcretizationError: it is a traced value."""
        number: Any = as_array(self.number)
        if number.run is not None:
            raise ConcretizationError(
                "error: its value is known only after the program has been executed.",
                hint="return it, and look outside.",
            )
        numbers = np.asarray(number.value)
        if not numbers.any():
            return None
        lane = [int(i) for i in np.argwhere(numbers)[0]]
        note = self.notes[int(numbers[tuple(lane)]) - 1]
        payload: Any = as_array(self.payload)
        return note, unpacked(np.asarray(payload.value)[tuple(lane)], note.types), lane

    def __bool__(self) -> bool:
        """Whether an event happened."""
        return self._event() is not None

    def get(self) -> str | None:
        """The message of the event, with the user's line; None if there is none."""
        error = self.exception()
        return None if error is None else str(error)

    def exception(self) -> HandlaxError | None:
        """The event as an exception, which is not raised; None if there is none."""
        event = self._event()
        if event is None:
            return None
        note, values, lane = event
        return self.error(note, values, lane)

    def throw(self) -> None:
        """Raise the event as an exception, if there is one."""
        error = self.exception()
        if error is not None:
            raise error

    def __repr__(self) -> str:
        if as_array(self.number).run is not None:
            return f"FirstEvent(one of {len(self.notes)})"
        return f"FirstEvent({self.get() or 'none'})"


register_dataclass(FirstEvent, ("number", "payload"), ("notes", "error"))


def no_event(lanes: Sequence[Any] = (), words: int = PAYLOAD) -> EventState:
    """The state before any event; ``lanes``: the lane indices, under effectful ``vmap``, that it belongs to."""
    return {"number": scalar(0, int32), "payload": full((words,), 0, uint32), "lanes": tuple(lanes)}


class FirstEventMovement(Movement):
    """How the state crosses bodies: the first event is kept. Lanes stay parallel; the first lane with an event counts.
    """

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return FirstEventInLanes(run.current, op) if op.runs in PARALLEL else CarriedState(run)


class FirstEventInLanes(StateFlow):
    """How the first event crosses lanes that perform effects, or the devices of a mesh: each starts without event, with
    its index.
    """

    stacked = True

    def __init__(self, state: EventState, op: HigherOrder):
        self.state = state
        self.varying = frozenset(op.lanes_of_all)
        self.event = [name for name in state if name != "lanes"]
        self.operands = (iota(int32, op.length),)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = {name: zeros_like(self.state[name].type) for name in self.event}
        run.current["lanes"] = (*self.state["lanes"], values[0])

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        return self.vary([run.current[name] for name in self.event]), None

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        of_lanes = dict(zip(self.event, values))
        numbers = of_lanes["number"]
        if not numbers.type.size:
            return
        lane = argmax(convert(ne(numbers, scalar(0, int32)), int32), 0, int32)
        first = {name: dynamic_index_in_dim(x, lane, 0, False) for name, x in of_lanes.items()}
        run.current = recorded(run.current, True, **first)


def recorded(state: EventState, happens: Any, **event: Any) -> EventState:
    """The state with this event, its ``number`` and what else it has, if it ``happens`` and no earlier one did.

    ``happens``: a bool array, or True.
    """
    none = eq(state["number"], scalar(0, int32))
    now = none if happens is True else bitwise_and(happens, none)
    return {**state, **{name: select(now, x, state[name]) for name, x in event.items() if x is not state[name]}}


def after_event(
    state: EventState, notes: dict[EventNote, int], note: EventNote, happens: Any, values: Sequence[Any]
) -> EventState:
    """The state after a possible event: recorded if it ``happens`` and no earlier one did.

    A new note is added to ``notes``, numbered from 1 in the order of tracing.
    """
    lanes = state["lanes"]
    note = in_lanes(note, len(lanes))
    number = notes.setdefault(note, len(notes) + 1)
    payload = packed([*lanes, *values], state["payload"].type.size) if note.types else state["payload"]
    return recorded(state, happens, number=scalar(number, int32), payload=payload)


def in_lanes(note: EventNote, count: int) -> EventNote:
    """The note of an event in ``count`` lanes, whose lane index precedes its values."""
    if not count:
        return note
    return note._replace(lanes=note.lanes + count, types=(*[LANE] * count, *note.types), split=count)


class LaneNumbers(Movement):
    """A state that holds the current lane indices under effectful ``vmap``, the outermost first."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> StateFlow:
        return NumberedLanes(run.current, op.length) if op.runs == "lanes" else CarriedState(run)


class NumberedLanes(StateFlow):
    """How lane indices cross an effectful ``vmap``: each lane appends its own index to the state."""

    stacked = True

    def __init__(self, outer: tuple[Any, ...], length: int):
        self.outer = outer
        self.operands = (iota(int32, length),)

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = (*self.outer, values[0])


def event_error(kind: type[HandlaxError], note: Note, values: Sequence[Any], lane: Sequence[int] = ()) -> Any:
    """The exception of an event with these payload values; ``lane``: its lane in a result of ``vmap``."""
    return kind(note.text(values, lane)).moved(f"at {note.where}")


def words_of(t: ArrayType) -> int:
    """The number of uint32s that a value of this type takes in a payload."""
    return t.size * max(1, itemsize_bits(t.dtype) // 32)


def packed(values: Sequence[Any], words: int = PAYLOAD) -> Any:
    """The bits of the values as a payload, ``uint32[words]``. Raises: BadArgument: they take more."""
    pieces = [piece for x in values for piece in _as_uint32(as_array(x))]
    count = sum([piece.type.size for piece in pieces])
    if count > words:
        raise BadArgument(f"check: values must fit into {4 * words} bytes, got {4 * count}.", hint="show fewer.")
    return concatenate([*pieces, full((words - count,), 0, uint32)], 0) if count else full((words,), 0, uint32)


def _as_uint32(x: Any) -> list[Any]:
    """The bits of a value as uint32 vectors; dtypes under 32 bits are widened first."""
    dtype = x.type.dtype
    if getattr(dtype, "kind", None) == "c":
        return [*_as_uint32(real(x)), *_as_uint32(imag(x))]
    bits = itemsize_bits(dtype)
    if bits < 32:
        x = convert(x, uint32 if dtype.kind in "bu" else int32 if dtype.kind == "i" else float32)
    bits_of_x = bitcast_convert_type(convert(x, x.type.dtype), uint32)
    return [reshape(bits_of_x, (bits_of_x.type.size,))]


def unpacked(payload: np.ndarray[Any, Any], types: Sequence[ArrayType]) -> list[Any]:
    """The arrays of these types in a payload, the inverse of ``packed``."""
    values, at = [], 0
    for t in types:
        count = words_of(t)
        values.append(concrete(t, _elements(np.ascontiguousarray(payload[at : at + count]), t)))
        at += count
    return values


def _elements(words: np.ndarray[Any, Any], t: ArrayType) -> np.ndarray[Any, Any]:
    """The data of an array of this type whose bits, widened to 32, are these words."""
    if isinstance(t.dtype, ExtendedDType):
        return _elements(words, array_type((*t.shape, *t.dtype.shape), t.dtype.base))
    kind = t.dtype.kind
    if kind == "c":  # stored as all real parts, then all imaginary parts
        parts = words.view(f"f{t.dtype.itemsize // 2}")
        return np.stack(np.split(parts, 2), -1).view(t.dtype).reshape(t.shape)
    narrow = itemsize_bits(t.dtype) < 32
    wide: Any = (np.uint32 if kind in "bu" else np.int32 if kind == "i" else np.float32) if narrow else t.dtype
    return words.view(wide).astype(t.dtype).reshape(t.shape)


def is_nan(x: Any) -> Any:
    """``x != x``."""
    return ne(x, x)
