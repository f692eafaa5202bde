"""The text of the larger and the smaller of numbers: on a CPU floats need another one than StableHLO's own.

XLA gives the reductions of 4096 or more elements, and the elementwise operations next to them, to a library whose
maximum and minimum of a number and NaN are the number. The library knows no clamp, and its sums keep NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import bfloat16, is_floating
from ...effects.types.extent import fits
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


def extreme_reduction(emit: Any, name: str, x: Any, unit: Any, axes: Sequence[int]) -> Any:
    """The reduction of ``x`` by ``name``, "maximum" or "minimum", with unit ``unit``; NaN where an element is NaN."""
    if not _loses_nan(emit, x.type) or not fits(_LEAST, x.type.size):
        return emit.reduce(name, x, unit, axes, keeps_nan=False)
    if x.type.ndim - 1 in axes and x.type.dtype != bfloat16:
        return _with_flags(emit, name, x, unit, axes)
    y = emit.reduce(name, x, unit, axes, keeps_nan=False)
    total = emit.wide(x, lambda x: emit.reduce("add", emit.unary("abs", x), 0, axes))
    return emit.select(emit.compare("NE", total, total), total, y)  # exactly there the sum of the sizes is NaN


def _with_flags(emit: Any, name: str, x: Any, unit: Any, axes: Sequence[int]) -> Any:
    """The reduction in one pass with that of flags where NaN are, of the elements' width.

    XLA computes joint reductions by loops of its own, which are as fast as the library's along the last axis, and ten
    times slower along others and of bfloat16.
    """
    flags = emit.convert(emit.compare("NE", x, x), np.dtype(f"int{8 * x.type.dtype.itemsize}"))
    no = emit.constant(0, flags.type.update(shape=()))
    y, found = emit.fold(
        [x, flags], [emit.constant(unit, x.type.update(shape=())), no], axes,
        lambda a, m, b, n: [emit.binary(name, a, b), emit.binary("or", m, n)],
    )
    is_nan = emit.compare("NE", found, emit.constant(0, found.type))
    return emit.select(is_nan, emit.constant(float("nan"), y.type), y)


def _loses_nan(emit: Any, type: ArrayType) -> bool:
    return bool(emit.platform == "cpu" and is_floating(type.dtype) and type.dtype.itemsize > 1)
