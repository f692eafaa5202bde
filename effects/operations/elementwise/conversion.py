"""Operations that change a dtype: conversion by value, and by bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import Array, as_array, is_number, scalar
from ...core.columns import data_movement
from ...core.operation import operation, shared
from ...core.varying import vary
from ...sharding.sharding_rules import ShardingRule, numbered, summed_axes
from ...types import dtypes
from ...types.array_type import ArrayType, array_type
from ...types.casting import cast
from ..foundations.elementwise_factory import Elementwise
from ..foundations.half_precision import HALF
from ..foundations.shapes import move_axis
from ..foundations.sharding_constraint import reveal


# y = x as another dtype; complex to real drops the imaginary part
@operation
class ConvertElementType(Elementwise):
    dtype: dtypes.DType
    weak: bool = False
    param_names = {"dtype": "new_dtype", "weak": "weak_type"}
    fixed_params = {"sharding": None}
    name = "convert_element_type"
    dtypes = dtypes.ANY
    exempt = {"jvp": "between real and integer dtypes it is a step function; between inexact ones it is linear"}

    @property
    def linear_in(op):  # type: ignore[override]
        return slice(None) if dtypes.is_inexact(op.dtype) else slice(0)

    def result_type(op, x):  # type: ignore[override]
        if isinstance(x.dtype, dtypes.ExtendedDType) or isinstance(op.dtype, dtypes.ExtendedDType):
            raise DTypeMismatch(f"convert_element_type: no conversion from {x} to {op.dtype}.")
        return array_type(x.shape, op.dtype, op.weak)

    def partial_sums(op, types):
        if not dtypes.is_inexact(types[0].dtype):  # their sum wraps around, the sum of results need not
            return summed_axes(op.name, types, lambda positions: (), False)
        return Elementwise.partial_sums(op, types)

    def evaluate(op, x):
        return cast(x, op.dtype)

    def jvp(op, primals, tangents):
        y = perform(op, *primals)
        return y, perform(op, *tangents) if dtypes.is_inexact(op.dtype) else None

    def transpose(op, ct, x):
        return convert(ct, x.dtype, x.weak)

    def lower(op, emit, x):
        return emit.convert(x, op.dtype)

    flops = data_movement


# y has the bits of x under another dtype; where widths differ, the last dimension is added or removed
@operation
class BitcastConvertType:
    dtype: dtypes.DType
    param_names = {"dtype": "new_dtype"}
    exempt = {"jvp": "bits are no differentiable function of the value"}

    def result_type(op, x):
        if isinstance(op.dtype, dtypes.ExtendedDType):
            raise DTypeMismatch(
                f"bitcast_convert_type: the new dtype must be one of numbers, got {op.dtype}.",
                hint="random.wrap_key_data makes keys of their data.",
            )
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(op.dtype)
        if old == new:
            return array_type(x.shape, op.dtype)
        if old > new and old % new == 0:
            return array_type((*x.shape, old // new), op.dtype)
        if new % old == 0 and x.shape and x.shape[-1] == new // old:
            return array_type(x.shape[:-1], op.dtype)
        raise ShapeMismatch(f"bitcast_convert_type: the last dimension of {x} must be one {op.dtype}.")

    def sharding_rule(op, operands, results):  # a last dimension that comes or goes is whole
        (x,), (y,) = operands, results
        return ShardingRule([numbered(x)], [numbered(y)], whole={*numbered(x)} ^ {*numbered(y)})

    def evaluate(op, x):
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(op.dtype)
        x = np.ascontiguousarray(x).reshape(x.shape)
        if old == new:
            return x.view(op.dtype)
        if min(old, new) < 8:
            return _bits_below_a_byte(x, op.dtype, old, new)
        if old > new:
            return x.reshape((*x.shape, 1)).view(op.dtype)
        return x.view(op.dtype)[..., 0]

    def batch(op, dims, x):
        return perform(op, move_axis(x, dims[0], 0)), 0

    def jvp(op, primals, tangents):
        return perform(op, *primals), None

    def lower(op, emit, x):
        return emit.op("bitcast_convert", x)

    flops = data_movement


def _bits_below_a_byte(x: Any, dtype: Any, old: int, new: int) -> Any:
    """Bits of numbers of which one has less than 8, lowest first: NumPy keeps such a number in a byte of its own."""
    narrow, octet = min(old, new), min(max(old, new), 8)
    shifts = np.arange(0, octet, narrow, dtype=np.uint8)
    if old > new:
        octets = x.reshape((*x.shape, 1)).view(np.uint8)
        parts = (octets[..., None] >> shifts) & np.uint8(2**narrow - 1)
        return parts.reshape((*x.shape, old // new)).view(dtype)
    parts = (x.view(np.uint8) & np.uint8(2**narrow - 1)).reshape((*x.shape[:-1], new // octet, shifts.size))
    return np.bitwise_or.reduce(parts << shifts, axis=-1).view(dtype)[..., 0]


def convert(x: Any, dtype: Any, weak: bool = False) -> Array:
    """``x`` converted to this dtype (an ``np.dtype``) and weakness; ``x`` itself where it has them.

    A Python or NumPy number is rounded once, from its full value, whatever the default dtypes are. This is how an
    argument takes the dtype of the array that it meets: ``convert(value, x.type.dtype, x.type.weak)``.

    Raises: IntegerOverflow: a Python integer fits neither ``dtype`` nor the default integer dtype.
    """
    if not isinstance(x, Array):
        x = scalar(x, dtype, weak) if is_number(x) else as_array(x)
    return x if x.type.dtype == dtype and x.type.weak == weak else perform(shared(ConvertElementType, dtype, weak), x)


def performed_wide(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` of arrays of one dtype, 16-bit floats converted to float32 and the result rounded back, as by ``wide``."""

    @wraps(f)
    def function(*xs: Any) -> Any:
        dtype = xs[0].type.dtype
        if dtype not in HALF:
            return f(*xs)
        y = f(*[convert(x, dtypes.float32, x.type.weak) for x in xs])
        return convert(y, dtype, y.type.weak)

    return function


def as_type(x: Any, type: ArrayType) -> Any:
    """``x`` converted to the dtype and weakness of a type, varying and cut as it is."""
    y = vary(convert(x, type.dtype, type.weak), type.varying)
    return y if y.type.cut is type.cut else reveal(y, type.cut)


def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """``operand`` converted by value: ``y[i] == operand[i]`` where the new dtype represents it.

    A float becomes an integer by truncation, clamped to the range, with 0 for NaN; integers wrap around; to bool is
    ``!= 0``; complex numbers lose their imaginary part. The result is not weak.

    >>> convert_element_type(np.array([1.7, -300.0, np.nan]), "int8")
    Array([   1, -128,    0], dtype=int8)
    """
    dtype = dtypes.canonical(new_dtype)
    if type(operand) is int and dtypes.is_integer(dtype):
        bits = dtypes.itemsize_bits(dtype)
        operand = operand % (1 << bits)
        operand -= 1 << bits if dtypes.is_signed(dtype) and operand >> (bits - 1) else 0
    return convert(operand, dtype)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """The bits of ``operand`` under another dtype.

    Shapes: ``a[*s] -> b[*s]`` for equal widths; ``f64[*s] -> u16[*s, 4]``; ``u16[*s, 4] -> f64[*s]``.
    Raises: ShapeMismatch: the new dtype is wider, and the last dimension is not exactly one element of it.
        DTypeMismatch: it is one of keys.

    >>> bitcast_convert_type(np.float32(1.0), "uint32")
    Array(1065353216, dtype=uint32)
    """
    return perform(BitcastConvertType(dtypes.canonical(new_dtype)), as_array(operand))
