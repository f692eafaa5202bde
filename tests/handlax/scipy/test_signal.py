"""Convolutions and correlations, against SciPy."""

import numpy as np
import pytest
import scipy.signal

import handlax as hx
from handlax.errors import BadArgument, ShapeMismatch
from handlax.scipy import signal

RNG = np.random.default_rng(0)
SHAPES = [((7,), (3,)), ((3,), (7,)), ((4,), (4,)), ((5, 6), (3, 2)), ((2, 2), (3, 4)), ((4, 3, 2), (1, 2, 2))]


def operands(shapes, dtype):
    values = [RNG.standard_normal(shape) for shape in shapes]
    return [x + 1j * RNG.standard_normal(x.shape) if dtype is complex else x for x in values]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_values_are_those_of_scipy(shapes, dtype, mode):
    x, y = operands(shapes, dtype)
    close = lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=1e-10, atol=1e-10)
    for method in ("direct", "fft"):
        close(signal.convolve(x, y, mode, method), scipy.signal.convolve(x, y, mode, method))
        if mode == "full" or x.size > y.size:  # the others of SciPy are those of ``correlate2d``
            close(signal.correlate(x, y, mode, method), scipy.signal.correlate(x, y, mode, method))
    close(signal.fftconvolve(x, y, mode), scipy.signal.fftconvolve(x, y, mode))
    if x.ndim == 2:
        close(signal.convolve2d(x, y, mode), scipy.signal.convolve2d(x, y, mode))
        close(signal.correlate2d(x, y, mode), scipy.signal.correlate2d(x, y, mode))


def test_transforms_along_some_axes_convolve_along_these():
    x, y = operands(((3, 6), (3, 4)), float)
    np.testing.assert_allclose(
        np.asarray(signal.fftconvolve(x, y, "same", axes=1)), scipy.signal.fftconvolve(x, y, "same", axes=1), atol=1e-12
    )


def test_derivatives():
    x, y = operands(((6,), (3,)), float)
    hx.test_util.check_grads(lambda x, y: signal.convolve(x, y, "same"), (x, y), order=2)
    hx.test_util.check_grads(lambda x, y: signal.correlate(x, y, "full", "fft"), (x, y), order=2)


@pytest.mark.parametrize(
    ("error", "said", "call"),
    [
        (ShapeMismatch, "same number of dimensions", lambda: signal.convolve(np.ones(3), np.ones((3, 3)))),
        (ShapeMismatch, "smaller in every dimension", lambda: signal.convolve(np.ones((2, 3)), np.ones((3, 2)))),
        (ShapeMismatch, "zero-size", lambda: signal.convolve(np.ones(3), np.ones(0))),
        (ShapeMismatch, "must be matrices", lambda: signal.convolve2d(np.ones(3), np.ones(3))),
        (ShapeMismatch, "along other axes", lambda: signal.fftconvolve(np.ones((2, 3)), np.ones((3, 3)), axes=1)),
        (BadArgument, "mode must be one of", lambda: signal.convolve(np.ones(3), np.ones(3), "half")),
        (BadArgument, "method must be", lambda: signal.convolve(np.ones(3), np.ones(3), method="best")),
        (BadArgument, "boundary must be 'fill'", lambda: signal.convolve2d(np.eye(3), np.eye(3), boundary="wrap")),
    ],
)
def test_what_does_not_fit_is_refused(error, said, call):
    with pytest.raises(error, match=said):
        call()
