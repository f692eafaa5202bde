"""What XLA makes of both sides' programs: cost of the optimised module, exactly, and its run time."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from .rows_trace import model
from .sides import OURS, THEIRS, Side, assert_agree, on
from .timing import Pair, Plan, Row

PROGRAMS = [(which, differentiate) for which in ("MLP", "transformer") for differentiate in (False, True)]
ROOT = Path(__file__).parent.parent


def title(which: str, differentiate: bool) -> str:
    return f"{which}, {'value and gradient' if differentiate else 'forward'}"


def jitted(side: Side, which: str, differentiate: bool) -> tuple[Any, tuple[Any, ...]]:
    """A model's jitted function on one side, and its arguments there."""
    loss, data = model(which)
    f, args = loss(side), on(side, data)
    f = side.lib.value_and_grad(f) if differentiate else f
    return side.lib.jit(f), args


@functools.cache
def costs(which: str, differentiate: bool) -> tuple[dict[str, float], dict[str, float]]:
    """flops, bytes accessed, peak memory; the results of both sides agree."""
    found, results = [], []
    for side in (OURS, THEIRS):
        f, args = jitted(side, which, differentiate)
        program = f.lower(*args).compile()
        analysis, memory = program.cost_analysis(), program.memory_analysis()
        found.append({"flops": analysis["flops"], "bytes accessed": analysis["bytes accessed"],
                      "peak memory": memory.peak_memory_in_bytes})  # fmt: skip
        results.append(program(*args))
    assert_agree(*results)
    ours, theirs = found
    return ours, theirs


def cost_row(which: str, differentiate: bool, measure: str) -> Row:
    def figures(plan: Plan) -> Pair:
        ours, theirs = costs(which, differentiate)
        return Pair(ours[measure], theirs[measure])

    unit = "flops" if measure == "flops" else "bytes"
    return Row(f"compiled {title(which, differentiate)}: {measure}", 1.00, figures, unit=unit)


@functools.cache
def run_times(processes: int, rounds: int) -> dict[str, list[list[float]]]:
    """For each program and side the medians of alternating processes."""
    found: dict[str, list[list[float]]] = {title(*p): [[], []] for p in PROGRAMS}
    for turn in range(processes):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            command = [sys.executable, "-m", "benchmarks.runtime", ("ours", "theirs")[side], str(rounds)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"a process of run times failed:\n{done.stderr}")
            for name, seconds in json.loads(done.stdout).items():
                found[name][side].append(seconds)
    return found


def run_row(which: str, differentiate: bool) -> Row:
    """Met where the ratio is at most 1.03, or where the 95 % interval of the ratio over the processes contains that."""

    def measure(plan: Plan) -> Pair:
        ours, theirs = run_times(2 if plan.quick else 5, 50 if plan.quick else 300)[title(which, differentiate)]
        low, high = interval([x / y for x, y in zip(ours, theirs)])
        note = f"95 % interval of the ratio: {low:.3f} to {high:.3f}"
        return Pair(statistics.median(ours) * 1e6, statistics.median(theirs) * 1e6, (note,), low)

    return Row(f"run time of compiled {title(which, differentiate)}", 1.03, measure, 1.00)


def interval(ratios: list[float]) -> tuple[float, float]:
    """Student's interval of the mean ratio of paired processes."""
    quantile = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}[len(ratios)]
    middle, half = statistics.mean(ratios), quantile * statistics.stdev(ratios) / len(ratios) ** 0.5
    return middle - half, middle + half


ROWS = [
    *[cost_row(*p, measure) for p in PROGRAMS for measure in ("flops", "bytes accessed", "peak memory")],
    *[run_row(*p) for p in PROGRAMS],
]
