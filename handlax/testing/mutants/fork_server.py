"""The fork server: a process that has imported what tests need, and forks one for each run of them."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .mutable_code import Mutation

# Imported before the fork: what tests import anyhow, and that starts no threads, as the clients of XLA would.
PRELOADED = (
    "pytest", "hypothesis", "hypothesis.extra.numpy", "numpy", "ml_dtypes", "pyrsistent", "scipy.linalg",
    "scipy.special", "jaxlib._jax",
)
WORDS = ("-q", "--no-header", "--assert=plain", "-p", "no:cacheprovider")


class FinishedTests(NamedTuple):
    """What became of a run of tests: pytest's exit status, None if it took too long; what its plug-in reports."""

    status: int | None
    report: dict[str, Any]
    log: str


class ForkServer:
    """Runs tests in the folder ``root``, each time in a process of its own; closed when its block is left.

    ``preloaded``: modules that are imported before, since no mutant changes them.
    """

    def __init__(self, root: Path, preloaded: Sequence[str] = ()):
        self.root, self.preloaded = root, (*PRELOADED, *preloaded)
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ForkServer:
        self.scratch = tempfile.TemporaryDirectory(prefix="mutants-")
        self.folder = Path(self.scratch.name)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            try:
                self.process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGINT)  # at which it ends the tests that run
                self.process.communicate(timeout=60)
        self.scratch.cleanup()

    def started(self) -> subprocess.Popen[str]:
        """The process, which the first run starts."""
        if self.process is None:
            own = {"HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / "hypothesis"), "OPENBLAS_NUM_THREADS": "1"}
            command = [sys.executable, "-P", str(Path(__file__).with_name("mutant_worker.py")), *self.preloaded]
            self.process = subprocess.Popen(
                command, cwd=self.root, env={**os.environ, **own}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self.process

    def lines(self, test_file: str, sources: Sequence[str], seconds: float) -> FinishedTests:
        """Run the tests of a file, for so many seconds, and report the lines of the sources that they execute."""
        job = {"arguments": [test_file, "--tb=short"], "sources": sources, "seconds": seconds}
        return self._do({**job, "timeout": 2 * seconds + 60})

    def tests(
        self, path: str, change: Mutation | None, tests: Mapping[str, Sequence[str]], timeout: float
    ) -> FinishedTests:
        """Run tests, by their files, up to the first that fails, where ``path`` is changed."""
        order = [test for each in tests.values() for test in each]
        job = {"arguments": [*tests, "-x", "--tb=no"], "tests": order, "timeout": timeout}
        if change is not None:
            tree = self.folder / "tree"
            tree.write_bytes(pickle.dumps(change.tree))
            job |= {"path": str(self.root / path), "tree": str(tree)}
        return self._do(job)

    def _do(self, job: dict[str, Any]) -> FinishedTests:
        log, report = self.folder / "log", self.folder / "report"
        report.unlink(missing_ok=True)
        words = [*job["arguments"], *WORDS, f"--basetemp={self.folder / 'tests'}"]
        job |= {"arguments": words, "log": str(log), "report": str(report)}
        process = self.started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        status = json.loads(process.stdout.readline())
        found = json.loads(report.read_text()) if report.exists() else {}
        return FinishedTests(status, found, log.read_text(errors="replace"))
