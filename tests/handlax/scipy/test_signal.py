"""Convolutions, correlations, trends and spectra of signals, against SciPy."""

import numpy as np
import pytest
import scipy.signal

import handlax as hx
from handlax.errors import BadArgument, ShapeMismatch
from handlax.scipy import signal

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((3, 60)), RNG.standard_normal((3, 50))
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


def check(name, *signals, **arguments):
    found, expected = [getattr(module, name)(*signals, **arguments) for module in (signal, scipy.signal)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("arguments", [{}, {"type": "constant"}, {"bp": [10, 33]}, {"axis": 0}, {"bp": 59}])
def test_trends_are_those_of_scipy(arguments):
    np.testing.assert_allclose(
        np.asarray(signal.detrend(X, **arguments)), scipy.signal.detrend(X, **arguments), atol=1e-10
    )


@pytest.mark.parametrize("arguments", [
    {"nperseg": 16},
    {"nperseg": 15, "noverlap": 4, "nfft": 21, "window": "hamming"},
    {"nperseg": 16, "scaling": "spectrum", "average": "median", "detrend": "linear", "fs": 4.0},
    {"nperseg": 16, "return_onesided": False, "detrend": False},
    {"window": np.arange(1.0, 13.0), "detrend": lambda x: x * 2},
])
def test_densities_are_those_of_scipy(arguments):
    check("welch", X, **arguments)
    check("csd", X, Y, **arguments)


@pytest.mark.parametrize("arguments", [
    {"nperseg": 16},
    {"nperseg": 15, "noverlap": 4, "nfft": 21, "window": ("kaiser", 3.0), "boundary": "even"},
    {"nperseg": 16, "boundary": None, "padded": False, "detrend": "constant"},
    {"nperseg": 16, "boundary": "odd", "fs": 3.0},
    {"nperseg": 2, "axis": 0, "boundary": "constant"},
])
def test_short_time_transforms_are_those_of_scipy(arguments):
    check("stft", X, **arguments)


@pytest.mark.parametrize("arguments", [
    {"nperseg": 16}, {"nperseg": 15, "noverlap": 10, "window": "hamming"}, {"nperseg": 12, "noverlap": 9},
])
def test_the_inverse_gives_the_signal(arguments):
    z = np.asarray(signal.stft(X, **arguments)[2])
    check("istft", z, **arguments)
    np.testing.assert_allclose(np.asarray(signal.istft(z, **arguments)[1])[:, :60], X, atol=1e-9)
    turned = signal.istft(np.moveaxis(z, -1, 0), **arguments, time_axis=0, freq_axis=-1)[1]
    np.testing.assert_allclose(np.asarray(turned)[:60], X.T, atol=1e-9)


def test_both_sides_of_complex_signals():
    with pytest.warns(UserWarning, match="complex") as warned:
        frequencies, densities = signal.welch(X + 1j * X[::-1], nperseg=8)
    assert warned[0].filename == __file__
    expected = scipy.signal.welch(X + 1j * X[::-1], nperseg=8, return_onesided=False)
    np.testing.assert_allclose(np.asarray(densities), expected[1], rtol=1e-9)
    assert frequencies.shape == (8,)


def test_a_segment_is_not_longer_than_the_signal():
    with pytest.warns(UserWarning, match="greater than") as warned:
        assert signal.welch(X[0], nperseg=100)[0].shape == (31,)
    assert warned[0].filename == __file__


def test_nothing_has_no_spectrum():
    assert [a.shape for a in signal.stft(np.zeros((2, 0)))] == [(2, 0)] * 3


def test_derivatives_and_lanes():
    f = lambda x: signal.welch(x, nperseg=8)[1]
    hx.test_util.check_grads(f, (X[0, :20],), order=2)
    np.testing.assert_allclose(np.asarray(hx.jit(hx.vmap(f))(X)), np.asarray(f(X)), rtol=1e-9)
    g = lambda x: signal.istft(signal.stft(x, nperseg=8)[2] * 2, nperseg=8)[1]
    hx.test_util.check_grads(g, (X[0, :20],), order=1)


def test_settings_of_promotion_are_for_what_users_write():
    expected = signal.welch(X, nperseg=8)[1], signal.istft(signal.stft(X, nperseg=8)[2], nperseg=8)[1]
    with hx.configure(numpy_dtype_promotion="strict", numpy_rank_promotion="raise"):
        found = signal.welch(X, nperseg=8)[1], signal.istft(signal.stft(X, nperseg=8)[2], nperseg=8)[1]
        signal.csd(X, Y, nperseg=8, average="median")
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize(
    ("error", "said", "call"),
    [
        (BadArgument, "nperseg must be positive", lambda: signal.welch(X, nperseg=0)),
        (BadArgument, "noverlap must be less", lambda: signal.welch(X, nperseg=8, noverlap=8)),
        (BadArgument, "nfft at least nperseg", lambda: signal.welch(X, nperseg=8, nfft=4)),
        (BadArgument, "must not be longer", lambda: signal.welch(X, window=np.ones(61))),
        (BadArgument, "scaling must be", lambda: signal.welch(X, nperseg=8, scaling="none")),
        (BadArgument, "average must be", lambda: signal.welch(X, nperseg=8, average="mode")),
        (BadArgument, "detrend must be", lambda: signal.welch(X, nperseg=8, detrend=True)),
        (BadArgument, "boundary must be", lambda: signal.stft(X, nperseg=8, boundary="far")),
        (ShapeMismatch, "vector of 8", lambda: signal.welch(X, nperseg=8, window=np.ones(7))),
        (ShapeMismatch, "one rank", lambda: signal.csd(X, Y[0], nperseg=8)),
        (BadArgument, "must differ", lambda: signal.istft(np.ones((3, 4)), time_axis=0, freq_axis=-2)),
        (ShapeMismatch, "axes of times", lambda: signal.istft(np.ones(3))),
        (BadArgument, "type must be", lambda: signal.detrend(X, type="square")),
        (BadArgument, "pieces must begin", lambda: signal.detrend(X, bp=61)),
    ],
)
def test_what_has_no_spectrum_is_refused(error, said, call):
    with pytest.raises(error, match=said):
        call()
