"""Control flow and custom rules give what they give in JAX: values, dtypes, promotion of carries, derivatives."""

from collections.abc import Sequence

import pytest

from .compare_with_record import compare_all, parts, recorded
from .control_cases import CASES
from .labelled_cases import labelled

NAMED = labelled(CASES)
RECORDED = recorded("control.json")


def test_every_call_is_recorded_and_every_record_has_a_call() -> None:
    assert set(RECORDED) == set(NAMED)


@pytest.mark.parametrize(("labels", "mode"), parts(NAMED))
def test_calls_give_what_jax_gives(labels: Sequence[str], mode: str) -> None:
    compare_all(NAMED, labels, mode, RECORDED)
