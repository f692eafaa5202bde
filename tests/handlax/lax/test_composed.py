"""The functions of lax that other operations compose, against NumPy."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

X = np.array([0.25, 1.0, 3.0, 7.5], "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_log2(dtype):
    x = hnp.asarray(X, dtype)
    y = lax.log2(x)
    assert y.dtype == x.dtype
    tolerance = 1e-2 if x.dtype.itemsize == 2 else 1e-6
    np.testing.assert_allclose(np.asarray(y).astype(complex), np.log2(X.astype(complex)), rtol=tolerance)
    with pytest.raises(TypeError):
        lax.log2(2)


@pytest.mark.parametrize("shape", [(), (2,), (2, 0, 3), np.array([4, 5])])
def test_the_sizes_of_a_shape_are_a_vector(shape):
    sizes = lax.shape_as_value(shape)
    assert sizes.dtype == np.int32 and sizes.shape == (len(shape),) and sizes.tolist() == list(shape)


@pytest.mark.parametrize("x", [1e-8, 1 - 2.0**-24, 0.3, -5.0])
def test_one_minus_square_is_exact_near_one_and_its_derivative_near_zero(x):
    x = np.float32(x)
    exact = float(1 - np.longdouble(x) ** 2)
    np.testing.assert_allclose(float(lax.one_minus_square(x)), exact, rtol=2e-7)
    np.testing.assert_allclose(float(hx.grad(lax.one_minus_square)(x)), -2.0 * x, rtol=1e-7)
    assert float(hx.grad(hx.grad(lax.one_minus_square))(x)) == -2.0


@pytest.mark.parametrize("coeffs", [[], [2.0], [1.0, 5.0, 2.0], [0.5, hnp.float32(-1.0), 3, 2.0, 1.0]])
@pytest.mark.parametrize("x", [3.0, X, np.int32(2)])
def test_polynomials_are_those_of_numpy_in_the_dtype_of_the_point(coeffs, x):
    rounded = [np.asarray(c).astype(np.asarray(hnp.asarray(x)).dtype) for c in coeffs]
    want = sum([c * np.asarray(x, "float64") ** i for i, c in enumerate(rounded)], 0 * np.asarray(x, "float64"))
    y = lax.polynomial(x, coeffs)
    assert y.dtype == hnp.asarray(x).dtype and y.shape == np.shape(x)
    np.testing.assert_allclose(np.asarray(y), want, rtol=1e-6)


def test_coefficients_of_a_polynomial_may_be_arrays():
    y = lax.polynomial(X, [2 * X, 1.0, X])
    np.testing.assert_allclose(np.asarray(y), 2 * X + X + X**3, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unstack_is_the_inverse_of_stack(axis):
    x = hnp.arange(6).reshape(2, 3)
    parts = lax.unstack(x, axis)
    assert len(parts) == x.shape[axis]
    np.testing.assert_array_equal(np.asarray(hnp.stack(parts, axis)), np.asarray(x))


@pytest.mark.parametrize(("function", "sign"), [(lax.approx_max_k, -1), (lax.approx_min_k, 1)])
@pytest.mark.parametrize("axis", [0, -1])
def test_approximate_extremes_are_exact_here(function, sign, axis):
    x = np.random.default_rng(0).normal(size=(5, 6)).astype("float32")
    values, indices = hx.jit(lambda x: function(x, 3, axis))(x)
    want = np.take(np.argsort(sign * x, axis), [0, 1, 2], axis)
    np.testing.assert_array_equal(np.asarray(indices), want)
    np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, want, axis))


@pytest.mark.parametrize(("call", "error"), [
    (lambda: lax.approx_max_k(np.arange(4), 2), errors.DTypeMismatch),
    (lambda: lax.approx_min_k(X, 5), errors.BadArgument),
    (lambda: lax.unstack(1.0), errors.HandlaxError),
    (lambda: lax.dtype(None), TypeError),
    (lambda: lax.dtype([1.0]), TypeError),
])
def test_what_does_not_fit_is_refused(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(("x", "want"), [
    (1, "int32"), (1.5, "float32"), (True, "bool"), (1j, "complex64"), (float, "float32"), (np.int8, "int8"),
    (np.ones(2, "float16"), "float16"), (hnp.ones(2, "bfloat16"), "bfloat16"), ("uint8", "uint8"),
])
def test_the_dtype_of_a_value_or_of_a_class(x, want):
    assert lax.dtype(x).name == want
    assert hx.jit(lambda y: y.astype(lax.dtype(y)))(1.0).dtype == lax.dtype(1.0)


def test_broadcast_like_repeats_to_the_shape():
    x, like = np.float32([[1], [2]]), np.zeros((3, 2, 4), "int8")
    y = lax.broadcast_like(x, like)
    assert y.dtype == "float32" and (np.asarray(y) == np.broadcast_to(x, (3, 2, 4))).all()
    for shape in ((2, 3), (1, 1, 1, 1), (5,)):
        with pytest.raises(errors.ShapeMismatch):
            lax.broadcast_like(np.ones(shape), like)


def test_tokens_order_and_are_nothing_else():
    def f(x):
        token = lax.after_all(lax.create_token(), lax.create_token(x))
        return x + 1, token

    for g in (f, hx.jit(f), lambda x: hx.vmap(f, out_axes=(0, None))(x[None])):
        y, token = g(hnp.ones(2))
        assert (np.asarray(y) == 2).all() and token.shape == (0,)
    assert hx.grad(lambda x: f(x)[0])(1.0) == 1.0
    with pytest.raises(TypeError, match="must be tokens"):
        lax.after_all(1.0)


def test_stage_makes_an_array():
    assert lax.stage(2.0).weak_type and not lax.stage(np.float32([1])).weak_type
    assert hx.make_program(lambda: lax.stage(np.ones(2)))().out_types[0].shape == (2,)
