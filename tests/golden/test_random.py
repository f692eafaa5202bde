"""Keys, bits and what is drawn from them are those of JAX."""

import re

import pytest

from .compare_with_record import Calls, compare, pairs, recorded
from .labelled_cases import labelled
from .random_cases import CASES

NAMED = labelled(CASES)
CALLS = Calls(NAMED)
RECORDED = recorded("random.json")
NUMBER = re.compile(r"(?i)(key) \d+")


def programs():
    """Every case in every mode; of those under ``jit`` that differ in the number of a key, the others are a sweep."""
    seen = set()
    for param in pairs(NAMED):
        label, mode = param.values
        program = NUMBER.sub(r"\1", label)
        again = mode == "jit" and program in seen
        yield pytest.param(label, mode, id=param.id, marks=[pytest.mark.sweep] * again)
        if mode == "jit":
            seen.add(program)


def test_every_draw_is_recorded_and_every_record_has_a_case() -> None:
    assert set(RECORDED) == set(NAMED)


@pytest.mark.parametrize(("label", "mode"), programs())
def test_draw_is_that_of_jax(label: str, mode: str) -> None:
    compare(NAMED[label], mode, CALLS.answers(label, mode), RECORDED[label])
