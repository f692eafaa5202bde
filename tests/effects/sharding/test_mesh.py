"""Meshes: grids of devices with names, immutable, equal ones one object."""

import copy
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax.effects.base.config import current
from handlax.effects.sharding.mesh import (
    EMPTY_ABSTRACT_MESH,
    EMPTY_MESH,
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    sdy_axis,
)

DEVICES = np.array(hx.devices("cpu"))
GRID = DEVICES.reshape(2, 4)


def test_the_axes_of_a_mesh():
    mesh = Mesh(GRID, ("a", "b"))
    assert mesh.shape == {"a": 2, "b": 4} and [*mesh.shape] == ["a", "b"]
    assert mesh.shape_tuple == (("a", 2), ("b", 4)) and mesh.axis_sizes == (2, 4) and mesh.size == 8
    assert mesh.axis_names == ("a", "b") and mesh.axis_types == (AxisType.Auto, AxisType.Auto)
    assert mesh.device_ids.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert (mesh.devices == GRID).all() and mesh.local_devices == [*DEVICES] and mesh.local_mesh is mesh
    assert not mesh.empty and not mesh.is_multi_process and not mesh.is_scalar
    empty = Mesh(np.empty((), object), ())
    assert empty.empty and empty.size == empty.abstract_mesh.size == AbstractMesh((), ()).size == 0


def test_equal_meshes_are_one_object():
    mesh = Mesh(GRID, ("a", "b"))
    assert Mesh([[*row] for row in GRID], ["a", "b"]) is mesh is copy.deepcopy(mesh) and copy.copy(mesh) is mesh
    different = [
        Mesh(GRID[::-1], ("a", "b")), Mesh(GRID, ("b", "a")), Mesh(GRID.T, ("a", "b")),
        Mesh(GRID, ("a", "b"), (AxisType.Auto, AxisType.Explicit)), mesh.abstract_mesh,
    ]
    assert len({mesh, *different}) == 6 and mesh not in different


def test_a_mesh_keeps_its_devices():
    grid = GRID.copy()
    mesh = Mesh(grid, ("a", "b"))
    grid[0, 0] = grid[1, 1]
    assert mesh.devices[0, 0] is DEVICES[0]
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = DEVICES[1]
    with pytest.raises(hx.errors.Immutable):
        mesh.axis_names = ("c", "d")


def test_one_name_is_one_axis():
    assert Mesh(DEVICES, "x") is Mesh(DEVICES, ("x",))
    assert Mesh(DEVICES, "x", AxisType.Explicit).explicit_axes == ("x",)
    assert Mesh(DEVICES[0], ()).is_scalar


def test_the_types_of_axes_select_them():
    types = (AxisType.Manual, AxisType.Explicit)
    mesh = Mesh(GRID, ("a", "b"), types)
    assert (mesh.manual_axes, mesh.explicit_axes, mesh.auto_axes) == (("a",), ("b",), ())
    assert mesh.abstract_mesh.axis_types == types
    assert mesh.update(axis_types=(AxisType.Auto,) * 2) is Mesh(GRID, ("a", "b"))
    changed = mesh.abstract_mesh.update_axis_types({"a": AxisType.Explicit})
    assert changed.are_all_axes_explicit and not changed.are_all_axes_auto and not changed.are_all_axes_manual


def test_abstract_meshes_compare_by_their_axes():
    mesh = AbstractMesh((2, 4), ("a", "b"))
    assert mesh == AbstractMesh([2, 4], ["a", "b"]) and hash(mesh) == hash(AbstractMesh([2, 4], ["a", "b"]))
    assert mesh.size == 8 and mesh.abstract_mesh is mesh and mesh.are_all_axes_explicit
    others = {mesh.update(axis_sizes=(4, 2)), mesh.update(axis_names=("b", "a")),
              mesh.update(abstract_device=AbstractDevice("cpu", None))}
    assert len({mesh, *others}) == 4
    with pytest.raises(ValueError, match="axes alone"):
        mesh.devices


@pytest.mark.parametrize(("mesh", "shown", "written"), [
    (Mesh(GRID, ("a", "b")), "Mesh('a': 2, 'b': 4, axis_types=(Auto, Auto))",
     "Mesh(axis_sizes=(2, 4), axis_names=('a', 'b'), axis_types=(Auto, Auto))"),
    (EMPTY_MESH, "Mesh((), axis_types=())", "Mesh(axis_sizes=(), axis_names=())"),
    (AbstractMesh((2,), "a"), *["AbstractMesh('a': 2, axis_types=(Explicit,))"] * 2),
    (EMPTY_ABSTRACT_MESH, *["AbstractMesh((), axis_types=())"] * 2),
    (AbstractMesh((2,), "a", abstract_device=AbstractDevice("H100", None, "gpu")),
     *["AbstractMesh('a': 2, axis_types=(Explicit,), device_kind=H100, num_cores=None, platform=gpu)"] * 2),
])
def test_how_a_mesh_is_written(mesh, shown, written):
    assert str(mesh) == shown and repr(mesh) == written


def test_the_text_of_the_name_of_an_axis():
    assert [*map(sdy_axis, ("a", '"', "1", 1))] == ['"a"', r'"\""', '"1"', '"1:int"']


@pytest.mark.parametrize("make", [
    lambda: Mesh(DEVICES, ("a", "b")),
    lambda: Mesh(GRID, ("a", "a")),
    lambda: Mesh(GRID, ("a", None)),
    lambda: Mesh(DEVICES[[0, 0]], "a"),
    lambda: Mesh(GRID, ("a", "b"), (AxisType.Auto,)),
    lambda: Mesh(GRID, ("a", "b"), ("Auto", "Auto")),
    lambda: Mesh([0, 1], "a"),
    lambda: Mesh([DEVICES[0], None], "a"),
    lambda: AbstractMesh((2,), ("a", "b")),
    lambda: AbstractMesh((0,), "a"),
    lambda: AbstractMesh((2.0,), "a"),
    lambda: AbstractMesh("2", "a"),
    lambda: AbstractMesh((2, 2), ("a", "a")),
])
def test_what_is_no_mesh(make):
    with pytest.raises(ValueError, match="got"):
        make()


class RemoteDevice:
    """A device of any of several processes, as process 1 sees it."""

    platform = device_kind = "cpu"

    def __init__(self, number, process):
        self.id, self.process_index, self.client = number, process, SimpleNamespace(process_index=lambda: 1)


def test_the_part_of_a_mesh_that_is_local():
    grid = np.array([RemoteDevice(number, number // 4) for number in range(8)])
    mesh = Mesh(grid.reshape(2, 2, 2), ("a", "b", "c"))
    assert mesh.is_multi_process and mesh.local_devices == [*grid[4:]]
    assert mesh.local_mesh is Mesh(grid[4:].reshape(1, 2, 2), ("a", "b", "c")) and not mesh.local_mesh.is_multi_process
    ragged = Mesh(grid[[0, 5, 6, 3]].reshape(2, 2), ("a", "b"))
    with pytest.raises(hx.errors.BadArgument, match="must form a grid"):
        ragged.local_mesh


def test_a_mesh_is_in_force_in_its_block():
    outer, inner = Mesh(GRID, ("a", "b")), Mesh(DEVICES, "x")
    with outer as entered:
        assert entered is outer and current().mesh is outer
        with inner, outer, inner:
            assert current().mesh is inner
        assert current().mesh is outer
    assert current().mesh is None


def test_a_mesh_is_in_force_in_its_thread_alone():
    mesh, seen, entered = Mesh(DEVICES, "x"), [], threading.Barrier(2, timeout=60)

    def enter(_):
        with mesh:
            entered.wait()
            seen.append(current().mesh)
            entered.wait()
        seen.append(current().mesh)

    together(2, enter)
    assert seen[:2] == [mesh, mesh] and seen[2:] == [None, None] and current().mesh is None


def test_a_mesh_is_scalar_where_it_has_one_device_and_no_axes():
    device = hx.devices()[0]
    meshes = [Mesh(np.array(device), ()), Mesh(np.array([device]), ("x",)), Mesh(np.array([[device]]), ("x", "y"))]
    assert [mesh.is_scalar for mesh in meshes] == [True, False, False]
