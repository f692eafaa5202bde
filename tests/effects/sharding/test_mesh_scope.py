"""The mesh in force: set from now on or in a block, in one thread, and part of the settings that traces depend on."""


import numpy as np
import pytest
from helpers.other_threads import in_thread

import handlax as hx
from handlax.effects.base.config import current
from handlax.effects.sharding.mesh import EMPTY_ABSTRACT_MESH, EMPTY_MESH, AbstractMesh, Mesh
from handlax.effects.sharding.mesh_scope import get_abstract_mesh, get_mesh, set_mesh, use_abstract_mesh

DEVICES = np.array(hx.devices("cpu"))
GRID, LINE = Mesh(DEVICES.reshape(2, 4), ("a", "b")), Mesh(DEVICES, "x")
ABSTRACT = AbstractMesh((4, 2), ("x", "y"))


def test_no_mesh_is_in_force_at_first():
    assert get_mesh() is EMPTY_MESH and get_abstract_mesh() == EMPTY_ABSTRACT_MESH and get_mesh().empty


def test_a_mesh_is_in_force_in_its_block():
    with set_mesh(GRID):
        assert get_mesh() is GRID and get_abstract_mesh() == GRID.abstract_mesh
        with set_mesh(LINE), hx.configure(default_float="float64"):
            assert get_mesh() is LINE and current().default_float == np.float64
            with set_mesh(None):
                assert get_mesh().empty and get_abstract_mesh().empty
        assert get_mesh() is GRID
    assert get_mesh().empty


def test_a_mesh_is_in_force_from_now_on():
    def elsewhere():
        set_mesh(GRID)
        with set_mesh(LINE):
            seen.append(get_mesh())
        seen.append(get_mesh())
        set_mesh(None)
        seen.append(get_mesh())

    seen = []
    in_thread(elsewhere)
    assert seen == [LINE, GRID, EMPTY_MESH] and get_mesh().empty


def test_an_abstract_mesh_is_in_force_beside_the_devices():
    with set_mesh(GRID):
        with use_abstract_mesh(ABSTRACT) as found:
            assert found is ABSTRACT is get_abstract_mesh() and get_mesh() is GRID
        assert get_abstract_mesh() == GRID.abstract_mesh


def test_an_abstract_mesh_has_the_size_of_that_in_force():
    with set_mesh(GRID), pytest.raises(hx.errors.BadArgument, match="in force, 8, got 4"):
        use_abstract_mesh(AbstractMesh((4,), "x")).__enter__()
    with set_mesh(GRID), set_mesh(None), use_abstract_mesh(AbstractMesh((4,), "x")) as found:
        assert get_abstract_mesh() is found


def test_specs_alone_are_about_a_mesh_in_a_block_of_its_own():
    with GRID:
        assert current().mesh is GRID and get_mesh().empty and get_abstract_mesh().empty


def test_traces_depend_on_the_mesh():
    with set_mesh(GRID):
        first = current().mark
    with set_mesh(LINE):
        second = current().mark
    with set_mesh(Mesh(DEVICES.reshape(2, 4), ("a", "b"))):
        assert current().mark is first is not second is not current()


@pytest.mark.parametrize("enter", [
    lambda: set_mesh(ABSTRACT),
    lambda: set_mesh(3),
    lambda: use_abstract_mesh(GRID).__enter__(),
    lambda: hx.config.update("mesh", ABSTRACT),
    lambda: hx.configure(abstract_mesh="x").__enter__(),
])
def test_what_is_no_mesh_is_refused(enter):
    with pytest.raises(hx.errors.HandlaxError, match="got"):
        enter()
    assert get_mesh().empty
