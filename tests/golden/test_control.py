"""Control flow and custom rules give what they give in JAX: values, dtypes, promotion of carries, derivatives."""

import pytest

from .compare_with_record import Calls, compare, pairs, recorded
from .control_cases import CASES
from .labelled_cases import labelled

NAMED = labelled(CASES)
CALLS = Calls(NAMED)
RECORDED = recorded("control.json")


def test_every_call_is_recorded_and_every_record_has_a_call() -> None:
    assert set(RECORDED) == set(NAMED)


@pytest.mark.parametrize(("label", "mode"), pairs(NAMED))
def test_call_gives_what_jax_gives(label: str, mode: str) -> None:
    compare(NAMED[label], mode, CALLS.answers(label, mode), RECORDED[label])
