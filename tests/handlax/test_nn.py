"""Networks: derivatives at kinks and infinities, masks, attention against its definition, initial values."""

from functools import partial

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax import errors, nn, random

INF = np.inf


def slope(f, x):
    return np.asarray(hx.grad(lambda x: hnp.sum(f(x)))(np.asarray(x, "float32")))


@pytest.mark.parametrize(
    ("f", "x", "wanted"),
    [
        (nn.relu, [0.0, -1.0, 1.0], [0, 0, 1]),
        (nn.relu6, [-1.0, 3.0, 7.0], [0, 1, 0]),
        (nn.softplus, [0.0, -200.0, 200.0], [0.5, 0, 1]),
        (nn.log_sigmoid, [0.0, -200.0, 200.0], [0.5, 1, 0]),
        (nn.elu, [100.0, 0.0], [1, 1]),
        (nn.sparse_plus, [-2.0, 0.0, 2.0], [0, 0.5, 1]),
        (nn.logsumexp, [-INF, -INF], [0, 0]),
        (nn.logsumexp, [-INF, 1.0, 1.0], [0, 0.5, 0.5]),
        (lambda x: nn.softmax(x)[:1], [-INF, 1.0, 1.0], [0, 0, 0]),
        (lambda x: nn.softmax(x, where=np.zeros(3, bool)), [1.0, 1e9, INF], [0, 0, 0]),
        (lambda x: nn.log_softmax(x, where=np.array([True, True, False]))[:1], [0.0, 0.0, INF], [0.5, -0.5, 0]),
    ],
)
def test_derivatives_are_right_and_finite(f, x, wanted):
    np.testing.assert_allclose(slope(f, x), wanted, atol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_of_exponentials_of_complex_numbers_are_those_of_their_definition(dtype, rng):
    z = (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(dtype)
    for far in (0.0, 1e3, -1e3):  # where the exponentials themselves overflow or vanish
        total, logs = nn.logsumexp(z + z.dtype.type(far), 1, keepdims=True), nn.log_softmax(z + z.dtype.type(far), 1)
        powers = np.exp(z)
        sums = powers.sum(1, keepdims=True)
        assert total.dtype == logs.dtype == dtype
        np.testing.assert_allclose(np.exp(total - far), sums, rtol=1e-3 if dtype == "complex64" else 1e-12)
        np.testing.assert_allclose(np.exp(logs), powers / sums, rtol=1e-3 if dtype == "complex64" else 1e-12)


def test_log1mexp_is_exact_at_both_ends():
    x = np.array([1e-6, 0.5, 1.0, 50.0])
    wanted = np.where(x < 0.7, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))
    np.testing.assert_allclose(np.asarray(nn.log1mexp(x)), wanted, rtol=1e-12)


def attend(q, k, v, bias, mask):
    """The definition, head by head."""
    out = np.zeros_like(q)
    share = q.shape[2] // k.shape[2]
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            fits = q[b, :, h] @ k[b, :, h // share].T / np.sqrt(q.shape[-1]) + bias[b, h]
            fits = np.where(mask[b, h], fits, -1e30)
            weights = np.exp(fits - fits.max(-1, keepdims=True))
            out[b, :, h] = weights / weights.sum(-1, keepdims=True) @ v[b, :, h // share]
    return out


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("masked", ["none", "causal", "window", "lengths"])
def test_attention_is_its_definition(groups, masked, rng):
    q = rng.normal(size=(2, 5, 4, 8)).astype("float32")
    k, v = (rng.normal(size=(2, 5, groups, 8)).astype("float32") for _ in range(2))
    bias = rng.normal(size=(2, 4, 5, 5)).astype("float32")
    i, j = np.indices((5, 5))
    lengths = np.array([3, 5], "int32")
    seen, options = {
        "none": (np.ones((5, 5), bool), {}),
        "causal": (i >= j, {"is_causal": True}),
        "window": ((i - j <= 1) & (j - i <= 2), {"local_window_size": (1, 2)}),
        "lengths": (j[None, None] < lengths[:, None, None, None], {"key_value_seq_lengths": lengths}),
    }[masked]
    found = nn.dot_product_attention(q, k, v, bias, **options)
    wanted = attend(q, k, v, bias, np.broadcast_to(seen, (2, 4, 5, 5)))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-5, atol=2e-6)


def test_attention_of_doubles_is_exact_to_their_precision(rng):
    q, k, v = (rng.normal(size=(1, 5, 2, 4)) for _ in range(3))
    found = nn.dot_product_attention(q, k, v, mask=np.tri(5, dtype=bool)[None, None])
    wanted = attend(q, k, v, np.zeros((1, 2, 5, 5)), np.broadcast_to(np.tri(5, dtype=bool), (1, 2, 5, 5)))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-13, atol=1e-15)


def test_attention_refuses_heads_that_do_not_divide():
    q, k = np.ones((1, 2, 3, 4), "float32"), np.ones((1, 2, 2, 4), "float32")
    with pytest.raises(hx.errors.ShapeMismatch, match="multiple"):
        nn.dot_product_attention(q, k, k)


@pytest.mark.parametrize(
    "name", ["glorot_uniform", "glorot_normal", "lecun_uniform", "lecun_normal", "he_uniform", "he_normal"]
)
def test_initial_values_have_the_variance_of_their_family(name):
    x = np.asarray(getattr(nn.initializers, name)()(hx.random.key(0), (200, 300)))
    wanted = {"glorot": 2 / 500, "lecun": 1 / 200, "he": 2 / 200}[name.split("_")[0]]
    np.testing.assert_allclose(x.var(), wanted, rtol=0.03)
    np.testing.assert_allclose(x.mean(), 0, atol=0.01)


def test_standardized_values_have_mean_zero_and_variance_one(rng):
    x = rng.normal(size=(3, 50)) * 4 + 2
    for algorithm in ("fast", "stable"):
        y = np.asarray(nn.standardize(x, algorithm=algorithm))
        np.testing.assert_allclose(y.mean(-1), 0, atol=1e-12)
        np.testing.assert_allclose(y.var(-1), 1, rtol=1e-5)


def test_no_variance_is_negative():
    for x in (np.float32([-11, -11, -11]) + np.float32(3e-6), np.float32([1e6, 1e6 + 1, 1e6 + 2])):
        assert np.isfinite(nn.standardize(x)).all()


# The slopes of activations far to the left and to the right; the second derivatives are 0
FAR_SLOPES = {
    "celu": (0, 1), "elu": (0, 1), "gelu": (0, 1), "hard_sigmoid": (0, 0), "hard_silu": (0, 1), "hard_tanh": (0, 0),
    "leaky_relu": (0.01, 1), "log_sigmoid": (1, 0), "mish": (0, 1), "relu": (0, 1), "relu6": (0, 0),
    "selu": (0, 1.0507), "sigmoid": (0, 0), "silu": (0, 1), "soft_sign": (0, 0), "softplus": (0, 1),
    "sparse_plus": (0, 1), "sparse_sigmoid": (0, 0), "squareplus": (0, 1), "tanh": (0, 0),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("way", [lambda f: f, hx.jit])
@pytest.mark.parametrize("name", [*FAR_SLOPES, "exact gelu"])
def test_derivatives_are_those_of_the_asymptotes_to_the_ends_of_the_range(name, way):
    f = partial(nn.gelu, approximate=False) if name == "exact gelu" else getattr(nn, name)
    left, right = FAR_SLOPES[name.split()[-1]]
    right_ends = []
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        largest = float(hnp.finfo(dtype).max)
        right_ends.append(hnp.asarray([300.0, 2 * largest**0.5, largest / 8, largest / 1.5, largest], dtype))
    ends = [(sign * x, wanted) for x in right_ends for sign, wanted in ((1, right), (-1, left))]
    slope = hx.grad(f)
    derivatives = (slope, lambda v: hx.jvp(f, (v,), (hnp.ones_like(v),))[1], hx.grad(slope))
    everything = way(lambda xs: [[f(x), *[hx.vmap(derivative)(x) for derivative in derivatives]] for x in xs])
    for (x, wanted), found in zip(ends, everything([x for x, _ in ends]), strict=True):
        values, *slopes, second = [np.asarray(y, "float64") for y in found]
        for each in slopes:
            np.testing.assert_allclose(each, wanted, rtol=0.01, atol=1e-4, err_msg=str(x.dtype))
        np.testing.assert_allclose(second, 0, atol=1e-4, err_msg=str(x.dtype))
        if wanted == 1:
            np.testing.assert_allclose(values, np.asarray(x, "float64"), rtol=0.01, err_msg=str(x.dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_log1mexp_below_its_domain_has_no_derivative(dtype):
    x = -hnp.asarray([0.1, 1.0, 20.0, 88.0, 100.0, 300.0, np.inf], dtype)
    for way in (lambda f: f, hx.jit):
        for f in (nn.log1mexp, hx.grad(nn.log1mexp), hx.grad(hx.grad(nn.log1mexp))):
            assert np.isnan(way(hx.vmap(f))(x)).all()
        tangent = way(lambda x: hx.jvp(nn.log1mexp, (x,), (hnp.ones_like(x),))[1])
        assert np.isnan(tangent(x)).all()


@pytest.mark.parametrize("f", [nn.relu, nn.hard_tanh])
def test_booleans_are_numbers_to_an_activation(f):
    y = f(np.array([True, False]))
    assert y.dtype == "int32"
    assert y.tolist() == [1, 0]


def test_one_hot_takes_lists():
    assert nn.one_hot([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_there_is_no_negative_number_of_classes():
    with pytest.raises(hx.errors.BadArgument, match="num_classes must not be negative, got -1"):
        nn.one_hot(np.array([0]), -1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_scaled_matmul_is_the_product_of_scaled_blocks(dtype):
    rng = np.random.default_rng(3)
    x, y, s, t = [rng.normal(size=shape).astype("float32") for shape in ((2, 3, 8), (2, 5, 8), (2, 3, 4), (2, 5, 1))]
    wanted = np.einsum("bmk,bnk->bmn", x * np.repeat(s, 2, -1), y * np.repeat(t, 8, -1))
    found = hx.nn.scaled_matmul(x, y, s, t, preferred_element_type=dtype)
    assert found.dtype == dtype
    np.testing.assert_allclose(np.asarray(found, "float32"), wanted, rtol=1e-5 if dtype == "float32" else 1e-2)
    small = hx.nn.scaled_matmul(x.astype("float8_e4m3fn"), y.astype("float8_e4m3fn"), s, t)
    np.testing.assert_allclose(small, wanted, atol=0.5)
    with pytest.raises(hx.errors.ShapeMismatch, match="batches of matrices"):
        hx.nn.scaled_matmul(x[0], y[0], s[0], t[0])
    with pytest.raises(hx.errors.ShapeMismatch, match="rhs_scale"):
        hx.nn.scaled_matmul(x, y, s, t[:, :, :0])


@pytest.mark.parametrize(("shape", "axis"), [
    ((4, 2), -1), ((2, 4), -1), ((3, 3), 0), ((2, 3, 4), 1), ((2, 3, 8), 0), ((0, 2), -1),
])
def test_orthogonal_initializers_have_orthonormal_rows_or_columns(shape, axis):
    w = nn.initializers.orthogonal(2.0, axis)(hx.random.key(1), shape)
    columns = np.moveaxis(np.asarray(w), axis, 0).reshape(shape[axis], -1)
    gram = columns @ columns.T if columns.shape[0] <= columns.shape[1] else columns.T @ columns
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-5)
    drawn = hx.random.orthogonal(hx.random.key(1), columns.shape[1], m=columns.shape[0])
    np.testing.assert_array_equal(columns.T, 2.0 * drawn)
    with pytest.raises(hx.errors.ShapeMismatch):
        nn.initializers.orthogonal()(hx.random.key(1), (3,))


def test_delta_orthogonal_kernels_are_a_matrix_in_the_middle():
    for shape, middle in (((3, 2, 4), (1,)), ((4, 3, 2, 2), (1, 1)), ((1, 2, 3, 1, 2), (0, 0, 1))):
        w = np.asarray(nn.initializers.delta_orthogonal()(hx.random.key(2), shape))
        np.testing.assert_allclose(w[middle] @ w[middle].T, np.eye(shape[-2]), atol=1e-6)
        assert np.count_nonzero(w) == w[middle].size
    for shape in ((3, 4, 2), (3, 3)):
        with pytest.raises(hx.errors.ShapeMismatch):
            nn.initializers.delta_orthogonal()(hx.random.key(2), shape)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(("n", "m"), [(3, None), (2, 4), (4, 2), (0, None)])
def test_random_orthogonal_matrices(n, m, dtype):
    q = np.asarray(hx.random.orthogonal(hx.random.key(0), n, (2,), dtype, m))
    assert q.shape == (2, n, n if m is None else m) and q.dtype == dtype
    turned = q.conj().swapaxes(1, 2)
    gram = q @ turned if m is None or n <= m else turned @ q
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_squareplus_of_large_numbers_neither_cancels_nor_overflows(dtype, way):
    x = np.array([-1e4, -300.0, -2.0, -0.0, 0.0, 2.0, 300.0, 1e4]).astype(hnp.dtype(dtype))
    wide = x.astype("float64")
    root = np.sqrt(wide**2 + 4)
    wanted = np.where(wide < 0, 2 / (root + abs(wide)), (wide + root) / 2).astype(x.dtype).astype("float64")
    got = np.asarray(way(nn.squareplus)(x)).astype("float64")
    np.testing.assert_allclose(got, wanted, rtol=2 * float(hnp.finfo(dtype).eps), atol=float(hnp.finfo(dtype).tiny))
    slope = way(hx.vmap(hx.grad(nn.squareplus)))(x)
    assert np.isfinite(np.asarray(slope).astype("float64")).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_activations_of_infinities_and_at_kinks(dtype):
    x = np.array([-np.inf, np.inf], dtype)
    for f in (nn.squareplus, hx.jit(nn.squareplus)):
        assert f(x).tolist() == [0.0, np.inf]
        assert hx.vmap(hx.grad(f))(x).tolist() == [0.0, 1.0]
    assert [hx.grad(hx.grad(nn.sparse_plus))(np.asarray(v, dtype)) for v in (-1, 1)] == [0.0, 0.0]


@pytest.mark.parametrize("name", [
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform", "variance_scaling",
])
def test_an_initializer_by_fans_names_itself(name):
    options = (1.0, "fan_in", "normal") if name == "variance_scaling" else ()
    make = getattr(nn.initializers, name)
    with pytest.raises(errors.ShapeMismatch, match=rf"^{name}: the shape must have two dimensions.*got \(3,\)"):
        make(*options)(random.key(0), (3,))
    with pytest.raises(errors.BadArgument, match=rf"^{name}: "):
        make(*options)(random.key(0), (-3, 2))
