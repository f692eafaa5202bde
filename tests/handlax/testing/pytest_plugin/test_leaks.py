"""What a block leaves in force or in memory is told, and put back."""

import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.stack import STACK
from handlax.testing.pytest_plugin.leaks import (
    files_are_removed,
    state_is_kept,
    threads_have_ended,
    values_are_freed,
)

KEPT = []
DOUBLE = hx.handler({hx.operations.Sin: lambda op, x: x * 2})


def left(check, f):
    """The messages about what ``f`` leaves behind."""
    found = []
    with check(found):
        f()
    return found


def trace_and_keep():
    hx.jit(lambda x: KEPT.append(x * 2) or x)(1.0)


def keep_in_a_cycle():
    box = []
    hx.jit(lambda x: box.append(x) or x)(1.0)
    box.append(box)


def start(until):
    threading.Thread(target=until.wait, name="waits for the end").start()


def enter(block):
    """Enter a block that is never left: a block that is freed is left."""
    KEPT.append(block)
    return block.__enter__


@pytest.mark.parametrize(("leak", "said"), [
    (enter(hx.handle(DOUBLE)), "handler(Sin) must not be left in force, installed at test_leaks.py:"),
    (enter(hx.configure(debug_nans=True)), "the setting debug_nans must be left at False, got True"),
    (lambda: hx.config.update("debug_nans", True), "the setting debug_nans must be left at False, got True"),
    (enter(hx.configure(debug_nans=False)), "a block of hx.configure must end with the test"),
    (lambda: hx.set_mesh(hx.make_mesh((1,), ("d",))), "the setting mesh must be left at None"),
    (enter(hx.named_scope("layer")), "must not be left in force"),
], ids=["handler", "setting", "setting of the process", "block", "mesh", "scope"])
def test_what_is_left_in_force_is_told_and_put_back(leak, said):
    stack, settings = STACK.get(), hx.config.debug_nans
    message = left(state_is_kept, leak)[0]
    assert said in message
    assert STACK.get() is stack and hx.config.debug_nans is settings and not left(state_is_kept, lambda: None)


def test_a_handler_that_is_taken_away_is_told_and_put_back():
    with hx.handle(DOUBLE):
        stack = STACK.get()
        (message,) = left(state_is_kept, lambda: STACK.set(stack.outer))
        assert "must still be in force" in message and STACK.get() is stack


def test_blocks_that_end_leave_nothing():
    def in_blocks():
        with hx.configure(debug_nans=True), hx.handle(DOUBLE), hx.named_scope("layer"):
            hx.jit(hx.grad(lambda x: hnp.sin(x)))(1.0)

    with ExitStack() as stack:
        found = []
        for check in (files_are_removed, threads_have_ended, values_are_freed, state_is_kept):
            stack.enter_context(check(found))
        in_blocks()
    assert not found


def test_an_exception_leaves_the_state_as_it_was_and_says_nothing():
    def fail():
        enter(hx.handle(DOUBLE))()
        raise ZeroDivisionError

    found, stack = [], STACK.get()
    with pytest.raises(ZeroDivisionError), values_are_freed(found), state_is_kept(found):
        fail()
    assert not found and STACK.get() is stack


@pytest.mark.parametrize("transform", [hx.jit, hx.grad, hx.vmap, hx.make_program, hx.checkpoint])
def test_a_value_of_a_trace_that_is_kept_is_told_once(transform):
    argument = hnp.ones(3) if transform is hx.vmap else 1.0
    (message, *_) = left(values_are_freed, lambda: transform(lambda x: KEPT.append(x * 2.0) or x * 1.0)(argument))
    assert "no value of a trace may outlive it, got f32[]" in message
    assert not left(values_are_freed, lambda: None)
    KEPT.clear()


def test_the_line_at_which_a_kept_value_was_made_is_told():
    assert "made at test_leaks.py:" in left(values_are_freed, trace_and_keep)[0]
    KEPT.clear()


def test_what_garbage_refers_to_is_not_kept():
    assert not left(values_are_freed, keep_in_a_cycle)


def test_a_thread_that_goes_on_is_told(monkeypatch):
    monkeypatch.setattr("handlax.testing.pytest_plugin.leaks.PATIENCE", 0.01)
    until = threading.Event()
    assert "'waits for the end'" in left(threads_have_ended, lambda: start(until))[0]
    until.set()
    assert not left(threads_have_ended, lambda: start(until))


def test_a_temporary_file_that_stays_is_told_and_removed():
    made = []
    (message,) = left(files_are_removed, lambda: made.append(tempfile.mkdtemp(prefix="logs")))
    assert "got 'logs" in message and not Path(made[0]).exists()
    assert not left(files_are_removed, lambda: tempfile.TemporaryDirectory().cleanup())
