"""Choices read from bytes: a function of choices becomes a function of bytes, whose arguments are structured.

    ByteChoices(data).integer(-3, 8), .one_of(values), .several(make, 4), ...

Bytes that have run out read as 0, the first of all choices, so that shorter bytes are simpler values: what makes bytes
shorter, or their numbers smaller, makes an example simpler. Equal bytes are equal choices.

Source: MacIver & Donaldson, Test-case reduction via test-case generation, 2020; LLVM's FuzzedDataProvider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class ByteChoices:
    """Reads choices from ``data``, front to back.

    >>> choices = ByteChoices(bytes([4, 1, 2]))
    >>> choices.integer(-3, 8), choices.one_of("a", "b"), choices.several(lambda: choices.integer(0, 9), 3)
    (1, 'b', [0, 0])
    """

    __slots__ = ("data", "place")

    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def byte(self) -> int:
        """The next byte; 0 behind the last."""
        place, self.place = self.place, self.place + 1
        return self.data[place] if place < len(self.data) else 0

    def integer(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included."""
        count, size = high - low + 1, 1
        while 256**size < count:
            size += 1
        return low + sum(self.byte() << 8 * i for i in range(size)) % count

    def boolean(self) -> bool:
        return self.byte() % 2 == 1

    def one_of(self, *values: T) -> T:
        return values[self.integer(0, len(values) - 1)]

    def made_by(self, *makers: Callable[[], T]) -> T:
        """What one of the functions gives."""
        return self.one_of(*makers)()

    def several(self, make: Callable[[], T], most: int, least: int = 0) -> list[T]:
        """From ``least`` to ``most`` values that ``make`` gives."""
        return [make() for _ in range(self.integer(least, most))]

    def text(self, alphabet: Sequence[str], most: int) -> str:
        """A text of at most ``most`` words of an alphabet."""
        return "".join(self.several(lambda: self.one_of(*alphabet), most))
