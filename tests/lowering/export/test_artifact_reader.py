"""Reading exported functions: the same function, or the reason why the bytes are none."""

import random
from pathlib import Path

import numpy as np
import pytest

import handlax as hx
from handlax import export
from handlax.effects.sharding.mesh import AbstractDevice
from handlax.errors import BadArtifact
from handlax.lowering.export.artifact_schema import DTYPES, SCHEMA
from handlax.lowering.export.flat_tables import decode, encode
from handlax.memory import Space

X, K = np.arange(3, dtype=np.float32), {"k": (np.float32(2.0), np.arange(2, dtype=np.int32))}
RECORDED = sorted((Path(__file__).parents[2] / "golden" / "exported").glob("*.bin"))


def both(x, *, k):
    return {"r": hx.numpy.sin(x) * k[0], "n": (x.sum(), None)}


@pytest.fixture(scope="module")
def written():
    return bytes(export.export(hx.jit(both))(X, **K).serialize(vjp_order=2))


def test_what_was_read_is_written_as_it_was(written):
    read = export.deserialize(written)
    assert bytes(read.serialize(vjp_order=2)) == written
    assert read == export.deserialize(bytearray(written))
    assert hash(read) == hash(export.deserialize(written))
    assert (read.fun_name, read.nr_devices, read.platforms, read.module_kept_var_idx) == ("both", 1, ("cpu",), (0, 1))
    assert read.vjp().vjp().has_vjp() is False


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_functions_of_other_versions_and_of_jax_are_called(file):
    read = export.deserialize(file.read_bytes())
    found, expected = read.call(X, **K), both(X, **K)
    np.testing.assert_allclose(found["r"], expected["r"], rtol=1e-6)
    derivative = hx.grad(lambda x: read.call(x, **K)["r"].sum())(X)
    np.testing.assert_allclose(derivative, 2 * np.cos(X), rtol=1e-6)


def test_functions_of_three_writers_are_recorded():
    assert [file.stem for file in RECORDED] == ["handlax_0_10_2", "handlax_0_12", "jax_0_12"]


def test_bytes_that_are_cut_off_or_changed_are_refused(written):
    rng = random.Random(0)
    for length in [*range(0, len(written), 29), *range(len(written) - 12, len(written))]:
        with pytest.raises(BadArtifact):
            export.deserialize(written[:length])
    with pytest.raises(BadArtifact, match="checksum"):
        export.deserialize(written + b"more")
    for _ in range(500):
        place = rng.choice([*range(4), *range(8, len(written))])
        with pytest.raises(BadArtifact, match="checksum"):
            export.deserialize(written[:place] + bytes([written[place] ^ rng.randrange(1, 256)]) + written[place + 1 :])


def test_tables_of_versions_whose_number_is_not_said_are_read(written):
    table = {**decode(SCHEMA, "Exported", written), "serialization_version": 3}
    assert export.deserialize(encode(SCHEMA, "Exported", table)).in_avals == export.deserialize(written).in_avals


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", bytes(100), b"ML\xefR" * 30, "text", None])
def test_what_is_no_function_is_refused(data):
    with pytest.raises(BadArtifact, match="must be those of an exported function"):
        export.deserialize(data)


@pytest.mark.parametrize(("changes", "message"), [
    ({"serialization_version": 13}, "version 12 at most"),
    ({"calling_convention_version": 11}, "calling convention 10, got"),
    ({"serialization_version": 9}, "version 10 at least"),
    ({"serialization_version": 1}, "version 10 at least"),
    ({"serialization_version": 3, "unique_avals": []}, "version 10 at least"),
    ({"calling_convention_version": 8}, "9, got 12 and 8"),
    ({"platforms": []}, "platforms"),
    ({"nr_devices": 0}, "0 devices"),
    ({"in_avals_idxs": [0, 0]}, "3 arguments with 2 types"),
    ({"in_avals_idxs": [0, 0, 99]}, "the number 99"),
    ({"out_shardings_idxs": [0]}, "1 shardings"),
    ({"module_kept_var_idx": [1, 0]}, "the arguments"),
    ({"module_kept_var_idx": [0, 7]}, "the arguments"),
    ({"module_kept_var_idx": [0]}, "a program"),
    ({"in_avals_idxs": [1, 0, 0]}, "a program"),
    ({"mlir_module_serialized": b""}, "must be MLIR's bytecode"),
    ({"mlir_module_serialized": None}, "no mlir_module_serialized"),
    ({"in_tree": None}, "no in_tree"),
    ({"disabled_checks": [{"kind": 7}]}, "a check of the kind 7"),
])
def test_parts_that_do_not_fit_are_refused(written, changes, message):
    table = {**decode(SCHEMA, "Exported", written), "vjp": None, **changes}
    with pytest.raises(BadArtifact, match=message):
        export.deserialize(encode(SCHEMA, "Exported", table))


@pytest.fixture(scope="module")
def sharded():
    mesh = hx.make_mesh((2,), ("a",), axis_types=(hx.sharding.AxisType.Auto,))
    f = hx.jit(lambda x: x + 1, in_shardings=hx.NamedSharding(mesh, hx.P("a")))
    return decode(SCHEMA, "Exported", bytes(export.export(f)(np.ones(2, np.float32)).serialize()))


@pytest.mark.parametrize("device", [None, AbstractDevice("TPU v5", 2), AbstractDevice("cpu", None)], ids=repr)
def test_the_devices_of_a_mesh_are_known_by_their_kind(sharded, device):
    (mesh,) = sharded["unique_abstract_meshes"]
    fields = device and {"device_kind": device.device_kind, "num_cores": device.num_cores}
    table = {**sharded, "unique_abstract_meshes": [{**mesh, "abstract_device": fields}]}
    read = export.deserialize(encode(SCHEMA, "Exported", table))
    for found in (read, export.deserialize(read.serialize())):
        (sharding,) = found.in_shardings_jax()
        assert sharding.mesh.abstract_device == device and sharding.spec == hx.P("a")


@pytest.mark.parametrize("changes", [{"axis_types": [7]}, {"axis_types": [1, 1]}, {"axis_names": ["a", "b"]}], ids=repr)
def test_a_mesh_that_is_none_is_refused(sharded, changes):
    (mesh,) = sharded["unique_abstract_meshes"]
    with pytest.raises(BadArtifact, match="a mesh of the axes"):
        export.deserialize(encode(SCHEMA, "Exported", {**sharded, "unique_abstract_meshes": [{**mesh, **changes}]}))


def test_a_function_without_name_and_arguments_is_read():
    table = decode(SCHEMA, "Exported", bytes(export.export(hx.jit(lambda: 3.0))().serialize()))
    read = export.deserialize(encode(SCHEMA, "Exported", {**table, "function_name": None}))
    assert (read.fun_name, read.module_kept_var_idx, float(read.call())) == ("", (), 3.0)


@pytest.mark.parametrize("aval", [
    {"dtype": -1}, {"dtype": len(DTYPES)}, {"kind": 1},
    {"shape": ["-1"]}, {"shape": ["b"]}, {"shape": ["2.5"]}, {"shape": ["b + "]}, {"shape": ["import os"]},
    {"shape": [str(2**63)]}, {"memory_space": 9},
])
def test_types_that_are_none_or_not_those_of_the_program_are_refused(written, aval):
    with pytest.raises(BadArtifact):
        export.deserialize(encode(SCHEMA, "Exported", _with_first_type(written, aval)))


def test_types_say_which_values_lie_in_the_memory_of_the_host():
    def moments(m, x):
        m = hx.device_put(m, Space.Device) + x
        return hx.device_put(m, Space.Host), x * m

    m, x = hx.device_put(hx.numpy.arange(3.0), Space.Host), hx.numpy.ones(3)
    read = export.deserialize(export.export(hx.jit(moments))(m, x).serialize())
    assert [*map(str, (*read.in_avals, *read.out_avals))] == ["f32<host>[3]", "f32[3]", "f32<host>[3]", "f32[3]"]
    for call in (read.call, hx.jit(lambda m, x: read.call(m, x))):
        far, near = call(m, x)
        assert (far.sharding.memory_kind, near.sharding.memory_kind) == ("pinned_host", "device")
        assert far.tolist() == near.tolist() == [1.0, 2.0, 3.0]


def _with_first_type(written, changes):
    table = decode(SCHEMA, "Exported", written)
    first, *others = table["unique_avals"]
    return {**table, "vjp": None, "unique_avals": [{**first, **changes}, *others]}


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "float0"])
def test_every_dtype_is_exported(name):
    x = hx.numpy.ones(3, name) if not name.startswith("key") else hx.random.split(
        hx.random.key(0, impl={"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}[name]), 3
    )
    read = export.deserialize(export.export(hx.jit(lambda x: (x[::-1], x)))(x).serialize())
    reversed_, same = read.call(x)
    assert read.in_avals == (x.type.strong(),)
    assert bool((reversed_ == x[::-1]).all())
    assert bool((same == x).all())
