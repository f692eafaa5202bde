"""Operators, indexing, methods and properties of arrays."""

from typing import Any, assert_type

import numpy as np

import handlax as hx
from handlax import Array
from handlax.scipy import linalg, special, stats
from handlax.scipy.cluster.vq import vq
from handlax.scipy.optimize import minimize
from handlax.scipy.spatial.transform import Rotation
from handlax.typing import ArrayLike


def operators(x: Array, n: int) -> Array:
    assert_type(x + x, Array)
    assert_type(2.0 * x - n, Array)
    assert_type(x @ x.T, Array)
    assert_type(1 / x // x % 2, Array)
    assert_type(-abs(x) ** 2, Array)
    assert_type(divmod(x, 2), tuple[Array, Array])
    assert_type((x > 1) | (x == 0) & ~(x != x), Array)
    assert_type(round(x), Array)
    assert_type(2 ** x.astype(int) << 1, Array)
    return +x


def elements(x: Array) -> float:
    assert_type(x[0], Array)
    assert_type(x[..., None, 1:2], Array)
    assert_type(x[x > 0], Array)
    assert_type(x.at[0].set(1.0), Array)
    assert_type(x.at[x > 0, 0].add(2, mode="drop") if x.ndim > 2 else x.at[0].get(), Array)
    assert_type([row.sum(axis=0) for row in x], list[Array])
    assert_type(len(x), int)
    assert_type(0.5 in x[0], bool)
    if x.any() and x.size:
        assert_type(int(x[0, 0]), int)
    return float(x.max())


def facts(x: Array) -> tuple[int, ...]:
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.T.real, Array)
    assert_type(x.ndim + x.size, int)
    assert_type(x.reshape(-1).sum(keepdims=True, dtype="float32"), Array)
    assert_type(x.mean(axis=(0, 1)).item(), Any)
    assert_type(np.asarray(x).ndim, int)
    assert_type(x.block_until_ready(), Array)
    return x.shape


def of_numbers_too(x: ArrayLike) -> Array:
    return hx.numpy.asarray(x)


x = hx.numpy.array([[1.0, 2.0], [3.0, 4.0]])
assert_type(operators(x, 3), Array)
assert_type(elements(x), float)
assert_type(facts(x), tuple[int, ...])
assert_type(of_numbers_too(2) + of_numbers_too(np.ones(3)), Array)

assert_type(stats.norm.logpdf(x), Any)
assert_type(stats.dirichlet.logpdf(x[0], x[0]), Array)
assert_type(stats.gaussian_kde(x[0]).evaluate(x[0]) + stats.gaussian_kde(x[0]).weights, Array)
assert_type(linalg.schur(x), tuple[Array, Array])
assert_type(hx.numpy.linalg.qr(x).R @ hx.numpy.linalg.svd(x).S + hx.numpy.linalg.slogdet(x).sign, Array)
assert_type(hx.numpy.linalg.svd(x, compute_uv=False), Array)
assert_type(hx.numpy.linalg.qr(x, "r"), Array)
assert_type(hx.numpy.unique(x), Array)
assert_type(hx.numpy.unique(x, return_counts=True), tuple[Array, ...])
assert_type(linalg.cho_factor(x), tuple[Array, bool])
assert_type(linalg.polar(x)[1] @ special.erf(x), Array)
assert_type(vq(x, x), tuple[Array, Array])
assert_type(Rotation.from_euler("xy", x).as_matrix(), Array)
assert_type(minimize(lambda v: (v * v).sum(), x[0], method="BFGS").x, Array)
