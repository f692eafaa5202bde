"""Operations whose sizes are symbolic, in exported functions."""

import numpy as np
import pytest
from helpers.exported_functions import agree, array, exported

import handlax as hx
from handlax import export, lax, nn, random
from handlax import numpy as hnp
from handlax.errors import CannotCross, NotExportable, TracerIntegerConversionError
from handlax.lowering.compile.estimate import estimate


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
    "index": lambda x: (x[0], x[-1], x[hnp.array([0, 1, 1])], x[:, hnp.array([0, 2])], x[hnp.arange(x.shape[0]), 0]),
    "scatter": lambda x: (x.at[0].set(7.0), x.at[:, hnp.array([0, 2])].add(7.0)),
    "iota": lambda x: (hnp.arange(x.shape[0]), hnp.eye(x.shape[0]), hnp.linspace(0, 1, x.shape[0])),
    "dynamic_slice": lambda x: (
        lax.dynamic_slice(x, (1, 0), (1, 4)), lax.dynamic_slice(x, (0, 1), (x.shape[0], 2)),
        lax.dynamic_update_slice(x, hnp.zeros((1, 4)), (1, 0)),
    ),
    "composite": lambda x: lax.composite(lambda x: x * x, "my.square")(x),
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
    agree(MATRIX[name], call, *[[array(rows, 4)] for rows in (2, 5)])


def transformer(parameters, tokens):
    """A block of causal attention and one of two layers, with embeddings of tokens and of their places."""
    batch, length = tokens.shape
    x = parameters["embedding"][tokens] + parameters["places"][hnp.arange(length) % 8]
    q, k, v = [hnp.reshape(part, (batch, length, 2, -1)) for part in hnp.split(x @ parameters["heads"], 3, axis=-1)]
    scores = hnp.einsum("bqhd,bkhd->bhqk", q, k) / k.shape[-1] ** 0.5
    scores = hnp.where(hnp.tril(hnp.ones((length, length), bool)), scores, -1e9)
    mixed = hnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v).reshape(batch, length, -1)
    x = nn.standardize(x + mixed)
    x = nn.standardize(x + nn.gelu(x @ parameters["up"]) @ parameters["down"])
    return x @ parameters["embedding"].T


def next_token_loss(parameters, tokens):
    logits = nn.log_softmax(transformer(parameters, tokens)[:, :-1])
    return -hnp.take_along_axis(logits, tokens[:, 1:, None], axis=-1).mean()


def test_a_transformer_with_any_batch_and_length_and_its_gradient():
    sizes = {"embedding": (11, 6), "places": (8, 6), "heads": (6, 18), "up": (6, 12), "down": (12, 6)}
    parameters = {name: array(*size) - 0.5 for name, size in sizes.items()}
    for f in (transformer, hx.value_and_grad(next_token_loss)):
        types = export.symbolic_args_specs((parameters, np.zeros((1, 1), "int32")), (None, "batch, length"))
        call = export.deserialize(export.export(hx.jit(f))(*types).serialize()).call
        tokens = [np.arange(np.prod(shape), dtype=np.int32).reshape(shape) % 11 for shape in ((2, 5), (3, 9))]
        agree(f, call, *[(parameters, each) for each in tokens])


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
    agree(f, call, *[[array(*[eval(size, {"b": b, "n": b + 2}) for size in shape.split(",")])] for b in (1, 3)])


def weights_of(x):
    return hx.grad(lambda w: (lax.conv(x, w, (1, 1), "SAME") ** 2).sum())(hnp.asarray(KERNEL))


@pytest.mark.parametrize(("f", "shape"), [
    (weights_of, "b, 3, 8, 8"), (weights_of, "b, 3, n, n"),
    (lambda x: (hnp.nonzero(x > 0.5, size=3), hnp.argwhere(x > 0.5, size=3), hnp.where(x > 0.5, size=2)), "n"),
    (lambda x: x.at[hnp.where(x > 0.5, size=2)].set(0.0), "n"),
    (lambda x: hnp.repeat(x, hnp.arange(x.shape[0]), total_repeat_length=4), "n"),
    (lambda x: hnp.unique(x, size=3, return_counts=True, return_inverse=True), "n"),
    (lambda x: hx.scipy.special.zeta(x + 1.5, x - 0.5), "b, 4"),
])
def test_functions_that_choose_the_faster_of_two_ways(f, shape):
    call = exported(f, shape).call
    agree(f, call, *[[array(*[eval(size, {"b": b, "n": b + 2}) for size in shape.split(",")])] for b in (1, 3)])


VECTOR = {
    "pad": lambda x: (hnp.pad(x, (0, x.shape[0])), hnp.pad(x, (x.shape[0], 1), mode="edge")),
    "top_k": lambda x: (lax.top_k(x, x.shape[0]), lax.top_k(-x, x.shape[0] // 2 + 1)),
    "gradient of top_k": hx.grad(lambda x: (lax.top_k(x, x.shape[0])[0] * hnp.arange(x.shape[0])).sum()),
    "frequencies": lambda x: (hnp.fft.fftfreq(x.shape[0]), hnp.fft.rfftfreq(x.shape[0], 0.5)),
    "reduce_window": lambda x: lax.reduce_window(x, 0.0, lax.add, (x.shape[0],), (1,), "SAME"),
    "resize": lambda x: [hx.image.resize(x, (x.shape[0] * 2,), how) for how in ("linear", "cubic", "area")],
    "smaller": lambda x: hx.image.resize(x, (x.shape[0] // 2 + 1,), "linear"),
    "toeplitz": lambda x: (hx.scipy.linalg.toeplitz(x), hx.scipy.linalg.hankel(x)),
}


@pytest.mark.parametrize("name", VECTOR)
def test_functions_of_a_vector_take_its_size_as_an_argument(name):
    call = exported(VECTOR[name], "n").call
    agree(VECTOR[name], call, *[[array(n)] for n in (2, 5)])


@pytest.mark.parametrize("f", [
    hnp.fft.fft, hnp.fft.rfft, hnp.fft.irfft, lambda x: hnp.fft.irfft(x, x.shape[0]),
    lambda x: hx.image.resize(x, (4,), "nearest"), lambda x: hnp.hanning(x.shape[0]),
    lambda x: hnp.kaiser(x.shape[0], 2.0),
])
def test_what_needs_a_number_is_refused_by_the_size(f):
    with pytest.raises((NotExportable, TracerIntegerConversionError), match=r"got (n|2\*n-2), a symbolic size"):
        exported(f, "n")


def test_an_effect_of_each_lane_needs_a_known_number_of_lanes():
    f = hx.vmap(lambda row: hx.debug.print("{}", row))
    with pytest.raises(CannotCross, match="must be of a known number, got as many as n, a symbolic size"):
        exported(f, "n")


def test_transforms_have_other_axes_of_symbolic_sizes():
    agree(hnp.fft.rfft, exported(hnp.fft.rfft, "n, 4").call, [array(3, 4)])


FACTORS = {
    "singular vectors": lambda x: hnp.einsum("ij,j,jk", *hnp.linalg.svd(x, full_matrices=False)),
    "qr": lambda x: hnp.matmul(*hnp.linalg.qr(x)),
    "lu": lambda x: hx.scipy.linalg.lu(x),
}
SINGULAR_VALUES = {
    "svd": lambda x: hnp.linalg.svd(x, compute_uv=False),
    "pinv": hnp.linalg.pinv,
    "matrix_rank": hnp.linalg.matrix_rank,
}


@pytest.mark.parametrize("constraints", [(), ("n >= 3",)])
@pytest.mark.parametrize("factors", [
    *FACTORS.values(), *[pytest.param(f, marks=pytest.mark.sweep) for f in SINGULAR_VALUES.values()],
], ids=[*FACTORS, *SINGULAR_VALUES])
def test_factors_of_matrices_with_any_number_of_rows(factors, constraints):
    call = exported(factors, "n, 3", scope=export.SymbolicScope(constraints)).call
    agree(factors, call, *[[array(rows, 3)] for rows in ((3, 5) if constraints else (2, 3, 5))])


def test_sizes_of_results_are_computed_from_those_of_arguments():
    def f(x):
        b = x.shape[0]
        sizes = (b + b, b * b, (b + 13) // b, (b + 13) % b, hx.core.max_dim(b - 5, 0), hx.core.min_dim(b, 3), b**2)
        return [hnp.ones(size) for size in sizes]

    found = exported(f, "b")
    assert [str(t.shape) for t in found.out_avals[:4]] == ["(2*b,)", "(b*b,)", "(floordiv(b+13,b),)", "(mod(b+13,b),)"]
    agree(f, found.call, *[[array(b)] for b in (1, 5, 8)])


def test_a_program_with_symbolic_sizes_is_not_compiled():
    size = hx.ShapeDtypeStruct(export.symbolic_shape("b"), "float32")
    assert estimate(hx.make_program(lambda x: hnp.sin(x) + 1)(size)) is None
    with pytest.raises(NotExportable, match="must be those of arguments of an exported function"):
        hx.jit(lambda x: hnp.zeros(x.shape)).lower(hx.ShapeDtypeStruct(export.symbolic_shape("b"), "float32"))


def test_shard_map_with_symbolic_sizes_is_refused():
    if len(hx.devices()) < 2:
        pytest.skip("two devices")
    mesh = hx.make_mesh((2,), ("i",))
    f = hx.shard_map(hnp.sin, mesh=mesh, in_specs=hx.P("i"), out_specs=hx.P("i"))
    with pytest.raises(NotExportable, match="in shard_map the sizes must be numbers"):
        exported(f, "2*b")
