"""Every recorded call gives what it gives in JAX: values, dtype, weak type; eager, under jit, and in a lane of vmap."""

import pytest

from .compare_with_record import Calls, compare, pairs, recorded
from .labelled_cases import CASES

CALLS = Calls(CASES)
RECORDED = recorded("values.json")


def test_every_case_is_recorded_and_every_record_has_a_case() -> None:
    assert set(RECORDED) == set(CASES)


@pytest.mark.parametrize(("label", "mode"), pairs(CASES))
def test_call_gives_what_jax_gives(label: str, mode: str) -> None:
    compare(CASES[label], mode, CALLS.answers(label, mode), RECORDED[label])
