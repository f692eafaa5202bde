"""The compiled programs of both sides: exact cost of the optimised module, and run time."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .rows_trace import model
from .sides import OURS, THEIRS, Side, assert_agree, on
from .timing import Pair, Plan, Row

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, eq=False)
class Case:
    """A program: its title, its function on either side, its NumPy arguments, and whether it is differentiated."""

    title: str
    program: Callable[[Side], Any]
    data: tuple[Any, ...]
    differentiate: bool

    def jitted(self, side: Side) -> tuple[Any, tuple[Any, ...]]:
        """The jitted function on one side, and its arguments there."""
        f, args = self.program(side), on(side, self.data)
        return side.lib.jit(side.lib.value_and_grad(f) if self.differentiate else f), args


def both(title: str, program: Callable[[Side], Any], data: tuple[Any, ...]) -> list[Case]:
    """The cases of a program and of its value and gradient."""
    return [Case(f"{title}, {('forward', 'value and gradient')[d]}", program, data, d) for d in (False, True)]


CASES = [case for which in ("MLP", "transformer") for case in both(which, *model(which))]


@functools.cache
def costs(case: Case) -> tuple[dict[str, float], dict[str, float]]:
    """The flops, bytes accessed and peak memory of both sides, whose results are checked to agree."""
    analyses, results = [], []
    for side in (OURS, THEIRS):
        f, args = case.jitted(side)
        program = f.lower(*args).compile()
        analysis, memory = program.cost_analysis(), program.memory_analysis()
        analyses.append({"flops": analysis["flops"], "bytes accessed": analysis["bytes accessed"],
                      "peak memory": memory.peak_memory_in_bytes})
        results.append(program(*args))
    assert_agree(*results)
    ours, theirs = analyses
    return ours, theirs


def cost_row(case: Case, measure: str) -> Row:
    def figures(plan: Plan) -> Pair:
        ours, theirs = costs(case)
        return Pair(ours[measure], theirs[measure])

    unit = "flops" if measure == "flops" else "bytes"
    return Row(f"compiled {case.title}: {measure}", 1.00, figures, unit=unit)


@functools.cache
def run_times(module: str, processes: int, rounds: int) -> dict[str, list[list[float]]]:
    """For each case of a module of rows, and each side, the medians of alternating processes."""
    medians: dict[str, list[list[float]]] = {}
    for i in range(processes):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            command = [sys.executable, "-m", "benchmarks.runtime", module, ("ours", "theirs")[side], str(rounds)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"a process of run times failed:\n{done.stderr}")
            for name, seconds in json.loads(done.stdout).items():
                medians.setdefault(name, [[], []])[side].append(seconds)
    return medians


def run_row(case: Case, module: str) -> Row:
    """Met if the ratio is at most 1.03, or the 95 % interval of the ratio over the processes contains 1.03."""

    def measure(plan: Plan) -> Pair:
        ours, theirs = run_times(module, 2 if plan.quick else 5, 50 if plan.quick else 300)[case.title]
        low, high = interval([x / y for x, y in zip(ours, theirs)])
        note = f"95 % interval of the ratio: {low:.3f} to {high:.3f}"
        return Pair(statistics.median(ours) * 1e6, statistics.median(theirs) * 1e6, (note,), low)

    return Row(f"run time of compiled {case.title}", 1.03, measure, 1.00)


def compiled_rows(cases: Sequence[Case], module: str) -> list[Row]:
    """The rows of all cases, which are ``CASES`` of the module of rows ``module``."""
    measures = ("flops", "bytes accessed", "peak memory")
    return [*[cost_row(case, m) for case in cases for m in measures], *[run_row(case, module) for case in cases]]


def interval(ratios: list[float]) -> tuple[float, float]:
    """Student's 95 % interval of the mean ratio of paired processes."""
    quantile = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}[len(ratios)]
    middle, half = statistics.mean(ratios), quantile * statistics.stdev(ratios) / len(ratios) ** 0.5
    return middle - half, middle + half


ROWS = compiled_rows(CASES, "rows_compiled")
