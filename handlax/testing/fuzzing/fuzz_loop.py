"""Fuzzing guided by coverage: inputs are changed at random, and those that reach new lines are changed further.

Source: Zalewski, American Fuzzy Lop, technical details.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from ..generator.reducing import OutOfTime, reduced
from .damage import damaged, smaller_bytes
from .fuzz_targets import Target, check_input
from .line_coverage import LineCoverage, is_covered


class Finding(NamedTuple):
    """An input for which the law does not hold: ``failure`` says how, in one line; ``data`` is reduced."""

    failure: str
    data: bytes


class FuzzReport(NamedTuple):
    """What fuzzing did: how many inputs had each outcome, the lines they reached, and the inputs to be kept.

    ``added``: those that reach lines which no seed and no input of the corpus reaches.
    """

    outcomes: Counter[str]
    lines: int
    added: list[bytes]
    findings: list[Finding]

    def __str__(self) -> str:
        ends = ", ".join([f"{count} {name}" for name, count in self.outcomes.most_common(4)])
        listed = "".join([f"\n  {failure}\n    {data!r}" for failure, data in self.findings])
        return f"{self.outcomes.total()} inputs ({ends}), {self.lines} lines, {len(self.added)} new inputs{listed}"


def fuzz(
    target: Target,
    corpus: Iterable[bytes] = (),
    *,
    seconds: float = float("inf"),
    inputs: float = float("inf"),
    seed: int = 0,
) -> FuzzReport:
    """Look for inputs that break the law of ``check_input``, for some time or so many inputs.

    The time begins when the seeds and the corpus have been tried; each finding is made small for a minute at most.

    Args:
        corpus: inputs to begin with, beside the target's seeds.
        seed: of the random changes. Which lines are new depends on what the process has done before, too.

    >>> report = fuzz(Target("numbers", lambda data: 1 / len(data)), [b"a"], inputs=50)
    >>> [finding.data for finding in report.findings]
    [b'']
    """
    trial, rng = _Trial(target), Random(seed)
    with trial.coverage:
        known = [*target.seeds(), *corpus]
        pool = [*known] or [b""]
        for data in pool:
            trial.run(data)
        end = time.monotonic() + seconds
        while time.monotonic() < end and trial.outcomes.total() < inputs:
            data = damaged(rng.choice((rng.choice(pool), pool[-1])), rng, pool, target.words)
            if trial.run(data):
                pool.append(data)
    findings = [Finding(failure, _small(target, failure, data)) for failure, data in trial.failures.items()]
    added, lines = adding(target, known, [data for data in pool if data not in trial.failures.values()])
    return FuzzReport(trial.outcomes, lines, added, findings)


class _Trial:
    """Inputs on trial: how they end, and the first of each failure."""

    def __init__(self, target: Target):
        self.target = target
        self.coverage, self.outcomes = LineCoverage(), Counter[str]()
        self.failures: dict[str, bytes] = {}

    def run(self, data: bytes) -> int:
        """The number of lines that no input before has reached."""
        self.coverage.take()
        end = ending(self.target, data)
        self.outcomes[end] += 1
        if end.startswith(_FAILED):
            self.failures.setdefault(end, data)
        return self.coverage.take()


_FAILED = "failed: "
_REDUCING = 60.0  # seconds for each finding: inputs that are too slow take many


def ending(target: Target, data: bytes) -> str:
    """How an input ends: its outcome, or how the law fails, with the innermost line of the package."""
    try:
        return check_input(target, data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        frames = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)
                  if is_covered(at.filename)]
        said = str(error).partition("\n")[0][:100] if isinstance(error, AssertionError) else ""
        return f"{_FAILED}{type(error).__name__} at {frames[-1] if frames else '?'} {said}".rstrip()


def _small(target: Target, failure: str, data: bytes) -> bytes:
    """A shorter input that fails in the same way, as short as is found in time."""
    end = time.monotonic() + _REDUCING

    def fails(shorter: bytes) -> bool:
        if time.monotonic() > end:
            raise OutOfTime
        return ending(target, shorter) == failure

    return reduced(data, fails, smaller_bytes)


def adding(target: Target, known: Sequence[bytes], inputs: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The inputs, short ones first, that reach a line which those before and the known ones do not; and all lines."""
    added, lines = [], 0
    with LineCoverage() as coverage:
        for data in [*known, *sorted({*inputs} - {*known}, key=lambda data: (len(data), data))]:
            coverage.take()
            ending(target, data)
            new = coverage.take()
            lines += new
            if new and data not in known:
                added.append(data)
    return added, lines


def read_corpus(folder: Path) -> list[bytes]:
    """The inputs that are kept in a folder, in the order of their names."""
    return [file.read_bytes() for file in sorted(folder.glob("*"))]


def keep(folder: Path, data: bytes) -> Path:
    """Write an input to a folder, under the name of its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / hashlib.sha256(data).hexdigest()[:16]
    file.write_bytes(data)
    return file
