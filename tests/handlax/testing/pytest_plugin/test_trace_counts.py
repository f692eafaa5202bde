"""What is traced and compiled is counted, and told with what changed from call to call."""

import logging

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.testing.pytest_plugin.trace_counts import counted, over_limits


def fresh(factor):
    """A jitted function of a program that no other test compiles."""
    @hx.jit
    def scale(x):
        return x * factor

    return scale


def test_a_function_is_traced_and_compiled_at_its_first_call_alone():
    f = fresh(0.12301)
    first, second = counted(lambda: f(1.0)), counted(lambda: f(2.0))
    assert (first.traced, first.compiled, first.traces, first.compiles) == (["jit(scale)"], ["jit(scale)"], 1, 1)
    assert (second.traces, second.compiles) == (0, 0)


def test_an_equal_program_is_traced_again_and_not_compiled():
    count = counted(lambda: [fresh(0.12302)(1.0) for _ in range(3)])
    assert (count.traces, count.compiles) == (3, 1)


def test_the_message_says_what_is_compiled_anew_and_what_changed():
    f = fresh(0.12303)
    message = over_limits(counted(lambda: [f(hnp.ones(n)) for n in (1, 2, 3)]), 2, 1)
    assert message.startswith("at most 2 traces must be made, got 3; at most 1 compilations must be made, got 3.")
    assert "traced jit(scale) 3 times" in message.replace(":", "")
    assert "jit(scale) at test_trace_counts.py:" in message and "hint" not in message
    assert ", kind 2: x: f32[2] (x: shape from (1,) to (2,))" in message


def test_the_message_names_a_function_that_is_made_anew():
    message = over_limits(counted(lambda: [fresh(0.12304)(1.0) for _ in range(3)]), 1, None)
    assert "hint: define jit(scale) at test_trace_counts.py:" in message and " once: " in message


def test_functions_of_one_name_are_not_made_anew():
    one = hx.jit(lambda x: x * 0.12307)
    other = hx.jit(lambda x: x + 0.12307)
    message = over_limits(counted(lambda: (one(1.0), other(1.0))), 1, None)
    assert "at most 1 traces" in message and "hint" not in message


def test_within_limits_there_is_no_message():
    assert over_limits(counted(lambda: fresh(0.12305)(1.0)), 1, 1) == ""


@pytest.mark.parametrize("wanted", [True, False])
def test_the_log_has_what_the_settings_ask_for(wanted, caplog):
    with caplog.at_level(logging.WARNING, "handlax"), hx.explain_cache_misses(wanted):
        count = counted(lambda: fresh(0.12306 + wanted)(1.0))
    assert len(count.reasons) == 1 and bool(caplog.records) == wanted
