"""Calls that nest deeper than Python's stack."""

import _thread
import gc
import queue
import signal
import sys
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from helpers.new_process import in_new_process

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base import deep_calls
from handlax.effects.base.deep_calls import on_deep_stack

DEEP = 2 * sys.getrecursionlimit()


def descend(n, end):
    return end() if n == 0 else 1 + on_deep_stack(descend, n - 1, end=end)


def test_a_call_nests_deeper_than_one_stack():
    with pytest.raises(RecursionError):
        (lambda f: f(f, DEEP))(lambda f, n: f(f, n - 1) if n else 0)
    assert descend(DEEP, lambda: 0) == DEEP


def test_a_call_that_is_not_deep_stays_on_its_stack():
    assert on_deep_stack(threading.get_ident) == threading.get_ident()
    threads = set()
    descend(DEEP, lambda: threads.add(threading.get_ident()) or 0)
    assert threads.isdisjoint({threading.get_ident()})


def test_an_error_arrives_at_the_caller():
    def fail():
        raise KeyError("deep down")

    with pytest.raises(KeyError, match="deep down"):
        descend(DEEP, fail)


def test_an_error_from_another_stack_holds_nothing_once_it_is_handled():
    class Held:
        pass

    def fail(held):
        raise KeyError

    gc.disable()
    try:
        held = Held()
        alive = weakref.ref(held)
        with suppress(KeyError):
            descend(DEEP, partial(fail, held))
        del held
        assert alive() is None
    finally:
        gc.enable()


def test_a_deep_call_has_the_configuration_of_its_caller():
    with hx.configure(default_float="float64"):
        seen = []
        descend(DEEP, lambda: seen.append(hnp.zeros(()).dtype) or 0)
    assert seen == ["float64"]


def nested(wrap, n):
    f = hnp.sin
    for _ in range(n):
        f = wrap(f)
    return f


@pytest.mark.parametrize("wrap", [
    lambda f: hx.jit(lambda x: f(x) * 1.5),
    lambda f: hx.checkpoint(lambda x: hnp.sin(f(x))),
    lambda f: lambda x: hx.lax.cond(x > 0, f, lambda y: y, x * 1.5),
], ids=["jit", "checkpoint", "cond"])
def test_a_thousand_nested_bodies_are_recorded_transformed_and_hashed(wrap):
    f = nested(wrap, 1000)
    program = hx.make_program(hx.vmap(f))(hnp.ones(2))
    assert hash(program) == hash(hx.make_program(hx.vmap(f))(hnp.ones(2)))


def test_the_gradient_of_nested_jitted_functions_is_recorded_printed_and_lowered():
    f = nested(lambda f: hx.jit(lambda x: f(x) * 1.001), 300)
    assert str(hx.make_program(hx.grad(f))(1.0)).count("call[") > 300
    assert hx.jit(hx.grad(f)).lower(1.0).as_text().count("func.func") > 300


@pytest.mark.parametrize("wrap", [
    hx.jit, hx.checkpoint, lambda f: hx.jit(hx.grad(f)), lambda f: hx.jit(hx.vmap(f, None, axis_size=2)),
], ids=["jit", "checkpoint", "grad", "vmap"])
def test_a_function_that_calls_itself_without_end_raises(wrap):
    again = wrap(lambda x: again(x))
    x = hnp.float32(1.0)
    with pytest.raises(RecursionError):
        again(x)
    assert hx.jit(lambda x: x + 1)(x) == 2.0


class Deadline(Exception):
    pass


def expire(*_):
    raise Deadline("0.1 s are over")


@contextmanager
def alarms(handle):
    """Answers SIGALRM by ``handle`` in the block, without the collector: what is raised in a finalizer is lost."""
    before = signal.signal(signal.SIGALRM, handle)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


def interrupted_deep(depth, end):
    """What ``end`` gives at this depth, interrupted 0.1 s after its start by a signal that raises ``Deadline``."""

    def interrupted_end():
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        return end()

    with alarms(expire):
        return descend(depth, interrupted_end)


@pytest.mark.parametrize("depth", [DEEP // 2, 2 * DEEP])
def test_an_exception_of_a_signal_is_raised_where_the_work_is_done(depth):
    done = []

    def work():
        for i in range(500):
            time.sleep(0.01)
            done.append(i)
        return 0

    with pytest.raises(Deadline, match=r"0\.1 s are over") as raised:
        interrupted_deep(depth, work)
    count = len(done)
    time.sleep(0.05)
    assert len(done) == count < 500
    assert raised.traceback[-1].name == "work"


def test_a_deep_call_may_catch_an_exception_of_a_signal():
    def work():
        try:
            for _ in range(500):
                time.sleep(0.01)
        except Deadline:
            return 1
        return 0

    assert interrupted_deep(DEEP, work) == DEEP + 1


def test_an_interrupted_deep_call_changes_no_state_afterwards():
    @hx.effect(vmap="per_lane", diff="stop")
    class Tick:
        def result_type(op):
            return None

    def work():
        for _ in range(300):
            time.sleep(0.01)
            hx.perform(Tick())
        return 0.0

    ignored = hx.handler({hx.operations.Sin: lambda op, x: x})
    nested = work
    for _ in range(200):
        nested = hx.handle(ignored)(nested)
    with hx.handle(hx.handler({Tick: lambda n, op: (n + 1, None)}), 0) as run:
        with pytest.raises(Deadline):
            interrupted_deep(0, nested)
        count = run.current
        time.sleep(0.05)
        assert run.current == count


def test_an_exception_of_a_signal_at_any_moment_arrives_once():
    fired, caught = [], []

    def fire(*_):
        fired.append(None)
        raise Deadline

    def around_the_start_and_the_end_of_a_thread(moment):
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + moment * 5e-6)
        (lambda f: f(f, sys.getrecursionlimit() - 300))(lambda f, n: f(f, n - 1) if n else on_deep_stack(sum, (1, 2)))
        for _ in range(10_000):  # a signal that another thread receives interrupts no sleep
            time.sleep(1e-3)
        raise AssertionError(f"moment {moment}: the exception of the signal is lost")

    with alarms(fire):
        for moment in range(300):
            try:
                around_the_start_and_the_end_of_a_thread(moment)
            except Deadline:
                caught.append(None)
    assert len(fired) == len(caught) == 300


def test_an_exception_of_a_signal_arrives_where_the_work_fails_at_that_time():
    """The work fails in C, before which it executes no further instruction of Python."""
    with pytest.raises(Deadline):
        interrupted_deep(DEEP, lambda: queue.SimpleQueue().get(timeout=0.5))


class DeadlineAtStart(RuntimeError):
    pass


class Signalling:
    """The module ``_thread``, except that a signal comes at the end of the start of a thread."""

    def __getattr__(self, name):
        return getattr(_thread, name)

    def start_new_thread(self, *arguments):
        started = _thread.start_new_thread(*arguments)
        signal.raise_signal(signal.SIGALRM)
        return started


def test_the_work_ends_before_an_error_of_a_signal_of_any_class_arrives(monkeypatch):
    done, running = [], threading.Event()

    def work():
        running.set()
        for i in range(50):
            time.sleep(0.01)
            done.append(i)
        return 0

    def expire_at_start(*_):
        running.wait(0.2)
        raise DeadlineAtStart

    monkeypatch.setattr(deep_calls, "_thread", Signalling())
    with alarms(expire_at_start), pytest.raises(DeadlineAtStart):
        descend(sys.getrecursionlimit() // 2, work)
    count = len(done)
    time.sleep(0.05)
    assert running.is_set() and len(done) == count < 50


def stubborn(done):
    """Work that goes on after the first exception of a signal."""
    for i in range(60):
        with suppress(Deadline):
            time.sleep(0.01)
        done.append(i)
    return 0


def test_a_signal_while_another_one_is_passed_on_leaves_no_work_behind(monkeypatch):
    done, sent = [], []

    def raise_in(thread, kind):
        original(thread, kind)
        sent.append(kind)
        if len(sent) == 1:
            signal.raise_signal(signal.SIGALRM)

    original = deep_calls.raise_in
    monkeypatch.setattr(deep_calls, "raise_in", raise_in)
    with suppress(Deadline):
        interrupted_deep(sys.getrecursionlimit() // 2, partial(stubborn, done))
    count = len(done)
    time.sleep(0.05)
    assert len(sent) >= 2 and len(done) == count


def test_the_handler_of_a_signal_that_comes_while_another_one_is_passed_on_may_call(monkeypatch):
    nested = []

    def raise_in(thread, kind):
        if not nested:
            nested.append(descend(DEEP, lambda: 0))  # as a signal handler would
        original(thread, kind)

    original = deep_calls.raise_in
    monkeypatch.setattr(deep_calls, "raise_in", raise_in)
    with pytest.raises(Deadline):
        interrupted_deep(DEEP, lambda: [time.sleep(0.01) for _ in range(500)] and 0)
    assert nested == [DEEP]


def test_an_error_at_the_beginning_of_a_thread_arrives(monkeypatch):
    class Full:
        depth, inner = 0, None

        def __setattr__(self, name, value):
            if name == "call":
                raise MemoryError
            object.__setattr__(self, name, value)

        @property
        def call(self):
            return self

    monkeypatch.setattr(deep_calls, "_THREAD", Full())
    with pytest.raises(MemoryError):
        descend(sys.getrecursionlimit() // 2, lambda: 0)


WITH_AN_AUDIT_HOOK = """
import faulthandler, gc, signal, sys, time
from handlax.effects.base import deep_calls
from handlax.effects.base.deep_calls import on_deep_stack

class Deadline(Exception):
    pass

def fire(*_):
    raise Deadline

def slow(event, arguments):
    for _ in range(30):
        pass

def deep(f, n):
    return f(f, n - 1) if n else on_deep_stack(sum, (1, 2))

sys.addaudithook(slow)
signal.signal(signal.SIGALRM, fire)
gc.disable()
faulthandler.dump_traceback_later(300, exit=True)
for moment in range(1500):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + moment % 300 * 5e-6)
        deep(deep, sys.getrecursionlimit() - 300)
        for _ in range(10_000):
            time.sleep(1e-3)
        raise AssertionError(f"moment {moment}: the exception of the signal is lost")
    except Deadline:
        pass
print("done")
"""


def test_an_exception_of_a_signal_before_there_is_a_thread_hangs_nothing():
    """An audit hook in Python is where it may arrive, in the middle of the start of a thread."""
    assert in_new_process(WITH_AN_AUDIT_HOOK) == "done"
