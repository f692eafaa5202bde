"""Data types, questions about them, and constants: float32, finfo, can_cast, result_type, pi, inf, newaxis, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..effects.core.arrays import Array
from ..effects.types.dtypes import (
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
from ..effects.types.dtypes import result_type as _result_type
from .arrays.creation import asarray

__all__ = [
    "ComplexWarning", "bfloat16", "bool", "bool_", "can_cast", "cdouble", "character", "complex64", "complex128",
    "complex_", "complexfloating", "csingle", "double", "dtype", "e", "euler_gamma", "finfo", "flexible",
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64", "float_", "floating",
    "generic", "iinfo", "inexact", "inf", "int2", "int4", "int8", "int16", "int32", "int64", "int_", "integer",
    "isdtype", "issubdtype", "nan", "ndarray", "newaxis", "number", "object_", "pi", "promote_types", "result_type",
    "signedinteger", "single", "uint", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "unsignedinteger",
]  # fmt: skip


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
    """The class of ``float32`` and the other scalar types: each equals its dtype, and calling it makes an array."""

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
        "__doc__": f"The scalar type {name}: calling it converts to an array of that dtype.",
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
    """The class of ``int_``, ``float_``, ...: their dtype is the default that ``configure`` sets.

    Each equals this dtype, ``x.dtype == int_``, but as a type itself alone, whatever the settings are.
    """

    default: Callable[[], Any]

    def __eq__(cls, other: object) -> Any:
        return cls is other or (isinstance(other, np.dtype) and other == cls.dtype)

    __hash__ = type.__hash__

    @property
    def dtype(cls) -> Any:  # type: ignore[override]
        return cls.default()


def _default_type(name: str, default: Callable[[], Any]) -> Any:
    return _DefaultType(name, (), {"default": staticmethod(default), "__module__": "handlax.numpy"})


def _default_uint() -> Any:
    return np.dtype(f"u{default_int().name}")


int_, float_ = _default_type("int_", default_int), _default_type("float_", default_float)
complex_, uint = _default_type("complex_", default_complex), _default_type("uint", _default_uint)


def result_type(*args: Any) -> np.dtype[Any]:
    """The dtype that arrays, scalars and dtypes promote to together. See ``handlax.dtypes``.

    >>> result_type(float32, 2)
    dtype('float32')
    """
    return _result_type(*args)
