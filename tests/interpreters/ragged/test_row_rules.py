"""Operations that do not mix along the ragged axis, and products: each equals the loop over lanes."""

from collections import Counter

import numpy as np
import pytest
from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

softmax = hx.nn.softmax


def heads(x):
    scores = hnp.einsum("qd,kd,hd->hqk", x, x, hnp.ones((2, 3)))
    return hnp.einsum("hqk,kd->qhd", softmax(scores, -1), x)


def causal(x):
    place = hnp.arange(x.shape[0])
    return softmax(hnp.where(place[:, None] >= place, x @ x.T, -9.0), -1) @ x


def by_hand(x):
    scores = x @ x.T
    powers = hnp.exp(scores - scores.max(1, keepdims=True, initial=-9.0))
    return (powers / powers.sum(1, keepdims=True)) @ x


def entropy(x):
    shares = softmax(x @ x.T, axis=-1)
    return x - (shares * hnp.log(shares)).sum(1, keepdims=True)


def by_branch(x):
    f = lambda v: lax.cond(v > 0, lambda v: hnp.sin(v) * v, lambda v: v * v - 1, v)
    return hx.vmap(lambda row: hx.vmap(f, group=True)(row).sum())(x)


# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "elementwise": (lambda x: hnp.sin(x) * x + 1, "rows", R),
    "a number of the lane": (lambda x, s: x * s + s, "rows number", R),
    "a vector of the lane": (lambda x, v: x * v, "rows vector", R),
    "what all share": (lambda x, w: x + w[0], "rows shared", R),
    "two of one length": (lambda p: p[0] * p[1], "pair", R),
    "where": (lambda x: hnp.where(x > 0, x, 0.5), "rows", R),
    "transpose": (lambda x: x.T.sum(0), "rows", R),
    "a new axis": (lambda x: x.reshape(x.shape[0], 1, 3).sum(1), "rows", R),
    "rows divided": (lambda x: x.reshape(-1), "rows", R),
    "rows joined": (lambda x: (x.reshape(-1) * 2).reshape(-1, 3), "rows", R),
    "rows repeated": (lambda x: (hnp.tile(x, (2, 1)), x[:, :2].T.reshape(-1)), "rows", (R, R)),
    "a value with a name": (lambda x: lax.optimization_barrier(hx.checkpoint_name(x, "a")), "rows", R),
    "matrices of rows": (lambda x: hnp.linalg.cholesky(hnp.eye(3) + x[:, :, None] * x[:, None]), "rows", R),
    "largest of each row": (lambda x: lax.top_k(x, 2)[0], "rows", R),
    "its length": (lambda x: x * abs(x.shape[0]) + abs(x.shape[0] - 3) + 1 / hnp.maximum(x.shape[0], 1), "rows", R),
    "made of its length": (lambda x: hnp.ones((x.shape[0], 3)).sum(0) * 2 + x.shape[0], "rows", 0),
    "arange": (lambda x: x * hnp.arange(x.shape[0])[:, None], "rows", R),
    "iota": (lambda x: x * lax.iota('float32', x.shape[0])[:, None], "rows", R),
    "beside the axis": (lambda x: hnp.concatenate([hnp.sort(x, 1), hnp.cumsum(x, 1)[:, 1:], x[:, ::-1]], 1), "rows", R),
    "x @ w, shared": (lambda x, w: hnp.tanh(x @ w), "rows shared", R),
    "x @ w, of the lane": (lambda x, w: x @ w, "rows matrix", R),
    "w @ x.T": (lambda x, w: (w @ x.T).sum(1), "rows shared", 0),
    "x.T @ y": (lambda p: p[0].T @ p[1], "pair", 0),
    "rows by rows": (lambda p: hnp.einsum('nd,nd->n', *p), "pair", R),
    "two ragged axes": (lambda x, y: (x @ y.T).sum(1), "rows others", R),
    "attention": (lambda x, w: softmax((x @ w) @ x.T, axis=-1) @ x, "rows shared", R),
    "cross attention": (lambda x, y: softmax(x @ y.T, axis=1) @ y, "rows others", R),
    "heads": (heads, "rows", R),
    "columns of scores": (lambda x: (x @ x.T)[:, hnp.argsort(x[:, 0])] @ x, "rows", R),
    "causal": (causal, "rows", R),
    "rows at the ranks of scores": (lambda x: x[((x @ x.T) > 1).sum(1) - 1], "rows", R),
    "softmax by hand": (by_hand, "rows", R),
    "logarithms of shares": (entropy, "rows", R),
    "scores by logarithms of shares": (lambda x: ((x @ x.T) * hnp.log(softmax(x @ x.T / 9))).sum(1) / 99, "rows", R),
    "shares contracted along the other axis": (lambda x: softmax(x @ x.T).T @ x, "rows", R),
    "shares of all scores": (lambda x: softmax(x @ x.T, axis=(0, 1)) @ x, "rows", R),
    "shares of shares": (lambda x: softmax(softmax(x @ x.T, axis=0), axis=1) @ softmax(x @ x.T) @ x, "rows", R),
    "elements of rows by their branch": (by_branch, "rows", R),
    "matrices of the lane": (lambda x, w: hnp.tanh(x @ w) @ w.T + x, "rows matrix", R),
    "matrices of the lane, reshaped": (lambda x, w: (x @ w).reshape(-1, 1, 2).sum(1), "rows matrix", R),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)


@pytest.mark.parametrize(("queries", "keys"), [((2, 0, 3), (0, 3, 2)), ((40, 3, 0), (0, 33, 70))], ids=str)
def test_attention_to_empty_lanes_is_zero(queries, keys):
    rng = np.random.default_rng(0)
    x, y = [hnp.asarray(rng.standard_normal((sum(n), 3)).astype("float32")) for n in (queries, keys)]
    f = lambda x, y: softmax(x @ y.T) @ y
    mapped = lambda x, y: hx.vmap(f, (R, R), R)(hx.Ragged(x, queries), hx.Ragged(y, keys)).data
    q, k = [np.split(np.arange(sum(n)), np.cumsum(n)[:-1]) for n in (queries, keys)]
    loop = lambda x, y: hnp.concatenate([f(x[i], y[j]) if len(j) else 0 * x[i] for i, j in zip(q, k)])
    np.testing.assert_allclose(mapped(x, y), loop(x, y), rtol=1e-5, atol=1e-5)
    wanted = hx.grad(lambda x, y: hnp.sin(loop(x, y)).sum(), (0, 1))(x, y)
    for a, b in zip(hx.grad(lambda x, y: hnp.sin(mapped(x, y)).sum(), (0, 1))(x, y), wanted):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def operations(f, *lengths):
    """How often each operation occurs in the program of attention over lanes of these known lengths."""
    x = hnp.ones((sum(lengths), 3))
    program = hx.make_program(lambda x: hx.vmap(f, R, R)(hx.Ragged(x, lengths)).data)(x)
    return Counter([op.name for op in program.ops])


def test_lanes_of_one_length_are_neither_moved_nor_masked():
    found = operations(heads, 5, 5, 5)
    assert not found["relocate"] and not found["select_n"] and not found["gather"]


def test_scores_are_masked_once_in_each_bucket_with_padding():
    found = operations(lambda x: softmax(x @ x.T) @ x, 3, 5, 40, 64, 70)
    assert found["dot_general"] == 2 * 3 and found["softmax"] == 3
    assert found["select_n"] == 2  # the third bucket is one lane, as long as its padding


def test_rows_are_divided_where_there_is_more_room_than_the_lanes_can_have():
    f = lambda rows, n: hx.vmap(lambda x: (x.reshape(-1) * 2).reshape(-1, 3), R, R)(hx.Ragged(rows, n, 2)).data
    rows = hnp.arange(27.0).reshape(9, 3)
    assert hnp.allclose(hx.jit(f)(rows, hnp.array([2, 1]))[:3], 2 * rows[:3])
