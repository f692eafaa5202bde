"""The tests of examples/tested_project find what they are about; that they pass is shown where they are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "tested_project"


@pytest.fixture
def project(tmp_path):
    return Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__")))


def outcome_of(project, *arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "handlax_pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=project, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
                          capture_output=True, text=True, check=False, timeout=300)


def test_a_mistake_in_a_rule_and_another_program_are_found(project):
    file = project / "smoothing.py"
    file.write_text(file.read_text().replace("Turn(-op.by, op.axis)", "Turn(op.by, op.axis)"))
    done = outcome_of(project, "-k", "laws or turn_to_each_side")
    assert "it is not so that transpose is the adjoint of jvp" in done.stdout, done.stdout + done.stderr
    assert "test_a_step_is_one_turn_to_each_side.mlir: the program must be the recorded one." in done.stdout
