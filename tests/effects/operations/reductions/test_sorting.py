"""Stable order: of long axes, for which keys and places are sorted as one number, and of small floats."""

import numpy as np
import pytest

from handlax import jit
from handlax import numpy as hnp
from handlax.effects.operations.reductions import sorting
from handlax.effects.types import dtypes

FLOATS = np.array([0.5, np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan, 1e-40, -1e-40, 3.0, -2.5], np.float32)
INTEGERS = np.array([0, 1, -1, 2**31 - 1, -(2**31), 5, 5, -7], np.int32)


@pytest.mark.parametrize("values", [FLOATS, INTEGERS, INTEGERS.view(np.uint32)], ids=["f32", "i32", "u32"])
@pytest.mark.parametrize(("shape", "axis"), [((1000,), 0), ((300, 2), 0), ((2, 300), 1)])
def test_long_axes_are_ordered_stably(values, shape, axis):
    x = np.random.default_rng(0).choice(values, shape)
    expected = np.argsort(x, axis=axis, kind="stable")
    np.testing.assert_array_equal(sorting._order([x], axis), expected)
    np.testing.assert_array_equal(hnp.argsort(x, axis=axis), expected)


def test_zeros_keep_their_order():
    x = np.where(np.arange(500) % 3, np.float32(0.0), np.float32(-0.0))
    np.testing.assert_array_equal(np.signbit(hnp.sort(x)), np.signbit(x))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", sorted(dtypes.SMALL_FLOATING, key=str), ids=str)
@pytest.mark.parametrize("argsort", [hnp.argsort, jit(hnp.argsort)], ids=["eager", "compiled"])
def test_small_floats_are_in_the_order_of_their_values(argsort, dtype):
    x = np.array([1, -1, 0.5, np.nan, 2, -2, 0.0, 1, -0.0, 0.5], np.float32).astype(dtype)
    np.testing.assert_array_equal(argsort(x), np.argsort(x.astype(np.float32), kind="stable"))
