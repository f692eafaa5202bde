"""jaxlib's classes and guards that users see."""

import subprocess
import sys

import pytest

import handlax as hx
from handlax import errors

PROGRAM = """
import gc, handlax as hx, numpy as np
def cycle():
    x = hx.jit(lambda x: x + 1)(np.ones(3, np.float32))
    both = [x]
    both.append(both)
gc.disable()
cycle()
gc.collect()
with hx.array_garbage_collection_guard("log"):
    cycle()
    gc.collect()
print("alive")
"""


def test_devices_are_of_the_class():
    assert all(isinstance(device, hx.Device) for device in hx.devices())
    assert not isinstance("cpu", hx.Device)
    assert (hx.host_id(), hx.host_count(), hx.host_ids()) == (0, 1, [0])


def test_an_array_that_the_garbage_collector_frees_is_logged():
    ended = subprocess.run([sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "alive\n" and ended.stderr.count("deleted by the Python garbage collector") == 1


def test_other_levels_are_refused():
    with pytest.raises(errors.ConfigurationError, match="'never'"), hx.array_garbage_collection_guard("never"):
        pass
