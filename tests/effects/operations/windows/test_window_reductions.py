"""Reductions over windows against their definition as a loop over the elements of each window."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import lax


def windows_of(shape, sizes, strides, padding, base, dilation):
    """Give for each window, by its place, the indices of the elements that it reads, in row-major order."""
    length = [(n - 1) * b + 1 if n else 0 for n, b in zip(shape, base)]
    reach = [(k - 1) * d + 1 for k, d in zip(sizes, dilation)]
    rows = zip(length, reach, strides, padding)
    count = [max(0, (low + n + high - k) // s + 1) for n, k, s, (low, high) in rows]
    found = {}
    for place in product(*map(range, count)):
        read = []
        for k in product(*map(range, sizes)):
            at = [p * s + i * d - low for p, s, i, d, (low, _) in zip(place, strides, k, dilation, padding)]
            if all(not a % b and 0 <= a // b < n for a, b, n in zip(at, base, shape)):
                read.append(tuple([a // b for a, b in zip(at, base)]))
        found[place] = read
    return count, found


FUNCTIONS = {"sum": (lax.add, 0.0), "max": (lax.max, -np.inf), "min": (lax.min, np.inf), "product": (lax.mul, 1.5)}


def definition(name, x, *window):
    """Give the result and the matrix of its derivative."""
    _, start = FUNCTIONS[name]
    count, windows = windows_of(x.shape, *window)
    y, jacobian = np.empty(count), np.zeros((*count, *x.shape))
    for place, read in windows.items():
        values = [x[i] for i in read]
        if name == "sum":
            y[place] = sum(values, start)
            slopes = [1.0] * len(read)
        elif name == "product":
            y[place] = start * np.prod(values)
            slopes = [start * np.prod(values[:i] + values[i + 1 :]) for i in range(len(read))]
        else:
            y[place] = (max if name == "max" else min)([start, *values])
            slopes = [float(value == y[place]) for value in values]
        for i, slope in zip(read, slopes):
            jacobian[(*place, *i)] += slope
    return y, jacobian


@st.composite
def windows(draw):
    """An array of float64 of distinct elements, and all parameters."""
    rank = draw(st.integers(0, 2))
    one_to = lambda high: st.tuples(*[st.integers(1, high)] * rank)
    shape = draw(st.tuples(*[st.integers(0, 5)] * rank))
    sizes, strides, base, dilation = (draw(one_to(high)) for high in (draw(st.sampled_from([3, 9])), 3, 3, 3))
    padding = []
    for n, b in zip(shape, base):
        size = (n - 1) * b + 1 if n else 0
        low = draw(st.integers(-min(size, 2), 3))
        padding.append((low, draw(st.integers(-min(size + low, 2), 3))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.permutation(np.linspace(-2.0, 2.0, int(np.prod(shape)))).reshape(shape)
    return x, (sizes, strides, tuple(padding), base, dilation)


def check(name, x, window, transform=lambda f: f):
    function, start = FUNCTIONS[name]
    f = transform(lambda x: lax.reduce_window(x, start, function, *window))
    y, jacobian = definition(name, x, *window)
    assert lax.reduce_window_shape_tuple(x.shape, *window) == y.shape
    np.testing.assert_allclose(np.asarray(f(x)), y, rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(0)
    dx, ct = rng.standard_normal(x.shape), rng.standard_normal(y.shape)
    tangent = np.tensordot(jacobian, dx, x.ndim)
    np.testing.assert_allclose(np.asarray(hx.jvp(f, (x,), (dx,))[1]), tangent, rtol=1e-11, atol=1e-11)
    cotangent = np.tensordot(ct, jacobian, y.ndim)
    np.testing.assert_allclose(np.asarray(hx.vjp(f, x)[1](ct)[0]), cotangent, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(windows())
def test_values_and_both_derivatives_are_those_of_the_definition(name, drawn):
    with hx.configure(disable_jit=True):
        check(name, *drawn)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(windows())
def test_compiled_values_and_both_derivatives_are_those_of_the_definition(name, drawn):
    check(name, *drawn, transform=hx.jit)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_lanes_and_their_gradients_are_reductions_of_their_own(name, axis):
    function, start = FUNCTIONS[name]
    x = np.random.default_rng(0).standard_normal((4, 5, 6))
    window = ((2, 3), (1, 2), ((1, 0), (2, 1)), (1, 2), (2, 1))
    f = lambda x: lax.reduce_window(x, start, function, *window)
    pulled = lambda x: hx.vjp(f, x)[1](hx.numpy.cos(f(x)))[0]
    for g in (f, pulled):
        expected = np.stack([np.asarray(g(lane)) for lane in np.moveaxis(x, axis, 0)])
        np.testing.assert_allclose(np.asarray(hx.vmap(g, axis)(x)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name):
    function, start = FUNCTIONS[name]
    x = np.random.default_rng(0).uniform(0.5, 2.0, (4, 5))
    f = lambda x: lax.reduce_window(hx.numpy.sin(x), start, function, (2, 3), (1, 2), ((0, 0), (0, 1)), None, (2, 1))
    hx.test_util.check_grads(f, (x,), order=2)


@pytest.mark.parametrize("transform", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_the_first_of_equal_elements_has_the_derivative_and_a_nan_is_the_extreme_of_its_window(transform):
    x = np.array([1.0, 1.0, 0.0, np.nan, 2.0, np.nan])
    for function, start, element in ((lax.max, -np.inf, 0), (lax.min, np.inf, 2)):
        f = transform(lambda x: lax.reduce_window(x, start, function, (3,), (3,)))
        y, pull = hx.vjp(f, x)
        np.testing.assert_array_equal(np.asarray(y), [x[element], np.nan])
        np.testing.assert_array_equal(np.asarray(pull(np.ones(2))[0]), np.eye(6)[element] + np.eye(6)[3])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "bfloat16", "int4", "bool"])
def test_other_dtypes(dtype):
    x = hx.numpy.asarray(np.arange(12).reshape(3, 4) % 5, dtype)
    units = {lax.max: -np.inf, lax.min: np.inf}
    if dtype == "bool":
        units = {lax.max: False, lax.min: True, lax.bitwise_or: False}
    elif "float" not in dtype:
        units = {lax.max: int(hx.dtypes.iinfo(dtype).min)}
    if dtype != "bool":
        units[lax.add] = 0
    for function, start in units.items():
        f = lambda x: lax.reduce_window(x, start, function, (2, 2), (1, 2), "SAME")
        y = f(x)
        assert y.dtype == dtype and y.shape == (3, 2)
        np.testing.assert_array_equal(np.asarray(y), np.asarray(hx.jit(f)(x)))


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_large_windows_begin_with_a_start_that_is_no_identity(wrap):
    x = np.arange(128.0, dtype="float32")
    f = wrap(lambda x: lax.reduce_window(x, 5.0, lambda a, b: -(-a - b), (100,), (1,), "VALID"))
    np.testing.assert_array_equal(f(x), np.lib.stride_tricks.sliding_window_view(x, 100).sum(1) + 5.0)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit])
def test_padding_that_removes_more_than_there_is_leaves_no_window(wrap):
    f = wrap(lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), [(-3, -2)]))
    assert f(np.ones(3, "f")).shape == (0,)
    assert hx.grad(lambda x: f(x).sum())(np.ones(3, "f")).tolist() == [0.0] * 3
