"""Promotion of dtypes: two dtypes promote to their least upper bound in a lattice.

``i*``, ``f*`` and ``c*`` are the weak dtypes: those of Python numbers, and of what is computed from these alone. The
lattice, with arrows upwards::

    bool -> i* -> u8 -> u16 -> u32 -> u64 -> f*        f* -> bf16 -> f32 -> f64 -> c128
            i* -> i8 -> i16 -> i32 -> i64 -> f*        f* -> f16  -> f32 -> c64 -> c128
            u8 -> i16,  u16 -> i32,  u32 -> i64        f* -> c*  -> c64
            i* -> each of i2 i4 u2 u4                  f* -> each of the 4- and 8-bit floats; these lead nowhere

An upper bound that is weak gives a weak result. Its dtype is the bound of the weak operands' dtypes, and of f64 if an
operand is a 64-bit integer: ``i64 / 2.0`` is f64, as wide as the integer; ``i32 / 2.0`` is of the default float dtype.
If all operands are weak, the result is the bound of their dtypes, and weak.

Source: JEP 9407, "Design of Type Promotion Semantics for JAX"; the array API standard, "Type Promotion Rules".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

from ..base.caches import Cache
from ..base.config import CONFIG, current
from ..base.errors import DTypeMismatch
from .dtype_families import (
    ANY_FLOATING,
    ANY_INTEGER,
    COMPLEX,
    EVERY,
    SMALL,
    SMALL_FLOATING,
    SMALL_SIGNED,
    SMALL_UNSIGNED,
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    short_name,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .widths import kept

_STARS = ("i*", "f*", "c*")


def _lattice(edges: Mapping[Any, Iterable[Any]]) -> Mapping[Any, frozenset[Any]]:
    """All upper bounds of each node, itself included: the reflexive transitive closure of the edges."""

    bounds: dict[Any, frozenset[Any]] = {}

    def above(node: Any) -> frozenset[Any]:
        if node not in bounds:
            bounds[node] = frozenset({node}).union(*[above(n) for n in edges.get(node, ())])
        return bounds[node]

    return MappingProxyType({node: above(node) for node in (*_STARS, *EVERY)})


_STANDARD = _lattice({
    bool_: ("i*",),
    "i*": (uint8, int8, *SMALL_SIGNED, *SMALL_UNSIGNED),
    uint8: (uint16, int16), uint16: (uint32, int32), uint32: (uint64, int64), uint64: ("f*",),
    int8: (int16,), int16: (int32,), int32: (int64,), int64: ("f*",),
    "f*": ("c*", bfloat16, float16, *SMALL_FLOATING),
    bfloat16: (float32,), float16: (float32,), float32: (float64, complex64), float64: (complex128,),
    "c*": (complex64,), complex64: (complex128,),
})
_STRICT = _lattice({"i*": ("f*", *ANY_INTEGER), "f*": ("c*", *ANY_FLOATING), "c*": COMPLEX})


def _bound(lattice: Mapping[Any, frozenset[Any]], nodes: Iterable[Any]) -> Any:
    """The least upper bound of the nodes, or None."""
    common = reduce(frozenset.intersection, (lattice[n] for n in nodes))
    return next((n for n in common if common <= lattice[n]), None)


def _star(dtype: DType) -> str:
    """The node of a weak dtype."""
    return "i*" if dtype in ANY_INTEGER else "f*" if dtype in ANY_FLOATING else "c*"


def promote_all(pairs: Iterable[tuple[DType, bool]], strict: bool) -> tuple[Any, bool]:
    """As ``promote``, for any number of (dtype, weak) pairs at once."""
    pairs = [(d, w and d != bool_) for d, w in pairs]
    dtypes = {d for d, _ in pairs}
    weak = all(w for _, w in pairs)
    if len(dtypes) == 1:
        return pairs[0][0], weak
    if not dtypes <= EVERY:
        raise _promotion_error(dtypes, "keys and float0 do not promote.")
    if weak:
        bound = _bound(_STANDARD, dtypes)
    else:
        bound = _bound(_STRICT if strict else _STANDARD, {_star(d) if w else d for d, w in pairs})
        if bound in _STARS:
            weak = True
            strong = {d for d, w in pairs if not w}
            wide = {float64} if bound != "i*" and strong & {int64, uint64} else set()
            bound = _bound(_STANDARD, wide | {d for d, w in pairs if w})
    if bound is None:
        raise _promotion_error(dtypes, _remedy(strict, dtypes))
    # the bound of strong dtypes is weak only for u64 with a signed integer
    return (kept(float64), True) if bound in _STARS else (kept(bound), weak)


def _remedy(strict: bool, dtypes: Iterable[DType]) -> str:
    """The hint for dtypes without an upper bound."""
    narrow = sorted(short_name(d) for d in dtypes if d in SMALL)
    if narrow:
        return f"{', '.join(narrow)}: dtypes this narrow promote only explicitly; cast one, x.astype('float32')."
    rule = "numpy_dtype_promotion='strict' lets only Python scalars promote, and only upwards; " if strict else ""
    return f"{rule}cast one, x.astype('float32')."


def _promotion_error(dtypes: Iterable[DType], hint: str) -> DTypeMismatch:
    names = " and ".join(sorted(map(short_name, dtypes)))
    return DTypeMismatch(f"promotion: the dtypes must have a common upper bound, got {names}.", hint=hint)


# (setting, a, a_weak, b, b_weak) -> (dtype, weak)
_PAIRS = Cache("promotions of two", 8192)
"""The dtype and weakness to which two types are promoted, by both and the settings."""
_KNOWN: dict[tuple[str, Any, bool, Any, bool], tuple[Any, bool]] = _PAIRS.entries


def promote(a: DType, a_weak: bool, b: DType, b_weak: bool) -> tuple[Any, bool]:
    """The (dtype, weak) that two operands promote to: their least upper bound in the lattice.

    Commutative and idempotent; bool is never weak. Cached per pair and setting.

    Raises: DTypeMismatch: there is no upper bound.

    >>> promote(int32, False, float32, True), promote(int32, False, uint32, False)
    ((dtype('float32'), True), (dtype('int64'), False))
    """
    if a is b and not a_weak:
        return a, False
    try:
        # `current()` by hand, since the call would take a third of the time
        return _KNOWN[CONFIG.get().settings.promotion, a, a_weak, b, b_weak]
    except KeyError:
        mode = current().promotion
    promoted: tuple[Any, bool] = promote_all(((a, a_weak), (b, b_weak)), current().numpy_dtype_promotion == "strict")
    _PAIRS.add((mode, a, a_weak, b, b_weak), promoted)
    return promoted
