"""Comparison of a table of calls with its recorded results."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import handlax

from .call_case import Case, decoded, disagreement, encoded, function, leaves
from .call_modes import MODES

HERE = Path(__file__).parent
NUMBERS = re.compile(
    r"(?i)\b(bool|b1|bf16|bfloat16|[iufc]\d+|(int|uint|float|complex)\d+)\b"
    r"|(?<=key) \d+|\((\d+,? ?)*\)|\[[\d,]*\]|-?\b\d+(\.\d+)?\b")
TOGETHER = 48  # calls in one program: XLA takes as long for its first operation as for a dozen more


def recorded(name: str) -> dict[str, Any]:
    """The records of a file by label; without the entry that names the library."""
    return {label: record for label, record in json.loads((HERE / name).read_text()).items() if label != "library"}


def one_of_each_form(labels: Sequence[str]) -> list[str]:
    """The first of the calls that differ in numbers, shapes and dtypes alone: the others are traced alike."""
    return [*{NUMBERS.sub("", label): label for label in reversed(labels)}.values()][::-1]


def parts(cases: Mapping[str, Case], *, traced: bool = True) -> list[Any]:
    """A test parameter for every ``TOGETHER`` calls, and the mode, one of all that apply to them.

    Each call is executed eagerly, and one of each form is ``traced``, or none; the others are in a sweep.
    """
    applies = {"eager": lambda case: True, "jit": lambda case: case.jit, "vmap": lambda case: case.mapped}
    found = []
    for mode in MODES:
        labels = [label for label, case in cases.items() if applies[mode](case)]
        always = labels if mode == "eager" else one_of_each_form(labels) if traced else []
        swept = {*labels} - {*always}
        for chosen, marks in ((always, ()), (sorted(swept), pytest.mark.sweep)):
            found += [pytest.param(chosen[i : i + TOGETHER], mode, id=f"{mode} from {chosen[i]}", marks=marks)
                      for i in range(0, len(chosen), TOGETHER)]
    return found


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
