"""device_put with shardings: from the host, from one device, and from other shardings."""

import itertools

import numpy as np
import pytest
from helpers.new_process import in_new_process

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.effects.sharding.mesh import Mesh
from handlax.effects.sharding.named_sharding import NamedSharding, SingleDeviceSharding
from handlax.effects.sharding.partition_spec import PartitionSpec as P

DEVICES = hx.devices()
MESH = Mesh(np.array(DEVICES).reshape(2, 4), ("a", "b"))
X = np.arange(32, dtype="float32").reshape(8, 4)
A, B = NamedSharding(MESH, P("a")), NamedSharding(MESH, P(None, "b"))
SOME = NamedSharding(Mesh(np.array(DEVICES[5:1:-1]), ("c",)), P("c"))
PLACES = [A, B, SOME, DEVICES[3], SingleDeviceSharding(DEVICES[0])]


@pytest.mark.parametrize(("first", "second"), [*itertools.product(PLACES, PLACES)])
def test_an_array_goes_from_anywhere_to_anywhere(first, second):
    x = hx.device_put(hx.device_put(X, first), second)
    assert x.tolist() == X.tolist() and x.committed
    wanted = second if hasattr(second, "device_set") else SingleDeviceSharding(second)
    assert x.sharding == wanted
    assert hx.device_put(x, second) is x


@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float64", "complex64", "float8_e4m3fn", "int4"])
@pytest.mark.parametrize("place", [A, NamedSharding(MESH, P("b", "a")), NamedSharding(MESH, P())])
def test_every_dtype_is_read_back_bit_by_bit(dtype, place):
    x = hnp.asarray(X % 8).astype(dtype)
    y = hx.device_put(x, place)
    assert y.dtype == x.dtype and y.value.tobytes() == x.value.tobytes()


def test_shapes_without_elements_or_dimensions():
    assert hx.device_put(np.float32(3), NamedSharding(MESH, P())) == 3
    assert hx.device_put(np.zeros((0, 4)), A).shape == (0, 4)


@pytest.mark.parametrize("second", [P("a"), P(None, "b"), P("b", "a"), P()])
@pytest.mark.parametrize("first", [P(), P("a"), P("b")])
@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (8, 0, 4)])
def test_shards_without_elements_have_their_shapes(shape, first, second):
    there = NamedSharding(MESH, second)
    x = hx.device_put(np.zeros(shape, "float32"), NamedSharding(MESH, first))
    for y in (hx.device_put(x, there), hx.jit(lambda x: x + 1, out_shardings=there)(x)):
        assert np.asarray(y).shape == shape and y.sharding == there
        assert {np.asarray(shard.data).shape for shard in y.addressable_shards} == {there.shard_shape(shape)}


def test_a_tree_of_places_is_a_prefix():
    tree = {"x": X, "y": [X, X[0]], "z": X}
    placed = hx.device_put(tree, {"x": A, "y": DEVICES[1], "z": None})
    assert placed["x"].sharding == A and {y.device for y in placed["y"]} == {DEVICES[1]}
    assert not placed["z"].committed
    with pytest.raises(errors.TreeMismatch, match="device_put"):
        hx.device_put(tree, {"x": A})


def test_a_spec_is_about_the_mesh_in_force():
    with MESH:
        assert hx.device_put(X, P("a")).sharding == A


def test_the_argument_may_change_afterwards_and_a_donated_one_is_gone():
    mine = X.copy()
    x = hx.device_put(mine, A)
    mine[:] = 0
    assert x.tolist() == X.tolist()
    y = hx.device_put(x, B, donate=True)
    assert x.is_deleted() and y.tolist() == X.tolist()


def test_memory_that_xla_could_share_may_change_afterwards():
    block = np.zeros(128, np.uint8)
    mine = block[-block.ctypes.data % 64 :][:64].view(np.float32)  # aligned to 64 bytes
    x = hx.device_put(mine, DEVICES[0])
    mine[:] = 1
    assert x.tolist() == [0.0] * 16


def test_inside_of_a_program_it_is_a_constraint():
    assert hx.jit(lambda x: hx.device_put(x * 2, A))(X).sharding == A
    assert hx.grad(lambda x: hnp.sum(hx.device_put(x, A) ** 2))(X).tolist() == (2 * X).tolist()


def test_a_mapped_device_put_is_that_of_every_lane():
    xs = np.stack([X, X + 1])
    assert hx.vmap(lambda x: hx.device_put(x, A))(xs).tolist() == xs.tolist()
    assert hx.vmap(lambda x: hx.device_put(x, DEVICES[2]))(xs).devices() == {DEVICES[2]}


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_what_lies_like_another_array_lies_in_its_memory_also_in_programs(place):
    x = hx.device_put(hx.device_put(X, place), hx.memory.Space.Host)
    for f in (hnp.zeros_like, hnp.ones_like, lambda x: lax.full_like(x, 2)):
        here, there = f(x), hx.jit(f)(x)
        assert {hx.typeof(y).memory_space for y in (here, there)} == {hx.memory.Space.Host}
        assert {y.sharding.memory_kind for y in (here, there)} == {"pinned_host"}
        assert here.tolist() == there.tolist()


@pytest.mark.parametrize(
    ("x", "place", "error", "message"),
    [
        (np.ones(7), A, errors.ShapeMismatch, "dimension 0 of x must be a multiple of 2, .* got size 7"),
        (np.ones(8), B, errors.ShapeMismatch, "at most one entry per dimension"),
        (np.ones(8), "cpu", errors.BadArgument, "must be one of hx.devices"),
        (np.ones(8), P("a"), errors.BadArgument, "mesh in force"),
    ],
)
def test_what_cannot_be_is_refused(x, place, error, message):
    with pytest.raises(error, match=message):
        hx.device_put(x, place)


def test_one_part_for_each_device():
    parts = [{"w": np.full(3, i)} for i in range(4)]
    x = hx.device_put_sharded(parts, DEVICES[:4])["w"]
    assert x.tolist() == [[i] * 3 for i in range(4)]
    assert [shard.device for shard in x.addressable_shards] == DEVICES[:4]
    y = hx.device_put_replicated(np.arange(3), DEVICES[2:4])
    assert y.tolist() == [[0, 1, 2]] * 2 and y.devices() == {*DEVICES[2:4]}
    with pytest.raises(errors.BadArgument, match="a tree for each device"):
        hx.device_put_sharded(parts, DEVICES[:3])


GRIDS = [
    ((8,), "p", P("p")), ((4, 2), "qr", P("r", "q")), ((2, 2, 2), "xyz", P(("z", "x"))), ((4, 2), "uv", P("u", "v")),
]
REGRIDDED = [NamedSharding(Mesh(np.array(DEVICES).reshape(shape), tuple(names)), spec) for shape, names, spec in GRIDS]


@pytest.mark.parametrize(("first", "second"), [*itertools.permutations(REGRIDDED, 2)])
def test_meshes_of_the_same_devices_meet(first, second):
    whole = np.arange(64.0).reshape(8, 8)
    x = hx.device_put(whole, first)
    y = hx.device_put(x, second)
    assert y.sharding == second
    for add in (hnp.add, hx.jit(hnp.add)):
        assert np.array_equal(add(x, y), 2 * whole)
    constrained = hx.jit(lambda x: lax.with_sharding_constraint(x, second))(x)
    assert constrained.sharding.devices_indices_map((8, 8)) == second.devices_indices_map((8, 8))


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_arrays_like_one_and_its_copies_are_where_it_is(place):
    x = hx.device_put(X, place)
    assert x.tolist() == X.tolist()  # its elements were read
    made = [hnp.zeros_like(x), hnp.ones_like(x), hnp.full_like(x, 2), lax.full_like(x, 3), hnp.array(x), hnp.copy(x)]
    assert {y.sharding for y in made} == {x.sharding}
    assert [float(y[0, 1]) for y in made] == [0, 1, 2, 3, 1, 1]
    assert len({int(y.addressable_data(0).unsafe_buffer_pointer()) for y in (x, *made)}) == 7
    of_another_shape = hnp.zeros_like(x, shape=(3,))
    assert of_another_shape.committed == x.sharding.is_fully_replicated
    assert not of_another_shape.committed or of_another_shape.devices() == x.devices()
    assert lax.full((8, 8), 1, sharding=A).sharding == lax.full_like(x, 1, sharding=A).sharding == A


@pytest.mark.parametrize("place", PLACES[3:], ids=str)
def test_no_elements_of_an_array_are_where_it_is(place):
    x = hx.device_put(X, place)
    for y in (x[np.zeros(8, bool)], x[hnp.zeros(0, int)], hnp.take_along_axis(x, hnp.zeros((0, 4), int), 0)):
        assert y.shape == (0, 4) and y.committed and y.devices() == x.devices()


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_rows_of_an_array_are_where_it_is(place):
    rows = [*hx.device_put(X, place)]
    assert [row.tolist() for row in rows] == X.tolist()
    assert all(row.committed and row.devices() == hx.device_put(X, place).devices() for row in rows)
    keys = hx.device_put(hx.random.split(hx.random.key(0), 8), place if place is not B else A)
    assert [*map(hx.random.bits, keys)] == [hx.random.bits(k) for k in hx.random.split(hx.random.key(0), 8)]


@pytest.mark.parametrize(
    "use", [lambda x: x[0], lambda x: x + 1, lambda x: x.tolist(), lambda x: x.addressable_shards[0].data]
)
def test_a_deleted_array_is_called_so(use):
    x = hx.device_put(X, A)
    x.delete()
    x.delete()
    with pytest.raises(errors.DeletedArray, match="deleted or donated"):
        use(x)


def test_each_array_is_donated_or_shared_as_said():
    x, y = hx.device_put(X, A), hx.device_put(X, A)
    moved, copied = hx.device_put((x, y), (B, A), donate=(True, False), may_alias=(None, False))
    assert x.is_deleted() and not y.is_deleted()
    assert moved.tolist() == copied.tolist() == X.tolist()
    assert copied.sharding == A and copied is not y
    y.delete()
    assert copied.tolist() == X.tolist()


@pytest.mark.parametrize("kind", ["pinned_host", "device"])
def test_an_array_lies_in_the_memory_that_its_sharding_names_and_programs_move_it(kind):
    where = SingleDeviceSharding(DEVICES[0], memory_kind=kind)
    for x in (hx.device_put(X, where), hx.device_put(hx.device_put(X, DEVICES[1]), where)):
        assert x.sharding == where and x.sharding.memory_kind == kind and hx.device_put(x, where) is x
        f = hx.jit(lambda x: x * 2)
        for y in (f(x), f(hx.device_put(x, DEVICES[0])), f(x), x * 2):
            assert y.sharding.memory_kind == "device" and y.tolist() == (X * 2).tolist()
        assert hx.device_put(x, DEVICES[0]).sharding.memory_kind == "device"


def test_programs_over_a_mesh_bring_what_lies_in_another_memory():
    where = NamedSharding(MESH, P("b"), memory_kind="pinned_host")
    x, near = hx.device_put(np.arange(8.0), where), hx.device_put(np.arange(8.0), where.with_memory_kind("device"))
    for y in (x * 2, hx.jit(lambda x: x * 2)(x), hx.jit(lambda x, z: x + z)(x, near)):
        assert x.sharding.memory_kind == "pinned_host" and y.sharding.memory_kind == "device"
        assert y.sharding.spec == where.spec and y.tolist() == (np.arange(8.0) * 2).tolist()


def test_programs_see_the_memory_of_the_only_device():
    code = """
import handlax as hx
from handlax.sharding import SingleDeviceSharding
(device,) = hx.devices()
f = hx.jit(lambda x: x + 1)
x = hx.device_put(1.0, SingleDeviceSharding(device, memory_kind="pinned_host"))
print(float(f(1.0)), float(f(x)), f(x).sharding.memory_kind, x.sharding.memory_kind)
"""
    assert in_new_process(code, HANDLAX_NUM_CPU_DEVICES="1") == "2.0 2.0 device pinned_host"


def test_an_array_on_a_device_is_put_there_without_the_host():
    x = hx.jit(lambda x: x + 1)(X)
    with hx.transfer_guard_device_to_host("disallow"):
        y, z = hx.device_put(x, DEVICES[0]), hx.device_put(x, DEVICES[3])
    assert not x.committed and y.committed and y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    x.delete()
    assert y.tolist() == z.tolist() == (X + 1).tolist()


@pytest.mark.parametrize("said", [{"donate": True}, {"may_alias": False}], ids=repr)
def test_what_is_no_array_on_a_device_is_put_there_whatever_is_said(said):
    put = lambda x: hx.device_put(x, A, **said)
    assert put(X).tolist() == hx.jit(lambda x: put(x) * 1)(X).tolist() == X.tolist()
    there = hx.device_put(X, A)
    again = hx.jit(lambda x: hx.device_put(x, **said))(there)
    assert again.tolist() == hx.device_put(there, A, **said).tolist() == X.tolist() and not there.is_deleted()


def test_a_box_that_escaped_is_refused():
    boxes = []
    hx.jit(lambda x: boxes.append(x) or x)(1.0)
    with pytest.raises(errors.EscapedBox):
        hx.device_put(boxes[0], A)


def test_guards_let_pass_what_stays_where_it_is():
    x, y = hx.device_put(X, A), hx.jit(lambda x: x * 2)(X)
    with hx.transfer_guard("disallow_explicit"):
        assert hx.device_put(x) is x and hx.device_put(x, A) is x
        hx.jit(lambda x: hx.device_put(x, A)).lower(y)
        with pytest.raises(errors.TransferRefused, match="device to device"):
            hx.device_put(y, A)
        with pytest.raises(errors.TransferRefused, match="host to device"):
            hx.device_put(X, A)
