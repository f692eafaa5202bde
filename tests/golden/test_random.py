"""Keys, bits and what is drawn from them are those of JAX."""

from collections.abc import Sequence

import pytest

from .compare_with_record import compare_all, parts, recorded
from .labelled_cases import labelled
from .random_cases import CASES

NAMED = labelled(CASES)
RECORDED = recorded("random.json")


def test_every_draw_is_recorded_and_every_record_has_a_case() -> None:
    assert set(RECORDED) == set(NAMED)


@pytest.mark.parametrize(("labels", "mode"), parts(NAMED, traced=False))  # tests/programs have draws under jit
def test_draws_are_those_of_jax(labels: Sequence[str], mode: str) -> None:
    compare_all(NAMED, labels, mode, RECORDED)
