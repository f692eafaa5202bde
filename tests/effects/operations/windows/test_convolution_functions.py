"""The functions of lax that are convolutions in other words."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax

RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((2, 7, 6, 3))
NUMBERS = ("NHWC", "HWIO", "NHWC")


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
@pytest.mark.parametrize("consistent", [False, True])
def test_transposed_convolution_of_the_weights_of_a_convolution_is_its_adjoint(padding, dilation, consistent):
    weights = RNG.standard_normal((3, 2, 3, 4))
    x = IMAGES[:, :6]

    def f(x):
        return lax.conv_general_dilated(x, weights, (2, 3), padding, None, dilation, NUMBERS)

    z = f(x)
    back = lax.conv_transpose(
        z, weights, (2, 3), padding, dilation, NUMBERS, transpose_kernel=True, use_consistent_padding=consistent
    )
    pulled = np.asarray(hx.vjp(f, x)[1](z)[0])
    common = tuple([slice(0, min(a, b)) for a, b in zip(back.shape, pulled.shape)])
    np.testing.assert_allclose(np.asarray(back)[common], pulled[common], rtol=1e-12, atol=1e-12)


def test_pairs_are_those_of_the_transposed_convolution_or_of_the_other():
    x, weights = IMAGES[:, :, 0], RNG.standard_normal((3, 3, 4))
    transposed = lax.conv_transpose(x, weights, (2,), [(2, 0)])
    consistent = lax.conv_transpose(x, weights, (2,), [(0, 2)], use_consistent_padding=True)
    plain = lax.conv_general_dilated(x, weights, (1,), [(2, 0)], (2,), None, ("NHC", "HIO", "NHC"))
    np.testing.assert_array_equal(np.asarray(transposed), np.asarray(plain))
    np.testing.assert_array_equal(np.asarray(consistent), np.asarray(plain))


def test_patches_are_what_windows_read():
    patches = lax.conv_general_dilated_patches(IMAGES, (3, 2), (2, 1), "VALID", None, (1, 2), NUMBERS)
    windows = np.lib.stride_tricks.sliding_window_view(IMAGES, (3, 3), (1, 2))[:, ::2, :, :, :, ::2]
    np.testing.assert_array_equal(np.asarray(patches), windows.reshape(*windows.shape[:3], -1))


@pytest.mark.parametrize("numbers", [NUMBERS, ("NCHW", "OIHW", "NCHW"), ("CHNW", "WOHI", "WHCN")])
def test_local_convolution_with_one_set_of_weights_is_a_convolution(numbers):
    weights = RNG.standard_normal((4, 3, 3, 2))  # in the order of roles
    shared_weights = weights.reshape(4, -1, 1, 1).repeat(5, 2).repeat(5, 3)
    specs = lax.conv_dimension_numbers((1,) * 4, (1,) * 4, numbers)
    x = np.moveaxis(IMAGES, -1, 1).transpose(np.argsort(specs.lhs_spec))
    rhs, local = [v.transpose(np.argsort(specs.rhs_spec)) for v in (weights, shared_weights)]
    z = lax.conv_general_dilated(x, rhs, (1, 1), "VALID", dimension_numbers=numbers)
    y = lax.conv_general_dilated_local(x, local, (1, 1), "VALID", (3, 2), dimension_numbers=numbers)
    np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-12)
