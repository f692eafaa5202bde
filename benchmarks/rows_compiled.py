"""What XLA makes of both sides' programs: cost of the optimised module, exactly, and its run time."""

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
    """A program: its title, what it is on either side, its arguments in NumPy, and whether it is differentiated."""

    title: str
    program: Callable[[Side], Any]
    data: tuple[Any, ...]
    differentiate: bool

    def jitted(self, side: Side) -> tuple[Any, tuple[Any, ...]]:
        """The jitted function on one side, and its arguments there."""
        f, args = self.program(side), on(side, self.data)
        return side.lib.jit(side.lib.value_and_grad(f) if self.differentiate else f), args


def both(title: str, program: Callable[[Side], Any], data: tuple[Any, ...]) -> list[Case]:
    """A program as it is, and its value and gradient."""
    return [Case(f"{title}, {('forward', 'value and gradient')[d]}", program, data, d) for d in (False, True)]


CASES = [case for which in ("MLP", "transformer") for case in both(which, *model(which))]


@functools.cache
def costs(case: Case) -> tuple[dict[str, float], dict[str, float]]:
    """flops, bytes accessed, peak memory; the results of both sides agree."""
    found, results = [], []
    for side in (OURS, THEIRS):
        f, args = case.jitted(side)
        program = f.lower(*args).compile()
        analysis, memory = program.cost_analysis(), program.memory_analysis()
        found.append({"flops": analysis["flops"], "bytes accessed": analysis["bytes accessed"],
                      "peak memory": memory.peak_memory_in_bytes})  # fmt: skip
        results.append(program(*args))
    assert_agree(*results)
    ours, theirs = found
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
    found: dict[str, list[list[float]]] = {}
    for turn in range(processes):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            command = [sys.executable, "-m", "benchmarks.runtime", module, ("ours", "theirs")[side], str(rounds)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"a process of run times failed:\n{done.stderr}")
            for name, seconds in json.loads(done.stdout).items():
                found.setdefault(name, [[], []])[side].append(seconds)
    return found


def run_row(case: Case, module: str) -> Row:
    """Met where the ratio is at most 1.03, or where the 95 % interval of the ratio over the processes contains that."""

    def measure(plan: Plan) -> Pair:
        ours, theirs = run_times(module, 2 if plan.quick else 5, 50 if plan.quick else 300)[case.title]
        low, high = interval([x / y for x, y in zip(ours, theirs)])
        note = f"95 % interval of the ratio: {low:.3f} to {high:.3f}"
        return Pair(statistics.median(ours) * 1e6, statistics.median(theirs) * 1e6, (note,), low)

    return Row(f"run time of compiled {case.title}", 1.03, measure, 1.00)


def compiled_rows(cases: Sequence[Case], module: str) -> list[Row]:
    """The rows of all cases; ``module``, a module of rows, has them as ``CASES``."""
    measures = ("flops", "bytes accessed", "peak memory")
    return [*[cost_row(case, m) for case in cases for m in measures], *[run_row(case, module) for case in cases]]


def interval(ratios: list[float]) -> tuple[float, float]:
    """Student's interval of the mean ratio of paired processes."""
    quantile = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}[len(ratios)]
    middle, half = statistics.mean(ratios), quantile * statistics.stdev(ratios) / len(ratios) ** 0.5
    return middle - half, middle + half


ROWS = compiled_rows(CASES, "rows_compiled")
