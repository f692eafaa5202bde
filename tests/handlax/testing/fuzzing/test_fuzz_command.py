"""The command fuzzes each target in a process of its own, and keeps what it finds."""

import os
import signal

import pytest

from handlax.testing.fuzzing import Target, fuzz_command, main, read_corpus


def test_a_target_is_fuzzed_and_what_reaches_new_lines_is_kept(tmp_path, capfd):
    assert main(["--target", "entry", "--seconds", "0.5", "--corpora", str(tmp_path)]) == 0
    assert "entry: " in (said := capfd.readouterr().out) and "inputs (" in said
    assert read_corpus(tmp_path / "entry")


def test_findings_are_counted_and_kept(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(fuzz_command, "TARGETS", {"first": Target("first", lambda data: data[0])})
    assert main(["--seconds", "0.2", "--corpora", str(tmp_path), "--here", str(tmp_path / "input")]) == 1
    assert "failed: IndexError" in capfd.readouterr().out
    assert b"" in read_corpus(tmp_path / "first")


def test_an_input_at_which_the_process_ends_is_a_finding(tmp_path, monkeypatch, capfd):
    def ends(command, check):
        file = command[command.index("--here") + 1]
        with open(file, "wb") as written:
            written.write(b"the last input")
        return type("Done", (), {"returncode": -signal.SIGSEGV})

    monkeypatch.setattr(fuzz_command.subprocess, "run", ends)
    assert main(["--target", "entry", "--corpora", str(tmp_path)]) == 1
    assert f"the process ended with {-signal.SIGSEGV}" in capfd.readouterr().out
    assert read_corpus(tmp_path / "entry") == [b"the last input"]


def test_a_target_that_is_not_there_is_refused():
    with pytest.raises(SystemExit):
        main(["--target", os.devnull])
