"""Comparison of a table of calls with its recorded results."""

import json
from collections.abc import Collection
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


def pairs(cases: dict[str, Case]) -> list[Any]:
    """A test parameter for every case and every mode that applies to it."""
    applies = {"eager": lambda case: True, "jit": lambda case: case.jit, "vmap": lambda case: case.mapped}
    return [pytest.param(label, mode, id=f"{mode} {label}")
            for label, case in cases.items() for mode in MODES if applies[mode](case)]


class Calls:
    """The answers of a table of calls: those under ``jit`` are computed by programs of ``TOGETHER`` calls each.

    The calls ``alone``, which are seldom executed, are in none of these programs.
    """

    def __init__(self, cases: dict[str, Case], alone: Collection[str] = ()):
        self.cases = cases
        self.labels = [label for label, case in cases.items() if case.jit and label not in alone]
        self.place = {label: i // TOGETHER for i, label in enumerate(self.labels)}
        self.compiled: dict[int, dict[str, list[Any]]] = {}

    def answers(self, label: str, mode: str) -> list[Any] | None:
        """What the call gives; where those of its program fail together, the call under ``jit`` alone."""
        if mode == "jit" and label in self.place and label in (together := self.together(self.place[label])):
            return together[label]
        return MODES[mode](self.cases[label], handlax)

    def together(self, place: int) -> dict[str, list[Any]]:
        """The answers of one program; none where a call is refused, which its own test will report."""
        if place not in self.compiled:
            labels = self.labels[place * TOGETHER : (place + 1) * TOGETHER]
            calls = {label: function(self.cases[label], handlax) for label in labels}
            program = handlax.jit(lambda arrays: {label: leaves(calls[label][0](*xs)) for label, xs in arrays.items()})
            try:
                self.compiled[place] = program({label: arrays for label, (_, arrays) in calls.items()})
            except Exception:
                self.compiled[place] = {}
        return self.compiled[place]


def compare(case: Case, mode: str, answers: list[Any] | None, records: list[Any]) -> None:
    """Fail unless the answers are the recorded values, with their dtypes and, outside vmap, weak types."""
    assert answers is not None and len(answers) == len(records)
    for answer, record in zip(answers, records, strict=True):
        got = encoded(answer)
        assert not (difference := disagreement(decoded(got), decoded(record), case.loose)), difference
        if mode != "vmap" and got[0] != "b1":  # a boolean is never weak here
            assert got[2] == record[2], f"weak type {got[2]}, recorded {record[2]}"
