"""Logic functions: comparisons, logical operations, isfinite, allclose, ...; ``all``, ``any`` are in ``reductions``."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...effects.base.errors import DTypeMismatch, ShapeMismatch
from ...effects.base.stack import current
from ...effects.core.arrays import Array
from ...effects.operations.elementwise import arithmetic, bitwise, comparison, complex_parts
from ...effects.operations.elementwise.arithmetic import add, mul
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, promote, together
from ...effects.operators import numpy_arithmetic
from ...effects.types import dtypes
from ...effects.types.dtypes import bool_
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, inexact_together, like, no_out
from ..arrays.creation import array_beside, asarray
from . import reductions
from .universal_functions import are_keys, binary, ufunc

__all__ = [
    "allclose", "array_equal", "array_equiv", "equal", "greater", "greater_equal", "isclose", "iscomplex",
    "iscomplexobj", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "iterable",
    "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal",
]

_NE = comparison.Ne()

# z = x == y, x != y, x < y, x <= y, x > y, x >= y
equal = binary("equal", comparison.Eq, "Whether ``x[i] == y[i]``. Source: NumPy, ``equal``.", keys=operator.eq)
not_equal = binary(
    "not_equal", comparison.Ne, "Whether ``x[i] != y[i]``. Source: NumPy, ``not_equal``.", keys=operator.ne
)
less = binary("less", comparison.Lt, "Whether ``x[i] < y[i]``. Source: NumPy, ``less``.")
less_equal = binary("less_equal", comparison.Le, "Whether ``x[i] <= y[i]``. Source: NumPy, ``less_equal``.")
greater = binary("greater", comparison.Gt, "Whether ``x[i] > y[i]``. Source: NumPy, ``greater``.")
greater_equal = binary("greater_equal", comparison.Ge, "Whether ``x[i] >= y[i]``. Source: NumPy, ``greater_equal``.")
logical_and = ufunc(numpy_arithmetic.logical_and, 2, 1, identity=True, associative=True)
logical_or = ufunc(numpy_arithmetic.logical_or, 2, 1, identity=False, associative=True)
logical_xor = ufunc(numpy_arithmetic.logical_xor, 2, 1, identity=False, associative=True)


def logical_not(x: Any, /) -> Array:
    """Whether ``x[i]`` is 0. Source: NumPy, ``logical_not``.

    >>> logical_not(2.0)
    Array(False, dtype=bool)
    """
    x = array_of(x)
    return bitwise.bitwise_not(x) if x.type.dtype is bool_ else x == 0


def _everywhere(value: bool, x: Any) -> Any:
    """Booleans of the shape of ``x`` that are all ``value``."""
    return shapes.full(x.type.update(dtype=bool_, weak=False), value)


def isfinite(x: Any, /) -> Array:
    """Whether ``x[i]`` is neither infinite nor NaN. Source: NumPy, ``isfinite``.

    >>> isfinite(1.0)
    Array(True, dtype=bool)
    """
    x = array_of(x)
    if dtypes.is_complex(x.type.dtype):
        return arithmetic.is_finite(complex_parts.real(x)) & arithmetic.is_finite(complex_parts.imag(x))
    return arithmetic.is_finite(x) if dtypes.is_floating(x.type.dtype) else _everywhere(True, x)


def isinf(x: Any, /) -> Array:
    """Whether ``x[i]`` is infinite. Source: NumPy, ``isinf``.

    >>> isinf(-float("inf"))
    Array(True, dtype=bool)
    """
    x = array_of(x)
    if dtypes.is_complex(x.type.dtype):
        return isinf(complex_parts.real(x)) | isinf(complex_parts.imag(x))
    if not dtypes.is_floating(x.type.dtype):
        return _everywhere(False, x)
    return comparison.eq(arithmetic.abs(x), like(x, float("inf")))


def isnan(x: Any, /) -> Array:
    """Whether ``x[i]`` is NaN. Source: NumPy, ``isnan``.

    >>> isnan(float("nan"))
    Array(True, dtype=bool)
    """
    x = x if isinstance(x, Array) else array_of(x)
    return current().answer(_NE, (x, x)) if x.type.dtype in dtypes.ANY_INEXACT else _everywhere(False, x)


def _infinite(name: str, x: Any, out: Any, value: float) -> Any:
    """Whether ``x[i]`` is the infinity ``value``. Raises DTypeMismatch: ``x`` is complex."""
    no_out(out, name)
    x = array_of(x)
    if dtypes.is_complex(x.type.dtype):
        raise DTypeMismatch(f"{name}: the operand must be real, got {x.type}.")
    return x == like(x, value) if dtypes.is_floating(x.type.dtype) else _everywhere(False, x)


def isposinf(x: Any, /, out: None = None) -> Array:
    """Whether ``x[i]`` is infinity. Source: NumPy, ``isposinf``.

    >>> isposinf(float("inf"))
    Array(True, dtype=bool)
    """
    return _infinite("isposinf", x, out, float("inf"))


def isneginf(x: Any, /, out: None = None) -> Array:
    """Whether ``x[i]`` is minus infinity. Source: NumPy, ``isneginf``.

    >>> isneginf(float("inf"))
    Array(False, dtype=bool)
    """
    return _infinite("isneginf", x, out, -float("inf"))


def iscomplex(x: Any) -> Array:
    """Whether the imaginary part of ``x[i]`` is not 0. Source: NumPy, ``iscomplex``.

    >>> iscomplex(1j)
    Array(True, dtype=bool)
    """
    x = array_of(x)
    return complex_parts.imag(x) != 0 if dtypes.is_complex(x.type.dtype) else _everywhere(False, x)


def isreal(x: Any) -> Array:
    """Whether the imaginary part of ``x[i]`` is 0. Source: NumPy, ``isreal``.

    >>> isreal(1j)
    Array(False, dtype=bool)
    """
    x = array_of(x)
    return complex_parts.imag(x) == 0 if dtypes.is_complex(x.type.dtype) else _everywhere(True, x)


def iscomplexobj(x: Any) -> bool:
    """Whether ``x``, an array, a number or a nested list, has a complex dtype, whatever its values.

    >>> iscomplexobj(1.0), iscomplexobj([1.0, 2j])
    (False, True)
    """
    if x is None:
        return False
    return dtypes.is_complex(dtypes.named(x.dtype) if hasattr(x, "dtype") else asarray(x).dtype)


def isrealobj(x: Any) -> bool:
    """Whether ``x`` has no complex dtype.

    >>> isrealobj(1.0)
    True
    """
    return not iscomplexobj(x)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Whether ``|a - b| <= atol + rtol * |b|``; infinities are close if they are equal.

    Integers are compared as floats.

    >>> isclose(1.0, 1.000001), isclose(6, 10, rtol=0.5)
    (Array(True, dtype=bool), Array(True, dtype=bool))
    """
    if are_keys(a, b):
        return a == b
    x, y = inexact_together("isclose", a, b)
    size = arithmetic.abs(y)
    relative = mul(*together("isclose", convert(rtol, size.type.dtype), size))
    reach = add(*together("isclose", convert(atol, size.type.dtype), relative))
    close = comparison.le(arithmetic.abs(x - y), reach) & isfinite(y) | (x == y)
    return close | (x != x) & (y != y) if equal_nan else close


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Whether ``isclose`` holds for all elements.

    >>> allclose(1.0, 1.1)
    Array(False, dtype=bool)
    """
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def _equal(x: Any, y: Any, equal_nan: bool) -> Any:
    """Whether all elements are equal, after broadcasting; with ``equal_nan`` NaN equals NaN."""
    x, y = together("array_equal", x, y)
    same = x == y
    if equal_nan and dtypes.is_inexact(x.type.dtype):
        same = same | (x != x) & (y != y)
    return reductions.all(same)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether shapes and all elements are equal.

    >>> array_equal(1, 1.0)
    Array(True, dtype=bool)
    """
    if are_keys(a1, a2):
        return reductions.all(a1 == a2) if a1.shape == a2.shape else array_of(False)
    x, y = promote(array_beside(a2, a1), array_beside(a1, a2))
    return _equal(x, y, equal_nan) if x.type.shape == y.type.shape else array_of(False)


def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether all elements are equal after broadcasting; false where shapes do not broadcast.

    >>> from handlax.numpy import ones
    >>> array_equiv(ones(3), 1)
    Array(True, dtype=bool)
    """
    x, y = promote(array_beside(a2, a1), array_beside(a1, a2))
    try:
        broadcast_shape("array_equiv", x.type.shape, y.type.shape)
    except ShapeMismatch:
        return array_of(False)
    return _equal(x, y, False)


def isscalar(element: Any) -> bool:
    """Whether ``element`` is a number, or an array of rank 0.

    >>> isscalar(3.0), isscalar([3.0])
    (True, False)
    """
    if isinstance(element, (Array, np.ndarray)):
        return element.ndim == 0
    return np.isscalar(element) if not isinstance(element, (str, bytes)) else False


def iterable(y: Any) -> bool:
    """Whether one can iterate over ``y``.

    >>> iterable([1]), iterable(1)
    (True, False)
    """
    if isinstance(y, Array):  # also where the first axis is ragged, which ``iter`` refuses
        return y.ndim > 0
    try:
        iter(y)
    except TypeError:
        return False
    return True


programs(globals(), direct=(
    "iscomplex", "iscomplexobj", "isfinite", "isinf", "isnan", "isreal", "isrealobj", "isscalar", "iterable",
))
