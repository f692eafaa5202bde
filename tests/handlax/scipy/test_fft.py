"""``handlax.scipy.fft`` against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import handlax as hx

RNG = np.random.default_rng(0)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (3, 4, 2)])
def test_cosine_transforms_are_scipys(shape, name):
    x = RNG.normal(size=shape)
    some = ({}, {"s": 3}, {"axes": (0,)}) if name[-1] == "n" else ({}, {"n": 5, "axis": 0})
    calls = [{**options, "norm": norm} for options in some for norm in (None, "ortho", "forward")]
    f = lambda x: [getattr(hx.scipy.fft, name)(x, **options) for options in calls]
    for found, compiled, options in zip(f(x), hx.jit(f)(x), calls):
        expected = getattr(scipy.fft, name)(x, **options)
        np.testing.assert_allclose(found, expected, atol=1e-13 * x.size, err_msg=str(options))
        np.testing.assert_allclose(compiled, expected, atol=1e-13 * x.size, err_msg=str(options))


def test_the_derivative_of_an_orthogonal_transform_is_its_inverse():
    x, ct = RNG.normal(size=(2, 6))
    pulled = hx.vjp(lambda x: hx.scipy.fft.dct(x, norm="ortho"), x)[1](ct)[0]
    np.testing.assert_allclose(pulled, scipy.fft.idct(ct, norm="ortho"), atol=1e-14)


def test_dtypes_and_complex_numbers():
    z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
    np.testing.assert_allclose(hx.scipy.fft.dct(z), scipy.fft.dct(z.real) + 1j * scipy.fft.dct(z.imag))
    for kind, expected in (("float16", "float32"), ("int32", "float32"), ("float64", "float64")):
        assert hx.scipy.fft.idct(np.ones(3, kind)).dtype == expected
    assert hx.scipy.fft.dct(np.ones((2, 0))).shape == (2, 0)


@pytest.mark.parametrize("call", [
    lambda f: f.dct(np.ones(3), type=3), lambda f: f.dct(np.ones(3), norm="unitary"),
    lambda f: f.dctn(np.ones(3), s=(2, 2)), lambda f: f.dctn(np.ones((3, 3)), s=(2,), axes=(0, 1)),
])
def test_mistakes_are_errors_of_arguments(call):
    with pytest.raises(ValueError, match="dct"):
        call(hx.scipy.fft)
