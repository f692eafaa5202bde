"""Promotion: operands of different dtypes and shapes brought to one, as NumPy's operators expect.

``together`` is what infix operators and the array functions go through; operations themselves are strict.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import config, dtypes
from .arrays import Array, lift, scalar
from .conversion import ConvertElementType, convert
from .errors import DTypeMismatch, ShapeMismatch
from .operations import shared
from .shapes import BroadcastInDim, broadcast_in_dim
from .stack import perform
from .types import ArrayType

# Python's numbers -> (dtype, weak)
_NUMBERS: Mapping[type, Callable[[], tuple[Any, bool]]] = {
    bool: lambda: (dtypes.bool_, False),
    int: lambda: (dtypes.default_int(), True),
    float: lambda: (dtypes.default_float(), True),
    complex: lambda: (dtypes.default_complex(), True),
}


def together(name: str, *xs: Any) -> list[Array]:
    """The operands as arrays of one dtype and of one shape, or of rank 0.

    Raises: ShapeMismatch: they don't broadcast. DTypeMismatch: they don't promote.
    """
    first = xs[0]
    if len(xs) == 2:
        second = xs[1]
        if isinstance(first, Array):
            if isinstance(second, Array):
                if first.type is second.type:
                    return [first, second]
                if config.CONFIG.get() is None and config.PROCESS.settings is config.DEFAULT:
                    return _planned(name, first, second)
            elif type(second) in _NUMBERS:
                return _with_number(first, second, False)
        elif type(first) in _NUMBERS and isinstance(second, Array):
            return _with_number(second, first, True)
    return broadcast_together(name, promote(*xs))


# pairs of types -> what brings each operand to the common type; under the default configuration alone
_PLANS: dict[tuple[ArrayType, ArrayType], tuple[Any, Any]] = {}


def _planned(name: str, x: Array, y: Array) -> list[Array]:
    """``broadcast_together(promote(x, y))``, worked out once for two types."""
    key = (x.type, y.type)
    plan = _PLANS.get(key)
    if plan is None:
        dtype, weak = dtypes.promote(x.type.dtype, x.type.weak, y.type.dtype, y.type.weak)
        shapes = (x.type.shape, y.type.shape)
        shape = broadcast_shape(name, *shapes) if all(shapes) else None
        steps = [
            (
                None if t.dtype == dtype and t.weak == weak else shared(ConvertElementType, dtype, weak),
                None if shape is None or t.shape == shape else shared(BroadcastInDim, shape, _last(t.shape, shape)),
            )
            for t in key
        ]
        if len(_PLANS) > 4096:
            _PLANS.clear()
        plan = _PLANS[key] = (steps[0], steps[1])
    return [_brought(x, *plan[0]), _brought(y, *plan[1])]


def _brought(x: Array, conversion: Any, spreading: Any) -> Array:
    if conversion is not None:
        x = perform(conversion, x)
    return x if spreading is None else perform(spreading, x)


def _with_number(x: Array, number: Any, first: bool) -> list[Array]:
    """An array and a Python number, which takes the array's dtype if that is of its kind or above."""
    kind = x.type
    if isinstance(kind.dtype, dtypes.ExtendedDType):
        raise DTypeMismatch(f"{kind.dtype}: keys take no part in arithmetic, got {kind} and {number!r}.")
    dtype, weak = dtypes.promote(kind.dtype, kind.weak, *_NUMBERS[type(number)]())
    if dtype is not kind.dtype or weak != kind.weak:
        x = convert(x, dtype, weak)
    other = scalar(number, dtype, weak)
    return [other, x] if first else [x, other]


def promote(*xs: Any) -> list[Array]:
    """The operands as arrays of one dtype, shapes untouched."""
    arrays = [lift(x) for x in xs]
    dtype, weak = arrays[0].type.dtype, arrays[0].type.weak
    strict = config.current().numpy_dtype_promotion == "strict"
    for x in arrays[1:]:
        if strict and x.type.dtype != dtype and not (x.type.weak or weak):
            raise DTypeMismatch(
                "promotion: under numpy_dtype_promotion='strict' dtypes must be equal, "
                f"got {dtype} and {x.type.dtype}.",
                hint="convert with astype.",
            )
        dtype, weak = dtypes.promote(dtype, weak, x.type.dtype, x.type.weak)
    # a number is rounded to the common dtype, not first to its own
    return [
        scalar(number, dtype, weak) if type(number) in _NUMBERS else convert(x, dtype, weak)
        for number, x in zip(xs, arrays)
    ]


def broadcast_together(name: str, arrays: Sequence[Array]) -> list[Array]:
    """NumPy's broadcasting; an array of rank 0 stays as it is."""
    shapes = {x.type.shape for x in arrays}
    if len(shapes - {()}) <= 1:
        return list(arrays)
    shape = broadcast_shape(name, *[x.type.shape for x in arrays])
    ranks = {len(s) for s in shapes if s}
    if len(ranks) > 1 and config.current().numpy_rank_promotion != "allow":
        _rank_promotion(name, shapes)
    return [_spread(x, shape) if x.type.shape else x for x in arrays]


def _spread(x: Array, shape: tuple[int, ...]) -> Any:
    return broadcast_in_dim(x, shape, _last(x.type.shape, shape))


def _last(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions of ``shape`` that an array of shape ``own`` fills: the last ones."""
    return tuple(range(len(shape) - len(own), len(shape)))


def broadcast_shape(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which all these broadcast."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for d, n in enumerate(shape, rank - len(shape)):
            if n != 1 and result[d] != 1 and result[d] != n:
                raise ShapeMismatch(
                    f"{name}: shapes must broadcast, got {' and '.join(map(str, shapes))}.",
                    hint=f"sizes {result[d]} and {n} differ and neither is 1; "
                    "shapes are aligned at their last dimension.",
                )
            if n != 1:
                result[d] = n
    return tuple(result)


def _rank_promotion(name: str, shapes: set[tuple[int, ...]]) -> None:
    text = f"{name}: ranks differ, got shapes {' and '.join(map(str, sorted(shapes)))}"
    if config.current().numpy_rank_promotion == "raise":
        raise ShapeMismatch(f"{text}, under numpy_rank_promotion='raise'.", hint="reshape explicitly.")
    warnings.warn(text, stacklevel=4)
