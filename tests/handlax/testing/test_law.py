"""The runner of laws: examples and seconds, what is left out, the error of a law that fails."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

import handlax as hx
from handlax.testing import Inapplicable, Law, LawFails, check_laws, law, reduced
from handlax.testing.generator.reducing import OutOfTime


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


def failing_times(**times):
    """The law that a number fails as often as ``times`` says of it, and any other one never."""
    left = {int(name[1:]): count for name, count in times.items()}

    def check(n):
        left[n] = left.get(n, 0) - 1
        assert left[n] < 0, f"{n} fails"

    return Law("flaky", "numbers hold", check)


def test_what_is_reported_fails_when_it_is_tried_again():
    """Else it is not the reduced example, or the message says that it held."""
    reduce = partial(reduced, smaller=lambda example: [(example[0] - 1,)] if example[0] else [])
    with pytest.raises(LawFails, match="9 fails") as caught:
        check_laws("numbers", [failing_times(n9=9, n8=1)], lambda law, k: (9,), reduce=reduce)
    assert caught.value.example == (9,) and "held" not in str(caught.value)
    with pytest.raises(LawFails, match="9 fails\nIt held when it was tried again: something else than") as caught:
        check_laws("numbers", [failing_times(n9=1)], lambda law, k: (9,), reduce=reduce)
    assert caught.value.example == (9,)


def fewer(example):
    return [(n,) for n in range(example[0] - 1, -1, -1)]


def test_a_value_is_reduced_as_long_as_there_is_time():
    tried = []

    def fails(n):
        tried.append(n)
        if len(tried) > 3:
            raise OutOfTime
        return n > 3

    smaller = lambda n: [n - 1] if n else []
    assert reduced(9, lambda n: n > 3, smaller) == 4
    assert reduced(9, fails, smaller) == 6


@pytest.mark.parametrize(("seconds", "smallest", "over"), [(10.0, 3, False), (0.0, 9, True)])
def test_a_law_that_fails_says_that_the_time_was_over_while_its_example_was_reduced(seconds, smallest, over):
    reduce = partial(reduced, smaller=fewer)
    with pytest.raises(LawFails) as caught:
        check_laws("numbers", [SMALL], lambda law, k: (9,), seconds=seconds, reduce=reduce)
    assert caught.value.example == (smallest,)
    assert ("The time was over while this was made smaller; seconds= gives more." in str(caught.value)) == over


@pytest.fixture
def clock(monkeypatch):
    """The time of a check, in seconds."""
    seconds = [0.0]
    monkeypatch.setattr(law, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    return seconds


def test_examples_in_place_of_those_that_do_not_apply_are_tried_in_time(clock):
    def first(n):
        clock[0] += 1.0
        if n:
            raise Inapplicable("it is not the first")

    check_laws("numbers", [Law("first", "the first is", first)], lambda law, k: (k,), seconds=4.0)
    assert clock[0] == 4.0


def test_an_example_is_reduced_within_the_seconds(clock):
    def slowly(n):
        clock[0] += 1.0
        refuse(n)

    reduce = partial(reduced, smaller=fewer)
    with pytest.raises(LawFails):
        check_laws("numbers", [Law("small", "it is", slowly)], lambda law, k: (99,), seconds=8.0, reduce=reduce)
    assert clock[0] == 8.0 + 1.0  # how the smallest one fails


def test_a_quarter_of_the_seconds_is_kept_for_an_example_that_is_found_late(clock):
    def slowly(n):
        clock[0] += 1.0 if clock[0] else 10.0
        refuse(n)

    reduce = partial(reduced, smaller=lambda example: [(example[0] - 1,)])
    with pytest.raises(LawFails) as caught:
        check_laws("numbers", [Law("small", "it is", slowly)], lambda law, k: (99,), seconds=8.0, reduce=reduce)
    assert caught.value.example == (97,) and clock[0] == 10.0 + 2.0 + 1.0
