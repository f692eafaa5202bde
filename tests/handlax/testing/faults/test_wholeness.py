"""What is left behind is found, each kind of it; what only ends differently is not."""

import os
import sys
import threading
import warnings

import numpy as np
import pytest

import handlax as hx
from handlax.effects.base.config import PROCESS
from handlax.effects.base.wrapping import context_variable
from handlax.lowering.compile.executable_cache import Compilation, ExecutableCache
from handlax.testing import faults
from handlax.testing.faults import wholeness

VARIABLE = context_variable("test_wholeness", 0)
CACHE = next(cache for cache in wholeness.CACHES if isinstance(cache, ExecutableCache))


@pytest.fixture
def put_back():
    """What the test leaves behind is undone by the functions that it is given."""
    undo = []
    yield undo.append
    for f in reversed(undo):
        f()


def a_thread(undo):
    end = threading.Event()
    threading.Thread(target=end.wait, name="the one", daemon=True).start()
    undo(end.set)


def a_compilation(undo):
    CACHE.compiling["key"] = Compilation()
    undo(lambda: CACHE.compiling.pop("key"))


def a_variable(undo):
    token = VARIABLE.set(1)
    undo(lambda: VARIABLE.reset(token))


def a_setting(undo):
    before = PROCESS.settings.default_float
    hx.config.update("default_float", "float64")
    undo(lambda: hx.config.update("default_float", before))


def a_limit(undo):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 1)
    undo(lambda: sys.setrecursionlimit(before))


def a_filter(undo):
    before = list(warnings.filters)
    warnings.simplefilter("ignore")
    undo(lambda: warnings.filters.__setitem__(slice(None), before))


def numpys_errors(undo):
    before = np.seterr(over="ignore")
    undo(lambda: np.seterr(**before))


def the_environment(undo):
    os.environ["TEST_WHOLENESS"] = "1"
    undo(lambda: os.environ.pop("TEST_WHOLENESS"))


@pytest.mark.parametrize(("leave", "said"), [
    (a_thread, "the thread the one"), (a_compilation, "a compilation in progress"), (a_variable, "test_wholeness"),
    (a_setting, "the settings of the process"), (a_limit, "the recursion limit"), (a_filter, "filters of warnings"),
    (numpys_errors, "numpy"), (the_environment, "the environment"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_what_a_block_leaves_behind_is_found(leave, said, put_back, monkeypatch):
    monkeypatch.setattr(wholeness, "PATIENCE", 0.1)
    with pytest.raises(AssertionError, match=f"must be left whole, changed: .*{said}"), faults.whole():
        leave(put_back)


def test_what_an_exception_leaves_behind_is_found_and_the_exception_is_its_cause(put_back):
    def leave_and_raise():
        with faults.whole():
            a_variable(put_back)
            raise KeyError

    with pytest.raises(AssertionError, match="test_wholeness") as raised:
        leave_and_raise()
    assert type(raised.value.__cause__) is KeyError
    with pytest.raises(KeyError), faults.whole():
        raise KeyError


def test_hidden_files_are_found(tmp_path):
    with faults.whole(tmp_path):
        (tmp_path / "entry").touch()
    with pytest.raises(AssertionError, match=r"the file .*\.writing"), faults.whole(tmp_path):
        (tmp_path / ".writing").touch()


def test_other_values_of_a_program_are_found(monkeypatch):
    with pytest.raises(AssertionError, match="other values of a program"), faults.whole():
        monkeypatch.setattr(wholeness, "_TICKING", hx.handler({wholeness.ProbeTick: lambda n, op: (n + 2, n)}))


def test_a_thread_that_ends_is_waited_for():
    with faults.whole():
        threading.Timer(0.1, lambda: None).start()
