"""Forked children and daemon threads at the end of Python leave the runtime alone, and end."""

import _imp
import threading
from contextlib import suppress
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import SimpleNamespace

import pytest
from helpers.new_process import in_new_process
from helpers.other_threads import in_thread

from handlax.lowering.clients import runtime_access

FORKS = """
import os, sys, warnings
import handlax as hx, handlax.numpy as hnp

def fork(child):
    number = os.fork()
    if number == 0:
        child()
        sys.exit(0)         # Python ends, with what is registered for that
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])

def devices():
    try:
        hx.devices()        # those of the parent
        sys.exit(1)
    except hx.errors.PlatformUnavailable:
        pass

f = hx.jit(lambda x: x + 1)
assert fork(lambda: f(hnp.ones(3)).tolist()) == 0       # the first use of a device is the child's own
callback = hx.jit(lambda x: hx.debug.callback(lambda x: None, x))
y = f(hnp.ones(3))
callback(1.0)
with warnings.catch_warnings():
    warnings.simplefilter("error", RuntimeWarning)
    print([fork(child) for child in (hx.clear_caches, hx.effects_barrier, y.delete, y.tolist, devices)])
"""


@pytest.mark.filterwarnings("ignore:This process")
def test_forked_children_end_with_status_0():
    assert in_new_process(FORKS) == "[0, 0, 0, 0, 0]"


DAEMON = """
import itertools, threading
import handlax as hx, handlax.numpy as hnp

begun = threading.Event()

def work():
    g = hx.jit(lambda x: x @ x)
    for n in itertools.count():
        hx.jit(lambda x: x * n)(1.0)
        g(hnp.ones((200, 200))).block_until_ready()
        begun.set()

threading.Thread(target=work, daemon=True).start()
begun.wait()
print("ends")
"""


def test_python_ends_while_a_daemon_thread_compiles_and_runs():
    assert in_new_process(DAEMON) == "ends"


def test_access_is_refused_to_other_threads_at_the_end_alone(monkeypatch):
    runtime_access.check_access()
    monkeypatch.setattr(runtime_access, "REFUSALS", [lambda: runtime_access._refuse_others(threading.get_ident())])
    runtime_access.check_access()
    monkeypatch.setattr(runtime_access, "REFUSALS", [lambda: runtime_access._refuse_others(0)])
    with pytest.raises(SystemExit):
        runtime_access.check_access()


@pytest.mark.parametrize(("modules", "ends"), [
    (["handlax.lowering.jit.dispatch", "handlax.effects.base.wrapping", "users", "threading", "threading"], True),
    (["numpy", "handlax.numpy", "users"], True),
    (["handlax.lowering.jit.dispatch", "users", "handlax.testing.faults.exits", "threading"], True),
    (["users", "threading"], False),
    (["selectors", "handlax.lowering.clients.processes", "handlax.lowering.clients.processes", "threading"], False),
    (["users", "handlax.lowering.xla.host_callbacks"], False),  # the runtime's thread, in a callback
])
def test_threads_are_ended_that_use_the_package_and_are_none_of_its_own(modules, ends):
    frames = [SimpleNamespace(f_globals={"__name__": name}) for name in modules]  # innermost first
    assert runtime_access._is_to_end(frames) == ends


def test_a_thread_that_uses_the_package_is_told_once_to_end(monkeypatch):
    told, ended = [], threading.Event()
    monkeypatch.setattr(runtime_access, "REFUSALS", [])
    monkeypatch.setattr(runtime_access, "_PATIENCE", 5)
    monkeypatch.setattr(runtime_access, "raise_in", lambda *told_so: told.append(told_so))
    package = {"__name__": "handlax.used", "ended": ended}
    exec("def use(): ended.wait(60)", package)
    user = threading.Thread(target=lambda: package["use"](), daemon=True)
    user.start()
    threading.Timer(0.2, ended.set).start()
    runtime_access._end_threads()
    user.join(60)
    assert [each for each in told if each[0] == user.ident] == [(user.ident, SystemExit)]
    runtime_access.check_access()
    with pytest.raises(SystemExit):
        in_thread(runtime_access.check_access)


def _in_daemon_thread(function):
    def call():
        with suppress(SystemExit):
            function()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_the_end_waits_for_a_thread_that_executes_no_python(monkeypatch):
    events, end = [], threading.Event()
    monkeypatch.setattr(runtime_access, "REFUSALS", [])
    monkeypatch.setattr(runtime_access, "_told_to_end", lambda until: set())  # as one frees its locals
    monkeypatch.setattr(runtime_access, "AT_END", [lambda: events.append("at end")])
    thread = _in_daemon_thread(lambda: (end.wait(60), events.append("freed")))
    monkeypatch.setattr(threading, "enumerate", lambda: [thread])  # others would be waited for, too
    threading.Timer(0.1, end.set).start()
    runtime_access._end_threads()
    assert events == ["freed", "at end"]


def test_the_end_does_not_wait_for_a_thread_that_never_began(monkeypatch):
    monkeypatch.setattr(runtime_access, "REFUSALS", [])
    monkeypatch.setattr(runtime_access, "AT_END", [])
    thread = threading.Thread()
    monkeypatch.setitem(threading._limbo, thread, thread)  # as an interrupt of its start() leaves it
    assert thread in threading.enumerate()
    runtime_access._end_threads()


def test_a_thread_that_imports_an_extension_is_told_to_end_when_it_has(monkeypatch):
    monkeypatch.setattr(runtime_access, "REFUSALS", [])
    monkeypatch.setattr(runtime_access, "AT_END", [])
    begun, loaded, noted = threading.Event(), threading.Event(), []
    monkeypatch.setattr(_imp, "create_dynamic", lambda spec: (begun.set(), loaded.wait(60), noted.append(True)))
    loader = ExtensionFileLoader("extension", "extension.so")
    package = {"__name__": "handlax.used", "loader": loader, "spec": ModuleSpec("extension", loader)}
    exec("def use():\n    loader.create_module(spec)\n    while True: pass", package)
    user = _in_daemon_thread(package["use"])
    assert begun.wait(60)
    threading.Timer(0.1, loaded.set).start()
    runtime_access._end_threads()
    assert noted == [True] and not user.is_alive()


def test_a_thread_that_launches_is_told_to_end_when_it_has(monkeypatch):
    monkeypatch.setattr(runtime_access, "REFUSALS", [])
    monkeypatch.setattr(runtime_access, "AT_END", [])
    begun, launched, noted = threading.Event(), threading.Event(), []
    package = {"__name__": "handlax.used", "begun": begun, "launched": launched, "noted": noted}
    exec("def launch():\n    begun.set()\n    launched.wait(60)\n    noted.append(True)\n\n"
         "def use():\n    launch()\n    while True: pass", package)
    monkeypatch.setattr(runtime_access, "UNINTERRUPTED", {package["launch"].__code__})
    user = _in_daemon_thread(package["use"])
    assert begun.wait(60)
    threading.Timer(0.1, launched.set).start()
    runtime_access._end_threads()
    assert noted == [True] and not user.is_alive()
