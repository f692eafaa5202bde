"""A run over mutants: which are drawn, what becomes of each, and what is said of them."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ...effects.base.errors import BadArgument
from .coverage_map import CoverageMap, CoveringTests
from .fork_server import ForkServer
from .mutable_code import Mutant, Mutation, digest, mutants, mutation
from .outcomes import KILLED, SURVIVED, TIMED_OUT, UNREACHED, AskedTests, Outcome, Outcomes, summary

PACKAGE = Path(__file__).resolve().parents[3]  # where this package lies
# what tests of other projects import of it
LIBRARY = (
    "handlax", "handlax.testing.comparisons", "handlax.testing.handler_laws", "handlax.testing.operation_checks",
)
FIRST_BATCH = 4.0  # seconds of the tests that are run in one process at first; each further batch has twice as much
SLOWEST = 64.0  # times as slow as where the times of the tests were recorded: what still does not end is not waited for


def files_of(root: Path, word: str) -> list[str]:
    """The Python files that a word of the command names, a file, a folder or a module, as paths from ``root``.

    Raises: BadArgument: it names none there.
    """
    place = root / word
    if not place.exists():
        with suppress(ImportError, ValueError):  # of a parent that is none, or a name that is none
            spec = importlib.util.find_spec(word)
            place = Path(spec.origin) if spec is not None and spec.origin else place
    real = [path.resolve() for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    if not place.exists() or not all([path.is_relative_to(root.resolve()) for path in real]):
        raise BadArgument(
            f"mutants: {word!r} is no file, folder or module below {root}.",
            hint="call it in the folder that has the code and its tests; --tests names these, if not tests.")
    return [path.relative_to(root.resolve()).as_posix() for path in dict.fromkeys(real)]


def tests_of(root: Path, word: str) -> list[str]:
    """The test files that a word of the command names: a file, or those in a folder."""
    return [path for path in files_of(root, word)
            if (root / word).is_file() or Path(path).name.startswith("test_") or path.endswith("_test.py")]


def drawn(found: Sequence[Mutant], count: int | None, seed: int) -> list[Mutant]:
    """As many mutants as ``count`` says, by turns of each outermost folder, in an order that the seed determines.

    A mutant keeps its place in the order when others come or go, so that a draw can be repeated after a change.
    """
    strata: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in sorted(found, key=lambda mutant: digest(seed, mutant.key)):
        strata[mutant.path.partition("/")[0]].append(mutant)
    turns = sorted((turn, name, mutant) for name, each in strata.items() for turn, mutant in enumerate(each))
    return [mutant for _, _, mutant in turns][:count]


def batches(tests: Sequence[CoveringTests], budget: float) -> Iterator[list[CoveringTests]]:
    """The test files in processes of 4, 8, 16, ... seconds, until they have taken the budget."""
    spent, size, batch = 0.0, FIRST_BATCH, list[CoveringTests]()
    for each in tests:
        if batch and sum([one.seconds for one in batch]) + each.seconds > size:
            yield batch
            spent, size, batch = spent + sum([one.seconds for one in batch]), 2 * size, []
        if spent > budget:
            return
        batch.append(each)
    if batch:
        yield batch


class Trials:
    """Executes mutants with the tests that reach them."""

    def __init__(
        self, tests: AskedTests, server: ForkServer, coverage: CoverageMap, budget: float, patience: float
    ):
        self.tests, self.server, self.coverage, self.budget, self.patience = tests, server, coverage, budget, patience
        self.sound: dict[str, bool] = {}  # by test: whether it passes on its own without a mutant
        self.slowness = 1.0  # how many times as long as when their times were recorded the tests may take

    def outcome(self, mutant: Mutant, change: Mutation) -> Outcome:
        """What becomes of a mutant under the tests that execute its lines."""
        start, done, killer = time.monotonic(), 0, ""
        tests = self.coverage.covering(mutant, self.budget)
        verdict = SURVIVED if tests else UNREACHED
        for batch in batches(tests, self.budget):
            verdict, killer, run = self.verdict(mutant, change, batch)
            done += run
            if verdict != SURVIVED:
                break
        return Outcome(
            mutant.key, mutant.path, mutant.line, mutant.kind, change.before, change.after, verdict, killer, done,
            sum([len(each.tests) for each in tests]), round(time.monotonic() - start, 2), self.tests.state_for(killer))

    def verdict(self, mutant: Mutant, change: Mutation, batch: Sequence[CoveringTests]) -> tuple[str, str, int]:
        """What becomes of a mutant under some tests, the test that failed, and how many were run."""
        timeout = self.slowness * (self.patience + 5 * sum([each.seconds for each in batch]))
        tests = {each.file: [test for test in each.tests if self.sound.get(test, True)] for each in batch}
        run = self.server.tests(mutant.path, change, tests, timeout)
        if run.status is None:
            late = self.server.tests("", None, tests, timeout).status is None  # without the mutant, too
            if not late or self.slowness >= SLOWEST:
                return TIMED_OUT, "", 0
            self.slowness *= 2
            return self.verdict(mutant, change, batch)
        if not run.report:
            return KILLED, f"the end of the process, status {run.status}", 0
        failed, count = run.report["failed"], run.report["run"]
        if not failed:
            passed = run.status in (0, 5)  # pytest's statuses of no failure, and of no test
            return (SURVIVED, "", count) if passed else (KILLED, f"pytest, status {run.status}", count)
        if "::" in failed and not self.is_sound(failed):
            return self.verdict(mutant, change, batch)
        return KILLED, failed, count

    def is_sound(self, test: str) -> bool:
        """Whether a test passes without a mutant: one that does not kills none."""
        if test not in self.sound:
            file = test.partition("::")[0]
            self.sound[test] = self.server.tests("", None, {file: [test]}, timeout=120).status == 0
        return self.sound[test]


def parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m handlax.testing.mutants", description=__doc__)
    parser.add_argument("modules", nargs="+", help="files, folders or modules that are broken")
    parser.add_argument("--without", nargs="+", default=[], help="files and folders among these that are not")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="test files, or folders of them")
    parser.add_argument("--count", type=int, help="how many mutants are drawn; without it all")
    parser.add_argument("--seed", type=int, default=0, help="which are drawn")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no further one is begun")
    parser.add_argument("--seconds", type=float, default=600.0, help="of a test file, to find out its lines")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for a mutant")
    parser.add_argument("--patience", type=float, default=5.0, help="seconds beside 5 times those of its tests")
    parser.add_argument(
        "--results", type=Path, default=Path(".mutants", "results.jsonl"), help="where outcomes are kept")
    parser.add_argument("--again", action="store_true", help="execute those once more that no test has seen")
    parser.add_argument("--list", action="store_true", help="only say what the mutants are")
    return parser.parse_args(words)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def command(words: Sequence[str]) -> int:
    """``main``, of words that name nothing a message and the exit status 2."""
    try:
        return main(words)
    except BadArgument as error:
        sys.stderr.write(f"{error.what}\nhint: {error.hint}\n")
        return 2


def main(words: Sequence[str], root: Path | None = None) -> int:
    """The command; its exit status is 1 if a mutant survived, 2 without tests that pass."""
    asked, root = parsed(words), root or Path.cwd()
    deadline = time.monotonic() + 60 * asked.minutes
    without = {path for word in asked.without for path in files_of(root, word)}
    sources = [path for word in asked.modules for path in files_of(root, word) if path not in without]
    found, outcomes = [mutant for path in sources for mutant in mutants(root, path)], Outcomes(root / asked.results)
    if asked.again:
        found = [each for each in found if each.key in outcomes and outcomes[each.key].is_open]
    chosen = drawn(found, asked.count, asked.seed)
    if asked.list:
        return enumerate_changes(root, chosen)
    paths = [path for word in asked.tests for path in tests_of(root, word)]
    tests = AskedTests(root, paths)
    pending = [each for each in chosen if asked.again or not (each.key in outcomes and tests.hold(outcomes[each.key]))]
    with ForkServer(root, () if root.resolve() == PACKAGE else LIBRARY) as server:
        coverage = CoverageMap(root, root / ".mutants" / "coverage")
        if not coverage.collect(server, paths, sources, asked.seconds, deadline, say):
            say("the time is over: the next call goes on to find out which tests execute which lines")
        elif coverage.is_empty():
            say(f"no test of {' '.join(asked.tests)} passes without a mutant, so that none can be killed")
            return 2
        else:
            execute(pending, Trials(tests, server, coverage, asked.budget, asked.patience), outcomes, deadline)
    ended = [outcomes[each.key] for each in chosen if each.key in outcomes and tests.hold(outcomes[each.key])]
    say(summary(ended))
    return int(any([each.is_open for each in ended]))


def enumerate_changes(root: Path, chosen: Sequence[Mutant]) -> int:
    """Say what the mutants are, without a test."""
    for mutant in chosen:
        if change := mutation(root, mutant):
            say(f"{mutant.path}:{mutant.line}  {mutant.kind}  {change.before}  ->  {change.after}")
    return 0


def execute(pending: Sequence[Mutant], trials: Trials, outcomes: Outcomes, deadline: float) -> None:
    """Execute mutants until the deadline, and keep and say what becomes of each."""
    start = time.monotonic()
    for number, mutant in enumerate(pending, 1):
        if time.monotonic() > deadline:
            say(f"the time is over: {len(pending) - number + 1} are left, and begun by the next call")
            return
        if change := mutation(trials.tests.root, mutant):
            outcomes.add(outcome := trials.outcome(mutant, change))
            left = (time.monotonic() - start) / number * (len(pending) - number)
            say(f"[{number}/{len(pending)}, {left:.0f} s left] {outcome}")
