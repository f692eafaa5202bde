"""A block that leaves the library whole returns or raises as it would; any other is an AssertionError."""

import threading

import pytest

import handlax as hx
from handlax.effects.base.wrapping import context_variable
from handlax.testing import faults
from handlax.testing.faults import wholeness

VARIABLE = context_variable("test_wholeness", 0)


def test_what_an_exception_leaves_behind_is_found_put_back_and_the_exception_is_its_cause():
    def leave_and_raise():
        with faults.whole():
            VARIABLE.set(1)
            raise KeyError

    with pytest.raises(AssertionError, match="left whole, changed:\n  the context test_wholeness") as raised:
        leave_and_raise()
    assert type(raised.value.__cause__) is KeyError and VARIABLE.get() == 0
    with pytest.raises(KeyError), faults.whole():
        raise KeyError


def test_hidden_files_are_found(tmp_path):
    with faults.whole(tmp_path):
        (tmp_path / "entry").touch()
    with pytest.raises(AssertionError, match=r"a hidden file must be removed, got .*\.writing"), faults.whole(tmp_path):
        (tmp_path / ".writing").touch()
    (tmp_path / ".writing").unlink()
    (tmp_path / "below").mkdir()
    with pytest.raises(AssertionError, match=r"got .*/below/\.writing"), faults.whole(tmp_path):
        (tmp_path / "below" / ".writing").touch()


def test_other_values_of_a_program_are_found(monkeypatch):
    with pytest.raises(AssertionError, match="a program must have the values"), faults.whole():
        monkeypatch.setattr(wholeness, "_TICKING", hx.handler({wholeness.ProbeTick: lambda n, op: (n + 2, n)}))


def test_a_thread_that_ends_is_waited_for():
    with faults.whole():
        threading.Timer(0.1, lambda: None).start()


def test_what_is_expected_is_computed_once_but_under_each_handler_and_setting():
    def checks(x):
        with faults.whole():
            return x

    misses = lambda: hx.cache_info()["expected values"].misses
    checks(1.0)
    before = misses()
    checks(1.0)
    doubled = hx.handler({hx.operations.Sin: lambda op, x: 2.0 * hx.perform(op, x)})
    hx.handle(doubled)(checks)(1.0)
    assert misses() == before
    with hx.configure(default_float="float64"):
        checks(1.0)
    assert misses() == before + 1
