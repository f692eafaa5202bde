"""The command fuzzes each target in a process of its own, and keeps what it finds."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import handlax as hx
from handlax.testing.fuzzing import fuzz_command, main, read_corpus


def test_a_target_is_fuzzed_and_what_reaches_new_lines_is_kept(tmp_path, capfd):
    assert main(["--target", "entry", "--seconds", "1", "--corpora", str(tmp_path)]) == 0
    assert "entry: " in (said := capfd.readouterr().out) and "inputs (" in said
    assert read_corpus(tmp_path / "entry")


TARGETS = """
from handlax.testing.fuzzing import Target
TARGETS = {"broken": Target("broken", %s, seconds=0.2)}
"""


def fuzzed(run, folder):
    """The end of a process that fuzzes a function, whose timer is the process'."""
    (folder / "fuzz_targets.py").write_text(TARGETS % run)
    words = ["--seconds", "0.2", "--corpora", str(folder), "--here", str(folder / "input")]
    command = [sys.executable, "-m", "handlax.testing.fuzzing", *words]
    return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                          capture_output=True, text=True, check=False, timeout=300)


def test_findings_are_counted_and_kept(tmp_path):
    done = fuzzed("lambda data: data[0]", tmp_path)
    assert "failed: IndexError" in done.stdout and done.returncode == 1
    assert b"" in read_corpus(tmp_path / "broken") and not (tmp_path / "input").exists()


def test_an_input_that_takes_too_long_in_c_ends_the_process_and_is_there(tmp_path):
    endless = "lambda data: data == b'' and sum(range(10**12))"  # which hears no signal
    done = fuzzed(endless, tmp_path)
    assert done.returncode == 1 and "Timeout (0:00:01.2" in done.stderr and (tmp_path / "input").read_bytes() == b""


def test_a_process_that_does_not_end_is_a_finding(tmp_path, monkeypatch, capfd):
    def goes_on(command, timeout, **options):
        assert command[command.index("--seed") + 1] == "0"
        Path(command[command.index("--here") + 1]).write_bytes(b"the last input")
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(fuzz_command.subprocess, "run", goes_on)
    assert main(["--target", "entry", "--corpora", str(tmp_path)]) == 1
    assert f"the process ended with {-signal.SIGKILL}" in capfd.readouterr().out
    assert read_corpus(tmp_path / "entry") == [b"the last input"]


def test_an_input_at_which_the_process_ends_is_a_finding(tmp_path, monkeypatch, capfd):
    def ends(command, **options):
        Path(command[command.index("--here") + 1]).write_bytes(b"the last input")
        return type("Done", (), {"returncode": -signal.SIGSEGV})

    monkeypatch.setattr(fuzz_command.subprocess, "run", ends)
    assert main(["--target", "entry", "--corpora", str(tmp_path)]) == 1
    assert f"the process ended with {-signal.SIGSEGV}" in capfd.readouterr().out
    assert read_corpus(tmp_path / "entry") == [b"the last input"]


def test_a_target_that_is_not_there_is_refused(tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        main(["--target", os.devnull])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fuzz_command, "MODULE", "no_targets")
    with pytest.raises(hx.errors.BadArgument, match="or its tests must have a module no_targets"):
        main([])
