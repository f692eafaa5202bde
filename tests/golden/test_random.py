"""Keys, bits and what is drawn from them are those of JAX."""

import re

import pytest

from .compare_with_record import Calls, compare, pairs, recorded
from .labelled_cases import labelled
from .random_cases import CASES

NAMED = labelled(CASES)
RECORDED = recorded("random.json")
NUMBERS = re.compile(r"(?i)(?<=key) \d+|\((\d+,? ?)*\)")  # of a key, and shapes
PROGRAMS = {NUMBERS.sub("", label): label for label in reversed(NAMED)}.values()
AGAIN = frozenset(NAMED) - frozenset(PROGRAMS)
"""The calls that differ from an earlier one in the number of a key or in a shape alone: they are compiled alike."""
CALLS = Calls(NAMED, AGAIN)
DRAWS = [pytest.param(label, mode, id=f"{mode} {label}", marks=[pytest.mark.sweep] * (mode == "jit" and label in AGAIN))
         for label, mode in (param.values for param in pairs(NAMED))]


def test_every_draw_is_recorded_and_every_record_has_a_case() -> None:
    assert set(RECORDED) == set(NAMED)


@pytest.mark.parametrize(("label", "mode"), DRAWS)
def test_draw_is_that_of_jax(label: str, mode: str) -> None:
    compare(NAMED[label], mode, CALLS.answers(label, mode), RECORDED[label])
