"""Dtypes: which there are, their names, the dtypes of values, and predicates.

A dtype is a ``np.dtype`` (those of ml_dtypes included) or an ``ExtendedDType``; both are immutable and hashable.

Where the dtype of a value comes from:

============================================  ==========================  ======
value                                         dtype                       weak
============================================  ==========================  ======
array, NumPy array (0-d included)             its own, 64 bits included   its own flag; a NumPy array: no
``dtype=`` or ``astype``                      the one specified           no
``True``, ``np.bool_``                        bool                        no
``3``                                         ``default_int()``           yes
``3.0``                                       ``default_float()``         yes
``3j``                                        ``default_complex()``       yes
``np.int64(3)``                               as ``3``                    yes
``np.float64(3)``                             as ``3.0``                  yes
``np.complex128(3)``                          as ``3j``                   yes
any other NumPy scalar, ``np.float32(3)``     its own                     no
============================================  ==========================  ======

The 64-bit NumPy scalars are treated as Python numbers, since NumPy creates them where no width was specified
(``np.sqrt(64)``, ``np.arange(3)[0]``); that of any other was specified. The setting ``enable_x64`` changes the table:
``widths``. An integer out of the range of its dtype is an error, never a wrap-around; a float is rounded to its dtype.

Promotion is defined in ``dtype_promotion``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from ..base.caches import cached
from ..base.config import current
from ..base.errors import BadArgument, DTypeMismatch, IntegerOverflow
from . import dtype_families
from .dtype_families import *
from .dtype_families import BY_NAME, known_key_dtype
from .dtype_promotion import promote, promote_all
from .extent import SYMBOLIC
from .widths import NARROWER, kept, requested

__all__ = [
    "can_cast", "canonical", "canonicalize_dtype", "default_complex", "default_float", "default_int", "finfo", "iinfo",
    "isdtype", "issubdtype", "itemsize_bits", "promote", "promote_types", "result_type", "scalar_type",
    "scalar_type_of", "tangent_dtype", "to_complex", "to_inexact", "to_real",
]
__all__ += dtype_families.__all__


def default_float() -> np.dtype[Any]:
    """The dtype of floats that specify none: ``configure(default_float=...)``, else float32."""
    return current().default_float


def default_int() -> np.dtype[Any]:
    """The dtype of integers that specify none: ``configure(default_int=...)``, else int32."""
    return current().default_int


def default_complex() -> np.dtype[Any]:
    """The complex dtype whose parts are ``default_float()``, complex64 where those are narrower."""
    return to_complex(default_float())


_DEFAULTS = MappingProxyType({
    int: default_int, float: default_float, complex: default_complex,
    "int": default_int, "float": default_float, "complex": default_complex,
})


def canonical(dtype_like: Any) -> Any:
    """The dtype of arrays for which ``dtype_like`` is requested: the dtype that it names, narrowed if ``enable_x64`` is
    False.

    Raises: DTypeMismatch: as ``named``.
    """
    try:
        known = _ONE_WIDTH.get(dtype_like)
    except TypeError:  # not hashable
        known = None
    return requested(named(dtype_like)) if known is None else known


def canonicalize_dtype(dtype: Any) -> Any:
    """The dtype that arrays have whose data come as ``dtype``: as ``canonical``, but without a warning where
    ``enable_x64`` narrows it; that of floats which specify none for None.

    >>> canonicalize_dtype(None), canonicalize_dtype("bfloat16")
    (dtype('float32'), dtype(bfloat16))
    """
    return default_float() if dtype is None else _canonicalized(dtype)


def _canonicalized(dtype: Any) -> Any:
    """``canonicalize_dtype`` of what names a dtype. Raises: DTypeMismatch: as ``named``."""
    try:
        known = _ONE_WIDTH.get(dtype)
    except TypeError:
        known = None
    return kept(named(dtype)) if known is None else known


def named(dtype_like: Any) -> Any:
    """The dtype that ``dtype_like`` names, whatever ``enable_x64`` is.

    Accepts dtypes, scalar types of NumPy and ml_dtypes, names, objects with an attribute ``dtype``, and Python's
    ``bool``, ``int``, ``float`` and ``complex`` (also by name), which are the default dtypes. The byte order becomes
    that of the machine.

    Raises: DTypeMismatch: it names no dtype, or one that arrays cannot have (object, text, dates, longdouble, ...).

    >>> named("bfloat16"), named(float), named(">f8")
    (dtype(bfloat16), dtype('float32'), dtype('float64'))
    """
    try:
        return _CANONICAL[dtype_like]
    except (KeyError, TypeError):  # a new one, a default, or not hashable
        pass
    if not isinstance(dtype_like, (np.dtype, str, ExtendedDType)):
        own = getattr(dtype_like, "dtype", None)  # of NumPy's scalar types it is a descriptor
        dtype_like = own if isinstance(own, (np.dtype, ExtendedDType)) else dtype_like
        dtype_like = known_key_dtype(dtype_like) or dtype_like
        if not isinstance(dtype_like, (np.dtype, type, str, ExtendedDType)):
            hint = "NumPy reads None as float64; specify one." if dtype_like is None else "for example 'float32'."
            if isinstance(dtype_like, int):
                hint = "for example 'float32'; the sizes of a shape are one tuple, (2, 3)."
            raise DTypeMismatch(f"a dtype is needed, got {dtype_like!r}.", hint=hint)
    if isinstance(dtype_like, ExtendedDType):
        return dtype_like
    default = _DEFAULTS.get(dtype_like)
    return _canonical(dtype_like) if default is None else default()


# dtype-likes that do not depend on the settings -> dtype: the common case, in one look-up
_CANONICAL: Mapping[Any, Any] = MappingProxyType(
    {like: d for d in EVERY for like in (d, d.type, d.name)} | {float0: float0} | {bool: bool_}
)


# the dtype-likes that mean the same dtype under every setting
_ONE_WIDTH: Mapping[Any, Any] = MappingProxyType({like: d for like, d in _CANONICAL.items() if d not in NARROWER})


@cached("canonical dtypes", 512)
def _canonical(dtype_like: Any) -> Any:
    """The dtype that a name, a Python type or a dtype of NumPy means."""
    if isinstance(dtype_like, str):
        if dtype_like.startswith("key<"):
            return from_short_name(dtype_like)
        dtype_like = BY_NAME.get(dtype_like, dtype_like)
    try:
        dtype = np.dtype(dtype_like)
    except (TypeError, ValueError, SyntaxError):  # of NumPy's reader of the texts of records
        raise DTypeMismatch(f"{dtype_like!r} is not a dtype.", hint="for example 'float32' or np.int8.") from None
    native = dtype if dtype.isnative else dtype.newbyteorder("=")
    known = BY_NAME.get("float0" if native == float0 else native.name)
    if known is None or known != native:
        raise DTypeMismatch(
            f"the elements of an array must be booleans or numbers of a known width, got dtype {dtype}.",
            hint="'f4' counts bytes; from_short_name('f32') counts bits." if dtype.kind in "fc" else None,
        )
    return known


def scalar_type(value: Any, dtype: Any = None) -> tuple[np.dtype[Any], bool]:
    """The (dtype, weak) of a Python or NumPy scalar, by the table at the head of this module; or ``dtype``, not weak.

    Raises: DTypeMismatch: the value is no scalar. IntegerOverflow: an integer is out of the range of the dtype.

    >>> scalar_type(3), scalar_type(np.float64(8.0)), scalar_type(2**40, "int64")
    ((dtype('int32'), True), (dtype('float32'), True), (dtype('int64'), False))
    """
    if dtype is None:  # the common cases first; no default integer is narrower than 32 bits
        if value.__class__ is float:
            return current().default_float, True
        if value.__class__ is int and -(2**31) <= value < 2**31:
            return current().default_int, True
    result, weak = number_type(value)
    if dtype is not None:
        result, weak = canonical(dtype), False
        if result not in EVERY:
            raise DTypeMismatch(f"the dtype of a number must be ordinary, got {short_name(result)} for {value!r}.")
    if isinstance(value, (int, np.integer)) and result in ANY_INTEGER:
        low, high = integer_range(result)
        if not low <= int(value) <= high:
            raise IntegerOverflow(
                f"an integer must fit its dtype, got {value} for {short_name(result)}, whose range is {low} to {high}.",
                hint="use a wider dtype, or configure(default_int='int64')." if weak else "use a wider dtype.",
            )
    return result, weak


@cached("integer ranges", 64)
def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest number of an integer dtype."""
    info = iinfo(dtype)
    return int(info.min), int(info.max)


def holds(dtype: np.dtype[Any], value: Any) -> bool:
    """Whether an integer lies in the range of an integer dtype."""
    least, most = integer_range(dtype)
    return least <= value <= most


def is_number_class(cls: type) -> bool:
    """Whether the class is one of Python's or NumPy's numbers, or a subclass of those."""
    return _scalar_kind(cls) is not None


def is_adaptable_class(cls: type) -> bool:
    """Whether numbers of this class are weakly typed by default: Python's numbers, booleans, and NumPy's 64-bit
    scalars.
    """
    kind = _scalar_kind(cls)
    return kind is not None and (kind is bool_ or not isinstance(kind, np.dtype))


def number_type(value: Any) -> tuple[np.dtype[Any], bool]:
    """``scalar_type`` without the check of the range, for promotion, which depends on the class of the value alone."""
    kind = _scalar_kind(value.__class__)
    if kind is None:
        raise DTypeMismatch(f"a Python or NumPy scalar is needed, got {type(value).__name__}.")
    if isinstance(kind, np.dtype):
        return kept(kind), False
    return _DEFAULTS[kind](), True


@cached("scalar kinds", 256)
def _scalar_kind(cls: Any) -> Any:
    """The dtype of a class of scalars; int, float or complex for a default dtype; None for no class of scalars."""
    if issubclass(cls, (bool, np.bool_)):
        return bool_
    for kind, width in ((int, np.int64), (float, np.float64), (complex, np.complex128)):
        # longlong is a class beside int64 where both have 64 bits
        if issubclass(cls, (kind, width)) or (issubclass(cls, np.generic) and np.dtype(cls) == np.dtype(width)):
            return kind
    if issubclass(cls, np.generic):
        dtype = named(cls)
        return dtype if isinstance(dtype, np.dtype) else None
    return None


def tangent_dtype(dtype: DType) -> Any:
    """The dtype of tangents: itself where inexact, else float0."""
    return dtype if dtype in ANY_INEXACT else float0


def to_real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part: that of a complex one, else itself."""
    return float32 if dtype == complex64 else float64 if dtype == complex128 else dtype


def to_inexact(dtype: np.dtype[Any], weak: bool = False) -> np.dtype[Any]:
    """The dtype in which ``sin`` of an array of ``dtype`` is computed: f64 for 64-bit integers, f32 for narrower ones.

    Of weak integers, whose width was not chosen, it is the default float.
    """
    if weak and dtype not in ANY_INEXACT:
        return default_float()
    return dtype if dtype in ANY_INEXACT else float64 if dtype in (int64, uint64) else float32


def to_complex(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts hold ``to_inexact(dtype)``: complex64 or complex128."""
    wide = to_inexact(dtype)
    return wide if wide in COMPLEX else complex128 if wide == float64 else complex64


def promote_types(a: Any, b: Any) -> np.dtype[Any]:
    """The dtype to which two dtypes promote; Python's ``int``, ``float`` and ``complex`` are weak.

    >>> promote_types("int8", "uint8"), promote_types(float, "bfloat16")
    (dtype('int16'), dtype(bfloat16))
    """
    return promote(*_named(a), *_named(b))[0]


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype to which arrays, scalars and dtypes promote; with ``return_weak_type_flag``, the pair (dtype, weak).

    It does not depend on the values of scalars: ``result_type(x_int64, 2**40)`` is int64.

    Raises: DTypeMismatch: there is no upper bound, or no argument.

    >>> result_type(np.zeros(2, "float16"), 3.0), result_type(3, 4.0, return_weak_type_flag=True)
    (dtype('float16'), (dtype('float32'), True))
    """
    if not args:
        raise DTypeMismatch("result_type: at least one array, scalar or dtype is needed, got none.")
    pairs = [_pair(arg) for arg in args]
    if len(pairs) == 2:
        dtype, weak = promote(*pairs[0], *pairs[1])
    else:
        dtype, weak = promote_all(pairs, current().numpy_dtype_promotion == "strict")
    return (dtype, weak) if return_weak_type_flag else dtype


def _named(dtype_like: Any) -> tuple[Any, bool]:
    """The (dtype, weak) of a dtype-like: Python's number types are weak."""
    return _canonicalized(dtype_like), isinstance(dtype_like, type) and dtype_like in (int, float, complex)


def _pair(arg: Any) -> tuple[Any, bool]:
    """The (dtype, weak) of an array, a scalar or a dtype-like."""
    if isinstance(arg, (type, str, np.dtype, ExtendedDType)):
        return _named(arg)
    if _scalar_kind(arg.__class__) is not None:
        return number_type(arg)
    if isinstance(arg, SYMBOLIC):  # an integer, weakly typed
        return default_int(), True
    return _canonicalized(arg), bool(getattr(arg, "weak_type", False))


def dtype_of(x: Any) -> Any:
    """The dtype that an array, a number or a dtype-like has in arrays.

    Raises: DTypeMismatch: ``x`` neither has nor names one.

    >>> dtype_of(1.5), dtype_of(np.zeros(2, "int8")), dtype_of(bool)
    (dtype('float32'), dtype('int8'), dtype('bool'))
    """
    return _pair(x)[0]


def _dtype_of(x: Any) -> Any:
    """The dtype of a scalar or an array, or the one that ``x`` names."""
    return named(x) if _scalar_kind(x.__class__) is None else number_type(x)[0]


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether NumPy's rule ``casting`` allows to cast a dtype, or that of an array; an extended one only to itself."""
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise BadArgument(f"can_cast: casting must be no, equiv, safe, same_kind or unsafe, got {casting!r}.")
    source, target = named(from_), named(to)
    if isinstance(source, ExtendedDType) or isinstance(target, ExtendedDType):
        return bool(source == target)
    return bool(np.can_cast(source, target, casting=casting))  # type: ignore[arg-type]


_ABSTRACT: Mapping[Any, Any] = MappingProxyType({
    np.signedinteger: is_signed, np.unsignedinteger: is_unsigned, np.integer: is_integer, np.floating: is_floating,
    np.complexfloating: is_complex, np.inexact: lambda d: d in ANY_INEXACT,
    np.number: lambda d: d in ANY_INEXACT or d in ANY_INTEGER,
})


def issubdtype(a: Any, b: Any) -> bool:
    """Whether dtype ``a`` is or belongs to ``b``, a dtype or an abstract scalar type (``np.floating``, ``extended``).

    The floating dtypes of ml_dtypes belong to ``np.floating``, its integer dtypes to ``np.integer``.

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
    """``canonical``, except that ``float`` and None are float64 as in NumPy, whatever the default dtypes are."""
    return np.dtype(dtype_like) if dtype_like is None or isinstance(dtype_like, type) else named(dtype_like)


_KINDS: Mapping[str, Any] = MappingProxyType({
    "bool": is_bool, "signed integer": is_signed, "unsigned integer": is_unsigned, "integral": is_integer,
    "real floating": is_floating, "complex floating": is_complex, "numeric": _ABSTRACT[np.number],
})


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether the dtype is of a kind: a name of the array API standard, a dtype, or a tuple of those (any of them).

    Source: the array API standard, ``isdtype``.

    >>> isdtype("bfloat16", "real floating"), isdtype(bool_, ("numeric", "bool"))
    (True, True)
    """
    tested = named(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        predicate = _KINDS.get(one) if isinstance(one, str) else None
        if predicate(tested) if predicate is not None else named(one) == tested:
            return True
    return False


def itemsize_bits(dtype: Any) -> int:
    """The bits of one element: 4 for int4, which occupies a byte of memory.

    >>> itemsize_bits("int4"), itemsize_bits(bool), itemsize_bits("complex64")
    (4, 8, 64)
    """
    return _bits(named(dtype))


@cached("dtype bits", 64)
def _bits(dtype: Any) -> int:
    """The bits of an element."""
    if dtype in ANY_INTEGER:
        return int(iinfo(dtype).bits)
    if dtype in ANY_FLOATING:
        return int(finfo(dtype).bits)
    return int(dtype.itemsize) * 8


def scalar_type_of(x: Any) -> type:
    """Python's class of the elements of a scalar, an array or a dtype: bool, int, float or complex.

    Raises: DTypeMismatch: the elements are no numbers.
    """
    dtype = _dtype_of(x)
    for family, cls in ((BOOL, bool), (ANY_INTEGER, int), (ANY_FLOATING, float), (COMPLEX, complex)):
        if dtype in family:
            return cls
    raise DTypeMismatch(f"scalar_type_of: the dtype must be of booleans or numbers, got {short_name(dtype)}.")


def _limited(x: Any) -> Any:
    """The dtype of which ``x`` asks the limits: of Python's classes NumPy's, whatever the default dtypes are."""
    return _width_named(x) if isinstance(x, type) else _dtype_of(x)


def iinfo(int_type: Any) -> Any:
    """The limits ``min``, ``max``, ``bits`` of an integer dtype, or of the dtype of an integer; of ``int`` of 64 bits.

    Raises: DTypeMismatch: it is no integer dtype.
    """
    dtype = _limited(int_type)
    if dtype not in ANY_INTEGER:
        raise DTypeMismatch(f"iinfo: the dtype must be integer, got {short_name(dtype)}.", hint="use finfo.")
    return ml_dtypes.iinfo(dtype)


def finfo(dtype: Any) -> Any:
    """The limits ``min``, ``max``, ``eps``, ``tiny``, ... of a floating dtype, or of the parts of a complex one.

    Those of ``float`` and ``complex`` are NumPy's, of 64 bits.

    Raises: DTypeMismatch: it is neither.

    >>> float(finfo("bfloat16").eps), float(finfo("float8_e4m3fn").max)
    (0.0078125, 448.0)
    """
    real_or_complex = _limited(dtype)
    if real_or_complex not in ANY_INEXACT:
        raise DTypeMismatch(f"finfo: the dtype must be floating, got {short_name(real_or_complex)}.", hint="use iinfo.")
    return ml_dtypes.finfo(to_real(real_or_complex))
