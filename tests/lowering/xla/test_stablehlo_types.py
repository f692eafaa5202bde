"""Types and constants in StableHLO: keys as key data, every bit of a number."""

import ml_dtypes
import numpy as np
import pytest

import handlax as hx
from handlax.effects.types.array_type import array_type
from handlax.lowering.xla.stablehlo_types import dense, storage, tensor


@pytest.mark.parametrize(("shape", "dtype", "text"), [
    ((), "float32", "tensor<f32>"),
    ((2, 3), "bfloat16", "tensor<2x3xbf16>"),
    ((0,), "bool", "tensor<0xi1>"),
    ((4,), "uint8", "tensor<4xui8>"),
    ((1,), "complex64", "tensor<1xcomplex<f32>>"),
])
def test_a_type_is_written_as_a_tensor(shape, dtype, text):
    assert tensor(array_type(shape, dtype)) == tensor(array_type(shape, dtype, True)) == text


def test_keys_are_stored_as_words():
    keys = hx.random.split(hx.random.key(0), 3)
    assert storage(keys.type) == ((3, 2), np.dtype("uint32")) and tensor(keys.type) == "tensor<3x2xui32>"


@pytest.mark.parametrize(("value", "text"), [
    (np.float32(1.0), "dense<0x3F800000>"),
    (np.array([np.nan, -0.0], "float32"), "dense<[0x7FC00000, 0x80000000]>"),
    (np.full((2, 2), 7, "int32"), "dense<7>"),
    (np.array([[1, -2]], "int8"), "dense<[[1, -2]]>"),
    (np.array([True, False]), "dense<[true, false]>"),
    (np.ones(3, bool), "dense<true>"),
    (np.array(1, ml_dtypes.bfloat16), "dense<0x3F80>"),
    (np.array(1 - 2j, "complex64"), "dense<(0x3F800000,0xC0000000)>"),
    (np.zeros((0, 2), "float32"), "dense<>"),
    (np.array([1, -2], ml_dtypes.float8_e4m3fn), "dense<[0x38, 0xC0]>"),
    (np.array([1, -2], ml_dtypes.int4), "dense<[1, -2]>"),
])
def test_a_constant_is_written_bit_for_bit(value, text):
    assert dense(np.asarray(value)) == text


def test_a_program_gives_its_constants_back_bit_for_bit():
    bits = np.array([0, 1, 0x7F800001, 0x80000000, 0x7FC12345, 0xFF7FFFFF], "uint32")
    constant = bits.view("float32")
    assert np.asarray(hx.jit(lambda: hx.numpy.asarray(constant))()).view("uint32").tolist() == bits.tolist()


@pytest.mark.parametrize("dtype", [
    "float32", "float16", "complex64", "int8", "uint32", "int64", "float64", ml_dtypes.bfloat16,
])
def test_long_constants_are_given_back_bit_for_bit(dtype):
    bits = np.random.default_rng(0).integers(0, 256, 8 * 40, dtype=np.uint8)
    constant = bits.view(dtype).reshape(-1, 5, 2)
    assert dense(constant).startswith('dense<"0x') == (dtype != ml_dtypes.bfloat16)
    kept = np.asarray(hx.jit(lambda: hx.numpy.asarray(constant))())
    assert kept.tobytes() == constant.tobytes()
