"""How the tests compare a table of calls with the file recorded for it."""

import json
from pathlib import Path
from typing import Any

import pytest

import handlax

from .modes import MODES
from .specs import Case, decoded, disagreement, encoded

HERE = Path(__file__).parent


def recorded(name: str) -> dict[str, Any]:
    """The records of a file by label; the library that gave them is left out."""
    return {label: record for label, record in json.loads((HERE / name).read_text()).items() if label != "library"}


def pairs(cases: dict[str, Case]) -> list[Any]:
    """A test parameter for every case and every mode in which it has a meaning."""
    applies = {"eager": lambda case: True, "jit": lambda case: case.jit, "vmap": lambda case: case.mapped}
    return [pytest.param(label, mode, id=f"{mode} {label}")
            for label, case in cases.items() for mode in MODES if applies[mode](case)]


def compare(case: Case, mode: str, records: list[Any]) -> None:
    """Fail unless the call gives the recorded values, dtypes and, outside vmap, weak types."""
    answers = MODES[mode](case, handlax)
    assert answers is not None and len(answers) == len(records)
    for answer, record in zip(answers, records, strict=True):
        found = encoded(answer)
        assert not (said := disagreement(decoded(found), decoded(record), case.loose)), said
        if mode != "vmap" and found[0] != "b1":  # a boolean is never weak here
            assert found[2] == record[2], f"weak type {found[2]}, recorded {record[2]}"
