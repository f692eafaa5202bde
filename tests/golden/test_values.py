"""Every recorded call gives what it gives in JAX: values, dtype, weak type; eager, under jit, and in a lane of vmap."""

from collections.abc import Sequence

import pytest

from .compare_with_record import compare_all, parts, recorded
from .labelled_cases import CASES

RECORDED = recorded("values.json")


def test_every_case_is_recorded_and_every_record_has_a_case() -> None:
    assert set(RECORDED) == set(CASES)


@pytest.mark.parametrize(("labels", "mode"), parts(CASES))
def test_calls_give_what_jax_gives(labels: Sequence[str], mode: str) -> None:
    compare_all(CASES, labels, mode, RECORDED)
