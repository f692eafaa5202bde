"""Several processes as one program: they are joined, compute together, and miss each other in time."""

import pytest
from helpers.many_processes import in_processes

SUM = """
import numpy as np
from handlax import P, lax
mesh = hx.make_mesh((hx.device_count(),), ("i",))
by_row = hx.NamedSharding(mesh, P("i"))
x = hx.make_array_from_callback((8,), by_row, lambda index: np.arange(8.0, dtype=np.float32)[index])
total = hx.jit(hx.shard_map(lambda x: lax.psum(x.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
print(hx.process_index(), hx.process_count(), hx.local_device_count(), hx.device_count(), float(total(x)))
"""


@pytest.mark.parametrize(("processes", "devices"), [(1, 2), (2, 1), (2, 2)])
def test_the_devices_of_all_processes_are_one_mesh(processes, devices):
    expected = [[f"{index} {processes} {devices} {processes * devices} 28.0"] for index in range(processes)]
    assert in_processes(SUM, processes, devices) == expected
