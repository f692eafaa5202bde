"""Runs tests in forked processes, with a file changed; a program of its own, which imports nothing of the package.

What it imported would be in its processes already, as it was before a mutant of the package changes it.

    python -P mutant_worker.py MODULE...

It imports these modules, and pytest, once. Then every line of its input is a job, a JSON object, which a forked process
does; a line of its output is the status of that process, null if it took longer than ``timeout`` and was killed. What
a mutant breaks, hangs on or allocates is therefore gone with its process.

A job has the words for pytest (``arguments``), the files that it writes (``log``, ``report``), and optionally the tests
to be run, in their order (``tests``), a ``path`` with the ``tree`` by which it is replaced, a pickled syntax tree, and
the ``sources`` of which the executed lines are to be reported for every test.
"""

import ast
import contextlib
import gc
import importlib
import json
import os
import pickle
import resource
import runpy
import signal
import sys
import time
import traceback
import types
import warnings
from collections.abc import Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..fuzzing import line_events
else:
    line_events = types.SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "fuzzing" / "line_events.py")))


class ChangedFile(MetaPathFinder):
    """Finds modules as the other finders do, but executes one file as a syntax tree says."""

    def __init__(self, path: str, tree: ast.Module):
        self.path, self.tree = os.path.realpath(path), tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.has_location and os.path.realpath(str(spec.origin)) == self.path:
            spec.loader = TreeLoader(fullname, str(spec.origin), self.tree)
        return spec


class TreeLoader(SourceFileLoader):
    """Loads a module from a syntax tree instead of its file."""

    def __init__(self, fullname: str, path: str, tree: ast.Module):
        super().__init__(fullname, path)
        self.tree = tree

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self.tree, self.path, "exec", dont_inherit=True)


class SelectedTests:
    """Pytest plug-in: runs these tests, in this order, and notes which failed and how many were run."""

    def __init__(self, tests: Sequence[str]):
        self.order = {test: i for i, test in enumerate(tests)}
        self.failed, self.run = "", 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.run += report.when == "call"
        if report.failed:
            self.failed = self.failed or report.nodeid

    def report(self) -> dict[str, Any]:
        return {"failed": self.failed, "run": self.run}


class ExecutedLines(line_events.LineEvents):
    """Pytest plug-in: for each test that passes, its seconds, and the lines of some files that it executes.

    After so many ``seconds`` no further test is begun.
    """

    tool = 5  # of optimizers, of which there are none: Hypothesis takes 3, and coverage of lines 4

    def __init__(self, sources: Sequence[str], seconds: float):
        self.sources, self.names = {os.path.realpath(path) for path in sources}, dict[str, str]()
        self.seconds, self.ended = seconds, False
        self.lines: dict[str, int] = {}  # by file, the lines that the current test has executed, as bits
        self.footprints: dict[tuple[str, str], int] = {}  # a file with such lines, and its number
        self.tests: dict[str, tuple[float, list[int]]] = {}
        self.unfit, self.failed = set[str](), set[str]()
        self.start = self.collected = time.monotonic()

    def source(self, filename: str) -> str:
        """The real path of a file, if it is one of the sources; else an empty text."""
        if filename not in self.names:
            path = os.path.realpath(filename)
            self.names[filename] = path if path in self.sources else ""
        return self.names[filename]

    def reached(self, code: types.CodeType, line: int) -> bool:
        path = self.source(code.co_filename)
        if path:
            self.lines[path] = self.lines.get(path, 0) | 1 << line
        return bool(path)

    def pytest_collection_finish(self) -> None:
        self.collected = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.lines, start = {}, time.monotonic()
        try:
            with self:
                return (yield)
        finally:
            prints = [(path, f"{bits:x}") for path, bits in self.lines.items()]
            numbers = [self.footprints.setdefault(each, len(self.footprints)) for each in prints]
            self.tests[item.nodeid] = round(time.monotonic() - start, 4), numbers
            if time.monotonic() - self.start > self.seconds:
                self.ended, item.session.shouldstop = True, "the other tests are not run: their time is over"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.unfit.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def report(self) -> dict[str, Any]:
        """The tests that passed, with the numbers of their footprints, and which failed; if ``ended``, not all ran."""
        tests = {test: found for test, found in self.tests.items() if test not in self.unfit}
        return {"collecting": self.collected - self.start, "ended": self.ended, "failed": sorted(self.failed),
                "footprints": list(self.footprints), "tests": tests}


def do(job: dict[str, Any]) -> int:
    """Run pytest as a job says; the exit status of pytest."""
    output = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(output, stream)
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    with contextlib.suppress(ValueError, OSError):  # where the system sets no such limit
        resource.setrlimit(resource.RLIMIT_AS, (half, resource.getrlimit(resource.RLIMIT_AS)[1]))
    if "tree" in job:
        sys.meta_path.insert(0, ChangedFile(job["path"], pickle.loads(Path(job["tree"]).read_bytes())))
    plugin = ExecutedLines(job["sources"], job["seconds"]) if "sources" in job else SelectedTests(job["tests"])
    status = pytest.main(job["arguments"], plugins=[plugin])
    Path(job["report"]).write_text(json.dumps(plugin.report()))
    return int(status)


def forked(job: dict[str, Any]) -> int | None:
    """The status of a process that does a job, negative if a signal ended it; None if it was killed at its timeout."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        status = 70
        try:
            status = do(job)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    ended = status = 0
    try:
        deadline, parent = time.monotonic() + job["timeout"], os.getppid()
        while not ended and time.monotonic() < deadline and os.getppid() == parent:
            time.sleep(0.005)
            ended, status = os.waitpid(child, os.WNOHANG)
    finally:  # also where this process is interrupted or terminated
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # also what the tests have started
        if not ended:
            os.kill(child, signal.SIGKILL)  # which may not have its group yet
            os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if ended else None


def main(modules: Sequence[str]) -> None:
    for module in modules:
        with contextlib.suppress(ImportError):  # what is not installed is of no use to the tests
            importlib.import_module(module)
    gc.freeze()  # what is imported: the collector of a forked process passes over none of it, and copies no page
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # and the tests that run end
    warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # that it is multi-threaded, and forks
    sys.path.insert(0, os.getcwd())
    replies = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        replies.write(f"{json.dumps(forked(json.loads(line)))}\n")
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
