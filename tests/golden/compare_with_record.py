"""Comparison of a table of calls with its recorded results."""

import json
from pathlib import Path
from typing import Any

import pytest

import handlax

from .call_case import Case, decoded, disagreement, encoded
from .call_modes import MODES

HERE = Path(__file__).parent


def recorded(name: str) -> dict[str, Any]:
    """The records of a file by label; without the entry that names the library."""
    return {label: record for label, record in json.loads((HERE / name).read_text()).items() if label != "library"}


def pairs(cases: dict[str, Case]) -> list[Any]:
    """A test parameter for every case and every mode that applies to it."""
    applies = {"eager": lambda case: True, "jit": lambda case: case.jit, "vmap": lambda case: case.mapped}
    return [pytest.param(label, mode, id=f"{mode} {label}")
            for label, case in cases.items() for mode in MODES if applies[mode](case)]


def compare(case: Case, mode: str, records: list[Any]) -> None:
    """Fail unless the call gives the recorded values, dtypes and, outside vmap, weak types."""
    answers = MODES[mode](case, handlax)
    assert answers is not None and len(answers) == len(records)
    for answer, record in zip(answers, records, strict=True):
        got = encoded(answer)
        assert not (difference := disagreement(decoded(got), decoded(record), case.loose)), difference
        if mode != "vmap" and got[0] != "b1":  # a boolean is never weak here
            assert got[2] == record[2], f"weak type {got[2]}, recorded {record[2]}"
