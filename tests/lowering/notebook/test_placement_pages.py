"""Pages of meshes and shardings."""

import xml.etree.ElementTree as ET

import handlax as hx
from handlax.lowering.notebook import placement_pages
from handlax.lowering.notebook.page import describe


def boxes(x):
    """The texts of the grid of boxes, row by row."""
    page = ET.fromstring(x._repr_html_())
    grids = [table for table in page.iter("table") if table.get("class") == "boxes"]
    return [[cell.text for cell in row] for grid in grids for row in grid]


def text(x):
    return " ".join(describe(x).elements)


def test_a_mesh_is_a_grid_of_devices_and_a_table_of_axes():
    mesh = hx.make_mesh((2, 3), ("data", "model"))
    assert describe(mesh).title == "Mesh 2 x 3"
    assert boxes(mesh) == [["CPU 0", "CPU 1", "CPU 2"], ["CPU 3", "CPU 4", "CPU 5"]]
    assert "<td>model</td><td class=\"r\">3</td><td>Explicit</td>" in text(mesh)
    assert "model to the right, data down" in text(mesh)


def test_a_mesh_of_three_axes_is_a_grid_by_its_last():
    assert boxes(hx.make_mesh((2, 2, 2), ("a", "b", "c"))) == [[f"CPU {i}", f"CPU {i + 1}"] for i in (0, 2, 4, 6)]


def test_an_abstract_mesh_has_axes_alone():
    mesh = hx.make_mesh((2, 3), ("a", "b")).abstract_mesh
    assert boxes(mesh) == [] and describe(mesh).title == "AbstractMesh 2 x 3"


def test_each_box_of_a_sharding_is_a_shard_with_its_devices():
    mesh = hx.make_mesh((2, 2), ("a", "b"))
    assert boxes(hx.NamedSharding(mesh, hx.P("a"))) == [["CPU 0,1", "CPU 2,3"]]
    assert boxes(hx.NamedSharding(mesh, hx.P("b", "a"))) == [["CPU 0", "CPU 2"], ["CPU 1", "CPU 3"]]
    assert boxes(hx.NamedSharding(mesh, hx.P())) == [["CPU 0,1,2,3"]]
    assert boxes(hx.NamedSharding(mesh.abstract_mesh, hx.P("a"))) == []


def test_of_many_devices_there_is_no_grid(monkeypatch):
    monkeypatch.setattr(placement_pages, "BOXES", 3)
    mesh = hx.make_mesh((2, 2), ("a", "b"))
    assert boxes(mesh) == boxes(hx.NamedSharding(mesh, hx.P("a", "b"))) == []
    assert boxes(hx.NamedSharding(mesh, hx.P("a"))) == [["CPU 0,1", "CPU 2,3"]]
