"""Which tests execute which lines of which files, kept in a folder: a JSON file for each test file.

An entry holds as long as its test file is the same. If a source has changed since, its tests are those that execute any
line of it.

coverage.py has this as contexts; it keeps them by its tracer alone, and `sys.monitoring` does without one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from .fork_server import ForkServer
from .mutable_code import Mutant, digest


class CoveringTests(NamedTuple):
    """The tests of a file that execute a line, the fastest first, and how many seconds they take, with their import."""

    file: str
    tests: Sequence[str]
    seconds: float


NO_REPORT: dict[str, Any] = {"collecting": 0.0, "ended": True, "failed": [], "footprints": [], "tests": {}}


def read_entry(kept: Path) -> dict[str, Any] | None:
    """The entry in a file; None where there is none, or one that was not written to its end."""
    try:
        entry: dict[str, Any] = json.loads(kept.read_text())
        return entry
    except (FileNotFoundError, json.JSONDecodeError):
        return None


class CoverageMap:
    """The lines that tests execute; ``folder`` keeps what ``collect`` finds."""

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root, folder
        self.entries: dict[str, dict[str, Any]] = {}

    def collect(
        self, server: ForkServer, tests: Sequence[str], sources: Sequence[str], seconds: float,
        deadline: float, say: Callable[[str], None],
    ) -> bool:
        """Run the test files whose lines in these sources are not known yet, each for so many seconds.

        The result says whether all are known; after the deadline no further one is begun.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        states = {path: self.state(path) for path in sources}
        for number, test in enumerate(tests, 1):
            kept = self.folder / f"{test.replace('/', '+')}.json"
            entry = read_entry(kept)
            if entry is None or not self.holds(entry, test, states, seconds):
                if time.monotonic() > deadline:
                    return False
                run = server.lines(test, [str((self.root / path).resolve()) for path in states], seconds)
                entry = self.entry(run.report or NO_REPORT, test, states, seconds)
                if run.report:  # a run that is killed has none, and says nothing of the next
                    kept.write_text(json.dumps(entry))
                rest = ", the others are not begun in time" * entry["ended"]
                say(f"[{number}/{len(tests)}] lines of {test}: {len(entry['tests'])} tests{rest}")
                if entry["failed"]:
                    say(run.log)
            if entry["failed"]:
                say(f"without any mutant these fail, and are left out: {', '.join(entry['failed'])}")
            self.entries[test] = entry
        return True

    def entry(self, report: dict[str, Any], test: str, states: dict[str, str], seconds: float) -> dict[str, Any]:
        """The entry of a test file by the report of its run."""
        names = {str((self.root / path).resolve()): path for path in states}
        prints = [[names[path], bits] for path, bits in report["footprints"]]
        own = {"footprints": prints, "state": self.state(test), "sources": states, "seconds": seconds}
        return {**report, **own}

    def holds(self, entry: dict[str, Any], test: str, states: dict[str, str], seconds: float) -> bool:
        """Whether an entry is of this test file, and of these sources; where tests failed, as they are now.

        One that was ended before all tests were run holds if it has had at least so many ``seconds``.
        """
        known = entry["sources"]
        same = states.items() <= known.items() if entry["failed"] else states.keys() <= known.keys()
        enough = not entry["ended"] or entry["seconds"] >= seconds
        return same and enough and entry["state"] == self.state(test)

    def is_empty(self) -> bool:
        """Whether no test passes, or none was asked for."""
        return not any([entry["tests"] for entry in self.entries.values()])

    def state(self, path: str) -> str:
        return digest((self.root / path).read_text())

    def covering(self, mutant: Mutant, budget: float) -> list[CoveringTests]:
        """The tests that execute the lines of a mutant, by files, of each as many as take no more than ``budget`` s.

        The file that is named after the source comes first, then the others, the fastest first.
        """
        own = f"test_{PurePath(mutant.path).name}"
        for lines in mutant.reach:
            found = [each for file in self.entries if (each := self.of_file(file, mutant, lines, budget))]
            if found:
                return sorted(found, key=lambda each: (PurePath(each.file).name != own, each.seconds))
        return []

    def of_file(self, file: str, mutant: Mutant, lines: int, budget: float) -> CoveringTests | None:
        """The tests of a file that execute one of these lines, the bits of a number, of the file of a mutant."""
        entry = self.entries[file]
        wanted = lines if entry["sources"].get(mutant.path) == self.state(mutant.path) else -1
        prints = {i for i, (path, bits) in enumerate(entry["footprints"])
                  if path == mutant.path and int(bits, 16) & wanted}
        tests = [(seconds, test) for test, (seconds, used) in entry["tests"].items() if not prints.isdisjoint(used)]
        return fastest(file, sorted(tests), entry["collecting"], budget) if tests else None


def fastest(file: str, tests: Sequence[tuple[float, str]], collecting: float, budget: float) -> CoveringTests:
    """The first of some tests, which are ordered by their seconds, that take no longer than a budget; at least one."""
    total, taken = collecting, list[str]()
    for seconds, test in tests:
        if taken and total + seconds > budget:
            break
        total += seconds
        taken.append(test)
    return CoveringTests(file, taken, total)
