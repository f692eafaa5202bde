"""The text of the larger and the smaller of numbers: on a CPU floats need another one than StableHLO's own.

XLA gives the reductions of 4096 or more elements, and the elementwise operations next to them, to a library whose
maximum and minimum of a number and NaN are the number. The library knows no clamp, and its sums keep NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_floating
from ..xla.stablehlo_types import tensor

BOUNDS = {"maximum": inf, "minimum": -inf}
_LEAST = 4096  # XLA's ``kMinElements``: smaller reductions it compiles itself, and these keep NaN


def extreme(emit: Any, name: str, x: Any, y: Any, out: ArrayType) -> Any:
    """The elementwise ``name``, "maximum" or "minimum", of two values of this type; NaN where one is NaN."""
    if not _loses_nan(emit, out):
        return emit.new(f"stablehlo.{name} {x.name}, {y.name} : {tensor(out)}", out)
    bound = emit.constant(BOUNDS[name], out.update(shape=()))
    low, high = (y, bound) if name == "maximum" else (bound, y)
    types = f"({tensor(low.type)}, {tensor(x.type)}, {tensor(high.type)}) -> {tensor(out)}"
    return emit.new(f"stablehlo.clamp {low.name}, {x.name}, {high.name} : {types}", out)


def with_nan(emit: Any, y: Any, x: Any, axes: Sequence[int]) -> Any:
    """An extreme reduction ``y`` of ``x``, NaN where an element is NaN: exactly there the sum of the sizes is NaN."""
    if not _loses_nan(emit, x.type) or x.type.size < _LEAST:
        return y
    total = emit.wide(x, lambda x: emit.reduce("add", emit.unary("abs", x), 0, axes))
    return emit.select(emit.compare("NE", total, total), total, y)


def _loses_nan(emit: Any, type: ArrayType) -> bool:
    return bool(emit.platform == "cpu" and is_floating(type.dtype) and type.dtype.itemsize > 1)
