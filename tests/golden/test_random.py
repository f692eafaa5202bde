"""Keys, bits and what is drawn from them are those of JAX."""

import re
from collections.abc import Sequence

import pytest

from .compare_with_record import all_parts, compare_all, parts, recorded
from .labelled_cases import labelled
from .random_cases import CASES

NAMED = labelled(CASES)
RECORDED = recorded("random.json")
NUMBERS = re.compile(r"(?i)(?<=key) \d+|\((\d+,? ?)*\)|\[[\d,]*\]|-?\b\d+(\.\d+)?\b")
PROGRAMS = [*{NUMBERS.sub("", label): label for label in reversed(NAMED)}.values()]
"""Calls of which no two differ in numbers and shapes alone: the others are compiled alike."""
DRAWS = [*[part for part in all_parts(NAMED) if part.values[1] != "jit"], *parts(PROGRAMS, "jit")]


def test_every_draw_is_recorded_and_every_record_has_a_case() -> None:
    assert set(RECORDED) == set(NAMED)


@pytest.mark.parametrize(("labels", "mode"), [*DRAWS, *parts([*NAMED], "jit", marks=pytest.mark.sweep)])
def test_draws_are_those_of_jax(labels: Sequence[str], mode: str) -> None:
    compare_all(NAMED, labels, mode, RECORDED)
