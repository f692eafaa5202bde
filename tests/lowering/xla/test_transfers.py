"""Transfers: buffers are brought from where they lie to where they are needed, in its layout."""

import itertools

import numpy as np
import pytest
from helpers.device_buffers import read
from helpers.new_process import in_new_process

import handlax as hx
from handlax.effects.sharding.layout import Layout
from handlax.lowering.xla import jaxlib_runtime as runtime

X = np.arange(12.0).reshape(4, 3)
MESH = hx.sharding.Mesh(np.array(hx.devices()[2:4]), ("i",))
LAYOUTS = [None, Layout((1, 0))]
PLACES = [
    *[runtime.sharding(hx.devices()[n], None, layout) for n in (0, 1) for layout in LAYOUTS],
    *[runtime.sharding_over(hx.NamedSharding(MESH, hx.P("i")), 2, layout) for layout in LAYOUTS],
    runtime.sharding(hx.devices()[0], "pinned_host"),
]


def test_a_copy_to_another_device_lies_there_and_equals_the_source():
    code = """
import numpy as np
from handlax.lowering.xla import jaxlib_runtime as r
from handlax.effects.base import config; config.config.update("num_cpu_devices", 2)
a, b = r.backend('cpu').devices
x = r.put(np.arange(5), a)
y = r.copy_to_device(x, b)
r.delete(x)
print(r.device_of(y) == b, r.copy_to_device(y, b) is y, r.to_numpy(y, y.aval.dtype, y.aval.shape).tolist())
"""
    assert in_new_process(code) == "True True [0, 1, 2, 3, 4]"


@pytest.mark.parametrize(("before", "after"), [*itertools.product(range(len(PLACES)), repeat=2)])
def test_a_buffer_is_brought_from_anywhere_to_anywhere(before, after):
    x = runtime.copy_to(runtime.put(X, hx.devices()[0]), PLACES[before])
    assert runtime.lies_at(x, PLACES[before]) and np.array_equal(read(x), X)
    y = runtime.copy_to(x, PLACES[after])
    assert runtime.lies_at(y, PLACES[after]) and np.array_equal(read(y), X) and (y is x) == (before == after)
    move = runtime.mover(x, PLACES[after])
    assert (move is None) == (before == after)
    assert move is None or np.array_equal(read(move(x)), X)
    if not hasattr(PLACES[after], "named"):
        z = runtime.copied_to(x, PLACES[after])
        assert runtime.lies_at(z, PLACES[after]) and z is not x
        runtime.delete(x)
        assert np.array_equal(read(z), X)


@pytest.mark.parametrize("place", PLACES, ids=range(len(PLACES)))
def test_an_array_of_numpy_is_put_where_it_is_needed(place):
    x = X.copy()
    y = runtime.mover(x, place)(x)
    x[:] = 0
    assert runtime.lies_at(y, place) and np.array_equal(read(y), X)


def test_another_memory_of_the_same_devices_has_the_parts_that_they_hold():
    mesh = MESH.update(axis_types=(hx.sharding.AxisType.Explicit,))
    whole = hx.NamedSharding(mesh, hx.P(None, unreduced={"i"}))  # partial sums: parts of one shape that differ
    where = [runtime.sharding_over(whole.with_memory_kind(kind), 2) for kind in ("device", "pinned_host", "device")]
    parts = [runtime.put(X + n, device) for n, device in enumerate(hx.devices()[2:4])]
    held = runtime.assemble(parts, runtime.aval(X.shape, X.dtype), where[0])
    for place in where[1:]:
        held = runtime.copy_to(held, place)
        assert runtime.lies_at(held, place)
        assert [read(part)[0, 0] for part in runtime.parts_of(held)] == [0.0, 1.0]
