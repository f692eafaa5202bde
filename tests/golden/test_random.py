"""Keys, bits and what is drawn from them are those of JAX."""

import pytest

from .compare_with_record import compare, pairs, recorded
from .labelled_cases import labelled
from .random_cases import CASES

NAMED = labelled(CASES)
RECORDED = recorded("random.json")


def test_every_draw_is_recorded_and_every_record_has_a_case() -> None:
    assert set(RECORDED) == set(NAMED)


@pytest.mark.parametrize(("label", "mode"), pairs(NAMED))
def test_draw_is_that_of_jax(label: str, mode: str) -> None:
    compare(NAMED[label], mode, RECORDED[label])
