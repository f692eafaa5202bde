"""The results of one operation for the values that its bodies, of which one is executed, give beside their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...effects.types.array_type import ArrayType


def shared_results(bodies: Sequence[Sequence[ArrayType]]) -> tuple[list[ArrayType], list[tuple[int, ...]]]:
    """Results for the values of every body, of which one is executed: as many of a type as one body has at most.

    Gives their types, and for each body the numbers of the results that its values are.
    """
    types: list[ArrayType] = []
    numbers_of: dict[ArrayType, list[int]] = {}
    positions = []
    for body in bodies:
        used: Counter[ArrayType] = Counter()
        own = []
        for t in body:
            numbers = numbers_of.setdefault(t, [])
            if used[t] == len(numbers):
                numbers.append(len(types))
                types.append(t)
            own.append(numbers[used[t]])
            used[t] += 1
        positions.append(tuple(own))
    return types, positions
