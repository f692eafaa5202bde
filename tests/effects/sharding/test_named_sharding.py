"""Shardings: which part of an array is on which device, against the definition by positions in the mesh."""

import copy
import itertools
from math import prod

import numpy as np
import pytest

import handlax as hx
from handlax.effects.sharding.mesh import AbstractMesh, Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import UNCONSTRAINED, P, entry_axes

DEVICES = np.array(hx.devices("cpu"))
MESH = Mesh(DEVICES.reshape(2, 4), ("a", "b"))
CUBE = Mesh(DEVICES[[3, 0, 1, 7, 5, 6, 2, 4]].reshape(2, 2, 1, 2), ("x", "y", "one", "z"))
LINE = Mesh(DEVICES, "x")
SPECS = [
    (mesh, P(*entries))
    for mesh, choices in [
        (MESH, [None, "a", "b", ("a", "b"), ("b", "a")]),
        (CUBE, [None, "x", "one", ("z", "x"), ("y", "one", "z"), ("z", "y", "x")]),
    ]
    for rank in range(3)
    for entries in itertools.product(choices, repeat=rank)
    if len({*P(*entries).axes}) == len(P(*entries).axes)
]


def part_by_definition(mesh, spec, device, x):
    """The part of ``x``: along each dimension, the one that the device's position along the axes of the spec says."""
    [position] = np.argwhere(mesh.devices == device)
    sizes, at = mesh.shape, dict(zip(mesh.axis_names, position))
    for d, entry in enumerate(spec):
        names = entry_axes(entry)
        number = 0
        for name in names:
            number = number * sizes[name] + at[name]
        x = np.split(x, prod([sizes[name] for name in names]), d)[number]
    return x


@pytest.mark.parametrize(("mesh", "spec"), SPECS)
def test_every_device_has_its_part(mesh, spec):
    sharding, x = NamedSharding(mesh, spec), np.arange(8 * 16 * 3).reshape(8, 16, 3)
    indices = sharding.devices_indices_map(x.shape)
    assert [*indices] == [*mesh.devices.flat] == [*sharding._device_assignment]
    for device, index in indices.items():
        part = part_by_definition(mesh, spec, device, x)
        assert part.shape == sharding.shard_shape(x.shape)
        np.testing.assert_array_equal(x[index], part)
    assert sharding.is_fully_replicated == all(x[index].size == x.size for index in indices.values())
    assert sharding.addressable_devices_indices_map(x.shape) == indices


def test_whole_dimensions_are_whole_slices():
    index = NamedSharding(MESH, P(None, "a")).devices_indices_map((3, 4, 5))[DEVICES[5]]
    assert index == (slice(None), slice(2, 4), slice(None))
    assert NamedSharding(MESH, P()).devices_indices_map(()) == dict.fromkeys(DEVICES, ())


@pytest.mark.parametrize(("mesh", "spec"), SPECS)
def test_shardings_are_equivalent_where_they_place_alike(mesh, spec):
    sharding, shape = NamedSharding(mesh, spec), (8, 8)
    for other in [NamedSharding(MESH, P("a")), NamedSharding(LINE, P("x")), NamedSharding(LINE, P()),
                  NamedSharding(CUBE, P(None, ("z", "x"))), SingleDeviceSharding(DEVICES[0])]:
        alike = [*sharding.devices_indices_map(shape).items()] == [*other.devices_indices_map(shape).items()]
        assert sharding.is_equivalent_to(other, 2) == other.is_equivalent_to(sharding, 2) == alike


def test_one_device_is_a_mesh_of_one():
    one, single = NamedSharding(Mesh(DEVICES[:1], "x"), P("x")), SingleDeviceSharding(DEVICES[0])
    assert one.is_equivalent_to(single, 1) and single.is_equivalent_to(one, 1) and one != single
    assert single.device_set == single.addressable_devices == {DEVICES[0]} and single.num_devices == 1
    assert single.devices_indices_map((3,)) == one.devices_indices_map((3,)) == {DEVICES[0]: (slice(None),)}
    assert single.is_fully_replicated and single.is_fully_addressable and single.shard_shape((3, 4)) == (3, 4)


def test_shardings_compare_by_mesh_spec_and_memory():
    sharding = NamedSharding(MESH, P("a"))
    assert sharding == NamedSharding(MESH, P(("a",))) and hash(sharding) == hash(NamedSharding(MESH, P(("a",))))
    assert sharding == sharding.with_memory_kind(sharding.memory_kind) and copy.deepcopy(sharding) is sharding
    others = [sharding.with_spec(P("a", None)), sharding.with_spec(P("b")), sharding.update(mesh=LINE, spec=("x",)),
              NamedSharding(MESH.abstract_mesh, P("a")), SingleDeviceSharding(DEVICES[0]),
              SingleDeviceSharding(DEVICES[1]), sharding.with_memory_kind("pinned_host")]
    assert len({sharding, *others}) == 8 and sharding not in others
    assert SingleDeviceSharding(DEVICES[0]) == SingleDeviceSharding(DEVICES[0], memory_kind=sharding.memory_kind)


def test_an_abstract_mesh_gives_shapes_and_no_devices():
    sharding = NamedSharding(AbstractMesh((2, 4), ("a", "b")), P("b"))
    assert sharding.shard_shape((8, 3)) == (2, 3) and sharding.num_devices == 8 and sharding.memory_kind is None
    assert not sharding.is_fully_replicated and sharding.replicated_axes == {"a"}
    for name in ("device_set", "addressable_devices", "_device_assignment", "is_fully_addressable"):
        with pytest.raises(ValueError, match="has no devices"):
            getattr(sharding, name)


@pytest.mark.parametrize(("spec", "rank", "text"), [
    (P(), 0, "[]"),
    (P(), 2, "[{}, {}]"),
    (P("a", ("b", "a")[:1]), 3, '[{"a"}, {"b"}, {}]'),
    (P(None, ("b", "a")), 2, '[{}, {"b", "a"}]'),
    (P(UNCONSTRAINED, "b"), 2, '[{?}, {"b"}]'),
])
def test_the_text_of_a_sharding(spec, rank, text):
    assert NamedSharding(MESH, spec).sdy(rank) == text
    assert SingleDeviceSharding(DEVICES[0]).sdy(2) == "[{}, {}]"


def test_how_a_sharding_is_written():
    kind = SingleDeviceSharding(DEVICES[0]).memory_kind
    assert repr(SingleDeviceSharding(DEVICES[0])) == f"SingleDeviceSharding(device={DEVICES[0]!r}, memory_kind={kind})"
    assert repr(NamedSharding(MESH, P("a", None))) == (
        f"NamedSharding(mesh=Mesh('a': 2, 'b': 4, axis_types=(Auto, Auto)), spec=P('a', None), memory_kind={kind})")


@pytest.mark.parametrize("call", [
    lambda: NamedSharding(MESH, P("c")),
    lambda: NamedSharding(MESH, P("a", "a")),
    lambda: NamedSharding(MESH, P(("a", "b"), "a")),
    lambda: NamedSharding(MESH, "a"),
    lambda: NamedSharding(MESH, ("a",)),
    lambda: NamedSharding(None, P()),
    lambda: NamedSharding(MESH, P(), memory_kind="attic"),
    lambda: NamedSharding(MESH.abstract_mesh, P(), memory_kind="attic"),
    lambda: SingleDeviceSharding(DEVICES[0], memory_kind="attic"),
    lambda: NamedSharding(MESH, P("a", "b")).shard_shape((4,)),
    lambda: NamedSharding(MESH, P("a", None)).devices_indices_map(()),
    lambda: NamedSharding(MESH, P("a", None)).sdy(1),
    lambda: NamedSharding(MESH, P(None, "b")).shard_shape((4, 6)),
    lambda: NamedSharding(MESH, P(("a", "b"))).devices_indices_map((4,)),
    lambda: NamedSharding(MESH, P(("a", "b"))).check_compatible_aval((4,)),
])
def test_what_is_no_sharding(call):
    with pytest.raises(ValueError, match="got") as raised:
        call()
    assert isinstance(raised.value, hx.errors.HandlaxError)


def test_the_devices_of_this_process_are_in_the_order_of_all():
    sharding = hx.device_put(np.ones(3)).sharding
    assert sharding._addressable_device_assignment == sharding._device_assignment
    assert {*sharding._addressable_device_assignment} == sharding.addressable_devices


def test_a_type_states_a_sharding_along_explicit_axes_over_no_device():
    abstract, devices = AbstractMesh((1,), ("a",)), hx.make_mesh((1,), ("a",), devices=hx.devices("cpu")[:1])
    cut = NamedSharding(devices, P("a")).cut(2)
    assert cut == NamedSharding(devices.abstract_mesh, P("a", None)) and cut.without_dimension(0) is None
    assert cut.with_dimension(0).spec == P(None, "a", None) and cut.of_dimension(0).spec == P("a")
    assert NamedSharding(abstract, P()).cut(1) is None and hx.typeof(1.0).sharding.spec == P()
    assert cut.hidden.hides and not cut.hides and cut.hidden.cut_sizes((3, 4)) == ["3@?", "4@?"]
