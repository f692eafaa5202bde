"""``Equations``: the storage and the traversal that a program and its builder share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from ..core.operation import Operation
from ..types.array_type import ArrayType

Steps = Iterator[tuple[Operation, tuple[int, ...], range, tuple[ArrayType, ...]]]


class Equations:
    """Equations in order over numbered values: inputs come first, then results; constants have negative numbers.

    ``types[i]`` is the result type of equation ``i``: a tuple of types iff the operation has ``multiple_results``;
    ``steps`` gives a tuple in either case.
    """

    __slots__ = ()
    in_types: Sequence[ArrayType]
    ops: Sequence[Operation]
    args: Sequence[tuple[int, ...]]
    types: Sequence[Any]

    def steps(self) -> Steps:
        """The equations: operation, numbers of the operands, numbers of the results, types of the results."""
        number = len(self.in_types)
        for op, args, result in zip(self.ops, self.args, self.types):
            types = result if op.multiple_results else (result,)
            end = number + len(types)
            yield op, args, range(number, end), types
            number = end

    def numbered_types(self) -> list[ArrayType]:
        """The types of inputs and results by number."""
        types = list(self.in_types)
        if tuple not in map(type, self.types):
            types += self.types
            return types
        for result in self.types:
            if type(result) is tuple:
                types += result
            else:
                types.append(result)
        return types

    def starts(self) -> list[int]:
        """The number of each equation's first result, then the count of all values."""
        counts = [len(result) if op.multiple_results else 1 for op, result in zip(self.ops, self.types)]
        return list(accumulate(counts, initial=len(self.in_types)))

    def definition(self, number: int) -> tuple[int, int] | None:
        """The index of the equation that defines a value, and of the result in it; None for inputs and constants."""
        if number < len(self.in_types):
            return None
        starts = self.starts()
        index = bisect_right(starts, number) - 1
        return index, number - starts[index]
