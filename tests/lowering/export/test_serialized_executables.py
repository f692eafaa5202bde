"""Compiled functions in bytes, and in other processes."""

import numpy as np
import pytest
from helpers.new_process import in_new_process

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import BadArgument, BadArtifact, NotExportable
from handlax.experimental.serialize_executable import deserialize_and_load, serialize

X = np.linspace(0.5, 1.5, 400, dtype=np.float32)
WEIGHTS = hnp.asarray(np.linspace(0, 1, 400, dtype=np.float32))


@hx.jit
def weighted(x, *, by):
    return {"y": hnp.sin(x) * WEIGHTS * by, "kept": x}


@pytest.fixture
def compiled():
    return weighted.lower(X, by=2.0).compile()


def test_a_compiled_function_is_loaded_without_compiling(compiled):
    parts = serialize(compiled)
    hx.clear_caches()
    found = deserialize_and_load(*parts)
    result, expected = found(X, by=2.0), weighted(X, by=2.0)
    np.testing.assert_array_equal(result["y"], expected["y"])
    assert (found.fun_name, found.in_tree, found.out_tree) == ("weighted", compiled.in_tree, compiled.out_tree)
    assert found.as_text() == compiled.as_text()
    np.testing.assert_allclose(hx.vmap(lambda x: found(x, by=2.0)["y"])(np.stack([X, X]))[1], expected["y"], rtol=1e-6)
    with pytest.raises(hx.errors.DTypeMismatch, match="for which the function was compiled"):
        found(X.astype("int32"), by=2.0)


def test_it_is_loaded_by_a_new_process(compiled, tmp_path):
    file = tmp_path / "f.bin"
    first = serialize(compiled)
    hx.clear_caches()
    file.write_bytes(serialize(deserialize_and_load(*first))[0])
    code = (
        "import handlax as hx, numpy as np; from pathlib import Path;"
        "from handlax.experimental.serialize_executable import deserialize_and_load;"
        "trees = [hx.tree.structure(x) for x in (((0,), {'by': 0}), {'y': 0, 'kept': 0})];"
        f"f = deserialize_and_load(Path({str(file)!r}).read_bytes(), *trees);"
        "print(float(f(np.ones(400, 'float32'), by=2.0)['y'][-1]))"
    )
    found = in_new_process(code, HANDLAX_NUM_CPU_DEVICES="8")
    assert float(found) == float(weighted(np.ones(400, "float32"), by=2.0)["y"][-1])


def test_it_is_loaded_onto_other_devices(compiled):
    there = hx.device_put(X, hx.devices()[1])
    for made in (compiled, weighted.lower(there, by=2.0).compile()):
        device = hx.devices()[3]
        found = deserialize_and_load(*serialize(made), execution_devices=[device])
        assert found(X, by=2.0)["y"].devices() == {device}
    with pytest.raises(BadArgument, match="1 devices are needed, got 2"):
        deserialize_and_load(*serialize(compiled), execution_devices=hx.devices()[:2])


def test_programs_over_a_mesh_are_loaded():
    mesh = hx.make_mesh((4,), ("a",))
    rows = hx.NamedSharding(mesh, hx.P("a"))
    compiled = hx.jit(hnp.sin, in_shardings=rows, out_shardings=rows).lower(X).compile()
    parts = serialize(compiled)
    hx.clear_caches()
    assert deserialize_and_load(*parts)(X).sharding == rows
    moved = deserialize_and_load(*parts, execution_devices=hx.devices()[4:])(X)
    assert moved.sharding.device_set == {*hx.devices()[4:]}
    np.testing.assert_allclose(moved, np.sin(X), rtol=1e-6)


def test_donated_arguments_stay_donated():
    compiled = hx.jit(lambda x: x + 1, donate_argnums=0).lower(X).compile()
    x = hx.device_put(X)
    deserialize_and_load(*serialize(compiled))(x)
    assert x.is_deleted()


def test_bytes_that_are_damaged_or_of_another_machine_are_refused(compiled, monkeypatch):
    blob, *trees = serialize(compiled)
    for data in (b"", blob[:-1], blob[:40] + b"x" + blob[41:], b"x" * 100):
        with pytest.raises(BadArtifact, match="must be those that serialize returned"):
            deserialize_and_load(data, *trees)
    monkeypatch.setattr("handlax.lowering.export.serialized_executables._machine", lambda *_: b"another")
    with pytest.raises(BadArtifact, match="another machine or version"):
        deserialize_and_load(blob, *trees)


def test_functions_of_the_host_and_what_is_not_compiled_are_refused():
    def shows(x):
        hx.debug.print("{}", x)
        return x

    def pure(x):
        return hx.pure_callback(np.asarray, hx.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    for f in (shows, pure, lambda x: hx.lax.cond(x.sum() > 0, pure, lambda x: x, x)):
        with pytest.raises(NotExportable, match="must not call the host"):
            serialize(hx.jit(f).lower(X).compile())
    with pytest.raises(BadArgument, match="a compiled function is needed"):
        serialize(weighted.lower(X, by=2.0))
