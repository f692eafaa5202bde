"""New processes: import, and the time to the first result of a jitted function."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .timing import Pair, Plan, Row

FIRST_RESULT = """
import {lib} as lib, {lib}.numpy as np
def f(w, x):
    return np.sum(np.tanh(x @ w))
y = lib.jit(lib.value_and_grad(f))(np.ones((8, 4)), np.ones((2, 8)))[0]
print(round(float(y), 4))
"""


def processes(program: str, net: bool) -> Callable[[Plan], Pair]:
    """Seconds of alternating processes with Python's bytecode cached; ``net``: less those of an empty process."""

    def measure(plan: Plan) -> Pair:
        with tempfile.TemporaryDirectory() as folder:
            environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
            environment["PYTHONPYCACHEPREFIX"] = str(Path(folder, "compiled"))
            environment.pop("PYTHONPATH", None)
            texts = ["pass", program.format(lib="handlax"), program.format(lib="jax")]
            _, mine, peers = [run_process(text, environment, folder)[1] for text in texts]
            assert mine == peers, f"handlax printed {mine!r}, JAX {peers!r}"
            times: list[list[float]] = [[], [], []]
            for i in range(plan.rounds):
                for which in (0, 1, 2) if i % 2 == 0 else (2, 1, 0):
                    times[which].append(run_process(texts[which], environment, folder)[0])
        empty, ours, theirs = [statistics.median(t) for t in times]
        off = empty if net else 0.0
        return Pair((ours - off) * 1e3, (theirs - off) * 1e3)

    return measure


def run_process(text: str, environment: dict[str, str], folder: str) -> tuple[float, str]:
    start = time.perf_counter()
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"a new process failed:\n{done.stderr}")
    return elapsed, done.stdout


ROWS = [
    Row("import, net of Python's start", 0.45, processes("import {lib}", net=True), 0.30, unit="ms"),
    Row("cold start: import, trace, compile, run", 0.60, processes(FIRST_RESULT, net=False), 0.45, unit="ms"),
]
