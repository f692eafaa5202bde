"""examples/resumed_training.py, killed at random moments and started again, ends with the loss of one whole run."""

import random
import subprocess
import sys
import time

import pytest
from helpers.new_process import inherited
from helpers.package_source import ROOT


def start(folder):
    command = [sys.executable, str(ROOT / "examples" / "resumed_training.py"), str(folder)]
    return subprocess.Popen(command, env=inherited(), stdout=subprocess.PIPE, text=True)


def lines(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return out.splitlines()


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.sweep)])
def test_a_run_that_is_killed_ends_as_one_that_is_not(tmp_path, kills):
    began = time.monotonic()
    first, loss = lines(start(tmp_path / "whole"))
    seconds = time.monotonic() - began
    assert first == "from step 0"
    moments, starts = random.Random(3), []
    for _ in range(kills):
        process = start(tmp_path / "killed")
        time.sleep(moments.uniform(0.5, 1) * seconds)
        process.kill()
        starts += [line for line in process.communicate(timeout=60)[0].splitlines() if line.startswith("from step")]
    last, loss_again = lines(start(tmp_path / "killed"))
    assert loss_again == loss and last != "from step 0"
