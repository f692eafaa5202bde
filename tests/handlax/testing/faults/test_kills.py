"""Processes are killed before each change of a file, and a program that fails by itself is told apart."""

import pytest

from handlax.testing.faults import kills


def test_each_process_gets_further_than_the_one_before(tmp_path):
    write = f"import pathlib\nfor i in range(2): pathlib.Path({str(tmp_path)!r}, str(i)).write_text('whole')"
    states = ["".join(sorted([file.read_text() for file in tmp_path.iterdir()])) for _ in kills(write, tmp_path)]
    assert states == ["", "whole", "whole", "wwhole"]  # before each file, and when the first one has 0 bytes and 1
    assert {file.read_text() for file in tmp_path.iterdir()} == {"whole"}


@pytest.mark.parametrize(("write", "atomic"), [
    ("path.write_text('new words')", False),
    ("path.with_name('next').write_text('new words'); os.replace(path.with_name('next'), path)", True),
], ids=["in place", "renamed"])
def test_a_write_that_is_not_atomic_is_seen(tmp_path, write, atomic):
    path = tmp_path / "entry"
    path.write_text("old")
    program = f"import os, pathlib\npath = pathlib.Path({str(path)!r})\n{write}"
    seen = {path.read_text() for _ in kills(program, tmp_path)}
    assert (seen <= {"old", "new words"}) == atomic and path.read_text() == "new words"


def test_a_program_that_changes_no_file_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="a fault must be possible"):
        list(kills("", tmp_path))


def test_a_program_that_is_killed_by_itself_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="must end by itself, got the status -9"):
        list(kills("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", tmp_path))


def test_a_program_that_fails_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        list(kills("1 / 0", tmp_path))
