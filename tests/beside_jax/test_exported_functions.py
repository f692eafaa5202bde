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


KERNEL = np.linspace(-1, 1, 54, dtype=np.float32).reshape(2, 3, 3, 3)
SYMBOLIC = {
    "layer": (lambda lib, m, x: m.tanh(x @ KERNEL[0, 0, :, :].repeat(2, 0)[:4]), "b, 4"),
    "reductions": (lambda lib, m, x: (x.mean(0), x.max(0), x.argmax(0), m.sort(x, 0), m.cumsum(x, 0)), "b, 4"),
    "sizes": (lambda lib, m, x: m.arange(2 * x.shape[0] + 1) * x.shape[0], "b, 4"),
    "slices": (lambda lib, m, x: (x[1:], x[::2], x[::-1], x[-1], x[m.array([0, 1])]), "b, 4"),
    "padding": (lambda lib, m, x: m.concatenate([m.pad(x, ((1, 2), (0, 0))), x]), "b, 4"),
    "reshape": (lambda lib, m, x: (x.reshape(-1), x.reshape(2 * x.shape[0], -1)), "b, 4"),
    "multiples": (lambda lib, m, x: x.reshape(2, -1), "2*b, 3"),
    "loops": (lambda lib, m, x: lib.lax.scan(lambda c, row: (c + row, c * row), m.zeros(4), x), "b, 4"),
    "lanes": (lambda lib, m, x: lib.vmap(lambda row: row @ row)(x), "b, 4"),
    "bits": (lambda lib, m, x: lib.random.normal(lib.random.key(0), x.shape), "b, 4"),
    "top": (lambda lib, m, x: lib.lax.top_k(x, 2), "b, 4"),
    "convolution": (lambda lib, m, x: lib.lax.conv(x, KERNEL, (2, 2), "SAME"), "b, 3, n, n"),
    "factors": (lambda lib, m, x: m.linalg.cholesky(x @ m.swapaxes(x, 1, 2) + 3 * m.eye(3)), "b, 3, 3"),
    "softmax": (lambda lib, m, x: lib.nn.softmax(lib.nn.relu(x) @ m.swapaxes(x, 1, 2)), "b, n, 4"),
}


def symbolic(lib, name, vjp_order=0):
    f, shape = SYMBOLIC[name]
    spec = lib.ShapeDtypeStruct(lib.export.symbolic_shape(shape), "float32")
    return lib.export.export(lib.jit(lambda x: f(lib, lib.numpy, x)))(spec)


@pytest.mark.parametrize("name", SYMBOLIC)
@pytest.mark.parametrize(("write", "read", "lib"), WAYS, ids=["to jax", "from jax"])
def test_symbolic_sizes_cross_both_ways(write, read, lib, name):
    written = symbolic(write, name)
    found = read(written)
    assert [str(t.shape).replace(" ", "") for t in found.in_avals] == [
        str(t.shape).replace(" ", "") for t in written.in_avals
    ]
    f, shape = SYMBOLIC[name]
    for b in (2, 3):
        sizes = [eval(size, {"b": b, "n": b + 3}) for size in shape.split(",")]
        x = np.random.default_rng(0).uniform(0.1, 1.0, sizes).astype(np.float32)
        expected = jax.tree.leaves(f(jax, jax.numpy, jax.numpy.asarray(x)))
        for y, z in zip(jax.tree.leaves(found.call(x)), expected, strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("write", "read", "lib"), WAYS, ids=["to jax", "from jax"])
def test_derivatives_with_symbolic_sizes_cross_both_ways(write, read, lib):
    found = read(symbolic(write, "softmax"), 1)
    f, x = SYMBOLIC["softmax"][0], np.random.default_rng(0).uniform(-1, 1, (2, 3, 4)).astype(np.float32)
    expected = jax.grad(lambda x: (f(jax, jax.numpy, x) ** 2).sum())(x)
    np.testing.assert_allclose(lib.grad(lambda x: (found.call(x) ** 2).sum())(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("write", "read", "lib"), WAYS, ids=["to jax", "from jax"])
def test_constraints_are_checked_by_whoever_calls(write, read, lib):
    types = [
        write.ShapeDtypeStruct(shape, "float32")
        for shape in zip(write.export.symbolic_shape("a, b", constraints=["a >= 2*b"]))
    ]
    found = read(write.export.export(write.jit(lambda x, y: x.sum() + y.sum()))(*types))
    assert float(found.call(np.ones(4, np.float32), np.ones(2, np.float32))) == 6.0
    with pytest.raises(ValueError, match=r"a >= 2\*b|[Rr]efin"):
        found.call(np.ones(3, np.float32), np.ones(2, np.float32))


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
    with pytest.raises(NotExportable, match="no effects but those of foreign functions"):
        found.call(X)
