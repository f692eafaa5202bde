"""Avals: the types of buffers."""

import numpy as np

from handlax.lowering.xla import jaxlib_runtime


def test_avals_are_interned_by_shape_and_dtype():
    assert jaxlib_runtime.aval([2, 3], "float32") is jaxlib_runtime.aval((2, 3), np.float32)
    assert jaxlib_runtime.aval((2,), "float32") is not jaxlib_runtime.aval((2,), "float64")
