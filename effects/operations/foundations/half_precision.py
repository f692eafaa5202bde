"""NumPy functions as operations need them: with 16-bit floats computed in 32 bits and rounded once, 4-bit integers in
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as _CPU  # type: ignore[import-not-found]

from ...base.caches import per_process
from ...base.lazy_module import late_module
from ...types.dtypes import (
    ANY_FLOATING,
    ANY_UNSIGNED,
    FOUR_BITS,
    bfloat16,
    float16,
    float32,
    int8,
    itemsize_bits,
    uint8,
)

NumPyFunction = Callable[..., Any]
HALF = frozenset({float16, bfloat16})
VECTORS = bool(_CPU.get("AVX512_SKX")) and not _CPU.get("AVX512_SPR")
"""Whether NumPy's float16 functions compute in 32 bits with vector instructions, seven times as fast as ``wide``.
On processors with AVX512_SPR they compute in 16 bits, less exactly."""


def wide(f: NumPyFunction) -> NumPyFunction:
    """``f`` with 16-bit floats converted to float32 and a float32 result rounded back; integer operands are unchanged.

    The attribute ``narrow`` of the result is ``f``.
    """
    widened = HALF - {float16} if VECTORS and isinstance(f, np.ufunc) and f.nin == 1 else HALF

    def function(*operands: Any) -> Any:
        dtype = operands[0].dtype
        if dtype not in widened:
            return f(*operands)
        y = f(*[x.astype(float32) if x.dtype in HALF else x for x in operands])
        return np.asarray(y).astype(dtype) if y.dtype == float32 else y

    return with_narrow(function, f, HALF)


def with_narrow(function: NumPyFunction, f: NumPyFunction, own: frozenset[Any]) -> NumPyFunction:
    """``function``, which is ``f`` for all dtypes but its ``own``."""
    function.narrow, function.own = f, own  # type: ignore[attr-defined]
    function.__wrapped__ = f  # type: ignore[attr-defined]
    return function


def narrow(f: NumPyFunction, types: Iterable[Any]) -> NumPyFunction:
    """``f``, or what it is for these types, such as the function that ``wide`` was applied to."""
    own = getattr(f, "own", None)
    return f if own is None or any([t.dtype in own for t in types]) else f.narrow  # type: ignore[attr-defined]


def silent(f: NumPyFunction) -> NumPyFunction:
    """``f``, declared never to report an error of floating-point arithmetic, whatever the values are."""
    f.silent = True  # type: ignore[attr-defined]
    return f


# of a ufunc that would make a scalar of a result of rank 0: the array, where NumPy has it (since 2.3)
AS_ARRAY: dict[str, Any] = {"out": ...} if np.lib.NumpyVersion(np.__version__) >= "2.3.0" else {}


def whole_bytes(dtype: Any) -> Any:
    """A dtype of all numbers of ``dtype``, whose elements take whole bytes."""
    if itemsize_bits(dtype) >= 8:
        return dtype
    return float32 if dtype in ANY_FLOATING else uint8 if dtype in ANY_UNSIGNED else int8


def in_bytes(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The ``evaluate`` rule that computes 4-bit integers in bytes; the result wraps around."""

    @wraps(rule)
    def evaluate(op: Any, *operands: Any) -> Any:
        dtype = operands[0].dtype
        if dtype not in FOUR_BITS:
            return rule(op, *operands)
        byte = whole_bytes(dtype)
        y = rule(op, *[x.astype(byte) if x.dtype == dtype else x for x in operands])
        return y.astype(dtype) if isinstance(y, np.ndarray | np.generic) and y.dtype == byte else y

    return evaluate


def lower_wide(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The ``lower`` rule that computes 16-bit floats by ``rule`` in float32, so that they are rounded once."""

    @wraps(rule)
    def lower(op: Any, emit: Any, *operands: Any) -> Any:
        result = emit.made
        if result.dtype not in HALF:
            return rule(op, emit, *operands)
        xs = [emit.convert(x, float32) for x in operands]
        return emit.convert(emit.making(result.update(dtype=float32), lambda: rule(op, emit, *xs)), result.dtype)

    return lower


def scipy_special(name: str) -> NumPyFunction:
    """The function of this name in ``scipy.special``, which is imported when it is first used."""
    return wide(lambda *operands: getattr(_special(), name)(*operands))


@per_process
def _special() -> Any:
    return late_module("scipy.special")
