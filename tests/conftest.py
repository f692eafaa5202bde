"""What holds for every test: whole tracebacks, quick compilation, the same examples in every run, few mappings."""

import faulthandler
import gc
import importlib
import itertools
import os
import sys
from pathlib import Path

os.environ["JAX_NUM_CPU_DEVICES"] = os.environ["HANDLAX_NUM_CPU_DEVICES"]  # handlax_devices, for its peer too
os.environ["HANDLAX_TRACEBACK_FILTERING"] = "off"  # a failure shows where in the package it comes from
# Most of the time of the tests is XLA's, which compiles programs that run once, on few elements.
os.environ.setdefault("HANDLAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from helpers.chosen_cases import is_chosen
from hypothesis import HealthCheck, settings

# Where pytest is called without make: tests start many processes, each of which would compile all sources again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Compilation makes the first example of a test slow, which says nothing about the test.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=25,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), print_blob=True)
settings.register_profile("thorough", settings.get_profile("default"), derandomize=False, max_examples=500)
settings.load_profile(os.environ.get("HANDLAX_HYPOTHESIS", "ci" if os.environ.get("CI") else "default"))


gc.disable()  # while tests are collected, of which none is garbage


def pytest_collection_finish():
    """The garbage collector passes over the tests themselves, most of all objects; tests for leaks run it often.

    It runs a thirtieth as often as by default, which saves a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items):
    """Of a test marked ``each_choice`` the cases that are not chosen run in the sweep alone."""
    for item in items:
        if item.get_closest_marker("each_choice") and not is_chosen(item):
            item.add_marker(pytest.mark.sweep)


_TESTS = itertools.count(1)
_MAPPINGS = Path("/proc/self/maps")  # Linux allows 65,530 in a process; a compiled program takes three


def _handlax():
    """The package, which is imported when the first test runs, not for a conftest."""
    return importlib.import_module("handlax")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Programs of tests marked ``optimised`` are compiled as a user's are.

    Compiled programs are dropped now and then: thousands of tests in a process would use up its mappings.
    """
    if optimised := item.get_closest_marker("optimised") is not None:
        before = _handlax().config.disable_most_optimizations
        _handlax().config.update("disable_most_optimizations", False)
    result = yield
    if optimised:
        _handlax().config.update("disable_most_optimizations", before)
    if next(_TESTS) % 100 == 0 and _MAPPINGS.exists() and _MAPPINGS.read_bytes().count(b"\n") > 25_000:
        _handlax().clear_caches()
    return result


@pytest.fixture
def nothing_placed():
    """As in a process in which no array was put on a device by name: calls do not ask where their arguments are."""
    placed = importlib.import_module("handlax.lowering.xla.array_backend").PLACED
    forget = importlib.import_module("handlax.interpreters.core.evaluate").forget_executors
    before = placed[:]
    placed.clear()
    forget()
    yield
    placed.extend(before)
    forget()


def _limit(config, lasting=False):
    """From now on this process has ``faulthandler_timeout``, after which it writes its stacks and ends.

    ``lasting``: also when pytest has closed the file to which it writes.
    """
    if config.pluginmanager.hasplugin("faulthandler") and (seconds := float(config.getini("faulthandler_timeout"))):
        output = config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(
            seconds, file=os.dup(output) if lasting else output, exit=config.getini("faulthandler_exit_on_timeout"))


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node):
    """The teardown of a test that failed has its own limit: pytest ends that of the test here."""
    _limit(node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """The end of the process has a limit: exit handlers, and threads that are joined."""
    _limit(session.config, lasting=True)
