"""Reductions over windows by functions that users write, of trees, from starts that are no units."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax.errors import BadArgument, CannotCross, DTypeMismatch, ShapeMismatch


def test_starts_and_what_no_window_reads_have_derivatives():
    x = np.random.default_rng(0).uniform(0.5, 2.0, (6,))
    f = lambda start, x: lax.reduce_window(x, start, lax.mul, (2,), (3,), ((1, 0),))
    np.testing.assert_allclose(np.asarray(f(3.0, x)), [3 * x[0], 3 * x[2] * x[3]])
    hx.test_util.check_grads(f, (3.0, x), order=2)
    starts = np.array([1.0, 2.0])
    expected = [np.asarray(f(start, x)) for start in starts]
    np.testing.assert_allclose(np.asarray(hx.vmap(f, (0, None))(starts, x)), expected)


@pytest.mark.parametrize("size", [2, 80])
def test_the_start_is_part_of_every_window(size):
    with hx.configure(disable_jit=True):
        y = lax.reduce_window(np.ones(81), 5.0, lambda a, b: a + 1 * b, (size,), padding="VALID")
    assert y.tolist() == [size + 5.0] * (82 - size)


def test_trees_are_reduced_together():
    x, i = np.array([3.0, 9.0, 1.0, 9.0]), np.arange(4)

    def larger(a, b):
        first = (a["x"] > b["x"]) | ((a["x"] == b["x"]) & (a["i"] < b["i"]))
        return {name: hx.numpy.where(first, a[name], b[name]) for name in a}

    y = lax.reduce_window({"x": x, "i": i}, {"x": -np.inf, "i": 99}, larger, (2,))
    assert y["x"].tolist() == [9.0, 9.0, 9.0] and y["i"].tolist() == [1, 1, 3]


def test_complex_numbers_are_added_and_multiplied():
    x = np.array([1 + 2j, 3 - 1j, 2j])
    assert lax.reduce_window(x, 0, lax.add, (2,)).tolist() == [4 + 1j, 3 + 1j]
    np.testing.assert_allclose(np.asarray(lax.reduce_window(x, 1, lax.mul, (2,))), x[1:] * x[:-1])


@pytest.mark.parametrize(
    ("error", "said", "change"),
    [
        (ShapeMismatch, "one entry for each", {"window_dimensions": (2,)}),
        (ShapeMismatch, "one entry for each", {"window_strides": (2,)}),
        (ShapeMismatch, "one entry for each", {"padding": ((0, 0),)}),
        (ShapeMismatch, "at least 1", {"window_dimensions": (2, 0)}),
        (ShapeMismatch, "at least 1", {"base_dilation": (0, 1)}),
        (BadArgument, "sequence of integers", {"window_dilation": 2}),
        (BadArgument, "form a tree like", {"init_value": (0.0, 1.0)}),
        (DTypeMismatch, "must give", {"computation": lambda a, b: a + b > 0}),
        (DTypeMismatch, "must have the operands' dtypes", {"init_value": np.ones((), np.int32)}),
        (CannotCross, "must be pure", {"computation": lambda a, b: (hx.library.sow(a, "a"), a + b)[1]}),
    ],
)
def test_what_does_not_fit_is_refused(error, said, change):
    arguments = {
        "operand": np.ones((3, 4)), "init_value": 2.0, "computation": lax.add, "window_dimensions": (2, 2), **change
    }
    with pytest.raises(error, match=said):
        lax.reduce_window(**arguments)


@pytest.mark.parametrize("sizes", [(2, 3), (9, 9)])
def test_windows_are_folded_from_the_first_element_on_and_large_ones_by_halves(sizes):
    x = np.random.default_rng(0).standard_normal((12, 11))
    window = (sizes, (2, 1), ((3, 1), (0, 4)), (1, 2), (1, 1))
    matrices = lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1])  # composition of affine maps: the order matters
    f = lambda x: lax.reduce_window((x, x + 1), (0.9, 0.3), matrices, *window)
    with hx.configure(disable_jit=True):
        y = f(x)
    for a, b in zip(hx.jit(f)(x), y):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10)
    if sizes == (2, 3):
        g = lambda x: lax.reduce_window(x, 0.5, lambda a, b: a - 2 * b, *window)  # not associative
        with hx.configure(disable_jit=True):
            y = g(x)
        np.testing.assert_allclose(np.asarray(hx.jit(g)(x)), np.asarray(y), rtol=1e-10)
        hx.test_util.check_grads(g, (x,), order=1)
