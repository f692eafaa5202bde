"""The first of many things that may happen in a program, as a state of fixed type: its number, and what it says.

What may happen is noted while the program is traced; the device keeps the number of the note and 64 bytes of values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.arrays import lift, scalar
from ...effects.bitwise import bitwise_and
from ...effects.comparison import eq, ne, select
from ...effects.complexes import imag, real
from ...effects.control import HigherOrder
from ...effects.conversion import bitcast_convert_type, convert
from ...effects.creation import full, iota
from ...effects.dtypes import float32, int32, itemsize_bits, uint32
from ...effects.dynamic import dynamic_index_in_dim
from ...effects.errors import BadArgument, ConcretizationError, HandlaxError
from ...effects.reductions import argmax
from ...effects.shapes import reshape
from ...effects.slicing import concatenate
from ...effects.treenodes import register_dataclass
from ...effects.types import ArrayType, array_type
from ..cross import Flow, Joined, Lifted
from ..movements import Carried, Movement

WORDS = 16
LANE = array_type((), int32)
State = dict[str, Any]


class Note(NamedTuple):
    """Something that may happen at a place: of the values the first are ``lanes``, then an index of this ``rank``."""

    message: str
    where: str
    lanes: int = 0
    rank: int = 0
    types: tuple[ArrayType, ...] = ()
    split: int = 0  # so many of the lanes, the first, are of vmaps of which nobody knows the order

    def text(self, values: Sequence[Any], outer: Sequence[int] = ()) -> str:
        """What is said of it, with the values as NumPy has them."""
        inner = self.lanes + self.rank
        index = ", ".join([str(int(x)) for x in values[self.lanes : inner]])
        said = self.message.format(*[np.asarray(x)[()] for x in values[inner:]])
        lanes = [int(x) for x in values[: self.lanes]]
        return said + (f" at index [{index}]" if index else "") + self._in_lane(lanes, outer) + "."

    def _in_lane(self, lanes: Sequence[int], outer: Sequence[int]) -> str:
        groups = [[lane] for lane in lanes[: self.split]]
        if lanes[self.split :]:
            groups.append(list(lanes[self.split :]))
        if len(groups) > 1:
            first, *others = [list(outer), *groups] if outer else groups
            return f" in lane {_several(first)} of one vmap" + "".join([f", {_several(g)} of another" for g in others])
        whole = [*outer, *lanes]
        return f" in lane {_several(whole)}" if whole else ""


def _several(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else str(tuple(numbers))


@dataclasses.dataclass(frozen=True, repr=False)
class First:
    """The first that happened, or nothing: ``get()`` says it, ``throw()`` raises it. A pytree.

    From ``vmap`` it has a first for each lane, of which the first lane's is taken.
    """

    number: Any
    words: Any
    notes: tuple[Note, ...]
    error: Callable[..., HandlaxError]

    def _found(self) -> tuple[Note, list[Any], list[int]] | None:
        number: Any = lift(self.number)
        if number.run is not None:
            raise ConcretizationError(
                "error: what happened is known only when the program has run.", hint="return the error, look outside."
            )
        numbers = np.asarray(number.value)
        if not numbers.any():
            return None
        lane = [int(i) for i in np.argwhere(numbers)[0]]
        note = self.notes[int(numbers[tuple(lane)]) - 1]
        words: Any = lift(self.words)
        return note, unpacked(np.asarray(words.value)[tuple(lane)], note.types), lane

    def __bool__(self) -> bool:
        """Whether anything happened."""
        return self._found() is not None

    def get(self) -> str | None:
        """What happened, with its place; None if nothing did."""
        made = self.exception()
        return None if made is None else str(made)

    def exception(self) -> HandlaxError | None:
        """What happened, as an exception that is not raised."""
        found = self._found()
        if found is None:
            return None
        note, values, lane = found
        return self.error(note, values, lane)

    def throw(self) -> None:
        """Raise what happened; do nothing if nothing did."""
        made = self.exception()
        if made is not None:
            raise made

    def __repr__(self) -> str:
        if lift(self.number).run is not None:
            return f"First(one of {len(self.notes)})"
        return f"First({self.get() or 'nothing'})"


register_dataclass(First, ("number", "words"), ("notes", "error"))


def nothing(lanes: Sequence[Any] = ()) -> State:
    """The state in which nothing has happened, in a lane of lanes that go different ways."""
    return {"number": scalar(0, int32), "words": full((WORDS,), 0, uint32), "lanes": tuple(lanes)}


class KeepsFirst(Movement):
    """What happens first stays. Lanes run side by side, each knows its number; the first that has something counts."""

    __slots__ = ()

    def flow(self, run: Any, op: HigherOrder) -> Flow:
        return InLanes(run.current, op.length) if op.runs == "lanes" else Carried(run)


class InLanes(Flow):
    """Each lane begins with nothing, and its number."""

    def __init__(self, state: State, length: int):
        self.state = state
        self.operands = (iota(int32, length),)

    def inner_types(self) -> list[ArrayType]:
        return [LANE]

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        run.current = nothing((*self.state["lanes"], values[0]))

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        return (run.current["number"], run.current["words"]), None

    def join(self, run: Any, op: HigherOrder, lifted: Sequence[Lifted], before: Sequence[ArrayType]) -> Joined:
        return Joined(lifted[0].state, None, (0,))

    def after(self, run: Any, values: Sequence[Any], structure: Any) -> None:
        numbers, words = values
        if not numbers.type.size:
            return
        lane = argmax(convert(ne(numbers, scalar(0, int32)), int32), 0, int32)
        found, before = (dynamic_index_in_dim(x, lane, 0, False) for x in (numbers, words)), run.current
        none = eq(before["number"], scalar(0, int32))
        number, word = (select(none, x, before[name]) for x, name in zip(found, ("number", "words")))
        run.current = {"number": number, "words": word, "lanes": before["lanes"]}


def noted(state: State, notes: dict[Note, int], note: Note, happens: Any, values: Sequence[Any]) -> State:
    """The state after something happens, or does not. ``notes`` are numbered from 1, in the order of tracing."""
    lanes = state["lanes"]
    if lanes:
        types = (*[LANE for _ in lanes], *note.types)
        note = note._replace(lanes=note.lanes + len(lanes), types=types, split=len(lanes))
    number = notes.setdefault(note, len(notes) + 1)
    now = bitwise_and(happens, eq(state["number"], scalar(0, int32)))
    return {
        "number": select(now, scalar(number, int32), state["number"]),
        "words": select(now, packed([*lanes, *values]), state["words"]),
        "lanes": lanes,
    }


def packed(values: Sequence[Any]) -> Any:
    """Scalars as 16 words."""
    words = [word for x in values for word in _words(lift(x))]
    count = sum([word.type.size for word in words])
    if count > WORDS:
        raise BadArgument(f"check: values must fit into {4 * WORDS} bytes, got {4 * count}.", hint="show fewer.")
    return concatenate([*words, full((WORDS - count,), 0, uint32)], 0) if count else full((WORDS,), 0, uint32)


def _words(x: Any) -> list[Any]:
    dtype = x.type.dtype
    if getattr(dtype, "kind", None) == "c":
        return [*_words(real(x)), *_words(imag(x))]
    bits = itemsize_bits(dtype)
    if bits < 32:
        x = convert(x, uint32 if dtype.kind in "bu" else int32 if dtype.kind == "i" else float32)
    found = bitcast_convert_type(convert(x, x.type.dtype), uint32)
    return [reshape(found, (max(1, bits // 32),))]


def unpacked(words: np.ndarray[Any, Any], types: Sequence[ArrayType]) -> list[Any]:
    """The scalars of these types in 16 words."""
    values, at = [], 0
    for t in types:
        kind, count = t.dtype.kind, max(1, itemsize_bits(t.dtype) // 32)
        piece = np.ascontiguousarray(words[at : at + count])
        narrow = itemsize_bits(t.dtype) < 32
        wide: Any = (np.uint32 if kind in "bu" else np.int32 if kind == "i" else np.float32) if narrow else t.dtype
        values.append(piece.view(wide)[0].astype(t.dtype))
        at += count
    return values


def is_nan(x: Any) -> Any:
    """``x != x``."""
    return ne(x, x)
