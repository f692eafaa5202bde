"""All dtypes: the ordinary ones by name and in families, the extended ones, and their short names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import ml_dtypes
import numpy as np

from ..base.caches import cached
from ..base.config import CHOICES, add_choices
from ..base.errors import BadArgument, DTypeMismatch
from ..base.frozen_values import Value

__all__ = [
    "ANY", "ANY_FLOATING", "ANY_INEXACT", "ANY_INTEGER", "ANY_NUMERIC", "ANY_SIGNED", "ANY_UNSIGNED", "BOOL",
    "COMPLEX", "EVERY", "FLOATING", "FOUR_BITS", "INEXACT", "INTEGER", "NUMERIC", "ORDERED", "PHILOX2", "PHILOX4",
    "RBG", "SIGNED", "SMALL", "SMALL_FLOATING", "SMALL_SIGNED", "SMALL_UNSIGNED", "THREEFRY", "THREEFRY4", "UNSAFE_RBG",
    "UNSIGNED", "DType", "ExtendedDType", "Family", "KeyDType", "KeyImpl", "bfloat16", "bool_", "complex64",
    "complex128", "extended", "float0", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32",
    "float64", "from_short_name", "int2", "int4", "int8", "int16", "int32", "int64", "is_bool", "is_complex",
    "is_extended", "is_floating", "is_inexact", "is_integer", "is_signed", "is_unsigned", "prng_key", "short_name",
    "uint2", "uint4", "uint8", "uint16", "uint32", "uint64",
]


bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = (np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
int2, int4, uint2, uint4 = (np.dtype(getattr(ml_dtypes, n)) for n in ("int2", "int4", "uint2", "uint4"))
float4_e2m1fn: np.dtype[Any] = np.dtype(ml_dtypes.float4_e2m1fn)
float8_e3m4: np.dtype[Any] = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3: np.dtype[Any] = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz: np.dtype[Any] = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: np.dtype[Any] = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: np.dtype[Any] = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2: np.dtype[Any] = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: np.dtype[Any] = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu: np.dtype[Any] = np.dtype(ml_dtypes.float8_e8m0fnu)
float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])
"""The dtype of the tangents and gradients of integers and booleans: its elements have no bytes."""

Family: TypeAlias = "frozenset[np.dtype[Any]]"

BOOL: Family = frozenset({bool_})
SIGNED: Family = frozenset({int8, int16, int32, int64})
UNSIGNED: Family = frozenset({uint8, uint16, uint32, uint64})
INTEGER: Family = SIGNED | UNSIGNED
FLOATING: Family = frozenset({float16, bfloat16, float32, float64})
COMPLEX: Family = frozenset({complex64, complex128})
INEXACT: Family = FLOATING | COMPLEX
NUMERIC: Family = INTEGER | INEXACT
ORDERED: Family = BOOL | INTEGER | FLOATING
ANY: Family = BOOL | NUMERIC
FOUR_BITS: Family = frozenset({int4, uint4})

SMALL_SIGNED: Family = frozenset({int2, int4})
SMALL_UNSIGNED: Family = frozenset({uint2, uint4})
SMALL_FLOATING: Family = frozenset({
    float4_e2m1fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
    float8_e5m2fnuz, float8_e8m0fnu,
})
SMALL: Family = SMALL_SIGNED | SMALL_UNSIGNED | SMALL_FLOATING
ANY_SIGNED: Family = SIGNED | SMALL_SIGNED
ANY_UNSIGNED: Family = UNSIGNED | SMALL_UNSIGNED
ANY_INTEGER: Family = ANY_SIGNED | ANY_UNSIGNED
ANY_FLOATING: Family = FLOATING | SMALL_FLOATING
ANY_INEXACT: Family = ANY_FLOATING | COMPLEX
ANY_NUMERIC: Family = ANY_INTEGER | ANY_INEXACT
EVERY: Family = BOOL | ANY_NUMERIC

BY_NAME: Mapping[str, np.dtype[Any]] = MappingProxyType({d.name: d for d in EVERY} | {"float0": float0})


class extended(np.generic):
    """The common base of the scalar types of extended dtypes: ``issubdtype(key_dtype, extended)``."""


class prng_key(extended):
    """The scalar type of the dtypes of random keys."""


class ExtendedDType:
    """A dtype that NumPy does not have; each element is represented by a small array of an ordinary dtype.

    A subclass is a frozen dataclass with ``type``, ``name``, ``base`` (the ordinary dtype) and ``shape`` (of the array
    that represents an element). It promotes with itself alone.
    """

    __slots__ = ()
    type: ClassVar[Any] = extended
    kind: ClassVar[str] = "V"  # no number, in the letters of NumPy's dtypes
    name: str
    base: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.base.itemsize * int(np.prod(self.shape, dtype=np.int64))

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class KeyImpl(Value):
    """A random generator: its name, its tag in ``key<tag>``, and the shape of the key data of one key."""

    name: str
    tag: str
    key_shape: tuple[int, ...]


THREEFRY = KeyImpl("threefry2x32", "fry", (2,))
"""Threefry of 2 words of 32 bits, the default."""
RBG = KeyImpl("rbg", "rbg", (4,))
"""The generator of the platform, whose bits differ between platforms; keys are split by Threefry."""
UNSAFE_RBG = KeyImpl("unsafe_rbg", "urbg", (4,))
"""The generator of the platform, which splits keys too: their independence is not proved."""
THREEFRY4 = KeyImpl("threefry4x32", "fry4", (4,))
"""Threefry of 4 words of 32 bits."""
PHILOX2 = KeyImpl("philox2x32", "phx2", (1,))
"""Philox of 2 words of 32 bits."""
PHILOX4 = KeyImpl("philox4x32", "phx4", (2,))
"""Philox of 4 words of 32 bits."""
_KEY_IMPLS = (THREEFRY, THREEFRY4, PHILOX2, PHILOX4, RBG, UNSAFE_RBG)
_BY_NAME = MappingProxyType({s: i for i in _KEY_IMPLS for s in (i.name, i.tag)})
add_choices("default_prng_impl", tuple([impl.name for impl in _KEY_IMPLS]))


@dataclass(frozen=True, repr=False)
class KeyDType(ExtendedDType):
    """The dtype of the random keys of a generator, which is a ``KeyImpl``, its name or its tag.

    >>> KeyDType("threefry2x32"), KeyDType("fry").itemsize
    (key<fry>, 8)
    """

    impl: KeyImpl
    name: str = field(init=False, compare=False)

    type: ClassVar[Any] = prng_key
    base: ClassVar[np.dtype[Any]] = uint32  # type: ignore[misc]

    def __init__(self, impl: KeyImpl | str = THREEFRY) -> None:
        known = _BY_NAME.get(impl) if isinstance(impl, str) else impl
        if not isinstance(known, KeyImpl):
            error = BadArgument if isinstance(impl, str) else DTypeMismatch
            raise error(
                f"KeyDType: a random generator is needed, got {impl!r}.",
                hint=f"names are {', '.join(sorted(CHOICES['default_prng_impl']))}; or pass a KeyImpl.",
            )
        object.__setattr__(self, "impl", known)
        object.__setattr__(self, "name", f"key<{known.tag}>")

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of the key data of one key."""
        return self.impl.key_shape


def known_key_dtype(dtype: Any) -> KeyDType | None:
    """The dtype of the random keys that JAX has under ``dtype``; None: of no generator that is known here."""
    tag = getattr(getattr(dtype, "_impl", None), "tag", None)
    return KeyDType(tag) if isinstance(tag, str) and tag in _BY_NAME else None


DType: TypeAlias = np.dtype[Any] | ExtendedDType


def is_extended(dtype: DType) -> bool:
    """Whether the dtype is an ``ExtendedDType``."""
    return isinstance(dtype, ExtendedDType)


def is_floating(dtype: DType) -> bool:
    """Whether the dtype is real floating-point, of any width."""
    return dtype in ANY_FLOATING


def is_inexact(dtype: DType) -> bool:
    """Whether the dtype is floating-point or complex: those that have tangents."""
    return dtype in ANY_INEXACT


def is_integer(dtype: DType) -> bool:
    """Whether the dtype is an integer one; bool is none."""
    return dtype in ANY_INTEGER


def is_signed(dtype: DType) -> bool:
    """Whether the dtype is a signed integer one."""
    return dtype in ANY_SIGNED


def is_unsigned(dtype: DType) -> bool:
    """Whether the dtype is an unsigned integer one."""
    return dtype in ANY_UNSIGNED


def is_complex(dtype: DType) -> bool:
    """Whether the dtype is complex."""
    return dtype in COMPLEX


def is_bool(dtype: DType) -> bool:
    """Whether the dtype is bool."""
    return dtype in BOOL


@cached("dtype names", 256)
def short_name(dtype: DType) -> str:
    """The name of a dtype in types: ``from_short_name(short_name(d)) == d``.

    >>> [short_name(d) for d in (float32, bfloat16, uint8, bool_, complex64, float8_e4m3fn, float0, KeyDType("fry"))]
    ['f32', 'bf16', 'u8', 'bool', 'c64', 'f8_e4m3fn', 'float0', 'key<fry>']
    """
    if isinstance(dtype, ExtendedDType):
        return dtype.name
    if dtype == float0:
        return "float0"
    name: str = dtype.name
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            return short + name[len(long) :]
    return name


_BY_SHORT_NAME: Mapping[str, DType] = MappingProxyType(
    {short_name(d): d for d in EVERY | {float0}} | {f"key<{i.tag}>": KeyDType(i) for i in _KEY_IMPLS}
)


def from_short_name(name: str) -> DType:
    """The dtype with this short name.

    Raises: DTypeMismatch: there is none.
    """
    dtype = _BY_SHORT_NAME.get(name)
    if dtype is None:
        known = ", ".join(sorted(_BY_SHORT_NAME))
        raise DTypeMismatch(f"{name!r} is the short name of no dtype", hint=f"known are {known}.")
    return dtype
