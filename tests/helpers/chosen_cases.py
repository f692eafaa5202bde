"""Of the cases of crossed parameters those that always run, so that each value of each parameter is in one."""

import itertools
from collections.abc import Sequence

import pytest


def chosen(counts: Sequence[int]) -> set[tuple[int, ...]]:
    """Case k has value k of each parameter, counted modulo how many values it has; as many as the longest has."""
    return {tuple([k % count for count in counts]) for k in range(max(counts))}


def is_chosen(item: pytest.Item) -> bool:
    """Whether a test is among those cases of its function."""
    counts = [len(mark.args[1]) for mark in item.iter_markers("parametrize")]
    number = max(item.callspec.indices.values())  # among all combinations, in which the last parameter changes first
    return [*itertools.product(*map(range, counts))][number] in chosen(counts)
