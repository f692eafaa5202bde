"""NumPy functions as operations need them: with 16-bit floats computed in 32 bits and rounded once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as _CPU  # type: ignore[import-not-found]

from .dtypes import bfloat16, float16, float32

NumPyFunction = Callable[..., Any]
HALF = frozenset({float16, bfloat16})
VECTORS = bool(_CPU.get("AVX512_SKX")) and not _CPU.get("AVX512_SPR")
"""Whether NumPy's own functions of float16 compute vectors in 32 bits: then they are seven times as fast as ``wide``.
Processors with the second feature compute in 16 bits, less exactly."""


def wide(f: NumPyFunction) -> NumPyFunction:
    """``f`` with 16-bit operands widened and the result rounded back; integers beside them stay."""
    widened = HALF - {float16} if VECTORS and isinstance(f, np.ufunc) and f.nin == 1 else HALF

    def function(*operands: Any) -> Any:
        dtype = operands[0].dtype
        if dtype not in widened:
            return f(*operands)
        y = f(*[x.astype(float32) if x.dtype in HALF else x for x in operands])
        return np.asarray(y).astype(dtype) if y.dtype == float32 else y

    function.narrow = f  # type: ignore[attr-defined]
    return function


def narrow(f: NumPyFunction, types: Iterable[Any]) -> NumPyFunction:
    """``f`` itself where none of the operands has 16 bits to be widened."""
    return f if any([t.dtype in HALF for t in types]) else getattr(f, "narrow", f)


def scipy_special(name: str) -> NumPyFunction:
    """The function of this name in ``scipy.special``, which is imported when it is first used."""
    return wide(lambda *operands: _special()(name)(*operands))


@functools.cache
def _special() -> Callable[[str], NumPyFunction]:
    module = import_module("scipy.special")
    return functools.cache(lambda name: getattr(module, name))
