"""Functions that are exported for arguments of many shapes."""

import numpy as np
import pytest

import handlax as hx
from handlax import export, lax, nn, random
from handlax import numpy as hnp
from handlax.errors import BadArgument, NotExportable, ShapeMismatch, TracerBoolConversionError


def exported(f, *shapes, dtype="float32", scope=None, vjp_order=0):
    """The function, exported for these symbolic shapes, written and read."""
    scope = export.SymbolicScope() if scope is None else scope
    types = [hx.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype) for shape in shapes]
    return export.deserialize(export.export(hx.jit(f))(*types).serialize(vjp_order))


def array(*shape):
    return np.random.default_rng(0).uniform(0.1, 1.0, shape).astype(np.float32)


def agree(f, call, *xs):
    for found, expected in zip(hx.tree.leaves(call(*xs)), hx.tree.leaves(hx.jit(f)(*xs)), strict=True):
        assert found.dtype == expected.dtype
        keys = hnp.issubdtype(found.dtype, hx.dtypes.prng_key)
        found, expected = (random.key_data(found), random.key_data(expected)) if keys else (found, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def layers(x):
    weights = hnp.linspace(-1.0, 1.0, 16).reshape(4, 4)
    for _ in range(2):
        x = nn.relu(hnp.tanh(x @ weights) + weights[0])
    return nn.softmax(x)


def scanned(x):
    return lax.scan(lambda c, row: (hnp.sin(c + row), c), hnp.zeros(4), x)


MATRIX = {
    "layers": layers,
    "broadcast": lambda x: x + hnp.ones((x.shape[0], 1)),
    "broadcast_to": lambda x: hnp.broadcast_to(x[:, None], (x.shape[0], 3, 4)),
    "reshape": lambda x: (x.reshape(-1), x.reshape(x.shape[0] * 2, 2), x.reshape(-1, 2, 2)),
    "reductions": lambda x: (x.sum(0), x.sum(), x.mean(0), x.var(0), x.max(0), x.argmax(0), hnp.all(x > 0, 0)),
    "dot": lambda x: (x @ x.T, hnp.einsum("ij,kj->ik", x, x)),
    "concatenate": lambda x: hnp.concatenate([x, x, hnp.ones((1, 4))]),
    "pad": lambda x: (hnp.pad(x, ((1, 2), (0, 0))), lax.pad(x, 0.0, ((x.shape[0], 0, 0), (0, 0, 0)))),
    "slice": lambda x: (x[1:], x[:-1], x[::2], x[::-1], x[:, 1:3], hnp.split(x, 2, axis=1)),
    "index": lambda x: (x[0], x[-1], x[hnp.array([0, 1, 1])], x[hnp.arange(x.shape[0]), 0]),
    "scatter": lambda x: (x.at[0].set(7.0), x.at[:, hnp.array([0, 2])].add(7.0)),
    "iota": lambda x: (hnp.arange(x.shape[0]), hnp.eye(x.shape[0]), hnp.linspace(0, 1, x.shape[0])),
    "dynamic_slice": lambda x: (
        lax.dynamic_slice(x, (1, 0), (1, 4)), lax.dynamic_slice(x, (0, 1), (x.shape[0], 2)),
        lax.dynamic_update_slice(x, hnp.zeros((1, 4)), (1, 0)),
    ),
    "cond": lambda x: lax.cond(x.sum() > 1, lambda x: x * 2, lambda x: x, x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)),
    "scan": lambda x: (scanned(x), lax.scan(lambda c, r: (c + r, c * r), hnp.zeros(x.shape[0]), x.T)),
    "fori_loop": lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], hnp.zeros(4)),
    "map": lambda x: lax.map(lambda row: row * 2, x),
    "sort": lambda x: (hnp.sort(x, axis=0), hnp.argsort(x, axis=0), lax.top_k(x, 2), hnp.median(x, axis=0)),
    "cumulative": lambda x: (hnp.cumsum(x, 0), lax.cummax(x, axis=0), lax.cumprod(x, axis=0, reverse=True)),
    "random": lambda x: (random.normal(random.key(0), x.shape), random.split(random.key(0), x.shape[0])),
    "vmap": lambda x: hx.vmap(lambda row: (row @ row, hnp.sort(row)[:2]))(x),
    "jit": lambda x: hx.jit(hnp.sin)(x) + hx.jit(hnp.sin)(x),
    "sizes": lambda x: x.shape[0] * x.sum() / x.size,
    "gradients": lambda x: [hx.grad(f)(x) for f in (
        lambda x: (hnp.tanh(x) ** 2).mean(), lambda x: (x[1:] * x[:-1]).sum(), lambda x: x.max(0).sum(),
        lambda x: (hnp.cumsum(x, 0) ** 2).sum(), lambda x: (x[hnp.array([0, 1, 1])] ** 2).sum(),
        lambda x: scanned(x)[0].sum(), lambda x: hx.checkpoint(hnp.sin)(x).sum(), lambda x: layers(x)[0, 0],
    )],
}


@pytest.mark.parametrize("name", MATRIX)
def test_functions_of_a_matrix_with_any_number_of_rows(name):
    call = exported(MATRIX[name], "b, 4").call
    for rows in (2, 5):
        agree(MATRIX[name], call, array(rows, 4))


KERNEL = np.linspace(-1, 1, 54, dtype=np.float32).reshape(2, 3, 3, 3)


@pytest.mark.parametrize(("f", "shape"), [
    (lambda x: lax.conv(x, KERNEL, (1, 1), "SAME"), "b, 3, 8, 8"),
    (lambda x: lax.conv(x, KERNEL, (1, 1), "SAME"), "b, 3, n, n"),
    (lambda x: lax.conv(x, KERNEL, (2, 2), "SAME"), "b, 3, n, n"),
    (lambda x: lax.conv(x, KERNEL, (1, 1), "VALID"), "b, 3, n + 2, n + 2"),
    (lambda x: hx.grad(lambda x: (lax.conv(x, KERNEL, (1, 1), "SAME") ** 2).sum())(x), "b, 3, 8, 8"),
    (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), "b, 3, 2*n, 2*n"),
    (lambda x: hnp.linalg.cholesky(x @ hnp.swapaxes(x, -1, -2) + 3 * hnp.eye(3)), "b, 3, 3"),
    (lambda x: nn.dot_product_attention(x, x, x), "b, n, 2, 4"),
])
def test_functions_of_images_matrices_and_sequences(f, shape):
    call = exported(f, shape).call
    for b in (1, 3):
        agree(f, call, array(*[eval(size, {"b": b, "n": b + 2}) for size in shape.split(",")]))


def test_sizes_of_results_are_computed_from_those_of_arguments():
    def f(x):
        b = x.shape[0]
        sizes = (b + b, b * b, (b + 13) // b, (b + 13) % b, hx.core.max_dim(b - 5, 0), hx.core.min_dim(b, 3), b**2)
        return [hnp.ones(size) for size in sizes]

    found = exported(f, "b")
    assert [str(t.shape) for t in found.out_avals[:4]] == ["(2*b,)", "(b*b,)", "(floordiv(b+13,b),)", "(mod(b+13,b),)"]
    for b in (1, 5, 8):
        agree(f, found.call, array(b))


def test_derivatives_are_exported_with_it():
    f = lambda x, w: hnp.tanh(x @ w)
    read = exported(f, "b, 4", "4, n", vjp_order=2)
    x, w = array(5, 4), array(4, 3)
    once = lambda f: lambda w: (f(x, w) ** 2).sum()
    twice = lambda f: lambda w: hx.grad(lambda v: f(x, v).sum())(w).sum()
    for loss in (once, twice):
        np.testing.assert_allclose(hx.grad(loss(read.call))(w), hx.grad(loss(f))(w), rtol=1e-4)


def test_a_call_with_symbolic_sizes_is_exported_again():
    inner = exported(lambda x: hnp.concatenate([x, 2 * x]), "a + 1, 4")
    outer = exported(lambda x: inner.call(x)[: x.shape[0]] + inner.call(x + 1)[x.shape[0] :], "2*b + 2, 4")
    x = array(4, 4)
    np.testing.assert_allclose(outer.call(x), x + 2 * (x + 1), rtol=1e-6)
    np.testing.assert_allclose(hx.vmap(outer.call)(np.stack([x, x]))[1], x + 2 * (x + 1), rtol=1e-6)
    assert [str(t) for t in outer.out_avals] == ["f32[2*b+2,4]"]
    with pytest.raises(ShapeMismatch, match="must be such that a >= 1"):
        exported(lambda x: inner.call(x), "b, 4")


def test_a_program_for_several_platforms_has_symbolic_sizes():
    f = lambda x: lax.cond(x[0] > 0, hnp.sin, hnp.cos, hnp.cumsum(x))
    spec = hx.ShapeDtypeStruct(export.symbolic_shape("b"), "float32")
    both = export.export(hx.jit(f), platforms=["cuda", "cpu"])(spec)
    agree(f, export.deserialize(both.serialize()).call, array(3))


@pytest.mark.parametrize(("shapes", "xs", "message"), [
    (("b, 4",), (array(0, 4),), "must be such that b >= 1, as it was exported, got .* b = 0"),
    (("b, b",), (array(2, 3),), r"args\[0\].shape\[1\] == b"),
    (("2*b, 4",), (array(3, 4),), r"args\[0\].shape\[0\] == 2\*b"),
    (("b, 4",), (array(3, 5),), r"argument args\[0\] must be f32\[b,4\], as it was exported, got f32\[3,5\]"),
    (("b, n", "n"), (array(2, 3), array(4)), r"args\[1\].shape\[0\] == n"),
])
def test_sizes_that_do_not_fit_are_refused(shapes, xs, message):
    read = exported(lambda *xs: sum([x.sum() for x in xs]), *shapes)
    for call in (read.call, hx.jit(read.call)):
        with pytest.raises(ShapeMismatch, match=message):
            call(*xs)


def test_constraints_decide_comparisons_and_are_checked_in_calls():
    scope = export.SymbolicScope(["n >= 2*b", "c == 3*b"])
    f = lambda x, y, z: (x[:2] if x.shape[0] >= 2 * y.shape[0] else x, z)
    program = export.export(hx.jit(f))(*[
        hx.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), "float32") for shape in ("n", "b", "c")
    ])
    assert [str(t) for t in program.in_avals] == ["f32[n]", "f32[b]", "f32[3*b]"]
    agree(f, program.call, array(5), array(2), array(6))
    with pytest.raises(ShapeMismatch, match=r"n >= 2\*b, as it was exported, got .* n = 3, b = 2"):
        program.call(array(3), array(2), array(6))
    with pytest.raises(ShapeMismatch, match="n >= 2"):  # which the program says, not its types
        hx.jit(export.deserialize(program.serialize()).call)(array(3), array(2), array(6))


def test_a_comparison_that_nothing_decides_is_refused():
    with pytest.raises(TracerBoolConversionError, match="how b compares with 3 must follow from the scope"):
        exported(lambda x: x if x.shape[0] > 3 else -x, "b")


def test_variables_that_do_not_follow_from_the_arguments_are_refused():
    with pytest.raises(BadArgument, match=r"got c\*c of args\[0\]"):
        exported(lambda x: x, "2*a + b, a, c*c")


def test_sizes_of_several_scopes_are_refused():
    types = [hx.ShapeDtypeStruct(export.symbolic_shape(f"n, {m}"), "float32") for m in ("a", "b")]
    with pytest.raises(ShapeMismatch, match="sizes must be of one scope"):
        export.export(hx.jit(lambda x, y: hnp.concatenate([x, y], axis=1)))(*types)


def test_a_program_with_symbolic_sizes_is_not_compiled():
    with pytest.raises(NotExportable, match="must be those of arguments of an exported function"):
        hx.jit(lambda x: hnp.zeros(x.shape)).lower(hx.ShapeDtypeStruct(export.symbolic_shape("b"), "float32"))


def test_shard_map_with_symbolic_sizes_is_refused():
    if len(hx.devices()) < 2:
        pytest.skip("two devices")
    mesh = hx.make_mesh((2,), ("i",))
    f = hx.shard_map(hnp.sin, mesh=mesh, in_specs=hx.P("i"), out_specs=hx.P("i"))
    with pytest.raises(NotExportable, match="in shard_map the sizes must be numbers"):
        exported(f, "2*b")


def test_specs_of_a_tree_of_arguments():
    args = {"x": array(8, 4), "w": array(4, 3)}
    specs = export.symbolic_args_specs((args, 1.0), ({"x": "b, _", "w": "..., n"}, None))
    assert str(specs[0]["x"].shape) == "(b, 4)" and str(specs[0]["w"].shape) == "(4, n)" and specs[1].shape == ()
    read = export.deserialize(export.export(hx.jit(lambda a, c: a["x"] @ a["w"] * c))(*specs).serialize())
    np.testing.assert_allclose(read.call(args, 2.0), 2 * args["x"] @ args["w"], rtol=1e-5)
    with pytest.raises(BadArgument, match="constraints are those of a scope"):
        export.symbolic_args_specs(args, None, ["b >= 2"], export.SymbolicScope())
