"""What became of mutants, and the file that keeps it: a line of JSON for each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .mutable_code import digest

KILLED, SURVIVED, TIMED_OUT, UNREACHED = "killed", "survived", "timed out", "unreached"


class Outcome(NamedTuple):
    """What became of a mutant: killed by a test, survived, timed out, or unreached, as no test executes its line."""

    key: str
    path: str
    line: int
    kind: str
    before: str
    after: str
    verdict: str
    test: str  # which failed
    run: int  # how many tests were run, of how many that reach the line
    reaching: int
    seconds: float
    state: str = ""  # of the tests that it depends on; empty in a file that is older than this field

    @property
    def is_open(self) -> bool:
        """Whether no test has seen the mistake."""
        return self.verdict in (SURVIVED, UNREACHED)

    def __str__(self) -> str:
        by = f" by {self.test}" if self.verdict == KILLED else f", {self.run} of {self.reaching} tests" * self.is_open
        change = f"{self.before}  ->  {self.after}"
        return f"{self.path}:{self.line}  {self.kind}  {change}  {self.verdict}{by} ({self.seconds:.1f} s)"


class AskedTests:
    """The test files that a run over mutants executes. What became of a mutant holds while these are unchanged; of one
    that a test killed, while the file of this test is.
    """

    def __init__(self, root: Path, paths: Sequence[str]):
        self.root = root
        self.state = digest(*[(path, (root / path).read_text()) for path in paths])

    def state_for(self, killer: str) -> str:
        """A digest of what a verdict depends on: the file of the test that failed, or else all test files."""
        file = self.root / killer.partition("::")[0]
        return digest(file.read_text()) if file.is_file() else self.state

    def hold(self, outcome: Outcome) -> bool:
        return outcome.state in ("", self.state_for(outcome.test))


class Outcomes:
    """The outcomes in a file, by the keys of their mutants; of several with one key the last.

    A last line that was not written to its end, as by a process that was killed, is removed from the file.
    """

    def __init__(self, path: Path):
        self.path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)
        lines = whole.splitlines()
        self.by_key = {outcome.key: outcome for outcome in [Outcome(**json.loads(line)) for line in lines]}

    def __contains__(self, key: str) -> bool:
        return key in self.by_key

    def __getitem__(self, key: str) -> Outcome:
        return self.by_key[key]

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, at once, so that a run that is ended goes on where it was."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.by_key[outcome.key] = outcome
        with self.path.open("a") as file:
            file.write(json.dumps(outcome._asdict()) + "\n")


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many mutants had which end, and those that no test has seen, a line each."""
    counts = Counter([outcome.verdict for outcome in outcomes])
    numbers = ", ".join([f"{counts[verdict]} {verdict}" for verdict in (KILLED, TIMED_OUT, SURVIVED, UNREACHED)])
    unseen = sorted([each for each in outcomes if each.is_open], key=lambda each: (each.path, each.line, each.after))
    return "\n".join([*map(str, unseen), f"{len(outcomes)} mutants: {numbers}"])
