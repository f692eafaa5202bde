"""The command, from the start to the summary, on a small module with a test file."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from helpers.other_threads import OtherThread

import handlax as hx
from handlax.testing.mutants.coverage_map import CoveringTests, fastest
from handlax.testing.mutants.fork_server import FinishedTests, ForkServer
from handlax.testing.mutants.mutable_code import Mutant
from handlax.testing.mutants.mutation_run import Trials, batches, command, drawn, files_of, main
from handlax.testing.mutants.outcomes import AskedTests

FOREVER = float("inf")

RULES = '''
"""A small module."""

SCALE = 2


def slope(x, dx):
    if x is None:
        raise ValueError("no x: " + "x")
    return SCALE * dx


def unseen(x):
    return -x


def spin(n):
    while n:
        n -= 1
    return n
'''
TESTS = '''
import os

import pytest
import rules


def test_slope():
    assert rules.slope(3.0, 0.5) == 1.0


def test_spin():
    assert rules.spin(3) == 0


def test_that_passes_once():
    """A test that fails whenever it is run again kills nothing."""
    assert rules.slope(1.0, 0.0) == 0.0
    assert not os.path.exists("executed")
    open("executed", "w").close()
'''


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    """A folder with a module and its tests, and the command executed there, without the plug-ins of all packages."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "test_rules.py").write_text(TESTS)

    def execute(*words):
        status = main(["rules.py", "--tests", "test_rules.py", "--patience", "1", "--seconds", "30", *words], tmp_path)
        return status, capsys.readouterr().out.splitlines()

    return tmp_path, execute


def outcomes(folder):
    lines = (folder / ".mutants" / "results.jsonl").read_text().splitlines()
    return {(each["kind"], each["after"]): each for each in map(json.loads, lines)}


def test_mutants_of_a_module_are_killed_or_survive(project):
    folder, execute = project
    before = (folder / "rules.py").read_text()
    status, said = execute()
    found = outcomes(folder)
    verdict = lambda kind, after: found[kind, after]["verdict"]

    assert status == 1
    assert verdict("factor", "return dx") == "killed"
    assert found["factor", "return dx"]["test"] == "test_rules.py::test_slope"
    assert verdict("constant", "SCALE = 3") == "killed"            # executed by the import
    assert verdict("guard", "pass") == "survived"                  # no test passes None
    assert verdict("sign", "return x") == "unreached"
    assert verdict("statement", "pass") == "timed out"             # n -= 1
    assert said[-1].startswith(f"{len(found)} mutants: ")
    assert (folder / "rules.py").read_text() == before
    assert not list(folder.glob(".pytest_cache")) + list(folder.glob(".hypothesis"))

    # nothing is executed once more but what a change of the tests concerns: with a further file, what none has killed
    assert execute() == (1, [line for line in said if not line.startswith("[")])
    guard = folder / "test_guard.py"
    guard.write_text("import pytest, rules\n\ndef test():\n    with pytest.raises(ValueError): rules.slope(None, 0)\n")
    both = "--tests", "test_rules.py", "test_guard.py"
    executed = lambda: [line for line in execute(*both)[1] if re.match(r"\[.* left\]", line)]
    assert len(executed()) == len([each for each in found.values() if each["verdict"] != "killed"])
    assert outcomes(folder)["guard", "pass"]["test"] == "test_guard.py::test"
    guard.write_text("import rules\n\ndef test():\n    rules.slope(1, 0)\n")
    assert any("survived" in line and "guard" in line for line in executed())
    assert executed() == []


def test_mutants_are_only_listed(project):
    folder, execute = project
    status, said = execute("--list", "--count", "3")
    assert (status, len(said)) == (0, 3)
    assert all(line.startswith("rules.py:") for line in said)
    assert not (folder / ".mutants").exists()


def test_a_run_ends_in_time_and_goes_on(project):
    folder, execute = project
    nothing = "0 mutants: 0 killed, 0 timed out, 0 survived, 0 unreached"
    _, said = execute("--minutes", "0")
    assert said == ["the time is over: the next call goes on to find out which tests execute which lines", nothing]
    _, said = execute("--count", "0")
    assert said == ["[1/1] lines of test_rules.py: 3 tests", nothing]
    _, said = execute("--count", "2", "--minutes", "0")
    assert said == ["the time is over: 2 are left, and begun by the next call", nothing]
    assert not (folder / ".mutants" / "results.jsonl").exists()


class Slow:
    """A server whose tests take so many seconds without a mutant, and with one ``more``."""

    def __init__(self, seconds, more=0.0):
        self.seconds, self.more, self.limits = seconds, more, []

    def tests(self, path, change, tests, timeout):
        self.limits.append(timeout)
        in_time = self.seconds + (self.more if change else 0) <= timeout
        return FinishedTests(0 if in_time else None, {"failed": "", "run": 1} if in_time else {}, "")


@pytest.mark.parametrize(("server", "verdict", "limits"), [
    (Slow(5.0), "survived", [6.0]),
    (Slow(20.0), "survived", [6.0, 6.0, 12.0, 12.0, 24.0]),
    (Slow(5.0, more=FOREVER), "timed out", [6.0, 6.0]),
    (Slow(10.0, more=FOREVER), "timed out", [6.0, 6.0, 12.0, 12.0]),
    (Slow(FOREVER), "timed out", [limit for n in range(7) for limit in [6.0 * 2**n] * 2]),
])
def test_a_mutant_times_out_where_its_tests_do_not_without_it(server, verdict, limits):
    trials = Trials(AskedTests(Path(), []), server, None, budget=60.0, patience=1.0)
    assert trials.verdict(named("rules.py")[0], object(), [CoveringTests("test_rules.py", ["t"], 1.0)])[0] == verdict
    assert server.limits == limits


RUNS_ON = """
import os, pathlib, time

def test_that_runs_on():
    pathlib.Path("process").write_text(f"{os.getpid()} ")
    time.sleep(300)
"""


@pytest.fixture
def heard_interrupts():
    """Children hear Control-C, which those of a shell's background jobs ignore, as these do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard_interrupts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_tests_that_run(number, tmp_path):
    process = tmp_path / "process"
    (tmp_path / "test_it.py").write_text(RUNS_ON)
    with ForkServer(tmp_path) as server:
        run, end = OtherThread(server.lines, "test_it.py", [], 100.0), time.monotonic() + 100
        while not (process.exists() and process.read_text().endswith(" ")) and time.monotonic() < end:
            time.sleep(0.02)
        server.process.send_signal(number)
        with pytest.raises(json.JSONDecodeError):
            run.result()
    with pytest.raises(ProcessLookupError):
        os.kill(int(process.read_text()), 0)


def named(*paths):
    return [Mutant(f"{path}{i}", path, i, "sign", i, (-1,)) for path in paths for i in range(4)]


def test_each_outermost_folder_has_its_turn():
    few = drawn(named("a/b.py", "a/c.py", "d/e.py"), 4, seed=0)
    assert sorted(mutant.path[0] for mutant in few) == ["a", "a", "d", "d"]


def test_a_draw_is_the_same_again_and_keeps_most_after_a_change():
    found = named("a/b.py", "d/e.py")
    assert drawn(found, 5, seed=1) == drawn(found[::-1], 5, seed=1) != drawn(found, 5, seed=2)
    others = drawn([*found, *named("a/f.py")[:1]], 5, seed=1)
    assert len({*others} & {*drawn(found, 5, seed=1)}) >= 4


def test_batches_double_until_the_budget_is_spent():
    tests = [CoveringTests(f"test_{i}.py", ["t"], 2.0) for i in range(20)]
    assert [len(batch) for batch in batches(tests, 1000.0)] == [2, 4, 8, 6]
    assert [len(batch) for batch in batches(tests, 10.0)] == [2, 4]
    assert [len(batch) for batch in batches([CoveringTests("a", ["t"], 50.0)], 1.0)] == [1]


def test_of_a_file_the_fastest_tests_are_taken():
    tests = [(0.1, "a"), (0.2, "b"), (5.0, "c")]
    assert fastest("file", tests, 0.5, 1.0) == CoveringTests("file", ["a", "b"], 0.8)
    assert fastest("file", tests[2:], 0.5, 1.0) == CoveringTests("file", ["c"], 5.5)


def test_a_module_is_named_by_its_file_its_folder_or_its_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "folder_of_rules").mkdir()
    (tmp_path / "folder_of_rules" / "rules.py").touch()
    for word in "folder_of_rules", "folder_of_rules/rules.py", "folder_of_rules.rules":
        assert files_of(tmp_path, word) == ["folder_of_rules/rules.py"]


@pytest.mark.parametrize("word", ["missing.py", "missing", "numpy", "../"])
def test_a_word_that_names_nothing_below_the_folder_is_refused(tmp_path, word):
    (tmp_path / "below").mkdir()
    (tmp_path / "rules.py").touch()
    with pytest.raises(hx.errors.BadArgument, match="is no file, folder or module below"):
        files_of(tmp_path / "below", word)


def test_the_command_says_which_word_names_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").touch()
    for words, wrong in (["missing.py"], "'missing.py'"), (["rules.py"], "'tests'"):
        assert command(words) == 2
        said = capsys.readouterr().err
        assert wrong in said and "hint: " in said and len(said.splitlines()) == 2
