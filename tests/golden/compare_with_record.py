"""Comparison of a table of calls with its recorded results."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import handlax

from .call_case import Case, decoded, disagreement, encoded, function, leaves
from .call_modes import MODES

HERE = Path(__file__).parent
TOGETHER = 48  # calls in one program: XLA takes as long for its first operation as for a dozen more


def recorded(name: str) -> dict[str, Any]:
    """The records of a file by label; without the entry that names the library."""
    return {label: record for label, record in json.loads((HERE / name).read_text()).items() if label != "library"}


def parts(labels: Sequence[str], mode: str, **options: Any) -> list[Any]:
    """A test parameter for every ``TOGETHER`` calls, and the mode."""
    return [pytest.param(labels[i : i + TOGETHER], mode, id=f"{mode} from {labels[i]}", **options)
            for i in range(0, len(labels), TOGETHER)]


def all_parts(cases: Mapping[str, Case]) -> list[Any]:
    """The parameters of all calls, in every mode that applies to them."""
    applies = {"eager": lambda case: True, "jit": lambda case: case.jit, "vmap": lambda case: case.mapped}
    return [part for mode in MODES
            for part in parts([label for label, case in cases.items() if applies[mode](case)], mode)]


def compare_all(cases: Mapping[str, Case], labels: Sequence[str], mode: str, records: Mapping[str, Any]) -> None:
    """Compare the answers of calls; those under ``jit`` are of one program."""
    if mode == "jit":
        calls = {label: function(cases[label], handlax) for label in labels}
        program = handlax.jit(lambda arrays: {label: leaves(calls[label][0](*xs)) for label, xs in arrays.items()})
        answers = program({label: arrays for label, (_, arrays) in calls.items()})
    else:
        answers = {label: MODES[mode](cases[label], handlax) for label in labels}
    for label in labels:
        compare(cases[label], mode, answers[label], records[label])


def compare(case: Case, mode: str, answers: list[Any] | None, records: list[Any]) -> None:
    """Fail unless the answers are the recorded values, with their dtypes and, outside vmap, weak types."""
    assert answers is not None and len(answers) == len(records), case.label
    for answer, record in zip(answers, records, strict=True):
        got = encoded(answer)
        difference = disagreement(decoded(got), decoded(record), case.loose)
        assert not difference, f"{case.label}: {difference}"
        if mode != "vmap" and got[0] != "b1":  # a boolean is never weak here
            assert got[2] == record[2], f"{case.label}: weak type {got[2]}, recorded {record[2]}"
