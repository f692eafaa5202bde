"""``handlax.numpy.fft`` against NumPy, and its rounding against transforms in wider numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

RNG = np.random.default_rng(0)
COMPLEX = ("fft", "ifft", "irfft", "hfft", "fftn", "ifftn", "irfftn", "fft2", "ifft2", "irfft2")
REAL = ("rfft", "ihfft", "rfftn", "rfft2")
X = RNG.normal(size=(3, 4, 5, 2, 3)) + 1j * RNG.normal(size=(3, 4, 5, 2, 3))
OPTIONS = (
    ({}, {"n": 3}, {"n": 9, "axis": 1}, {"axis": -3}),
    ({}, {"s": (6, 2), "axes": (-2, -1)}, {"axes": (-2, 1)}, {"s": (3, 7), "axes": (0, 2)}),
)


@pytest.mark.parametrize("name", [*COMPLEX, *REAL])
def test_transforms_are_numpys_compiled_and_not(name):
    x = X if name in COMPLEX else X.real
    calls = [{**o, "norm": norm} for o in OPTIONS[name[-1] in "n2"] for norm in (None, "backward", "ortho", "forward")]
    f = lambda x: [getattr(hnp.fft, name)(x, **options) for options in calls]
    for found, compiled, options in zip(f(x), hx.jit(f)(x), calls):
        expected = getattr(np.fft, name)(x, **options)
        for y in (found, compiled):
            assert y.dtype == expected.dtype
            np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12, err_msg=str(options))


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", ["float32", "complex64", "int32", "bool", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [97, 128, 1000])
def test_single_precision_is_kept_and_rounds_by_the_logarithm_of_the_length(kind, n):
    x = hnp.asarray(RNG.normal(size=(4, n)) * 3 + (2j * RNG.normal(size=n) if kind == "complex64" else 0)).astype(kind)
    wide = np.asarray(x).astype("complex128")
    exact = np.fft.fft(wide)
    bound = np.finfo("float32").eps * np.log2(n) * np.linalg.norm(wide, axis=-1).max() * 2
    for y in (hnp.fft.fft(x), hx.jit(hnp.fft.fft)(x)):
        assert y.dtype == "complex64" and np.abs(y - exact).max() < bound
    assert np.abs(hnp.fft.ifft(hnp.fft.fft(x)) - wide).max() < 4 * bound / n**0.5


def test_arrays_without_elements_have_empty_sums():
    assert hnp.fft.fft(np.zeros((0, 4))).shape == (0, 4) and hnp.fft.fft2(np.zeros((4, 0))).shape == (4, 0)
    for f in (hnp.fft.rfft, hx.jit(hnp.fft.rfft)):
        np.testing.assert_array_equal(f(np.zeros((2, 0))), np.zeros((2, 1), "complex128"))
    assert hx.grad(lambda x: hnp.fft.irfft(x).sum())(np.ones((2, 1), "complex64")).tolist() == [[0], [0]]
    assert hnp.fft.fft(np.zeros((2, 0)), n=3).tolist() == [[0, 0, 0]] * 2
    assert hnp.fft.fftn(2.0) == 2 and hnp.fft.fftn(np.ones((2, 3)), axes=()).dtype == "complex128"


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize(("name", "width"), [("rfft", 4), ("irfft", 4), ("hfft", 3), ("ihfft", 4)])
def test_derivatives_of_real_transforms_are_their_matrices(name, width, n):
    f = lambda x: getattr(hnp.fft, name)(x, n=n)
    if name in REAL:  # a real vector; pulled back is the real part of ct M
        x, ct = RNG.normal(size=width), RNG.normal(size=n // 2 + 1) + 1j * RNG.normal(size=n // 2 + 1)
        matrix = np.stack([getattr(np.fft, name)(row, n=n) for row in np.eye(width)], 1)
        np.testing.assert_allclose(hx.vjp(f, x)[1](ct)[0], (ct @ matrix).real, atol=1e-12)
    else:  # of the parts of a complex one
        x, ct = RNG.normal(size=width) + 1j * RNG.normal(size=width), RNG.normal(size=n)
        real, imaginary = (np.stack([getattr(np.fft, name)(row, n=n) for row in np.eye(width) * i], 1) for i in (1, 1j))
        np.testing.assert_allclose(hx.vjp(f, x)[1](ct)[0], ct @ real - 1j * (ct @ imaginary), atol=1e-12)


def test_frequencies_and_shifts_are_numpys():
    for n in (1, 2, 7, 8):
        for d in (1.0, 0.3):
            np.testing.assert_allclose(hnp.fft.fftfreq(n, d), np.fft.fftfreq(n, d), rtol=1e-6)
            np.testing.assert_allclose(hnp.fft.rfftfreq(n, d, dtype="float64"), np.fft.rfftfreq(n, d), rtol=1e-14)
    assert hnp.fft.fftfreq(0).shape == (0,) and hnp.fft.fftfreq(4, dtype="complex64").dtype == "complex64"
    assert hx.jit(lambda d: hnp.fft.fftfreq(4, d))(0.5)[1] == 0.5
    for axes in (None, 1, (0, -1)):
        for name in ("fftshift", "ifftshift"):
            np.testing.assert_array_equal(getattr(hnp.fft, name)(X, axes), getattr(np.fft, name)(X, axes))


@pytest.mark.parametrize(("call", "message"), [
    (lambda f: f.rfft(X), "RFFT takes reals"),
    (lambda f: f.fft(X, axis=5), "axis 5 is out of range"),
    (lambda f: f.fft(X, axis=(0, 1)), "one axis is needed"),
    (lambda f: f.fftn(X, axes=(0, -5)), "axes must be distinct"),
    (lambda f: f.fftn(X, s=(2, 0)), "lengths must be positive"),
    (lambda f: f.fftn(X, s=(2,), axes=(0, 1)), "a length for each axis"),
    (lambda f: f.fft2(X, axes=(0,)), "two axes are needed"),
    (lambda f: f.fft(X, norm="unitary"), "the norm must be"),
    (lambda f: f.fft(2.0), "axis -1 is out of range"),
    (lambda f: f.fftfreq((3,)), "n must be an integer"),
    (lambda f: f.fftfreq(3, [1.0]), "d must be a number"),
    (lambda f: hx.lax.fft(X, "FTT", (3,)), "the type must be one of FFT, IFFT"),
    (lambda f: hx.lax.fft(X, "fft", (4,)), "whose last sizes are"),
    (lambda f: hx.lax.fft(X[0, 0, 0, 0], "fft", (4, 3)), "lengths for some of the last dimensions"),
])
def test_mistakes_are_errors_of_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call(hnp.fft)


def test_lanes_of_different_lengths_are_transformed_by_their_own():
    data, rows = RNG.normal(size=9), RNG.normal(size=(9, 4))
    found = hx.vmap(hnp.fft.fft, hx.ragged_axis, hx.ragged_axis)(hx.Ragged(data, (4, 5)))
    np.testing.assert_allclose(found.data, [*np.fft.fft(data[:4]), *np.fft.fft(data[4:])])
    lanes = hx.jit(lambda n: hx.vmap(hnp.fft.rfft, hx.ragged_axis, hx.ragged_axis)(hx.Ragged(rows, n, longest=6)))
    np.testing.assert_allclose(lanes(np.array([3, 6])).data, np.fft.rfft(rows), atol=1e-12)
    with pytest.raises(hx.errors.MissingRule, match="lengths are values here"):
        hx.jit(lambda n: hx.vmap(hnp.fft.fft, hx.ragged_axis, hx.ragged_axis)(hx.Ragged(data, n, longest=6)))(
            np.array([4, 5]))


def test_the_module_is_loaded_when_it_is_asked_for():
    program = "import sys, handlax as hx; print('handlax.numpy.fft' in sys.modules, 'fft' in dir(hx.numpy))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match=r"'handlax.numpy' has no attribute 'fftt'"):
        hnp.fftt
