"""Children forked while another thread traces, compiles and runs compute with NumPy, and are refused the runtime."""

import os
import signal
import time

import numpy as np
import pytest
from helpers.new_process import in_new_process

import handlax as hx
from handlax import numpy as hnp
from handlax.testing.faults import forks


def programs():
    for n in range(3):
        f = hx.jit(hx.grad(lambda x, n=n: hnp.sum(hnp.sin(x) * (n + 7))))
        np.testing.assert_allclose(f(np.ones(3, np.float32)), np.cos(np.ones(3)) * (n + 7), rtol=1e-5)


COMPUTES = """
import numpy as np
import handlax as hx
from handlax import numpy as hnp
from handlax.testing.faults import forks

x = hx.jit(lambda x: x * 11)(hnp.ones(3)).block_until_ready()

def child():
    assert (np.asarray(x) == 11).all() and hnp.sum(hnp.arange(4)) == 6
    assert hx.handle(hx.handler({hx.operations.Sin: lambda op, x: x * 2}))(hnp.sin)(2.0) == 4.0

print({fault.left for fault in forks(lambda: hx.jit(lambda x: x * 23)(2.0), child)})
"""


def test_a_child_computes_with_numpy_and_reads_what_was_computed():
    """In a process of its own: where arrays were placed on devices, the parent computes on these."""
    assert in_new_process(COMPUTES) == "{None}"


KNOWN = hx.jit(lambda x: x * 13)
CHILDREN = {
    "a compiled function": lambda: KNOWN(2.0),
    "a new function": lambda: hx.jit(lambda x: x * 17)(2.0),
    "the devices": hx.devices,
    "a lowered function": lambda: hx.jit(lambda x: x * 19).lower(2.0).compile(),
    "cleared caches": lambda: (hx.clear_caches(), KNOWN(2.0)),
}


@pytest.mark.parametrize("child", CHILDREN.values(), ids=CHILDREN)
def test_a_child_is_refused_the_runtime_of_its_parent(child):
    assert KNOWN(2.0) == 26.0
    for fault in forks(programs, child, pause=0.02):
        assert isinstance(fault.left, hx.errors.PlatformUnavailable), fault
        assert "forked when its parent had used a device" in str(fault.left)


def test_a_barrier_in_a_child_has_nothing_to_wait_for():
    f = hx.jit(lambda x: hx.debug.callback(lambda x: time.sleep(0.2), x))
    assert {fault.left for fault in forks(lambda: f(1.0), hx.effects_barrier)} == {None}


@pytest.mark.parametrize(("child", "said"), [
    (lambda: time.sleep(60), "must end, got one that goes on after 0.1 s"),
    (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
    (lambda: 1 / 0, "ZeroDivisionError"),
])
def test_a_child_that_hangs_crashes_or_fails_is_found(child, said):
    with pytest.raises(AssertionError, match=said):
        [*forks(lambda: None, child, patience=0.1 if "0.1" in said else 20)]


def test_an_error_of_the_function_comes_out():
    with pytest.raises(ZeroDivisionError):
        [*forks(lambda: 1 / 0, lambda: None)]
