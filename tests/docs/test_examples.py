"""Every program in examples/ runs to its end, in a process of its own, as its reader would run it.

Those of examples/effects print a result, which test_effect_programs.py compares.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("program", sorted((ROOT / "examples").rglob("*.py")), ids=lambda program: program.stem)
def test_an_example_runs(program, tmp_path):
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, env={**os.environ, "MPLBACKEND": "agg"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
