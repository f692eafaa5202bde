"""The runner of laws: examples and seconds, what is left out, the error of a law that fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from handlax.testing import Law, LawFails, check_laws


def refuse(n):
    if n >= 3:
        raise AssertionError(f"{n} is not small")


SMALL = Law("small", "numbers are small", refuse)
EQUAL = Law("equal", "numbers are equal", lambda n: None, ("numbers",))


def test_laws_are_checked_in_turn_and_counted():
    report = check_laws("numbers", [SMALL, EQUAL], lambda law, k: (k,), examples=3)
    assert [(law.name, examples) for law, examples, _ in report.held] == [("small", 3), ("equal", 3)]
    assert str(report).splitlines()[0] == "numbers: laws that hold: 2"


def test_each_law_is_checked_once_where_there_is_no_time():
    report = check_laws("numbers", [SMALL, EQUAL], lambda law, k: (k,), examples=100, seconds=0.0)
    assert [examples for _, examples, _ in report.held] == [1, 1]


def test_a_law_whose_need_is_missing_is_left_out_with_the_reason():
    report = check_laws("numbers", [SMALL, EQUAL], lambda law, k: (k,), examples=1, lacks={"numbers": "there are none"})
    assert report.left_out == {"equal": "there are none"} and "there are none" in str(report)


def test_a_law_that_fails_says_what_and_with_which_seed_and_has_the_reduced_example():
    smaller = lambda example, fails: next(one for one in [(n,) for n in range(100)] if fails(one))
    with pytest.raises(LawFails) as caught:
        check_laws("numbers", [SMALL], lambda law, k: (10 * k,), seed=1, reduce=smaller)
    error = caught.value
    assert str(error) == "numbers: it is not so that numbers are small.\n  3 is not small\nFound with seed=1."
    assert error.example == (3,)
    with pytest.raises(AssertionError, match="3 is not small"):
        error.law.check(*error.example)


def test_an_exception_of_another_kind_fails_too_and_programs_are_shown():
    program = SimpleNamespace(source="def f(x):\n\n    return x\n")
    with pytest.raises(LawFails, match="ZeroDivisionError") as caught:
        check_laws("numbers", [Law("one", "one is one", lambda program: 1 // 0)], lambda law, k: (program,))
    assert "def f(x):\n    return x\n" in str(caught.value)
