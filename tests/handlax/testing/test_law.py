"""The runner of laws: examples and seconds, what is left out, the error of a law that fails."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

import handlax as hx
from handlax.testing import Inapplicable, Law, LawFails, check_laws, reduced


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


@pytest.mark.parametrize("examples", [0, -1])
def test_a_law_that_holds_was_checked_once_at_least(examples):
    with pytest.raises(LawFails):
        check_laws("numbers", [SMALL], lambda law, k: (9,), examples=examples, seconds=0.0)
    (held,) = check_laws("numbers", [EQUAL], lambda law, k: (k,), examples=examples).held
    assert held.examples == 1


def test_laws_may_be_an_iterator_and_there_must_be_one():
    with pytest.raises(LawFails):
        check_laws("numbers", iter([SMALL]), lambda law, k: (9,))
    with pytest.raises(hx.errors.BadArgument, match="numbers: there must be a law to check, got none"):
        check_laws("numbers", iter(()), lambda law, k: (k,))


def test_a_law_that_applies_to_no_example_is_left_out_with_the_reason():
    def odd(n):
        if n % 2 == 0:
            raise Inapplicable("there is no odd number")

    law = Law("odd", "odd numbers are odd", odd)
    report = check_laws("numbers", [law], lambda law, k: (0,), examples=3)
    assert report.held == () and report.left_out == {"odd": "there is no odd number"}
    (held,) = check_laws("numbers", [law], lambda law, k: (k,), examples=4, seed=1).held
    assert held.examples == 2


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


def test_a_reduced_example_fails_in_the_same_way():
    """Not in another one that has the same exception."""

    def check(n):
        assert n >= 10, f"{n} is too small"
        assert n <= 30, f"{n} is too large, it is {n}"

    reduce = partial(reduced, smaller=lambda example: [(n,) for n in range(example[0])])
    with pytest.raises(LawFails, match="31 is too large, it is 31"):
        check_laws("numbers", [Law("small", "numbers are small", check)], lambda law, k: (99,), reduce=reduce)


def test_a_value_is_reduced_as_long_as_there_is_time():
    smaller = lambda n: [n - 1] if n else []
    assert reduced(9, lambda n: n > 3, smaller) == 4
    assert reduced(9, lambda n: n > 3, smaller, seconds=0.0) == 9
