"""The law of fuzzing: each part of it is broken by some function, and found."""

import itertools
import re
import signal
import time
import tracemalloc
from contextlib import suppress

import pytest
from helpers.other_threads import in_thread

import handlax as hx
from handlax.effects.base.wrapping import context_variable
from handlax.testing.fuzzing import OverTime, Target, check_input, fuzz_targets

VARIABLE = context_variable("test_fuzz_targets", 0)


class WithoutLines(hx.errors.HandlaxError):
    def __str__(self):
        return "a single line"


def refusing(data):
    raise hx.errors.BadArgument("a rule must hold, got another.")


def without_lines(data):
    raise WithoutLines("a rule")


def leaving(data):
    VARIABLE.set(VARIABLE.get() + 1)


CALLS = itertools.count()


def changing(data):
    return refusing(data) if next(CALLS) % 2 else None


def growing(data):
    return len(b"x" * (300 << 20))


def slow(data):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.01)


def catching(data):
    try:
        slow(data)
    except Exception:
        slow(data)


def catching_once(data):
    """As a finalizer does, whose errors nobody catches."""
    with suppress(BaseException):
        slow(data)
    slow(data)


@pytest.mark.parametrize(("run", "error", "said"), [
    (lambda data: data[3], IndexError, "out of range"),
    (lambda data: data > [], TypeError, "not supported"),
    (without_lines, AssertionError, "an error must have its lines, got a single line"),
    (leaving, AssertionError, "an input: the library must be left whole, changed:\n  the context test_fuzz_targets"),
    (changing, AssertionError, "the second time must be as the first, got BadArgument after a result"),
    (growing, AssertionError, r"an input may take 100 MB, got [23]..\b"),
    (slow, OverTime, "0.3 s"),
    (catching, OverTime, "0.3 s"),
    (catching_once, OverTime, "0.3 s"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_what_breaks_the_law_is_found(run, error, said):
    with pytest.raises(error) as raised:
        check_input(Target("broken", run, seconds=0.3 if error is OverTime else 30, megabytes=100), b"")
    assert re.search(said, str(raised.value))


def test_memory_that_is_taken_a_second_time_is_counted_again():
    growing(b"")
    with pytest.raises(AssertionError, match=r"an input may take 100 MB, got [23]..\b"):
        check_input(Target("growing", growing, seconds=60, megabytes=100), b"")


def test_memory_is_counted_where_the_system_does_not_count_it_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_targets, "_OWN", tmp_path / "nowhere")
    with pytest.raises(AssertionError, match=r"an input may take 100 MB, got [23]..\b"):
        check_input(Target("growing", growing, seconds=60, megabytes=100), b"")
    assert check_input(Target("giving", len), b"") == "a result" and not tracemalloc.is_tracing()


def test_an_alarm_that_was_set_before_goes_on():
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append("alarm"))
    try:
        signal.setitimer(signal.ITIMER_REAL, 100.0, 7.0)
        assert check_input(Target("giving", len), b"") == "a result"
        left, interval = signal.setitimer(signal.ITIMER_REAL, 0.001, 7.0)
        assert 0 < left < 100 and interval == 7.0
        check_input(Target("waiting", lambda data: time.sleep(0.01)), b"")
        end = time.monotonic() + 60
        while not heard and time.monotonic() < end:
            time.sleep(0.01)
        assert heard
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_an_input_is_refused():
    with pytest.raises(hx.errors.BadCall, match="must be tried in the main thread, got 'Thread-"):
        in_thread(check_input, Target("giving", len), b"")


def test_errors_of_the_package_and_those_that_are_named_are_outcomes():
    assert check_input(Target("refusing", refusing), b"") == "BadArgument"
    dividing = Target("dividing", lambda data: 1 / 0, refusals=(ZeroDivisionError,))
    assert check_input(dividing, b"") == "ZeroDivisionError"
    assert check_input(Target("giving", len), b"") == "a result"
