"""Programs over meshes print readably, parse back to equal ones, and pickle."""

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import P, lax
from handlax import numpy as hnp
from handlax.effects.programs.printer import Printer
from handlax.effects.programs.program import Program
from handlax.effects.sharding.mesh import EMPTY_MESH, AbstractDevice
from handlax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding

DEVICES = np.array(hx.devices())
GRID = DEVICES.reshape(2, 4)
MESHES = [
    (Mesh(GRID, ("d", "m")), "Mesh('d': 2, 'm': 4)"),
    (Mesh(DEVICES[:3], "d"), "Mesh('d': 3)"),
    (Mesh(DEVICES[[3, 1]], "d"), "Mesh('d': 2, devices=(3, 1))"),
    (Mesh(GRID, (0, ("a", "b"))), "Mesh(0: 2, ('a', 'b'): 4)"),
    (Mesh(GRID, ("d", "m"), (AxisType.Auto, AxisType.Manual)), "Mesh('d': 2, 'm': 4, axis_types=(Auto, Manual))"),
    (Mesh(DEVICES[0], ()), "Mesh()"),
    (EMPTY_MESH, "Mesh(devices=())"),
    (AbstractMesh((2, 4), ("d", "m")), "AbstractMesh('d': 2, 'm': 4)"),
    (AbstractMesh((4096,), ("d",), (AxisType.Auto,)), "AbstractMesh('d': 4096, axis_types=(Auto,))"),
    (
        AbstractMesh((2,), ("d",), abstract_device=AbstractDevice("H100", None, "gpu")),
        "AbstractMesh('d': 2, device=AbstractDevice(device_kind='H100', platform='gpu'))",
    ),
]
PLACES = [
    (P("a", None, ("b", 1)), "P('a', None, ('b', 1))"),
    (P(P.UNCONSTRAINED), "P(UNCONSTRAINED)"),
    (NamedSharding(Mesh(DEVICES, "d"), P("d")), "NamedSharding(mesh=Mesh('d': 8), spec=P('d'))"),
    (
        NamedSharding(Mesh(DEVICES, "d"), P(), memory_kind=DEVICES[0].addressable_memories()[-1].kind),
        None,  # the kinds of memory are the platform's
    ),
    (
        NamedSharding(AbstractMesh((2,), ("d",)), P("d"), memory_kind="device"),
        "NamedSharding(mesh=AbstractMesh('d': 2), spec=P('d'), memory_kind='device')",
    ),
    (
        SingleDeviceSharding(DEVICES[2]),
        f"SingleDeviceSharding(platform={DEVICES[2].platform!r}, device={DEVICES[2].id})",
    ),
]


@hx.operation
class Placed:
    place: object = None

    def result_type(op, x):
        return x


@pytest.mark.parametrize(("place", "text"), [*MESHES, *PLACES], ids=str)
def test_a_mesh_or_sharding_is_read_from_its_text(place, text):
    written = Printer(False).value(place)
    assert text in (written, None) and "?" not in written
    p = hx.make_program(lambda x: hx.perform(Placed(place), x))(1.0)
    assert p.ops[0].place == place and Program.parse(str(p)) == p == pickle.loads(pickle.dumps(p))


def over(mesh):
    return hx.shard_map(lambda x: lax.psum(x * 2, "m"), mesh=mesh, in_specs=P("d", "m"), out_specs=P("d"))


def constrained(mesh):
    return lambda x: hx.reshard(x, NamedSharding(mesh, P(P.UNCONSTRAINED, "m"))) + 1


@pytest.mark.each_choice
@pytest.mark.parametrize("mesh", [
    Mesh(GRID, ("d", "m")), Mesh(GRID[::-1], ("d", "m")), hx.make_mesh((2, 4), ("d", "m")),
    AbstractMesh((2, 4), ("d", "m")),
], ids=str)
@pytest.mark.parametrize("f", [over, constrained, lambda mesh: hx.jit(hx.grad(lambda x: over(mesh)(x).sum()))])
def test_a_program_over_a_mesh_is_parsed_from_its_text(mesh, f):
    x = hnp.arange(32.0).reshape(4, 8)
    p = hx.make_program(f(mesh))(x)
    q = hx.parse_program(str(p), p.constants).unwrap()
    assert p == q == pickle.loads(pickle.dumps(p)) and not p.diff(q)
    assert "?" not in str(p).replace("@?", "")
    if isinstance(mesh, Mesh):
        np.testing.assert_array_equal(q(x)[0] if isinstance(q(x), (tuple, list)) else q(x), f(mesh)(x))


@pytest.mark.parametrize("f", [
    lambda x: hx.pmap(lambda v: lax.psum(v, "i"), "i")(x),
    lambda x: hx.xmap(lambda v: v - lax.pmean(v, "i"), ["i"], ["i"], axis_resources={"i": "d"})(x),
])
def test_maps_over_devices_are_parsed_from_their_texts(f):
    with hx.set_mesh(Mesh(DEVICES[:4], "d")):
        p = hx.make_program(f)(hnp.arange(4.0))
    assert hx.parse_program(str(p), p.constants).unwrap() == p == pickle.loads(pickle.dumps(p))


def test_the_difference_of_programs_over_two_meshes_names_both():
    x = hnp.arange(32.0).reshape(4, 8)
    old, new = (str(hx.make_program(constrained(Mesh(grid, ("d", "m"))))(x).diff(
        hx.make_program(constrained(Mesh(GRID[::-1], ("d", "m"))))(x))) for grid in (GRID, GRID[::-1]))
    assert not new and "mesh=Mesh('d': 2, 'm': 4), " in old and "devices=(4, 5, 6, 7, 0, 1, 2, 3)" in old


@pytest.mark.parametrize(("text", "what"), [
    ("Mesh('d': 10000)", "10000 devices"),
    ("Mesh('d': 1, devices=(10000,))", "device 10000"),
    ("Mesh('d': 2, devices=(0,))", "has 2 devices"),
    ("Mesh('d': 'e')", "arguments that Mesh takes"),
    ("Mesh('d')", "arguments that Mesh takes"),
    ("Mesh('d': 1, 'd': 1)", "names of axes must differ"),
    ("NamedSharding(mesh=AbstractMesh('d': 2), spec=P('e'))", "got 'e'"),
    ("range(0, 1, stop=2)", "arguments that range takes"),
])
def test_what_is_no_mesh_is_a_parse_error(text, what):
    line = f"  b: f32[] = placed[place={text}] a"
    error = hx.parse_program(f"program f(a: f32[]) -> (f32[]) {{\n{line}\n  return (b)\n}}").failure()
    assert isinstance(error, hx.errors.ParseError) and what in error.what
