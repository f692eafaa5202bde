"""What elements are: finite, infinite, NaN, real; whether arrays are equal or close; bounds and replacements."""

from __future__ import annotations

from typing import Any

from ..effects import arithmetic, comparison, complexes, dtypes, shapes
from ..effects.arithmetic import add, mul, sub
from ..effects.bitwise import bitwise_and, bitwise_or
from ..effects.broadcasting import broadcast_shape
from ..effects.comparison import eq, le, ne, select_n
from ..effects.conversion import convert
from ..effects.dtypes import bool_, finfo
from ..effects.errors import BadArgument, DTypeMismatch, ShapeMismatch
from . import reductions
from .operands import array_of, like, no_out, together


def _never(x: Any, value: bool = False) -> Any:
    return shapes.full(x.type.update(dtype=bool_, weak=False), value)


def isfinite(x: Any, /) -> Any:
    """Whether ``x[i]`` is neither infinite nor NaN. Source: NumPy, ``isfinite``.

    >>> isfinite(1.0)
    Array(True, dtype=bool)
    """
    x = array_of(x)
    if dtypes.is_complex(x.type.dtype):
        return bitwise_and(arithmetic.is_finite(complexes.real(x)), arithmetic.is_finite(complexes.imag(x)))
    return arithmetic.is_finite(x) if dtypes.is_floating(x.type.dtype) else _never(x, True)


def isinf(x: Any, /) -> Any:
    """Whether ``x[i]`` is infinite. Source: NumPy, ``isinf``.

    >>> isinf(-float("inf"))
    Array(True, dtype=bool)
    """
    x = array_of(x)
    if dtypes.is_complex(x.type.dtype):
        return bitwise_or(isinf(complexes.real(x)), isinf(complexes.imag(x)))
    if not dtypes.is_floating(x.type.dtype):
        return _never(x)
    return eq(arithmetic.abs(x), like(x, float("inf")))


def isnan(x: Any, /) -> Any:
    """Whether ``x[i]`` is NaN. Source: NumPy, ``isnan``.

    >>> isnan(float("nan"))
    Array(True, dtype=bool)
    """
    x = array_of(x)
    return ne(x, x) if dtypes.is_inexact(x.type.dtype) else _never(x)


def _infinite(name: str, x: Any, out: Any, value: float) -> Any:
    no_out(out, name)
    x = array_of(x)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"{name}: the operand must be real, got {x.type}.")
    return eq(x, like(x, value)) if dtypes.is_floating(x.type.dtype) else _never(x)


def isposinf(x: Any, /, out: None = None) -> Any:
    """Whether ``x[i]`` is infinity. Source: NumPy, ``isposinf``.

    >>> isposinf(float("inf"))
    Array(True, dtype=bool)
    """
    return _infinite("isposinf", x, out, float("inf"))


def isneginf(x: Any, /, out: None = None) -> Any:
    """Whether ``x[i]`` is minus infinity. Source: NumPy, ``isneginf``.

    >>> isneginf(float("inf"))
    Array(False, dtype=bool)
    """
    return _infinite("isneginf", x, out, -float("inf"))


def iscomplex(x: Any) -> Any:
    """Whether the imaginary part of ``x[i]`` is not 0. Source: NumPy, ``iscomplex``.

    >>> iscomplex(1j)
    Array(True, dtype=bool)
    """
    x = array_of(x)
    return ne(complexes.imag(x), like(complexes.imag(x), 0)) if dtypes.is_complex(x.type.dtype) else _never(x)


def isreal(x: Any) -> Any:
    """Whether the imaginary part of ``x[i]`` is 0. Source: NumPy, ``isreal``.

    >>> isreal(1j)
    Array(False, dtype=bool)
    """
    x = array_of(x)
    return eq(complexes.imag(x), like(complexes.imag(x), 0)) if dtypes.is_complex(x.type.dtype) else _never(x, True)


def iscomplexobj(x: Any) -> bool:
    """Whether ``x`` has a complex dtype, whatever its values.

    >>> iscomplexobj(1.0)
    False
    """
    return x is not None and dtypes.is_complex(array_of(x).type.dtype)


def isrealobj(x: Any) -> bool:
    """Whether ``x`` has no complex dtype.

    >>> isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether ``|a - b| <= atol + rtol * |b|``; infinities are close where they are equal, integers likewise.

    >>> isclose(1.0, 1.000001)
    Array(True, dtype=bool)
    """
    x, y = together("isclose", a, b)
    if not dtypes.is_inexact(x.type.dtype):
        return eq(x, y)
    size = arithmetic.abs(y)
    reach = add(*together("isclose", convert(array_of(atol), size.type.dtype), mul(*_pair(rtol, size))))
    close = bitwise_and(le(arithmetic.abs(sub(x, y)), reach), isfinite(y))
    close = bitwise_or(close, eq(x, y))
    return bitwise_or(close, bitwise_and(ne(x, x), ne(y, y))) if equal_nan else close


def _pair(number: Any, x: Any) -> list[Any]:
    return together("isclose", convert(array_of(number), x.type.dtype), x)


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as ``isclose`` has it.

    >>> allclose(1.0, 1.1)
    Array(False, dtype=bool)
    """
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def _equal(x: Any, y: Any, equal_nan: bool) -> Any:
    x, y = together("array_equal", x, y)
    same = eq(x, y)
    if equal_nan and dtypes.is_inexact(x.type.dtype):
        same = bitwise_or(same, bitwise_and(ne(x, x), ne(y, y)))
    return reductions.all(same)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and all elements are equal.

    >>> array_equal(1, 1.0)
    Array(True, dtype=bool)
    """
    x, y = array_of(a1), array_of(a2)
    return _equal(x, y, equal_nan) if x.type.shape == y.type.shape else array_of(False)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether all elements are equal after broadcasting; false where shapes do not broadcast.

    >>> from handlax.numpy import ones
    >>> array_equiv(ones(3), 1)
    Array(True, dtype=bool)
    """
    x, y = array_of(a1), array_of(a2)
    try:
        broadcast_shape("array_equiv", x.type.shape, y.type.shape)
    except ShapeMismatch:
        return array_of(False)
    return _equal(x, y, False)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """``x`` with NaN and infinities replaced; infinities by the dtype's largest and least number, unless named.

    >>> nan_to_num(float("nan"))
    Array(0., dtype=float32, weak_type=True)
    """
    x = array_of(x)
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        parts = [nan_to_num(part, copy, nan, posinf, neginf) for part in (complexes.real(x), complexes.imag(x))]
        return complexes.complex(*parts)
    if not dtypes.is_floating(dtype):
        return x
    info = finfo(dtype)
    replaced = (
        (ne(x, x), nan),
        (eq(x, like(x, float("inf"))), float(info.max) if posinf is None else posinf),
        (eq(x, like(x, -float("inf"))), float(info.min) if neginf is None else neginf),
    )
    y = x
    for mask, value in replaced:
        new = convert(array_of(value), dtype, x.type.weak)
        y = select_n(mask, y, shapes.broadcast(new, x.type.shape) if new.type.shape else new)
    return y


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """``minimum(maximum(arr, min), max)``; a bound that is None does not bind.

    Raises: DTypeMismatch: complex numbers have no order. Source: NumPy, ``clip``.

    >>> clip(5, 0, 3)
    Array(3, dtype=int32, weak_type=True)
    """
    if arr is None:
        raise BadArgument("clip: an array is needed, got None.")
    x = array_of(arr)
    for bound, choose in ((min, comparison.max), (max, comparison.min)):
        if bound is not None:
            pair = together("clip", bound, x)
            if dtypes.is_complex(pair[0].type.dtype):
                raise DTypeMismatch(f"clip: complex numbers have no order, got {x.type}.")
            x = choose(*pair)
    return x
