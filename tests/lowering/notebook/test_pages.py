"""What notebooks and treescope show, of every class that has a page."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.lowering.notebook import pages


@hx.effect(vmap="per_lane")
class Ask:
    def result_type(op):
        return hx.ShapeDtypeStruct((), "float32")


def squares(w, x):
    with hx.named_scope("<layer>"):
        return hnp.sum(hnp.tanh(x @ w) ** 2)


ARGUMENTS = (hnp.ones((4, 4)), hnp.ones((2, 4)))
HANDLER = hx.handler({Ask: lambda n, op: (n + 1, 2.0)})


def profiled():
    with hx.profile() as times:
        f = hx.jit(lambda x: 2 * x)
        hx.block_until_ready([f(hnp.ones(n)) for n in (2, 3)])
    return times


def values():
    """A value of each class that has a page, by its name."""
    mesh = hx.make_mesh((2, 2), ("a", "b"))
    return {
        "array": hnp.ones((2, 3)),
        "program": hx.make_program(squares)(*ARGUMENTS),
        "drawing": hx.draw(squares)(*ARGUMENTS),
        "stepper": hx.step(squares)(*ARGUMENTS),
        "ragged": hx.Ragged(hnp.arange(6.0), (1, 5)),
        "costs": hx.costs(squares)(*ARGUMENTS),
        "residuals": hx.ad_checkpoint.saved_residuals(squares, *ARGUMENTS),
        "residual": hx.ad_checkpoint.saved_residuals(squares, *ARGUMENTS)[0],
        "plan": hx.ad_checkpoint.memory_plan(squares, 200)(*ARGUMENTS),
        "handler": HANDLER,
        "installation": hx.handle(HANDLER, 0),
        "composition": hx.jit @ hx.handle(HANDLER, 0),
        "handlers": hx.handle(HANDLER, 0)(lambda: hx.handlers())()[1],
        "mesh": mesh,
        "abstract mesh": mesh.abstract_mesh,
        "sharding": hx.NamedSharding(mesh, hx.P("a")),
        "sharding on a device": hx.sharding.SingleDeviceSharding(hx.devices()[1]),
        "profile": profiled(),
    }


@pytest.fixture(scope="module")
def shown():
    return values()


NAMES = (
    "array", "program", "drawing", "stepper", "ragged", "costs", "residuals", "residual", "plan", "handler",
    "installation", "composition", "handlers", "mesh", "abstract mesh", "sharding", "sharding on a device", "profile",
)


def test_each_has_a_name(shown):
    assert tuple(shown) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_well_formed_without_scripts_and_files(shown, name):
    text = shown[name]._repr_html_()
    page = ET.fromstring(text)
    assert page.get("class") == "hx-page"
    assert not {element.tag.rpartition("}")[2] for element in page.iter()} & {"script", "link", "img", "iframe"}
    assert all(link[:1] == "#" or link[:10] == "data:image" for x in page.iter() if (link := x.get("href")) is not None)
    assert "url(" not in text and "@import" not in text
    assert not [key for element in page.iter() for key, _ in element.items() if key.startswith("on")]


@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_a_page_of_its_own(shown, name):
    kind = type(shown[name])
    assert pages.describe.dispatch(kind) is not pages.describe.dispatch(object)


def fake_treescope(monkeypatch, known=None):
    """A treescope whose nodes are their labels, the pages to which they unfold, and whether they are."""
    parts = SimpleNamespace(
        text=str, empty_part=str, indented_children="".join,
        embedded_iframe=lambda embedded_html, fallback_in_text_mode: embedded_html,
        fold_condition=lambda expanded: expanded, ExpandState=SimpleNamespace(COLLAPSED="folded", EXPANDED="unfolded"),
        build_custom_foldable_tree_node=lambda label, contents, path, expand_state: (label, contents, expand_state),
    )
    registries = SimpleNamespace(lookup_treescope_handler_for_type=lambda kind: known)
    for name, module in (("", SimpleNamespace()), (".rendering_parts", parts), (".type_registries", registries)):
        monkeypatch.setitem(sys.modules, f"treescope{name}", module)


def test_in_a_tree_of_treescope_a_value_is_its_title_which_unfolds(monkeypatch, shown):
    fake_treescope(monkeypatch)
    x = shown["array"]
    assert x.__treescope_repr__("['x']", None) == ("f32[2,3]", x._repr_html_(), "folded")
    assert x.__treescope_repr__("", None) == ("f32[2,3]", x._repr_html_(), "unfolded")


def test_what_treescope_knows_is_left_to_it(monkeypatch, shown):
    fake_treescope(monkeypatch, known=lambda x, path, render: "JAX's")
    assert shown["array"].__treescope_repr__("", None) is NotImplemented


def test_treescope_itself_shows_trees_with_values(shown):
    treescope = pytest.importorskip("treescope")
    tree = {"x": shown["array"], "costs": shown["costs"]}
    assert treescope.render_to_text({"x": shown["array"]}) == "{'x': f32[2,3]}"
    assert "Costs: " in treescope.render_to_text(tree) and "object at 0x" not in treescope.render_to_text(tree)
    assert treescope.render_to_text(shown["array"]).strip() == "f32[2,3]"
    assert "hx-page" in treescope.render_to_html(shown["array"], compressed=False)


def test_importing_the_package_loads_no_page():
    program = """
import sys, handlax as hx
x = hx.numpy.ones(3)
assert not [name for name in sys.modules if name.startswith("handlax.lowering.notebook")]
assert "f32[3]" in x._repr_html_()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
