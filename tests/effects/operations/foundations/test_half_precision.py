"""16-bit floats are computed in 32 bits and rounded once, whoever does it."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx

FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "sqrt": np.sqrt,
    "floor": np.floor, "ceil": np.ceil,
}
EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_float16_is_rounded_once(name):
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](EVERY.astype(np.float32)).astype(np.float16)
    # so few at a time that NumPy computes them
    parts = [np.asarray(getattr(hx.lax, name)(part)) for part in EVERY.reshape(-1, 256)]
    found = np.concatenate(parts)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    differs = ~np.isnan(found) & (found != expected)
    # two good functions of 32 bits may lie on both sides of a middle between neighbours
    assert differs.sum() <= 8
    assert (abs(found.view(np.int16)[differs] - expected.view(np.int16)[differs]) == 1).all()
