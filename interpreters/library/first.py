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
from ...effects.conversion import bitcast_convert_type, convert
from ...effects.creation import full
from ...effects.dtypes import float32, int32, itemsize_bits, uint32
from ...effects.errors import BadArgument, ConcretizationError, HandlaxError
from ...effects.shapes import reshape
from ...effects.slicing import concatenate
from ...effects.treenodes import register_dataclass
from ...effects.types import ArrayType

WORDS = 16
State = dict[str, Any]


class Note(NamedTuple):
    """Something that may happen at a place: of the values the first are ``lanes``, then an index of this ``rank``."""

    message: str
    where: str
    lanes: int = 0
    rank: int = 0
    types: tuple[ArrayType, ...] = ()

    def text(self, values: Sequence[Any], outer: Sequence[int] = ()) -> str:
        """What is said of it, with the values as NumPy has them."""
        inner = self.lanes + self.rank
        lanes = [*outer, *map(int, values[: self.lanes])]
        index = ", ".join([str(int(x)) for x in values[self.lanes : inner]])
        said = self.message.format(*[np.asarray(x)[()] for x in values[inner:]])
        return said + (f" at index [{index}]" if index else "") + (f" in lane {_several(lanes)}" if lanes else "") + "."


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


def nothing() -> State:
    """The state in which nothing has happened."""
    return {"number": scalar(0, int32), "words": full((WORDS,), 0, uint32)}


def first_of(a: State, b: State) -> State:
    """What happened in ``a``, or else in ``b``."""
    none = eq(a["number"], scalar(0, int32))
    return {name: select(none, b[name], a[name]) for name in a}


def noted(state: State, notes: dict[Note, int], note: Note, happens: Any, values: Sequence[Any]) -> State:
    """The state after something happens, or does not. ``notes`` are numbered from 1, in the order of tracing."""
    number = notes.setdefault(note, len(notes) + 1)
    now = bitwise_and(happens, eq(state["number"], scalar(0, int32)))
    return {
        "number": select(now, scalar(number, int32), state["number"]),
        "words": select(now, packed(values), state["words"]),
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
