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


def last(folder):
    """The last step that is saved."""
    return max([int(table.parent.name) for table in folder.glob("*/zarr.json")], default=0)


@pytest.mark.parametrize("kills", [1, pytest.param(100, marks=pytest.mark.sweep)])
def test_a_run_that_is_killed_ends_as_one_that_is_not(tmp_path, kills):
    whole = lines(start(tmp_path / "whole"))
    folder, moments = tmp_path / "killed", random.Random(3)
    for _ in range(kills):
        before, process, until = last(folder), start(folder), time.monotonic() + 120
        while process.poll() is None and last(folder) == before and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.1))
        process.kill()
        process.communicate(timeout=60)
    resumed = lines(start(folder))
    assert whole[0] == "from step 0" != resumed[0]
    assert whole[1] == resumed[1]
