"""What a call leaves in force, in memory or on disk is told, each kind of it, and put back."""

import _thread
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.config import PROCESS
from handlax.effects.base.stack import STACK
from handlax.effects.base.wrapping import context_variable
from handlax.lowering.compile.executable_cache import ExecutableCache
from handlax.testing.faults import IN_FORCE, Before, left_behind
from handlax.testing.faults.left_behind import (
    children,
    contexts,
    open_files,
    settings,
    temporary_files,
    threads,
    traced_values,
    tracers,
)

KEPT = []
DOUBLE = hx.handler({hx.operations.Sin: lambda op, x: x * 2})
VARIABLE = context_variable("test_left_behind", 0)
CACHE = next(cache for cache in left_behind.CACHES if isinstance(cache, ExecutableCache))


def left(f, *kinds):
    """The messages about what ``f`` leaves behind."""
    before = Before(*kinds)
    f()
    return before.changes()


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
    (enter(hx.handle(DOUBLE)), "handler(Sin) must not be left in force, installed at test_left_behind.py:"),
    (enter(hx.configure(debug_nans=True)), "the setting debug_nans must be left at False, got True"),
    (lambda: hx.config.update("debug_nans", True), "the setting debug_nans must be left at False, got True"),
    (enter(hx.configure(debug_nans=False)), "a block of hx.configure must end"),
    (lambda: hx.set_mesh(hx.make_mesh((1,), ("d",))), "the setting mesh must be left at None"),
    (enter(hx.named_scope("layer")), "must not be left in force"),
    (lambda: VARIABLE.set(1), "the context test_left_behind must be put back"),
    (lambda: np.seterr(over="ignore"), "the context numpy"),
], ids=["handler", "setting", "setting of the process", "block", "mesh", "scope", "context", "errors of NumPy"])
def test_what_is_left_in_force_is_told_and_put_back(leak, said):
    stack, record = STACK.get(), PROCESS.settings
    message = left(leak, contexts, settings)[0]
    assert said in message
    assert STACK.get() is stack and PROCESS.settings == record and not left(lambda: None, contexts, settings)


def test_a_handler_that_is_taken_away_is_told_and_put_back():
    with hx.handle(DOUBLE):
        stack = STACK.get()
        (message,) = left(lambda: STACK.set(stack.outer), contexts)
        assert "must still be in force" in message and STACK.get() is stack


def a_limit(undo):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 1)
    undo(lambda: sys.setrecursionlimit(before))


def a_filter(undo):
    before = list(warnings.filters)
    warnings.simplefilter("ignore")
    undo(lambda: warnings.filters.__setitem__(slice(None), before))


def the_environment(undo):
    os.environ["TEST_LEFT_BEHIND"] = "1"
    undo(lambda: os.environ.pop("TEST_LEFT_BEHIND"))


def the_folder(undo):
    before = os.getcwd()
    os.chdir("/")
    undo(lambda: os.chdir(before))


def the_collector(undo):
    gc.disable()
    undo(gc.enable)


def a_threshold(undo):
    before = gc.get_threshold()
    gc.set_threshold(before[0] + 1)
    undo(lambda: gc.set_threshold(*before))


def a_signal_handler(undo, number=signal.SIGUSR1):
    before = signal.signal(number, lambda *_: None)
    undo(lambda: signal.signal(number, before))


def control_c(undo):
    a_signal_handler(undo, signal.SIGINT)


def an_alarm(undo):
    signal.setitimer(signal.ITIMER_REAL, 500)
    undo(lambda: signal.setitimer(signal.ITIMER_REAL, 0))


def a_tracer(undo):
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    undo(lambda: sys.settrace(before))


def a_profiler(undo):
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    undo(lambda: sys.setprofile(before))


def the_switches(undo):
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 2)
    undo(lambda: sys.setswitchinterval(before))


def the_modes(undo):
    before = os.umask(0o027)
    undo(lambda: os.umask(before))


def a_compilation(undo):
    CACHE.compiling["key"] = threading.Event()
    undo(lambda: CACHE.compiling.pop("key"))


def a_full_cache(undo):
    capacity, CACHE.capacity = CACHE.capacity, -1
    undo(lambda: setattr(CACHE, "capacity", capacity))


@pytest.fixture
def undo():
    """What the test leaves behind is undone by the functions that it is given."""
    functions = []
    yield functions.append
    for f in reversed(functions):
        f()


@pytest.mark.parametrize(("leave", "said"), [
    (a_limit, "the recursion limit"), (a_filter, "the filters of warnings"), (the_environment, "the environment"),
    (the_folder, "the working directory"), (the_collector, "the collector"), (a_threshold, "the collector"),
    (a_signal_handler, "the handlers of signals"), (control_c, "the handlers of signals"), (an_alarm, "the alarm"),
    (a_tracer, "the tracer"), (a_profiler, "the profiler"), (the_switches, "the time between switches of threads"),
    pytest.param(the_modes, "the modes of new files", marks=pytest.mark.skipif(sys.platform != "linux", reason="proc")),
    (a_compilation, "a compilation in progress"), (a_full_cache, "must have at most -1 entries"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_what_a_call_of_the_package_may_not_change_is_told(leave, said, undo):
    (message,) = left(lambda: leave(undo), tracers, *IN_FORCE)
    assert said in message


def test_blocks_that_end_leave_nothing():
    def in_blocks():
        with hx.configure(debug_nans=True), hx.handle(DOUBLE), hx.named_scope("layer"):
            hx.jit(hx.grad(lambda x: hnp.sin(x)))(1.0)

    assert not left(in_blocks, temporary_files, traced_values, *IN_FORCE)


@pytest.mark.parametrize("transform", [hx.jit, hx.grad, hx.vmap, hx.make_program, hx.checkpoint])
def test_a_value_of_a_trace_that_is_kept_is_told_once(transform):
    argument = hnp.ones(3) if transform is hx.vmap else 1.0
    (message, *_) = left(lambda: transform(lambda x: KEPT.append(x * 2.0) or x * 1.0)(argument), traced_values)
    assert "no value of a trace may outlive it, got f32[]" in message
    assert not left(lambda: None, traced_values)
    KEPT.clear()


def test_the_line_at_which_a_kept_value_was_made_is_told():
    assert "made at test_left_behind.py:" in left(trace_and_keep, traced_values)[0]
    KEPT.clear()


def test_what_garbage_refers_to_is_not_kept():
    assert not left(keep_in_a_cycle, traced_values)


def test_a_thread_that_goes_on_is_told(monkeypatch):
    monkeypatch.setattr(left_behind, "PATIENCE", 0.01)
    until = threading.Event()
    assert "'waits for the end'" in left(lambda: start(until), threads)[0]
    until.set()
    assert not left(lambda: start(until), threads)


def test_a_thread_that_threading_does_not_know_is_told(monkeypatch):
    monkeypatch.setattr(left_behind, "PATIENCE", 0.05)
    begun, until = threading.Event(), threading.Event()

    def begin():
        _thread.start_new_thread(lambda: begun.set() or until.wait(60), ())
        begun.wait(60)

    assert "started by _thread" in left(begin, threads)[0]
    until.set()
    monkeypatch.undo()
    assert not left(begin, threads)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not tell its processes")
def test_a_process_that_goes_on_is_told(monkeypatch):
    monkeypatch.setattr(left_behind, "PATIENCE", 0.01)
    started = []
    begin = lambda: started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
    (message,) = left(begin, children)
    assert f"the process {started[0].pid} must have ended" in message
    started[0].communicate(timeout=60)
    assert not left(lambda: (begin(), started[1].communicate(timeout=60)), children)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not tell open files")
def test_a_file_that_stays_open_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(left_behind, "PATIENCE", 0.01)
    path, opened = tmp_path / "file", []
    several = left(lambda: opened.extend([path.open("w") for _ in range(9)]), open_files)
    assert several == [f"the file {path} must be closed, got it open as {file.fileno()}." for file in opened]
    for file in opened:
        file.close()
    assert not left(lambda: path.write_text("whole"), open_files)


def test_a_temporary_file_that_stays_is_told_and_removed():
    made, variable = [], os.environ.get("TMPDIR")
    (message,) = left(lambda: made.append(tempfile.mkdtemp(prefix="logs")), temporary_files)
    assert "got 'logs" in message and not Path(made[0]).exists()
    assert not left(lambda: tempfile.TemporaryDirectory().cleanup(), temporary_files)
    assert os.environ.get("TMPDIR") == variable
