"""Processes are killed before each change of a file, and a program that fails by itself is told apart."""

import pytest

from handlax.testing.faults import kills


def test_each_process_gets_further_than_the_one_before(tmp_path):
    write = f"import pathlib\nfor i in range(2): pathlib.Path({str(tmp_path)!r}, str(i)).write_text('whole')"
    assert [len([*tmp_path.iterdir()]) for _ in kills(write, tmp_path)] == [0, 1]
    assert {file.read_text() for file in tmp_path.iterdir()} == {"whole"}


def test_a_program_that_changes_no_file_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="a fault must be possible"):
        list(kills("", tmp_path))


def test_a_program_that_is_killed_by_itself_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="must end by itself, got the status -9"):
        list(kills("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", tmp_path))


def test_a_program_that_fails_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        list(kills("1 / 0", tmp_path))
