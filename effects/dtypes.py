"""Dtypes: which there are, how they are named, and how they promote.

A dtype is a ``np.dtype`` (those of ml_dtypes included) or an ``ExtendedDType``; both are immutable and hashable.

Where the dtype of a value comes from:

============================================  ==========================  ======
value                                         dtype                       weak
============================================  ==========================  ======
array, NumPy array (0-d included)             its own, 64 bits included   its own flag; a NumPy array: no
``dtype=`` or ``astype``                      the one that is named       no
``True``, ``np.bool_``                        bool                        no
``3``                                         ``default_int()``           yes
``3.0``                                       ``default_float()``         yes
``3j``                                        ``default_complex()``       yes
``np.int64(3)``                               as ``3``                    yes
``np.float64(3)``                             as ``3.0``                  yes
``np.complex128(3)``                          as ``3j``                   yes
any other NumPy scalar, ``np.float32(3)``     its own                     yes
============================================  ==========================  ======

NumPy makes these three 64-bit scalars on its own (``np.sqrt(64)``, ``np.arange(3)[0]``): nobody has named their width.
An integer that its dtype cannot hold is an error, never a wrap-around; a float is rounded to its dtype.

How two of them promote is in ``promotion``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from .config import current
from .errors import BadArgument, DTypeMismatch, IntegerOverflow
from .formats import (
    ANY,
    ANY_FLOATING,
    ANY_INEXACT,
    ANY_INTEGER,
    ANY_NUMERIC,
    ANY_SIGNED,
    ANY_UNSIGNED,
    BOOL,
    BY_NAME,
    COMPLEX,
    EVERY,
    FLOATING,
    INEXACT,
    INTEGER,
    NUMERIC,
    ORDERED,
    RBG,
    SIGNED,
    SMALL,
    SMALL_FLOATING,
    SMALL_SIGNED,
    SMALL_UNSIGNED,
    THREEFRY,
    UNSAFE_RBG,
    UNSIGNED,
    DType,
    ExtendedDType,
    Family,
    KeyDType,
    KeyImpl,
    bfloat16,
    bool_,
    complex64,
    complex128,
    extended,
    float0,
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    from_short_name,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    is_bool,
    is_complex,
    is_extended,
    is_floating,
    is_inexact,
    is_integer,
    is_signed,
    is_unsigned,
    prng_key,
    short_name,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from .promotion import promote, promote_all

__all__ = [
    "ANY",
    "ANY_FLOATING",
    "ANY_INEXACT",
    "ANY_INTEGER",
    "ANY_NUMERIC",
    "ANY_SIGNED",
    "ANY_UNSIGNED",
    "BOOL",
    "COMPLEX",
    "EVERY",
    "FLOATING",
    "INEXACT",
    "INTEGER",
    "NUMERIC",
    "ORDERED",
    "RBG",
    "SIGNED",
    "SMALL",
    "SMALL_FLOATING",
    "SMALL_SIGNED",
    "SMALL_UNSIGNED",
    "THREEFRY",
    "UNSAFE_RBG",
    "UNSIGNED",
    "DType",
    "ExtendedDType",
    "Family",
    "KeyDType",
    "KeyImpl",
    "bfloat16",
    "bool_",
    "can_cast",
    "canonical",
    "complex64",
    "complex128",
    "default_complex",
    "default_float",
    "default_int",
    "extended",
    "finfo",
    "float0",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "from_short_name",
    "iinfo",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_bool",
    "is_complex",
    "is_extended",
    "is_floating",
    "is_inexact",
    "is_integer",
    "is_signed",
    "is_unsigned",
    "isdtype",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "promote",
    "promote_types",
    "result_type",
    "scalar_type",
    "scalar_type_of",
    "short_name",
    "tangent_dtype",
    "to_complex",
    "to_inexact",
    "to_real",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]  # fmt: skip


def default_float() -> np.dtype[Any]:
    """The dtype of a float created from nothing: ``configure(default_float=...)``, else float32."""
    return current().default_float


def default_int() -> np.dtype[Any]:
    """The dtype of an integer created from nothing: ``configure(default_int=...)``, else int32."""
    return current().default_int


def default_complex() -> np.dtype[Any]:
    """The complex dtype whose parts are ``default_float()``, complex64 where those are narrower."""
    return to_complex(default_float())


_DEFAULTS = MappingProxyType({
    int: default_int, float: default_float, complex: default_complex,
    "int": default_int, "float": default_float, "complex": default_complex,
})  # fmt: skip


def canonical(dtype_like: Any) -> Any:
    """The dtype that ``dtype_like`` names.

    Accepts dtypes, NumPy's and ml_dtypes' scalar types, names, whatever carries ``.dtype``, and Python's ``bool``,
    ``int``, ``float`` and ``complex`` (also by name), which name no width and mean the defaults. The byte order becomes
    the machine's.

    Raises: DTypeMismatch: it names no dtype, or one that arrays cannot have (object, text, dates, longdouble, ...).

    >>> canonical("bfloat16"), canonical(float), canonical(">f8")
    (dtype(bfloat16), dtype('float32'), dtype('float64'))
    """
    try:
        return _CANONICAL[dtype_like]
    except (KeyError, TypeError):  # not met before, one of the defaults, or not hashable
        pass
    if not isinstance(dtype_like, (np.dtype, type, str, ExtendedDType)):
        dtype_like = getattr(dtype_like, "dtype", dtype_like)
        if not isinstance(dtype_like, (np.dtype, type, str, ExtendedDType)):
            hint = "NumPy reads None as float64; name one." if dtype_like is None else "give for example 'float32'."
            raise DTypeMismatch(f"a dtype must be named here, got {dtype_like!r}", hint=hint)
    if isinstance(dtype_like, ExtendedDType):
        return dtype_like
    default = _DEFAULTS.get(dtype_like)
    return _canonical(dtype_like) if default is None else default()


# What names the same dtype for ever, so that the common case is one look-up
_CANONICAL: Mapping[Any, Any] = MappingProxyType(
    {like: d for d in EVERY for like in (d, d.type, d.name)} | {float0: float0} | {bool: bool_}
)


@lru_cache(maxsize=512)
def _canonical(dtype_like: Any) -> Any:
    if isinstance(dtype_like, str):
        if dtype_like.startswith("key<"):
            return from_short_name(dtype_like)
        dtype_like = BY_NAME.get(dtype_like, dtype_like)
    try:
        dtype = np.dtype(dtype_like)
    except (TypeError, ValueError):
        raise DTypeMismatch(f"{dtype_like!r} names no dtype", hint="give for example 'float32' or np.int8.") from None
    native = dtype if dtype.isnative else dtype.newbyteorder("=")
    found = BY_NAME.get("float0" if native == float0 else native.name)
    if found is None or found != native:
        raise DTypeMismatch(
            f"arrays hold booleans and numbers of known width, got dtype {dtype} from {dtype_like!r}",
            hint="'f4' counts bytes; from_short_name('f32') counts bits." if dtype.kind in "fc" else None,
        )
    return found


def scalar_type(value: Any, dtype: Any = None) -> tuple[np.dtype[Any], bool]:
    """The (dtype, weak) of a Python or NumPy scalar, by the table at the head of this module; ``dtype`` if it is named.

    Raises: DTypeMismatch: the value is no scalar. IntegerOverflow: an integer that the dtype cannot hold.

    >>> scalar_type(3), scalar_type(np.float64(8.0)), scalar_type(2**40, "int64")
    ((dtype('int32'), True), (dtype('float32'), True), (dtype('int64'), False))
    """
    if dtype is None:  # the common cases first; no default integer is narrower than 32 bits
        if value.__class__ is float:
            return current().default_float, True
        if value.__class__ is int and -(2**31) <= value < 2**31:
            return current().default_int, True
    found, weak = _scalar_type(value)
    if dtype is not None:
        found, weak = canonical(dtype), False
        if found not in EVERY:
            raise DTypeMismatch(f"a number has no dtype {short_name(found)}, got {value!r}")
    if isinstance(value, (int, np.integer)) and found in ANY_INTEGER:
        low, high = _range(found)
        if not low <= int(value) <= high:
            raise IntegerOverflow(
                f"an integer must fit its dtype, got {value} for {short_name(found)}, which holds {low} to {high}",
                hint="name a wider dtype, or set configure(default_int='int64')." if weak else "name a wider dtype.",
            )
    return found, weak


@lru_cache(maxsize=64)
def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = iinfo(dtype)
    return int(info.min), int(info.max)


def _scalar_type(value: Any) -> tuple[np.dtype[Any], bool]:
    """As ``scalar_type`` without a look at the value: promotion needs no more."""
    kind = _scalar_kind(value.__class__)
    if kind is None:
        raise DTypeMismatch(f"a Python or NumPy scalar is needed, got {type(value).__name__}")
    if isinstance(kind, np.dtype):
        return kind, kind != bool_
    return _DEFAULTS[kind](), True


@lru_cache(maxsize=256)
def _scalar_kind(cls: Any) -> Any:
    """The dtype of a class of scalars; int, float or complex where that is a default; None where it is no scalar."""
    if issubclass(cls, (bool, np.bool_)):
        return bool_
    for kind, width in ((int, np.int64), (float, np.float64), (complex, np.complex128)):
        # longlong is a class beside int64 where both have 64 bits
        if issubclass(cls, (kind, width)) or (issubclass(cls, np.generic) and np.dtype(cls) == np.dtype(width)):
            return kind
    if issubclass(cls, np.generic):
        dtype = canonical(cls)
        return dtype if isinstance(dtype, np.dtype) else None
    return None


def tangent_dtype(dtype: DType) -> Any:
    """The dtype of tangents: itself where inexact, else float0."""
    return dtype if dtype in ANY_INEXACT else float0


def to_real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part: that of a complex one, else itself."""
    return float32 if dtype == complex64 else float64 if dtype == complex128 else dtype


def to_inexact(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which ``sin`` of such values is computed: f64 for 64-bit integers, f32 for narrower ones."""
    return dtype if dtype in ANY_INEXACT else float64 if dtype in (int64, uint64) else float32


def to_complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts hold ``to_inexact(dtype)``: complex64 or complex128."""
    wide = to_inexact(dtype)
    return wide if wide in COMPLEX else complex128 if wide == float64 else complex64


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that two dtypes promote to; Python's ``int``, ``float`` and ``complex`` are weak.

    >>> promote_types("int8", "uint8"), promote_types(float, "bfloat16")
    (dtype('int16'), dtype(bfloat16))
    """
    return promote(*_named(a), *_named(b))[0]


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that arrays, scalars and dtypes promote to together, with its weakness where that is asked for.

    The value of a scalar is not looked at: ``result_type(x_int64, 2**40)`` is int64.

    Raises: DTypeMismatch: there is no common bound, or no argument.

    >>> result_type(np.zeros(2, "float16"), 3.0), result_type(3, 4.0, return_weak_type_flag=True)
    (dtype('float16'), (dtype('float32'), True))
    """
    if not args:
        raise DTypeMismatch("result_type: at least one array, scalar or dtype is needed, got none")
    pairs = [_pair(arg) for arg in args]
    if len(pairs) == 2:
        found, weak = promote(*pairs[0], *pairs[1])
    else:
        found, weak = promote_all(pairs, current().numpy_dtype_promotion == "strict")
    return (found, weak) if return_weak_type_flag else found


def _named(dtype_like: Any) -> tuple[Any, bool]:
    return canonical(dtype_like), isinstance(dtype_like, type) and dtype_like in (int, float, complex)


def _pair(arg: Any) -> tuple[Any, bool]:
    if isinstance(arg, (type, str, np.dtype, ExtendedDType)):
        return _named(arg)
    if _scalar_kind(arg.__class__) is not None:
        return _scalar_type(arg)
    return canonical(arg), bool(getattr(arg, "weak_type", False))


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether NumPy's rule ``casting`` lets a dtype (or an array's) become another; an extended one only itself."""
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise BadArgument(f"can_cast: casting must be no, equiv, safe, same_kind or unsafe, got {casting!r}")
    source, target = canonical(from_), canonical(to)
    if isinstance(source, ExtendedDType) or isinstance(target, ExtendedDType):
        return bool(source == target)
    return bool(np.can_cast(source, target, casting=casting))  # type: ignore[arg-type]


_ABSTRACT: Mapping[Any, Any] = MappingProxyType({
    np.signedinteger: is_signed, np.unsignedinteger: is_unsigned, np.integer: is_integer, np.floating: is_floating,
    np.complexfloating: is_complex, np.inexact: lambda d: d in ANY_INEXACT,
    np.number: lambda d: d in ANY_INEXACT or d in ANY_INTEGER,
})  # fmt: skip


def issubdtype(a: Any, b: Any) -> bool:
    """Whether dtype ``a`` lies at or below ``b``: a dtype, or an abstract scalar type (``np.floating``, ``extended``).

    The dtypes of ml_dtypes lie below ``np.floating`` and ``np.integer`` according to what they hold.

    >>> issubdtype(bfloat16, np.floating), issubdtype("int4", np.integer), issubdtype(float32, float64)
    (True, True, False)
    """
    upper = b if isinstance(b, type) and issubclass(b, np.generic) else None
    if isinstance(a, type) and issubclass(a, np.generic) and a not in _CONCRETE:
        return issubclass(a, upper) if upper is not None else False
    lower = _width_named(a)
    if upper is None or upper in _CONCRETE:
        return bool(lower == _width_named(b))
    if isinstance(lower, ExtendedDType):
        return issubclass(lower.type, upper)
    test = _ABSTRACT.get(upper)
    return bool(test(lower)) if test is not None else issubclass(lower.type, upper)


_CONCRETE = frozenset(d.type for d in EVERY)


def _width_named(dtype_like: Any) -> Any:
    """As ``canonical``, but ``float`` is float64: the order of the classes is NumPy's, whatever the defaults."""
    return np.dtype(dtype_like) if isinstance(dtype_like, type) else canonical(dtype_like)


_KINDS: Mapping[str, Any] = MappingProxyType({
    "bool": is_bool, "signed integer": is_signed, "unsigned integer": is_unsigned, "integral": is_integer,
    "real floating": is_floating, "complex floating": is_complex, "numeric": _ABSTRACT[np.number],
})  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether the dtype is of a kind: a name of the array API standard, a dtype, or a tuple of those (any of them).

    Source: the array API standard, ``isdtype``.

    >>> isdtype("bfloat16", "real floating"), isdtype(bool_, ("numeric", "bool"))
    (True, True)
    """
    found = canonical(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        test = _KINDS.get(one) if isinstance(one, str) else None
        if test(found) if test is not None else canonical(one) == found:
            return True
    return False


def itemsize_bits(dtype: Any) -> int:
    """The bits of one element: 4 for int4, which occupies a byte of memory.

    >>> itemsize_bits("int4"), itemsize_bits(bool), itemsize_bits("complex64")
    (4, 8, 64)
    """
    return _bits(canonical(dtype))


@lru_cache(maxsize=64)
def _bits(found: Any) -> int:
    if found in ANY_INTEGER:
        return int(iinfo(found).bits)
    if found in ANY_FLOATING:
        return int(finfo(found).bits)
    return int(found.itemsize) * 8


def scalar_type_of(x: Any) -> type:
    """Python's class of what a scalar, an array or a dtype holds: bool, int, float or complex.

    Raises: DTypeMismatch: it holds no numbers.
    """
    found = _pair(x)[0]
    for family, cls in ((BOOL, bool), (ANY_INTEGER, int), (ANY_FLOATING, float), (COMPLEX, complex)):
        if found in family:
            return cls
    raise DTypeMismatch(f"scalar_type_of: the dtype must be of booleans or numbers, got {short_name(found)}")


def iinfo(int_type: Any) -> Any:
    """The limits ``min``, ``max``, ``bits`` of an integer dtype, or of an integer's own."""
    found = _pair(int_type)[0]
    if found not in ANY_INTEGER:
        raise DTypeMismatch(f"iinfo: the dtype must be integer, got {short_name(found)}", hint="use finfo.")
    return ml_dtypes.iinfo(found)


def finfo(dtype: Any) -> Any:
    """The limits ``min``, ``max``, ``eps``, ``tiny``, ... of a floating dtype, or of a complex one's parts.

    >>> float(finfo("bfloat16").eps), float(finfo("float8_e4m3fn").max)
    (0.0078125, 448.0)
    """
    found = _pair(dtype)[0]
    if found not in ANY_INEXACT:
        raise DTypeMismatch(f"finfo: the dtype must be floating, got {short_name(found)}", hint="use iinfo.")
    return ml_dtypes.finfo(to_real(found))
