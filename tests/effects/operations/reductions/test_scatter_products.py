"""Derivatives of every order of products of factors at indices, for factors of any value, several of them 0 too."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax, ops
from handlax import numpy as hnp

ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
WINDOWS = lax.ScatterDimensionNumbers((1,), (), (0,))
BATCHES = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
CASES = {  # dimension numbers, shapes of operand, indices and updates
    "elements": (lax.ScatterDimensionNumbers((), (0,), (0,)), (3,), (5, 1), (5,)),
    "one element": (lax.ScatterDimensionNumbers((), (), ()), (), (3, 0), (3,)),
    "rows": (ROWS, (2, 2), (3, 1), (3, 2)),
    "windows": (WINDOWS, (4,), (3, 1), (3, 2)),
    "batches": (BATCHES, (2, 2), (2, 3, 1), (2, 3)),
    "none": (ROWS, (2, 2), (0, 1), (0, 2)),
}


def one_by_one(numbers, i, x, u, mode):
    """The product as multiplications of all elements, by each update in its place and by 1 elsewhere."""
    places = []
    for index in np.ndindex(u.shape):
        here = np.zeros(u.shape)
        here[index] = 1
        places.append((index, np.asarray(lax.scatter_add(np.zeros(x.shape), i, here, numbers, mode=mode)) == 1))

    def multiplied(x, u):
        for index, place in places:
            x = x * hnp.where(place, u[index], 1.0)
        return x

    return multiplied


def derivatives(f, order, *xs):
    """The values of all derivatives up to this order, by the operand and the updates, forwards and backwards."""
    for step in (hx.jacfwd, hx.jacrev, hx.jacfwd)[:order]:
        f = step(f, (0, 1))
    return hx.tree.leaves(f(*xs))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_multiplications_one_by_one(name, mode, compiled):
    numbers, *shapes = CASES[name]
    rng = np.random.default_rng(0)
    x, u = [np.where(rng.random(s) < 0.6, 0.0, rng.normal(size=s)) for s in (shapes[0], shapes[2])]
    i = rng.integers(-1, 4, shapes[1])
    ours, reference = lambda x, u: lax.scatter_mul(x, i, u, numbers, mode=mode), one_by_one(numbers, i, x, u, mode)
    for order in (1, 2, 3) if compiled else (1, 2):
        found = derivatives(hx.jit(ours) if compiled else ours, order, x, u)
        wanted = hx.jit(lambda x, u, order=order: derivatives(reference, order, x, u))(x, u)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_two_factors_that_are_0_have_a_second_derivative():
    at_one_place = lambda q: hnp.ones(1).at[hnp.array([0, 0])].multiply(q)[0]
    in_a_segment = lambda q: ops.segment_prod(q, np.array([0, 0]), 1)[0]
    for f in (at_one_place, in_a_segment):
        assert hx.hessian(f)(hnp.zeros(2)).tolist() == [[0, 1], [1, 0]]


def test_derivatives_in_lanes_whose_indices_and_factors_differ():
    i, u = np.array([[0, 0, 1], [1, 1, 1]]), np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 2.0]])
    f = lambda i, u: ops.segment_prod(u, i, 2).sum()
    second = lambda i, u: hx.hessian(lambda u: f(i, u))(u)
    alone = [second(*lane) for lane in zip(i, u)]
    np.testing.assert_array_equal(hx.vmap(second)(i, u), alone)
    together = lambda u: hx.vmap(f)(i, u).sum()
    np.testing.assert_array_equal(np.einsum("ajak->ajk", hx.hessian(together)(u)), alone)


def test_derivatives_in_lanes_of_different_lengths():
    u, lengths = hnp.array([0.0, 0.0, 2.0, 0.0, 0.0]), (3, 0, 2)
    f = lambda v: ops.segment_prod(v, hnp.zeros(v.shape, "int32"), 1)[0]
    for ragged in (lengths, hnp.array(lengths)):
        total = lambda u: hx.vmap(f, hx.ragged_axis)(hx.Ragged(u, ragged, longest=3)).sum()
        second = np.asarray(hx.hessian(total)(u))
        assert np.argwhere(second).tolist() == [[0, 1], [1, 0], [3, 4], [4, 3]]
        assert second[0, 1] == 2 and second[3, 4] == 1
