"""The file of outcomes, and what is said of them."""

from handlax.testing.mutants.outcomes import (
    KILLED,
    SURVIVED,
    TIMED_OUT,
    UNREACHED,
    AskedTests,
    Outcome,
    Outcomes,
    summary,
)


def outcome(key, verdict, test=""):
    return Outcome(key, "rules.py", 3, "sign", "x + y", "x - y", verdict, test, 2, 5, 0.25)


def test_outcomes_are_there_again_the_last_of_each_key(tmp_path):
    first = Outcomes(tmp_path / "results" / "outcomes.jsonl")
    for each in outcome("a", SURVIVED), outcome("b", KILLED, "test_rules.py::test_sum"), outcome("a", TIMED_OUT):
        first.add(each)
    again = Outcomes(first.path)
    assert again.by_key == first.by_key == {
        "a": outcome("a", TIMED_OUT), "b": outcome("b", KILLED, "test_rules.py::test_sum")}
    assert "a" in again
    assert "c" not in again


def test_a_last_line_that_was_cut_off_is_dropped(tmp_path):
    first = Outcomes(tmp_path / "outcomes.jsonl")
    first.add(outcome("a", SURVIVED))
    whole = first.path.read_text()
    for length in (1, len(whole) // 2, len(whole) - 1):
        first.path.write_text(whole + whole[:length])
        again = Outcomes(first.path)
        assert again.by_key == first.by_key and first.path.read_text() == whole
    again.add(outcome("b", KILLED))
    assert [*Outcomes(first.path).by_key] == ["a", "b"]


def test_what_no_test_has_seen_is_open():
    assert [outcome("a", verdict).is_open for verdict in (KILLED, TIMED_OUT, SURVIVED, UNREACHED)] == [
        False, False, True, True]


def test_an_outcome_holds_while_the_tests_that_it_depends_on_are_the_same(tmp_path):
    asked = lambda *names: AskedTests(tmp_path, names)
    for name in "test_a.py", "test_b.py":
        (tmp_path / name).write_text("")
    by_one, by_all = outcome("a", KILLED, "test_a.py::test"), outcome("b", SURVIVED)
    before = asked("test_a.py", "test_b.py")
    kept = [each._replace(state=before.state_for(each.test)) for each in (by_one, by_all)]
    holding = lambda tests: [*map(tests.hold, [*kept, by_one, by_all])]

    assert holding(before) == [True, True, True, True]
    assert holding(asked("test_a.py")) == [True, False, True, True]  # without a state an outcome holds
    (tmp_path / "test_b.py").write_text("x = 1")
    assert holding(asked("test_a.py", "test_b.py")) == [True, False, True, True]
    (tmp_path / "test_a.py").write_text("x = 1")
    assert holding(asked("test_a.py", "test_b.py")) == [False, False, True, True]
    (tmp_path / "test_a.py").unlink()
    assert holding(asked("test_b.py")) == [False, False, True, True]


def test_an_outcome_names_the_place_the_change_and_the_test():
    assert str(outcome("a", KILLED, "test_rules.py::test_sum")) == (
        "rules.py:3  sign  x + y  ->  x - y  killed by test_rules.py::test_sum (0.2 s)")
    assert str(outcome("a", SURVIVED)) == "rules.py:3  sign  x + y  ->  x - y  survived, 2 of 5 tests (0.2 s)"


def test_the_summary_has_the_open_ones_and_all_numbers():
    lines = summary([outcome("a", KILLED), outcome("b", SURVIVED), outcome("c", TIMED_OUT)]).splitlines()
    assert lines == [str(outcome("b", SURVIVED)), "3 mutants: 1 killed, 1 timed out, 1 survived, 0 unreached"]
