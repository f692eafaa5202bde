"""Grids of devices for meshes, against their definition by blocks."""

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest

import handlax as hx
from handlax.experimental.mesh_utils import create_device_mesh, create_hybrid_device_mesh
from handlax.sharding import AxisType, Mesh, make_mesh
from handlax.sharding.device_grids import _granule

DEVICES = hx.devices("cpu")
# two slices of two processes of three devices
FAR = [SimpleNamespace(id=n, process_index=n // 3, slice_index=n // 6) for n in range(12)]


def test_a_mesh_of_sizes_and_names():
    mesh = hx.make_mesh((2, 4), ("a", "b"))
    assert mesh is Mesh(np.array(DEVICES).reshape(2, 4), ("a", "b"), (AxisType.Explicit,) * 2)
    assert make_mesh((2, 2), ["a", "b"], (AxisType.Auto,) * 2) is Mesh(np.array(DEVICES[:4]).reshape(2, 2), ("a", "b"))
    assert [*make_mesh((4,), "x", devices=DEVICES[4:]).devices] == DEVICES[4:]
    with pytest.raises(ValueError, match="needs 10 devices, got 8"):
        make_mesh((2, 5), ("a", "b"))
    with pytest.raises(ValueError, match="a tuple of integers, one for each axis, got 8"):
        make_mesh(8, "a")
    with pytest.raises(ValueError, match="a tuple of integers"):
        make_mesh(((2,), 4), ("a", "b"))
    with pytest.raises(ValueError, match="every dimension"):
        make_mesh((2,), ("a", "b"))


def test_a_grid_is_in_the_order_of_the_devices():
    grid = create_device_mesh((2, 4))
    assert grid.dtype == object and [*grid.ravel()] == DEVICES
    assert [*create_device_mesh((2, 2), DEVICES[:4][::-1]).ravel()] == DEVICES[:4][::-1]
    for shape in [(2, 2), (2, -1), (3, 3)]:
        with pytest.raises(hx.errors.ShapeMismatch):
            create_device_mesh(shape)


def by_definition(inner, outer, devices, key):
    """The grid where the device at ``p`` is that at ``p mod inner`` in the block at ``p div inner``."""
    order = sorted({key(device) for device in devices})
    granules = [[device for device in devices if key(device) == number] for number in order]
    grid = np.empty([a * b for a, b in zip(inner, outer)], object)
    for place in itertools.product(*map(range, grid.shape)):
        block = np.ravel_multi_index([p // n for p, n in zip(place, inner)], outer)
        grid[place] = granules[block][np.ravel_multi_index([p % n for p, n in zip(place, inner)], inner)]
    return grid


@pytest.mark.parametrize(("inner", "outer", "process"), [
    ((2, 3), (2, 1), False), ((3, 2), (1, 2), False), ((6, 1), (1, 2), False), ((1, 3), (2, 2), True),
    ((3, 1), (4, 1), True), ((3, 1, 1), (1, 2, 2), True),
])
def test_a_grid_in_blocks(inner, outer, process):
    devices = random.Random(0).sample(FAR, 12)
    expected = by_definition(inner, outer, devices, lambda d: d.process_index if process else d.slice_index)
    np.testing.assert_array_equal(
        create_hybrid_device_mesh(inner, outer, devices, process_is_granule=process), expected)


def test_blocks_in_the_order_of_the_devices():
    grid = create_hybrid_device_mesh((6,), (2,), FAR[6:] + FAR[:6], should_sort_granules_by_key=False)
    assert [device.id for device in grid] == [*range(6, 12), *range(6)]


def test_a_shorter_shape_is_filled_with_ones():
    assert create_hybrid_device_mesh((6,), (2, 1), FAR).shape == (2, 6)
    assert create_hybrid_device_mesh((3, 2), (2,), FAR).shape == (3, 4)


@pytest.mark.parametrize(("inner", "outer", "devices"), [
    ((6, 1), (1, 3), FAR), ((2, 1), (1, 2), FAR), ((4, 2), (1, 1), DEVICES),
])
def test_what_is_no_grid_of_blocks(inner, outer, devices):
    with pytest.raises(ValueError, match="got"):
        create_hybrid_device_mesh(inner, outer, devices)


def test_processes_and_slices_are_numbered_by_integers_of_python():
    device = SimpleNamespace(process_index=np.int64(3), slice_index=np.int32(2))
    assert [repr(_granule(device, process)) for process in (True, False)] == ["3", "2"]
