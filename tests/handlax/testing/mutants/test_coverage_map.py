"""Which test files are executed for their lines, and which tests reach a mutant."""

import pytest

from handlax.testing.mutants.coverage_map import CoverageMap
from handlax.testing.mutants.fork_server import FinishedTests
from handlax.testing.mutants.mutable_code import Mutant

FOREVER = float("inf")


class Recorded:
    """A server that knows what pytest would report, and counts what it is asked for."""

    def __init__(self, root, **report):
        lines = [[str((root / "rules.py").resolve()), f"{1 << line:x}"] for line in range(4)]
        self.report = {"collecting": 1.0, "ended": False, "failed": [], "footprints": lines, **report}
        self.asked = 0

    def lines(self, test_file, sources, seconds):
        self.asked += 1
        tests = {f"{test_file}::{line}": [0.5 * line, [line]] for line in (3, 2)}
        return FinishedTests(0, {"tests": tests, **self.report}, "the output of pytest")


@pytest.fixture
def root(tmp_path):
    for name in "rules.py", "test_all.py", "test_rules.py":
        (tmp_path / name).write_text("")
    return tmp_path


def collected(root, server, seconds=1.0, deadline=FOREVER):
    said = []
    coverage = CoverageMap(root, root / "kept")
    done = coverage.collect(server, ["test_all.py", "test_rules.py"], ["rules.py"], seconds, deadline, said.append)
    return coverage, done, said


def test_lines_are_kept_until_the_test_file_changes(root):
    server = Recorded(root)
    assert collected(root, server)[1:] == (
        True, ["[1/2] lines of test_all.py: 2 tests", "[2/2] lines of test_rules.py: 2 tests"])
    (root / "rules.py").write_text("x = 1")
    assert collected(root, server)[1:] == (True, [])
    (root / "test_all.py").write_text("x = 1")
    assert collected(root, server)[2] == ["[1/2] lines of test_all.py: 2 tests"]
    assert server.asked == 3


def test_what_was_ended_is_executed_again_for_more_seconds(root):
    server = Recorded(root, ended=True)
    assert collected(root, server)[2][0] == "[1/2] lines of test_all.py: 2 tests, the others are not begun in time"
    for seconds, asked in ((0.5, 2), (2.0, 4)):
        collected(root, server, seconds)
        assert server.asked == asked


def test_what_failed_is_said_in_each_run_and_executed_again_when_a_source_changes(root):
    server = Recorded(root, failed=["test_all.py::0"])
    said, left_out = collected(root, server)[2], "without any mutant these fail, and are left out: test_all.py::0"
    assert said[1:3] == ["the output of pytest", left_out]
    assert collected(root, server)[2] == [left_out] * 2  # of each test file
    (root / "rules.py").write_text("x = 1")
    collected(root, server)
    assert server.asked == 4


class Killed(Recorded):
    """A server whose runs do not end in time."""

    def lines(self, test_file, sources, seconds):
        super().lines(test_file, sources, seconds)
        return FinishedTests(None, {}, "")


def test_a_run_that_is_killed_is_not_kept(root):
    killed = Killed(root)
    coverage, _, said = collected(root, killed)
    assert coverage.is_empty() and said[0].startswith("[1/2] lines of test_all.py: 0 tests")
    assert not collected(root, Recorded(root))[0].is_empty()


def test_an_entry_that_was_cut_off_is_written_again(root):
    server = Recorded(root)
    collected(root, server)
    for kept in (root / "kept").iterdir():
        kept.write_text(kept.read_text()[:-1])
    coverage, *_ = collected(root, server)
    assert server.asked == 4 and not coverage.is_empty()


def test_after_the_deadline_none_is_begun(root):
    server = Recorded(root)
    assert not collected(root, server, deadline=0.0)[1]
    assert server.asked == 0


def reaching(coverage, *reach):
    found = coverage.covering(Mutant("key", "rules.py", 2, "sign", 0, reach), 60.0)
    return [(each.file, list(each.tests), each.seconds) for each in found]


def test_tests_that_execute_a_line_reach_it_first_those_named_after_the_file(root):
    coverage, *_ = collected(root, Recorded(root))
    assert reaching(coverage, 1 << 2) == [
        ("test_rules.py", ["test_rules.py::2"], 2.0), ("test_all.py", ["test_all.py::2"], 2.0)]
    assert reaching(coverage, 1 << 1) == []
    assert reaching(coverage, 1 << 1, 1 << 1 | 1 << 3)[1] == ("test_all.py", ["test_all.py::3"], 2.5)
    assert reaching(coverage, -1)[1] == ("test_all.py", ["test_all.py::2", "test_all.py::3"], 3.5)


def test_in_a_file_that_has_changed_every_line_may_be_the_one(root):
    coverage, *_ = collected(root, Recorded(root))
    (root / "rules.py").write_text("x = 1")
    assert reaching(coverage, 1 << 1)[1] == ("test_all.py", ["test_all.py::2", "test_all.py::3"], 3.5)
