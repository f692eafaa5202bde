"""Operations that mix along the ragged axis, and reading at a place of it: each equals the loop over lanes."""

import numpy as np
import pytest
from helpers.ragged_lanes import R, RaggedCase, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

softmax = hx.nn.softmax


def of_matrices(x):
    """Give a system with a matrix of its own for each row, solved, times the matrix's determinant."""
    a = x[:, :, None] * x[:, None, :] + hnp.eye(x.shape[1], dtype=x.dtype)
    return hnp.linalg.solve(a, x[..., None])[..., 0] * hnp.linalg.det(a)[:, None]

WEIGHTS = hnp.asarray(np.sin(np.arange(18)).reshape(3, 3, 2), "float32")
LAST = {"dimension_numbers": ("NWC", "WIO", "NWC")}

# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "sum": (lambda x: x.sum(0), "rows", 0),
    "sum over all": (lambda x: (x * x).sum(), "rows", 0),
    "sum over others": (lambda x: x.sum(1), "rows", R),
    "max": (lambda x: hnp.max(x, 0, initial=-9.0), "rows", 0),
    "min, prod": (lambda x: (hnp.min(x, initial=9.0), x.prod(0)), "rows", 0),
    "any, all": (lambda x: ((x > 1).any(), (x > -3).all(0)), "rows", 0),
    "argmax": (lambda x, v: hnp.argmax(hnp.concatenate([x, v[None]]), 0), "rows vector", 0),
    "argmin": (lambda x, v: hnp.argmin(hnp.concatenate([x, v[None]]), 0), "rows vector", 0),
    "mean, var": (lambda x, v: [f(hnp.concatenate([x, v[None]]), 0) for f in (hnp.mean, hnp.var)], "rows vector", 0),
    "logsumexp": (lambda x: hx.nn.logsumexp(x, axis=0), "rows", 0),
    "softmax": (lambda x: softmax(x, axis=0), "rows", R),
    "norm of each row": (lambda x: (x - x.mean(1, keepdims=True)) / hnp.sqrt(x.var(1, keepdims=True) + 0.1), "rows", R),
    "any fold": (lambda x: lax.reduce(x, hnp.float32(0), lambda a, b: a + b + a * b, (0,)), "rows", 0),
    "covariance": (lambda x, v: hnp.cov(hnp.concatenate([x, v[None]]).T), "rows vector", 0),
    "map in batches": (lambda x: lax.map(lambda row: row * row.sum(), x, batch_size=2), "rows", R),
    "cumsum": (lambda x: hnp.cumsum(x, 0), "rows", R),
    "cumsum backwards": (lambda x: lax.cumsum(x, 0, reverse=True), "rows", R),
    "cumprod": (lambda x: lax.cumprod(x, 0), "rows", R),
    "cummax": (lambda x: (lax.cummax(x, 0), lax.cummin(x, 0, reverse=True)), "rows", R),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 0, reverse=True), "rows", R),
    "sort": (lambda x: hnp.sort(x, 0), "rows", R),
    "argsort": (lambda x: hnp.argsort(x, 0), "rows", R),
    "flip": (lambda x: (hnp.flip(x, 0), hnp.flip(x)), "rows", R),
    "pad": (lambda x: hnp.pad(x, ((1, 2), (0, 1)), constant_values=5), "rows", R),
    "search": (lambda x: hnp.searchsorted(hnp.sort(x[:, 0]), 0.0), "rows", 0),
    "from the end": (lambda x: x[::-1, 1:], "rows", R),
    "one column replaced": (lambda x: x.at[:, 0].set(1.0), "rows", R),
    "rows counted": (lambda x: hnp.zeros(5).at[hnp.abs(x[:, 0] * 9).astype(int) % 5].add(x[:, 1]), "rows", 0),
    "concatenate": (lambda x: hnp.concatenate([x, 2 * x]), "rows", R),
    "concatenate two": (lambda x, y: hnp.concatenate([x, y, x]), "rows others", R),
    "rows of the lane around": (lambda x, v: hnp.concatenate([v[None], x, 2 * v[None]]), "rows vector", R),
    "embedding": (lambda x, w: w[hnp.abs(x[:, 0] * 10).astype(int) % 3], "rows shared", R),
    "take": (lambda p: hnp.take(p[0], hnp.argsort(p[1][:, 0]), axis=0), "pair", R),
    "a matrix for each row": (of_matrices, "rows", R),
    "signals": (lambda x, w: lax.conv_general_dilated(x[:, None], w[:, None, :2], (1,), "SAME"), "rows shared", R),
    "windows of each row": (lambda x: lax.reduce_window(x, -hnp.inf, lax.max, (1, 2), (1, 1), "VALID"), "rows", R),
    "take along": (lambda x: hnp.take(x, hnp.array([0, 2]), axis=1), "rows", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("name", ["x[k]", "x[0], x[-1]"])
def test_elements_of_lanes_that_have_them(name, static):
    f = {"x[k]": lambda x, s: x[hnp.abs(s).astype(int)], "x[0], x[-1]": lambda x, s: x[0] + 2 * x[-1]}[name]
    case = RaggedCase(f, "rows number", 0, [3, 4, 5], static)
    case.check(*case.computed(case.args, case.data))


def test_folds_of_an_empty_lane_are_units():
    x = hx.Ragged(hnp.ones(2), (0, 2))
    folds = hx.vmap(lambda x: (x.sum(), x.prod(), lax.reduce_max(x, (0,))), R)(x)
    assert [float(y[0]) for y in folds] == [0, 1, -hnp.inf]


FACTORS = {
    "a factor": lambda x: hnp.sin(lax.linalg.cholesky(x @ x.T + hnp.eye(x.shape[0]))) @ x,
    "another factor": lambda x: abs(lax.linalg.qr(x @ x.T + hnp.eye(x.shape[0]))[1]) @ x,
    "eigenvalues": lambda x: lax.linalg.eigh(x @ x.T + hnp.eye(x.shape[0]))[1][:, None] * x,
    "a triangular system": lambda x: lax.linalg.triangular_solve(
        lax.linalg.cholesky(x @ x.T + hnp.eye(x.shape[0])), x, left_side=True, lower=True),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("lengths", [[3, 1, 4, 1], [3, 0, 40, 1, 3, 35, 2]], ids=str)
@pytest.mark.parametrize("name", FACTORS)
def test_matrices_of_two_known_lengths_are_decomposed_with_those_of_their_size(name, lengths):
    case = RaggedCase(FACTORS[name], "rows", R, lengths, True)
    case.check(hx.jit(lambda *xs: case.mapped(*xs))(*case.args), hx.grad(case.loss)(case.data))


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("f", [
    lambda e: e / e.sum(1, keepdims=True), lambda e: e * (1 / e.sum(1, keepdims=True)),
    lambda e: e * hnp.log(e.sum(1, keepdims=True)),
])
def test_a_lane_that_is_empty_along_another_axis_has_finite_gradients(f, static):
    n, m = (3, 1, 4), (2, 0, 3)
    rows, others = hnp.linspace(0.1, 1, 8), hnp.linspace(-1, 1, 5)
    lane = lambda a, b: (hnp.sin(f(hnp.exp(a[:, None] * b))) * b).sum()

    def mapped(rows, others):
        x, y = [hx.Ragged(v, k if static else hnp.array(k)) for v, k in ((rows, n), (others, m))]
        return hx.vmap(lane, in_axes=(R, R))(x, y).sum()

    def loop(rows, others):
        return sum([lane(a, b) for a, b in zip(hx.Ragged(rows, n).to_list(), hx.Ragged(others, m).to_list())])

    for a, b in zip(*[hx.grad(g, (0, 1))(rows, others) for g in (mapped, loop)]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_a_callback_whose_result_has_the_length_of_the_lane(method):
    def doubled(x):
        return hx.pure_callback(lambda x: 2 * np.asarray(x), x.type, x, vmap_method=method)

    rows = hnp.arange(8.0)
    assert (hx.vmap(doubled, R, R)(hx.Ragged(rows, (3, 1, 4))).data == 2 * rows).all()
    with pytest.raises(hx.errors.MissingRule, match="depends on the length as a whole"):
        hx.jit(lambda n: hx.vmap(doubled, R, R)(hx.Ragged(rows, n)).data)(hnp.array([3, 1, 4]))


def test_windows_are_computed_where_lengths_are_known():
    convolve = lambda x: lax.conv_general_dilated(x[None], WEIGHTS, (2,), ((2, 1),), (2,), **LAST)[0]
    largest = lambda x: lax.reduce_window(x, 1.0, lambda a, b: a * b, (2, 1), padding=((1, 0), (0, 0)))
    rows, lengths = hnp.sin(hnp.arange(24.0)).reshape(8, 3), (3, 0, 4, 1)
    for f in (convolve, largest, lambda x: hx.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2)).sum())(x)):
        ys = hx.vmap(f, R, R)(hx.Ragged(rows, lengths)).to_list()
        for x, y in zip(hx.Ragged(rows, lengths).to_list(), ys, strict=True):
            np.testing.assert_allclose(np.asarray(y), np.asarray(f(x)), rtol=1e-5, atol=1e-5)
        with pytest.raises(hx.errors.MissingRule, match="length"):
            hx.jit(lambda k: hx.vmap(f, R, R)(hx.Ragged(rows, k, 4)).data)(hnp.array(lengths))


# of a ragged axis before theirs for any lengths; along theirs where lengths are known
MATRICES_AND_WINDOWS = {
    "det": lambda x: hnp.linalg.det(x),
    "qr": lambda x: hnp.linalg.qr(x)[1],
    "lu": lambda x: lax.linalg.lu(x)[0],
    "solve": lambda x: hnp.linalg.solve(x, x[..., :1]),
    "sums of windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 1), (1, 1, 1), "VALID"),
}


@pytest.mark.parametrize("name", MATRICES_AND_WINDOWS)
def test_matrices_and_windows_of_each_row(name):
    f, rng = MATRICES_AND_WINDOWS[name], np.random.default_rng(0)
    x = hx.Ragged(rng.standard_normal((8, 3, 3)).astype("float32"), hnp.array([3, 0, 4]))
    found = hx.jit(hx.vmap(f, R, R))(x)
    wanted = [f(row) for row in x.to_list()]
    np.testing.assert_allclose(found.data[:7], hnp.concatenate(wanted), rtol=1e-4, atol=1e-5)


def test_windows_of_lanes_that_are_all_empty():
    windows = lambda r: lax.reduce_window(r, 0.0, lax.add, (2,), (1,), "SAME")
    for f in (hx.vmap(windows, R, R), hx.jit(hx.vmap(windows, R, R))):
        assert [row.tolist() for row in f(hx.Ragged(hnp.zeros(0), (0, 0), 3)).to_list()] == [[], []]
