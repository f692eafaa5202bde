"""Operands promoted to one dtype and broadcast to one shape, by NumPy's rules.

Infix operators and the functions of ``numpy`` promote their operands by ``together``; operations themselves are strict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...base import config
from ...base.caches import Cache
from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.source_locations import warn_user
from ...base.stack import perform
from ...core.arrays import Array, as_array, is_number, scalar
from ...core.operation import shared
from ...types import dtypes
from ...types.extent import Extent
from ..elementwise.conversion import ConvertElementType, convert
from ..foundations.shapes import BroadcastInDim, broadcast, canonical_shape, last_dims

# Python's numbers -> (dtype, weak)
_NUMBERS: Mapping[type, Callable[[], tuple[Any, bool]]] = {
    bool: lambda: (dtypes.bool_, False),
    int: lambda: (dtypes.default_int(), True),
    float: lambda: (dtypes.default_float(), True),
    complex: lambda: (dtypes.default_complex(), True),
}


def together(name: str, *xs: Any, floats: bool = False) -> list[Array]:
    """The operands as arrays of one dtype, and of one shape or rank 0; with ``floats`` of an inexact dtype.

    Raises: ShapeMismatch: shapes do not broadcast. DTypeMismatch: dtypes do not promote.
    """
    first = xs[0]
    if len(xs) == 2:
        second = xs[1]
        if isinstance(first, Array):
            if isinstance(second, Array):
                if first.type is second.type and not (floats and first.type.dtype not in dtypes.ANY_INEXACT):
                    return [first, second]
                modes = config.CONFIG.get().settings.promotion
                if modes in _MEMOISED:
                    return _promote_memoised(name, first, second, modes, floats)
            elif type(second) in _NUMBERS:
                return _with_number(first, second, False, floats)
        elif type(first) in _NUMBERS and isinstance(second, Array):
            return _with_number(second, first, True, floats)
    return broadcast_together(name, promote(*xs, floats=floats))


# settings, floats, types of both operands -> (conversion, broadcast) of each, None: not needed
_PLANS = Cache("plans of promotion and broadcasting")
"""What promotion and broadcasting do to operands, by their types."""
_MEMOISED = frozenset(
    f"standard allow {enable_x64} {default_float}"
    for enable_x64 in (None, False, True) for default_float in ("float32", "float64")
)


def _promoted(dtype: Any, weak: bool, floats: bool) -> tuple[Any, bool]:
    """The dtype of operands that promote to ``dtype``: with ``floats``, integers and booleans become float."""
    if floats and dtype not in dtypes.ANY_INEXACT:
        return dtypes.default_float() if weak else dtypes.to_inexact(dtype), weak
    return dtype, weak


def _promote_memoised(name: str, x: Array, y: Array, modes: str, floats: bool) -> list[Array]:
    """``broadcast_together(promote(x, y))``, with the operations to perform memoised by the two types."""
    key = (modes, floats, x.type, y.type)
    plan = _PLANS.entries.get(key)
    if plan is None:
        dtype, weak = _promoted(*dtypes.promote(x.type.dtype, x.type.weak, y.type.dtype, y.type.weak), floats)
        shapes = (x.type.shape, y.type.shape)
        shape = broadcast_shape(name, *shapes) if all(shapes) else None
        steps = [
            (
                None if t.dtype == dtype and t.weak == weak else shared(ConvertElementType, dtype, weak),
                None if shape is None or t.shape == shape else shared(BroadcastInDim, shape, last_dims(t.shape, shape)),
            )
            for t in (x.type, y.type)
        ]
        plan = _PLANS.add(key, (steps[0], steps[1]))
    return [_converted(x, *plan[0]), _converted(y, *plan[1])]


def _converted(x: Array, conversion: Any, broadcast: Any) -> Array:
    """``x`` after these two memoised operations; None stands for an operation that is not needed."""
    if conversion is not None:
        x = perform(conversion, x)
    return x if broadcast is None else perform(broadcast, x)


def _with_number(x: Array, number: Any, first: bool, floats: bool) -> list[Array]:
    """An array and a Python number as arrays of one dtype: the array's, unless the number is of a higher kind.

    ``first``: the number is the first operand.
    """
    kind = x.type
    if isinstance(kind.dtype, dtypes.ExtendedDType):
        raise DTypeMismatch(f"{kind.dtype}: keys cannot be operands of arithmetic, got {kind} and {number!r}.")
    dtype, weak = dtypes.promote(kind.dtype, kind.weak, *_NUMBERS[type(number)]())
    if floats:
        dtype, weak = _promoted(dtype, weak, floats)
    if dtype is not kind.dtype or weak != kind.weak:
        x = convert(x, dtype, weak)
    other = scalar(number, dtype, weak)
    return [other, x] if first else [x, other]


def promote(*xs: Any, floats: bool = False) -> list[Array]:
    """The operands as arrays of one dtype, shapes untouched; a number is rounded to it once, from its full value."""
    if len(xs) == 2:
        first, second = xs
        if isinstance(first, Array):
            if type(second) in _NUMBERS:
                return _with_number(first, second, False, floats)
        elif type(first) in _NUMBERS and isinstance(second, Array):
            return _with_number(second, first, True, floats)
    operands = [x if isinstance(x, Array) or is_number(x) else as_array(x) for x in xs]
    kinds = [(x.type.dtype, x.type.weak) if isinstance(x, Array) else dtypes.number_type(x) for x in operands]
    dtype, weak = kinds[0]
    strict = config.current().numpy_dtype_promotion == "strict"
    for other, other_weak in kinds[1:]:
        if strict and other != dtype and not (other_weak or weak):
            raise DTypeMismatch(
                "promotion: under numpy_dtype_promotion='strict' dtypes must be equal, "
                f"got {dtype} and {other}.",
                hint="convert with astype.",
            )
        dtype, weak = dtypes.promote(dtype, weak, other, other_weak)
    dtype, weak = _promoted(dtype, weak, floats)
    return [convert(x, dtype, weak) for x in operands]


def broadcast_together(name: str, arrays: Sequence[Array]) -> list[Array]:
    """The arrays broadcast to one shape by NumPy's rules, but for arrays of rank 0, which are unchanged."""
    shapes = {x.type.shape for x in arrays}
    if len(shapes - {()}) <= 1:
        return list(arrays)
    shape = broadcast_shape(name, *[x.type.shape for x in arrays])
    ranks = {len(s) for s in shapes if s}
    if len(ranks) > 1 and config.current().numpy_rank_promotion != "allow":
        _rank_promotion(name, shapes)
    return [broadcast(x, shape) if x.type.shape else x for x in arrays]


def _why(n: Any, m: Any) -> str:
    """The reason why these sizes do not broadcast, and the remedy."""
    if type(n) is Extent and type(m) is Extent:
        return f"{n} and {m} are different lengths; hx.Ragged((x, y), lengths) has one of both, y.over(x) declares it."
    return f"sizes {n} and {m} differ and neither is 1; shapes are aligned at their last dimension."


def broadcast_shape(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all these broadcast. Raises ShapeMismatch: there is none."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for d, n in enumerate(shape, rank - len(shape)):
            if n != 1 and result[d] != 1 and result[d] != n:
                raise ShapeMismatch(
                    f"{name}: shapes must broadcast, got {' and '.join(map(str, shapes))}.",
                    hint=_why(result[d], n),
                )
            if n != 1:
                result[d] = n
    return tuple(result)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast.

    Raises: ShapeMismatch: there is none.

    >>> broadcast_shapes((2, 1), 3)
    (2, 3)
    """
    return broadcast_shape("broadcast_shapes", *[canonical_shape(shape, "broadcast_shapes") for shape in shapes])


def _rank_promotion(name: str, shapes: set[tuple[int, ...]]) -> None:
    """Warn of different ranks, or raise ShapeMismatch, as ``numpy_rank_promotion`` is configured."""
    text = f"{name}: ranks differ, got shapes {' and '.join(map(str, sorted(shapes)))}"
    if config.current().numpy_rank_promotion == "raise":
        raise ShapeMismatch(f"{text}, under numpy_rank_promotion='raise'.", hint="reshape explicitly.")
    warn_user(text)
