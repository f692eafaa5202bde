"""Operations that do not mix along the ragged axis, and products: each equals the loop over lanes."""

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
    "its length": (lambda x: x * x.shape[0] + 1 / hnp.maximum(x.shape[0], 1), "rows", R),
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
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)
