"""The cases of a test that always run; the others are in the sweep."""

import itertools
from collections.abc import Container, Iterable, Sequence
from typing import Any

import pytest


def rest_in_sweep(values: Iterable[Any], always: Container[Any]) -> list[Any]:
    """The values of a parameter, of which those in ``always`` always run."""
    return [value if value in always else pytest.param(value, marks=pytest.mark.sweep) for value in values]


def chosen(counts: Sequence[int]) -> set[tuple[int, ...]]:
    """Of crossed parameters case k has value k of each, modulo how many it has: each value is in one of the cases."""
    return {tuple([k % count for count in counts]) for k in range(max(counts))}


def is_chosen(item: pytest.Item) -> bool:
    """Whether a test is among those cases of its function."""
    counts = [len(mark.args[1]) for mark in item.iter_markers("parametrize")]
    number = max(item.callspec.indices.values())  # among all combinations, in which the last parameter changes first
    return [*itertools.product(*map(range, counts))][number] in chosen(counts)
