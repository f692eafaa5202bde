"""Data types, questions about them, and constants: float32, finfo, can_cast, result_type, pi, inf, newaxis, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..effects.core.arrays import Array
from ..effects.types import dtypes
from ..effects.types.dtypes import can_cast, finfo, iinfo, isdtype, issubdtype, promote_types
from .arrays.creation import asarray

__all__ = [
    "ComplexWarning", "bfloat16", "bool", "bool_", "can_cast", "cdouble", "character", "complex64", "complex128",
    "complex_", "complexfloating", "csingle", "double", "dtype", "e", "euler_gamma", "finfo", "flexible",
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64", "float_", "floating",
    "generic", "iinfo", "inexact", "inf", "int2", "int4", "int8", "int16", "int32", "int64", "int_", "integer",
    "isdtype", "issubdtype", "nan", "ndarray", "newaxis", "number", "object_", "pi", "promote_types", "result_type",
    "signedinteger", "single", "uint", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "unsignedinteger",
]


pi, e, euler_gamma = math.pi, math.e, 0.57721566490153286060
"""3.14159..., 2.71828..., and the limit of ``1 + 1/2 + ... + 1/n - log(n)``, 0.57721...: numbers of Python."""
inf, nan = math.inf, math.nan
"""Infinity, and what is no number: floats of Python."""
newaxis = None
"""None, which as an index adds a dimension of size 1."""
dtype, ndarray, generic = np.dtype, Array, np.generic
number, integer, signedinteger, unsignedinteger = np.number, np.integer, np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating, flexible, character = (
    np.inexact, np.floating, np.complexfloating, np.flexible, np.character
)
object_, ComplexWarning = np.object_, np.exceptions.ComplexWarning


class _ScalarType(type):
    """The class of ``float32`` and the other scalar types: each equals its dtype, and calling it makes an array."""

    dtype: np.dtype[Any]

    def __call__(cls, x: Any = 0) -> Any:
        """``x`` as an array of this dtype."""
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> Any:
        return cls is other or cls.dtype.type is other or (isinstance(other, np.dtype) and other == cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'handlax.numpy.{cls.__name__}'>"

    def __instancecheck__(cls, instance: Any) -> Any:
        return isinstance(instance, cls.dtype.type)


def _scalar_type(like: Any, name: str = "") -> Any:
    """The scalar type of the dtype of ``like``, with the name of this dtype unless another is given."""
    name = name or np.dtype(like).name
    namespace = {
        "dtype": np.dtype(like),
        "__module__": "handlax.numpy",
        "__doc__": f"The scalar type {name}: calling it converts to an array of that dtype.",
    }
    return _ScalarType(name, (), namespace)


bool = bool_ = _scalar_type(np.bool_, "bool_")
int2, int4, uint2, uint4 = map(_scalar_type, (ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4))
int8, int16, int32, int64 = map(_scalar_type, (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = map(_scalar_type, (np.uint8, np.uint16, np.uint32, np.uint64))
float16, bfloat16, float32, float64 = map(_scalar_type, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
complex64, complex128 = _scalar_type(np.complex64), _scalar_type(np.complex128)
float4_e2m1fn, float8_e3m4 = _scalar_type(ml_dtypes.float4_e2m1fn), _scalar_type(ml_dtypes.float8_e3m4)
float8_e4m3, float8_e4m3b11fnuz = _scalar_type(ml_dtypes.float8_e4m3), _scalar_type(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn, float8_e4m3fnuz = _scalar_type(ml_dtypes.float8_e4m3fn), _scalar_type(ml_dtypes.float8_e4m3fnuz)
float8_e5m2, float8_e5m2fnuz = _scalar_type(ml_dtypes.float8_e5m2), _scalar_type(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar_type(ml_dtypes.float8_e8m0fnu)
single, double, csingle, cdouble = float32, float64, complex64, complex128


class _DefaultType(_ScalarType):
    """The class of ``int_``, ``float_``, ``complex_`` and ``uint``: their dtype is the default that ``configure`` sets.

    ``int_`` equals the default dtype in force, as in ``x.dtype == int_``, and among types equals only itself, so that
    its hash does not depend on the settings.
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


int_, float_ = _default_type("int_", dtypes.default_int), _default_type("float_", dtypes.default_float)
"""The scalar type of the default integers, or floats, that ``configure`` sets: a function that makes such an array."""
complex_ = _default_type("complex_", dtypes.default_complex)
"""The scalar type of the default complex numbers: a function that makes such an array."""
uint = _default_type("uint", lambda: np.dtype(f"u{dtypes.default_int().name}"))
"""The scalar type of unsigned integers as wide as the default integers: a function that makes such an array."""


def result_type(*args: Any) -> np.dtype[Any]:
    """The dtype that arrays, scalars and dtypes promote to together. See ``handlax.dtypes``.

    >>> result_type(float32, 2)
    dtype('float32')
    """
    return dtypes.result_type(*args)
