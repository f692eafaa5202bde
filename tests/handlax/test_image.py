"""Images resampled, against weighted means that are written out for each element."""

import numpy as np
import pytest

import handlax as hx
from handlax import image
from handlax.errors import BadArgument, ShapeMismatch


def cubic(a):
    def kernel(x):
        if x < 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0

    return kernel


KERNELS = {
    "linear": lambda x: max(0.0, 1 - x),
    "cubic": cubic(-0.5),
    "cubic-pytorch": cubic(-0.75),
    "lanczos3": lambda x: np.sinc(x) * np.sinc(x / 3) if x <= 3 else 0.0,
    "lanczos5": lambda x: np.sinc(x) * np.sinc(x / 5) if x <= 5 else 0.0,
}


def resampled(x, count, scale, shift, method, antialias):
    """Give a vector of ``count`` elements, by the definition."""
    y, n = np.zeros(count), len(x)
    for i in range(count):
        first = (i - shift) / scale
        centre = (i + 0.5 - shift) / scale - 0.5
        places = range(-2, n + 2) if method == "cubic-pytorch" and not antialias else range(n)
        if method == "area":
            weights = [max(0.0, min(first + 1 / scale, j + 1) - max(first, j)) for j in places]
        else:
            width = max(1.0, 1 / scale) if antialias else 1.0
            kernel = KERNELS["cubic" if antialias and method == "cubic-pytorch" else method]
            weights = [kernel(abs(centre - j) / width) for j in places]
        if abs(sum(weights)) > 1e-4 and (-0.5 <= centre <= n - 0.5 or len(places) > n):
            y[i] = sum([w * x[min(max(j, 0), n - 1)] for w, j in zip(weights, places)]) / sum(weights)
    return y


@pytest.mark.parametrize("method", [*KERNELS, "area"])
@pytest.mark.parametrize("antialias", [True, False])
def test_elements_are_weighted_means(method, antialias):
    x = np.random.default_rng(0).standard_normal(9)
    for size in (4, 13, 18, 1):
        expected = resampled(x, size, size / 9, 0.0, method, antialias)
        np.testing.assert_allclose(np.asarray(image.resize(x, (size,), method, antialias)), expected, atol=1e-12)
    moved = image.scale_and_translate(x, (7,), (0,), np.array([0.7]), np.array([-1.5]), method, antialias)
    np.testing.assert_allclose(np.asarray(moved), resampled(x, 7, 0.7, -1.5, method, antialias), atol=1e-12)


def test_axes_are_resampled_one_after_the_other_and_others_stay():
    x = np.random.default_rng(0).standard_normal((2, 6, 5))
    each = image.resize(image.resize(x, (2, 3, 5), "cubic"), (2, 3, 8), "cubic")
    np.testing.assert_allclose(np.asarray(image.resize(x, (2, 3, 8), "cubic")), np.asarray(each), atol=1e-12)
    np.testing.assert_array_equal(np.asarray(image.resize(x, x.shape, "linear")), x)


def test_nearest_takes_elements_and_keeps_the_dtype():
    x = np.arange(12, dtype=np.int8).reshape(3, 4)
    y = image.resize(x, (6, 2), image.ResizeMethod.NEAREST)
    assert y.dtype == np.int8
    np.testing.assert_array_equal(np.asarray(y), x[[0, 0, 1, 1, 2, 2]][:, [1, 3]])
    assert image.resize(x, (6, 2), "bilinear").dtype == np.float32


def test_scale_and_translation_have_derivatives():
    x = np.random.default_rng(0).standard_normal((6, 3))
    place = lambda scale, shift: image.scale_and_translate(x, (5, 3), (0,), scale, shift, "cubic")
    hx.test_util.check_grads(place, (np.array([0.83]), np.array([0.37])), order=1)
    f = lambda x: image.resize(x, (4, 7), "lanczos3")
    hx.test_util.check_grads(f, (x,), order=2)
    np.testing.assert_allclose(np.asarray(hx.jit(f)(x)), np.asarray(f(x)), atol=1e-12)


@pytest.mark.parametrize(
    ("error", "said", "call"),
    [
        (BadArgument, "must be one of nearest", lambda: image.resize(np.ones(3), (2,), "square")),
        (ShapeMismatch, "a size for each axis", lambda: image.resize(np.ones(3), (2, 2), "linear")),
        (ShapeMismatch, "without elements", lambda: image.resize(np.ones(0), (2,), "linear")),
        (BadArgument, "must interpolate", lambda: image.scale_and_translate(
            np.ones(3), (2,), (0,), np.ones(1), np.ones(1), "nearest")),
        (ShapeMismatch, "a number for each", lambda: image.scale_and_translate(
            np.ones(3), (2,), (0,), np.ones(2), np.ones(1), "linear")),
    ],
)
def test_what_does_not_fit_is_refused(error, said, call):
    with pytest.raises(error, match=said):
        call()
