"""Training steps of unchanged libraries: on handlax by ``as_jax``, and on JAX, in processes that take turns."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .timing import Pair, Plan, Row

PROGRAM = str(Path(__file__).with_name("programs_libraries.py"))
SIDES = ((sys.executable, "-m", "handlax.as_jax", PROGRAM), (sys.executable, PROGRAM))


@functools.cache
def runs(library: str, plan: Plan) -> tuple[list[Any], list[Any]]:
    """What the processes of each side print; both sides have the same losses."""
    found: tuple[list[Any], list[Any]] = ([], [])
    for i in range(plan.rounds):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            done = subprocess.run([*SIDES[side], library], capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"a new process failed:\n{done.stderr}")
            found[side].append(json.loads(done.stdout.splitlines()[-1]))
    np.testing.assert_allclose(found[0][0]["losses"], found[1][0]["losses"], rtol=1e-3)
    return found


def library_row(name: str, library: str, figure: str, bar: float, unit: str) -> Row:
    scale = {"us": 1e6, "ms": 1e3}[unit]

    def measure(plan: Plan) -> Pair:
        return Pair(*[scale * statistics.median([run[figure] for run in side]) for side in runs(library, plan)])

    return Row(f"{name}, {'first call' if figure == 'first' else 'warm'}", bar, measure, unit=unit)


ROWS = [
    library_row(f"training step of {title} model with Optax, unchanged", library, *of)
    for title, library in (("an Equinox", "equinox"), ("a Flax", "flax"))
    for of in (("step", 1.03, "us"), ("first", 0.80, "ms"))
]
