"""Exported functions, written by one library and called by the other, in one process."""

import collections

import numpy as np
import pytest

import handlax as hx
from handlax import export
from handlax import numpy as hnp
from handlax.errors import NotExportable

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
jax = pytest.importorskip("jax")
pytest.importorskip("flatbuffers")

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
KEYS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
DTYPES = ["bool", "int4", "uint4", "int8", "uint8", "int16", "uint32", "int32", "float16", "bfloat16", "float32",
          "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu", "float4_e2m1fn"]


def by_jax(exported, vjp_order=0):
    return jax.export.deserialize(exported.serialize(vjp_order))


def by_handlax(exported, vjp_order=0):
    return export.deserialize(exported.serialize(vjp_order))


WAYS = [(hx, by_jax, jax), (jax, by_handlax, hx)]


def both(lib, numpy):
    def f(x, *, k):
        return collections.OrderedDict(r=[numpy.sin(x["a"]) * k[0], None], n=k[1] + 1)

    return lib.export.export(lib.jit(f))({"a": X, "unused": X}, k=(np.float32(2), np.int32(3)))


@pytest.mark.parametrize("read", [by_jax, by_handlax])
@pytest.mark.parametrize("written", [lambda: both(hx, hnp), lambda: both(jax, jax.numpy)], ids=["handlax", "jax"])
def test_trees_and_names_are_the_same(written, read):
    exported = written()
    found = read(exported)
    result = found.call({"a": X, "unused": X}, k=(np.float32(2), np.int32(3)))
    assert isinstance(result, collections.OrderedDict)
    np.testing.assert_allclose(result["r"][0], 2 * np.sin(X), rtol=1e-6)
    assert result["r"][1] is None
    assert int(result["n"]) == 4
    assert (found.fun_name, found.nr_devices, found.platforms) == ("f", 1, ("cpu",))
    assert found.module_kept_var_idx == exported.module_kept_var_idx == (0, 2, 3)
    assert found.calling_convention_version == exported.calling_convention_version
    assert (found.uses_global_constants, found.has_vjp()) == (False, False)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_cross_both_ways(name):
    f = lambda x: (x, x == x)
    ours, theirs = hnp.ones(3, name), jax.numpy.ones(3, name)
    same, equal = by_jax(export.export(hx.jit(f))(ours)).call(theirs)
    assert str(same.dtype) == name
    assert equal.all()
    same, equal = by_handlax(jax.export.export(jax.jit(f))(theirs)).call(ours)
    assert same.dtype.name == name
    assert equal.all()


@pytest.mark.parametrize("impl", KEYS.values())
def test_keys_cross_both_ways(impl):
    bits = {lib: lib.jit(lambda k, lib=lib: lib.random.bits(k, (4,))) for lib in (hx, jax)}
    key = {lib: lib.random.key(3, impl=impl) for lib in (hx, jax)}
    np.testing.assert_array_equal(by_jax(export.export(bits[hx])(key[hx])).call(key[jax]), bits[hx](key[hx]))
    theirs = by_handlax(jax.export.export(bits[jax])(key[jax]))
    np.testing.assert_array_equal(theirs.call(key[hx]), bits[jax](key[jax]))


@pytest.mark.parametrize(("write", "read", "lib"), WAYS, ids=["to jax", "from jax"])
def test_derivatives_of_second_order_cross_both_ways(write, read, lib):
    found = read(write.export.export(write.jit(lambda x, n: (x**3 * n, n)))(X, np.int32(2)), 2)
    total = lambda x: found.call(x, np.int32(2))[0].sum()
    np.testing.assert_allclose(lib.grad(total)(X), 6 * X**2, rtol=1e-5)
    np.testing.assert_allclose(lib.grad(lambda x: lib.grad(total)(x).sum())(X), 12 * X, rtol=1e-5)


@pytest.mark.parametrize(("write", "read", "lib"), WAYS, ids=["to jax", "from jax"])
def test_several_platforms_cross_both_ways(write, read, lib):
    numpy = write.numpy
    f = write.jit(lambda a: numpy.linalg.cholesky(a @ a.T + 3 * numpy.eye(3, dtype=a.dtype)) + numpy.max(a))
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    found = read(write.export.export(f, platforms=("cuda", "cpu"))(a))
    assert found.platforms == ("cuda", "cpu")
    assert found.uses_global_constants
    np.testing.assert_allclose(lib.jit(found.call)(a), f(a), rtol=1e-5)


@pytest.mark.parametrize(("write", "read", "lib"), WAYS, ids=["to jax", "from jax"])
@pytest.mark.parametrize("kind", ["Explicit", "Auto"])
def test_shardings_cross_both_ways(write, read, lib, kind):
    def cuts(of):
        types = (getattr(of.sharding.AxisType, kind),) * 2
        mesh = of.make_mesh((4, 2), ("a", "b"), axis_types=types)
        return mesh, [of.NamedSharding(mesh, of.P(*entries)) for entries in (("a",), (None, "b"), ("a", "b"))]

    _, (rows, columns, tiles) = cuts(write)
    x, w = np.ones((8, 6), np.float32), np.full((6, 4), 0.1, np.float32)
    f = write.jit(lambda x, w: write.numpy.tanh(x @ w), in_shardings=(rows, columns), out_shardings=tiles)
    found = read(write.export.export(f)(*[write.device_put(v, s) for v, s in ((x, rows), (w, columns))]), 1)
    assert found.nr_devices == 8
    mesh, (rows, columns, tiles) = cuts(lib)
    placed = [lib.device_put(v, s) for v, s in zip((x, w), found.in_shardings_jax(mesh))]
    y = lib.jit(found.call)(*placed)
    assert y.sharding.is_equivalent_to(tiles, 2)
    np.testing.assert_allclose(y, np.tanh(x @ w), rtol=1e-5)
    derivative = lib.jit(lib.grad(lambda x, w: found.call(x, w).sum()))(*placed)
    assert derivative.sharding.is_equivalent_to(rows, 2)


def test_a_program_of_a_call_goes_to_jax_and_back():
    sine = by_handlax(jax.export.export(jax.jit(jax.numpy.sin))(X), 1)
    twice = by_jax(export.export(hx.jit(lambda x: sine.call(sine.call(x))))(X), 1)
    back = by_handlax(jax.export.export(jax.jit(lambda x: twice.call(x) + 1))(X), 1)
    np.testing.assert_allclose(back.call(X), np.sin(np.sin(X)) + 1, rtol=1e-6)
    expected = jax.grad(lambda x: jax.numpy.sin(jax.numpy.sin(x)).sum())(X)
    np.testing.assert_allclose(hx.grad(lambda x: back.call(x).sum())(X), expected, rtol=1e-5)


def test_symbolic_sizes_are_refused():
    (b,) = jax.export.symbolic_shape("b")
    theirs = jax.export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((b,), "float32"))
    with pytest.raises(NotExportable, match="must be numbers, got 'b'"):
        by_handlax(theirs)


def test_names_of_effects_are_kept():
    from jax._src import effects  # noqa: PLC0415
    from jax.extend.core import Primitive  # noqa: PLC0415
    from jax.interpreters import mlir  # noqa: PLC0415

    class Noted(effects.Effect):
        def __eq__(self, other):
            return type(other) is Noted

        def __hash__(self):
            return 1

    effects.lowerable_effects.add_type(Noted)
    note = Primitive("note")
    note.def_effectful_abstract_eval(lambda x: (x, {NOTED}))
    NOTED = Noted()
    mlir.register_lowering(note, lambda _, x: [x])
    found = by_handlax(jax.export.export(jax.jit(lambda x: note.bind(x)))(X))
    assert found.unordered_effects == (str(Noted),)
    assert by_jax(found).unordered_effects == (NOTED,)
    with pytest.raises(NotExportable, match="effects of other libraries"):
        found.call(X)
