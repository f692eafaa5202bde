"""Inputs for operations that move elements: shapes, slices, padding, joining, gather, scatter, and iota."""

from __future__ import annotations

from typing import Any

import numpy as np

from handlax.effects.control.branches import PlatformIndex
from handlax.effects.operations.foundations import shapes as h
from handlax.effects.operations.indexing import dynamic_slicing as d
from handlax.effects.operations.indexing import gather_scatter as i
from handlax.effects.operations.indexing import relocation as r
from handlax.effects.operations.indexing.gather_windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from handlax.effects.operations.manipulation import creation as n
from handlax.effects.operations.manipulation import slicing as s
from handlax.effects.operations.reductions import scatter_products as f
from handlax.effects.types import dtypes
from handlax.testing.strategies import Domain, Operands

from .inputs import FINITE, REAL

PLAIN = Domain(extremes=FINITE)
START = Domain(-3.0, 6.0, dtype=dtypes.int32)  # beyond both ends
INSIDE = Domain(0.0, 2.0, dtype=dtypes.int32)
WIDE = Domain(-3.0, 6.0, dtype=dtypes.int64)
UNSIGNED = Domain(0.0, 9.0, dtype=dtypes.uint8)
CLIP, FILL, PROMISE = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS

# dimension numbers, window, shapes of operand and indices
GATHERS: tuple[tuple[GatherDimensionNumbers, tuple[int, ...], tuple[Any, ...]], ...] = (
    (GatherDimensionNumbers((1,), (0,), (0,)), (1, 5), ((4, 5), (3, 1))),  # rows
    (GatherDimensionNumbers((0, 2), (), (1, 0)), (2, 3), ((4, 5), (3, 2))),  # windows, indices in another order
    (GatherDimensionNumbers((1, 2), (1,), (0, 2)), (2, 1, 3), ((4, 5, 6), (2, 2))),
    (GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1), ((4, 5), (2, 3, 2))),  # elements
    (GatherDimensionNumbers((2,), (1,), (1,), (0,), (1,)), (1, 1, 3), ((2, 5, 3), (3, 2, 1))),  # batching dimensions
    (GatherDimensionNumbers((0,), (), (0,)), (3,), ((5,), (1,))),  # one window
    (GatherDimensionNumbers((0, 1), (), ()), (3, 2), ((4, 5), (2, 0))),  # nothing is indexed
    (GatherDimensionNumbers((1,), (0,), (0,)), (1, 5), ((4, 5), (0, 1))),  # no windows
)

# dimension numbers, shapes of operand, indices and updates
SCATTERS: tuple[tuple[ScatterDimensionNumbers, tuple[Any, ...]], ...] = (
    (ScatterDimensionNumbers((1,), (0,), (0,)), ((4, 5), (3, 1), (3, 5))),
    (ScatterDimensionNumbers((), (0,), (0,)), ((4,), (7, 1), (7,))),  # several updates at one index
    (ScatterDimensionNumbers((0, 2), (), (1, 0)), ((4, 5), (3, 2), (2, 3, 3))),
    (ScatterDimensionNumbers((2,), (1,), (1,), (0,), (1,)), ((2, 5, 3), (3, 2, 1), (3, 2, 3))),
    (ScatterDimensionNumbers((), (), ()), ((), (2, 0), (2,))),
    (ScatterDimensionNumbers((1,), (0,), (0,)), ((4, 5), (0, 1), (0, 5))),
)


class Distinct(Domain):
    """Index vectors that name different rows."""

    def draw(self, dtype: Any, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return rng.permutation(4)[: shape[0], None].astype(np.int32)


class Involution(Domain):
    """An index vector of four rows that is its own inverse; ``padding``: two rows are not met."""

    def __init__(self, padding: bool):
        super().__init__(dtype=dtypes.int32)
        self.padding = padding

    def draw(self, dtype: Any, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return np.asarray([1, 0, ~2, ~3] if self.padding else [3, 2, 1, 0], np.int32)


def _gathers() -> list[Operands]:
    cases = [
        Operands(i.Gather(numbers, window, mode=mode, fill_value=7 if mode is FILL else None), (REAL, START), (shapes,))
        for numbers, window, shapes in GATHERS
        for mode in (CLIP, FILL)
    ]
    rows, window, shapes = GATHERS[0]
    for start in (WIDE, UNSIGNED):
        cases.append(Operands(i.Gather(rows, window, mode=CLIP), (REAL, start), (shapes,), dtypes.FLOATING))
        filled = i.Gather(rows, window, mode=FILL, fill_value=-1)
        cases.append(Operands(filled, (REAL, start), (shapes,), dtypes.FLOATING))
    return [*cases, Operands(i.Gather(rows, window, mode=PROMISE), (REAL, INSIDE), (shapes,))]


def _scatters() -> list[Operands]:
    kinds = (i.Scatter, i.ScatterAdd, i.ScatterSub, f.ScatterMul, i.ScatterMin, i.ScatterMax)
    cases = [
        Operands(kind(numbers, mode=mode), (PLAIN, START, PLAIN), (shapes,))
        for kind in kinds
        for k, (numbers, shapes) in enumerate(SCATTERS)
        for mode in ((CLIP, FILL) if k == 0 or kind is i.Scatter else (FILL,))
    ]
    rows, shapes = SCATTERS[0]
    cases += [Operands(kind(rows, unique_indices=True), (PLAIN, Distinct(), PLAIN), (shapes,)) for kind in kinds]
    cases += [Operands(f.OtherFactors(numbers), (PLAIN, START, PLAIN), (shapes,)) for numbers, shapes in SCATTERS]
    return [*cases, Operands(i.ScatterAdd(rows, mode=CLIP), (PLAIN, UNSIGNED, PLAIN), (shapes,), dtypes.FLOATING)]


CASES = [
    Operands(h.BroadcastInDim((2, 3, 4), (0, 2)), (REAL,), (((2, 4),), ((1, 4),), ((1, 1),))),
    Operands(h.BroadcastInDim((2, 3), ()), (REAL,), (((),),)),
    Operands(h.BroadcastInDim((0, 3), (1,)), (REAL,), (((3,),),)),
    Operands(h.SizeOf(3), (), ((),)),
    Operands(h.Reshape((3, 4)), (REAL,), (((2, 6),), ((12,),))),
    Operands(h.Reshape(()), (REAL,), (((1, 1),),)),
    Operands(h.Reshape((0, 3)), (REAL,), (((2, 0),),)),
    Operands(h.Transpose((2, 0, 1)), (REAL,), (((2, 3, 4),), ((2, 0, 4),))),
    Operands(s.Slice((1, 0), (4, 5), (2, 1)), (REAL,), (((4, 5),),)),
    Operands(s.Slice((1, 2), (1, 5), (2, 2)), (REAL,), (((4, 5),),)),
    *[
        Operands(s.Pad(config), (REAL, REAL), shapes)
        for config, shapes in (
            (((1, 2, 0), (0, 0, 1)), (((4, 3), ()), ((0, 3), ()))),
            (((-1, 2, 0), (1, -2, 1)), (((4, 3), ()),)),
            (((-3, -1, 2), (2, 1, 3)), (((4, 3), ()),)),
            ((), (((), ()),)),
        )
    ],
    Operands(s.Rev((0, 2)), (REAL,), (((2, 3, 4),), ((2, 0, 4),))),
    Operands(s.Concatenate(1), (REAL, REAL, REAL), (((4, 3), (4, 1), (4, 0)),)),
    Operands(s.Split((1, 0, 3), 0), (REAL,), (((4, 3),),)),
    *[
        Operands(r.Relocate(sizes, not gaps), (*[Involution(gaps)] * 2, *[REAL] * len(xs)), (((4,), (4,), *xs),))
        for gaps in (True, False)
        for sizes, xs in (((4,), [(4, 2)]), ((1, 3), [(4, 2)]), ((4,), [(3, 2), (0, 2), (1, 2)]), ((2, 2), [(2,)] * 2))
    ],
    Operands(d.DynamicSlice((2, 3)), (REAL, START, START), (((4, 5), (), ()),)),
    Operands(d.DynamicSlice((0, 5)), (REAL, UNSIGNED, UNSIGNED), (((4, 5), (), ()),)),
    Operands(d.DynamicSlice(()), (REAL,), (((),),)),
    Operands(d.DynamicUpdateSlice(), (REAL, REAL, START, START), (((4, 5), (2, 3), (), ()), ((4, 5), (0, 5), (), ()))),
    *[
        Operands(n.Iota(np.dtype(dtype), (3, 4), k), (), ((),))
        for dtype in ("int8", "float32", "bfloat16") for k in (0, 1)
    ],
    Operands(PlatformIndex((("tpu",), ("cpu", "cuda"), None)), (), ((),)),
    *_gathers(),
    *_scatters(),
]
