"""Dtypes as callable names, constants, and small questions about arrays; reading, writing and printing them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..effects.arrays import Array
from ..effects.dtypes import (
    can_cast,
    default_complex,
    default_float,
    default_int,
    finfo,
    iinfo,
    isdtype,
    issubdtype,
    promote_types,
)
from ..effects.dtypes import result_type as _result_type
from ..effects.errors import BadArgument
from .creation import asarray
from .operands import array_of

pi, e, euler_gamma = math.pi, math.e, 0.57721566490153286060
inf, nan = math.inf, math.nan
newaxis = None
dtype, ndarray, generic = np.dtype, Array, np.generic
number, integer, signedinteger, unsignedinteger = np.number, np.integer, np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating, flexible, character = (
    np.inexact, np.floating, np.complexfloating, np.flexible, np.character
)  # fmt: skip
object_, ComplexWarning = np.object_, np.exceptions.ComplexWarning


class _ScalarType(type):
    """The class of dtype names: each equals its dtype, and called it makes an array of it."""

    dtype: np.dtype[Any]

    def __call__(cls, x: Any = 0) -> Any:
        """``x`` as an array of this dtype."""
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> Any:
        return cls is other or cls.dtype.type is other or (isinstance(other, np.dtype) and other == cls.dtype)

    def __ne__(cls, other: object) -> Any:
        return not cls == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'handlax.numpy.{cls.__name__}'>"

    def __instancecheck__(cls, instance: Any) -> Any:
        return isinstance(instance, cls.dtype.type)


def _scalar_type(name: str, like: Any) -> Any:
    namespace = {
        "dtype": np.dtype(like),
        "__module__": "handlax.numpy",
        "__doc__": f"The dtype {name}: called, it makes arrays.",
    }
    return _ScalarType(name, (), namespace)


bool_ = _scalar_type("bool_", np.bool_)
int2, int4 = _scalar_type("int2", ml_dtypes.int2), _scalar_type("int4", ml_dtypes.int4)
uint2, uint4 = _scalar_type("uint2", ml_dtypes.uint2), _scalar_type("uint4", ml_dtypes.uint4)
int8, int16 = _scalar_type("int8", np.int8), _scalar_type("int16", np.int16)
int32, int64 = _scalar_type("int32", np.int32), _scalar_type("int64", np.int64)
uint8, uint16 = _scalar_type("uint8", np.uint8), _scalar_type("uint16", np.uint16)
uint32, uint64 = _scalar_type("uint32", np.uint32), _scalar_type("uint64", np.uint64)
float16, bfloat16 = _scalar_type("float16", np.float16), _scalar_type("bfloat16", ml_dtypes.bfloat16)
float32, float64 = _scalar_type("float32", np.float32), _scalar_type("float64", np.float64)
complex64, complex128 = _scalar_type("complex64", np.complex64), _scalar_type("complex128", np.complex128)
float4_e2m1fn = _scalar_type("float4_e2m1fn", ml_dtypes.float4_e2m1fn)
float8_e3m4, float8_e4m3 = (
    _scalar_type("float8_e3m4", ml_dtypes.float8_e3m4),
    _scalar_type("float8_e4m3", ml_dtypes.float8_e4m3),
)
float8_e4m3b11fnuz = _scalar_type("float8_e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn, float8_e4m3fnuz = (_scalar_type(n, getattr(ml_dtypes, n)) for n in ("float8_e4m3fn", "float8_e4m3fnuz"))
float8_e5m2, float8_e5m2fnuz = (_scalar_type(n, getattr(ml_dtypes, n)) for n in ("float8_e5m2", "float8_e5m2fnuz"))
float8_e8m0fnu = _scalar_type("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu)
bool = bool_
single, double, csingle, cdouble = float32, float64, complex64, complex128


class _DefaultType(_ScalarType):
    """A name of the dtype that ``configure`` has in force."""

    default: Callable[[], Any]

    @property
    def dtype(cls) -> Any:  # type: ignore[override]
        return cls.default()


def _default_type(name: str, default: Callable[[], Any]) -> Any:
    return _DefaultType(name, (), {"default": staticmethod(default), "__module__": "handlax.numpy"})


def _default_uint() -> Any:
    return np.dtype(f"u{default_int().name}")


int_, float_ = _default_type("int_", default_int), _default_type("float_", default_float)
complex_, uint = _default_type("complex_", default_complex), _default_type("uint", _default_uint)


def result_type(*args: Any) -> Any:
    """The dtype that arrays, scalars and dtypes promote to together. See ``handlax.dtypes``.

    >>> result_type(float32, 2)
    dtype('float32')
    """
    return _result_type(*args)


def ndim(a: Any) -> int:
    """How many dimensions ``a`` has.

    >>> ndim(3.0)
    0
    """
    return len(array_of(a).type.shape) if not hasattr(a, "ndim") else a.ndim


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions of ``a``.

    >>> shape(3.0)
    ()
    """
    return tuple(a.shape) if hasattr(a, "shape") else array_of(a).type.shape


def size(a: Any, axis: Any = None) -> int:
    """How many elements ``a`` has, or how many along the axes.

    >>> size(3.0)
    1
    """
    sizes = shape(a)
    if axis is None:
        return math.prod(sizes)
    return math.prod([sizes[d] for d in (axis if isinstance(axis, (tuple, list)) else (axis,))])


def iterable(y: Any) -> Any:
    """Whether one can iterate over ``y``.

    >>> iterable([1]), iterable(1)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def isscalar(element: Any) -> Any:
    """Whether it is a number, or an array without dimensions.

    >>> isscalar(3.0), isscalar([3.0])
    (True, False)
    """
    if isinstance(element, (Array, np.ndarray)):
        return element.ndim == 0
    return np.isscalar(element) if not isinstance(element, (str, bytes)) else False


def save(file: Any, arr: Any, allow_pickle: Any = True) -> None:
    """Write an array to a file in NumPy's format."""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: Any = True, **kwds: Any) -> None:
    """Write arrays, by position or name, to one file in NumPy's format."""
    np.savez(file, *map(np.asarray, args), allow_pickle=allow_pickle, **{k: np.asarray(v) for k, v in kwds.items()})


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array of a file that ``save`` wrote, or the arrays by name that ``savez`` wrote."""
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    # NumPy writes dtypes that it does not know as raw bytes
    if found.dtype.kind == "V":
        raise BadArgument(
            f"load: the file holds raw bytes of width {found.dtype.itemsize}, no dtype.",
            hint="view the data with NumPy.",
        )
    return asarray(found)


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """The text of an array as it stands in a program."""
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """The text of an array's data."""
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """The text of an array's data, as NumPy's options say."""
    return np.array2string(np.asarray(a), *args, **kwargs)


set_printoptions, get_printoptions, printoptions = np.set_printoptions, np.get_printoptions, np.printoptions

__all__ = [
    "ComplexWarning", "array2string", "array_repr", "array_str", "bfloat16", "bool", "bool_", "can_cast", "cdouble",
    "character", "complex64", "complex128", "complex_", "complexfloating", "csingle", "double", "dtype", "e",
    "euler_gamma", "finfo", "flexible", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32",
    "float64", "float_", "floating", "generic", "get_printoptions", "iinfo", "inexact", "inf", "int2", "int4", "int8",
    "int16", "int32", "int64", "int_", "integer", "isdtype", "isscalar", "issubdtype", "iterable", "load", "nan",
    "ndarray", "ndim", "newaxis", "number", "object_", "pi", "printoptions", "promote_types", "result_type", "save",
    "savez", "set_printoptions", "shape", "signedinteger", "single", "size", "uint", "uint2", "uint4", "uint8",
    "uint16", "uint32", "uint64", "unsignedinteger",
]  # fmt: skip
