"""Every program in examples/ runs to its end, in a process of its own, as its reader would run it, but for epochs.

Of examples/effects one does: test_effect_programs.py executes them all, each as ``__main__``, and compares what they
print. The test of its name runs resumed_training.py, layout/test_install.py the tests of examples/tested_project, and
test_gallery.py those of examples/gallery, at their small size.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [
    program for program in sorted((ROOT / "examples").rglob("*.py"))
    if program.stem == "countdown"
    or (program.parent.name not in ("effects", "gallery", "tests") and program.stem != "resumed_training")
]


FEWER = {"demo": ["--epochs", "2"]}  # of what it trains


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_an_example_runs(program, tmp_path):
    command = [sys.executable, str(program), *FEWER.get(program.stem, [])]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "MPLBACKEND": "agg"}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
