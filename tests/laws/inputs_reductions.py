"""Inputs for operations that combine elements: contractions, reductions, scans, sorting."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from handlax.effects.operations import dot_general as c
from handlax.effects.operations import fft as f
from handlax.effects.operations.foundations.shapes import ReduceSum
from handlax.effects.operations.reductions import cumulative as u
from handlax.effects.operations.reductions import reductions as r
from handlax.effects.operations.reductions import row_folds as w
from handlax.effects.operations.reductions import sorting as s
from handlax.effects.operations.reductions.softmax import Softmax
from handlax.effects.types import dtypes
from handlax.effects.types.array_type import Shape
from handlax.testing.strategies import Domain, Operands

from .inputs import FINITE, REAL, SPECIAL

PLAIN = Domain(extremes=FINITE)
MANY = Domain(-100.0, 100.0, extremes=FINITE)  # few equal elements, at which max is not differentiable
FEW = Domain(-2.0, 2.0, extremes=SPECIAL)
KEYS = Domain(-2.0, 2.0, dtype=dtypes.int32)
REALS = dtypes.FLOATING


class All(Domain):
    """A vector of one number."""

    def __init__(self, value: int):
        super().__init__(dtype=dtypes.int32)
        self.value = value

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return np.full(shape, self.value, np.int32)


class Blocks(Domain):
    """The blocks of so many lanes of which the first has all rows up to ``end``."""

    def __init__(self, end: int, total: int, lanes: int):
        super().__init__(dtype=dtypes.int32)
        self.end, self.total, self.lanes = end, total, lanes

    def draw(self, dtype: Any, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        first = np.minimum(np.arange(shape[-1]) * w.BLOCK, self.end)
        place = np.minimum(first, max(self.total - w.BLOCK, 0))
        rows = (1 << np.minimum(first + w.BLOCK, self.end) - place) - (1 << first - place)
        return np.array([place, rows, np.where(rows, 0, self.lanes - 1)], np.int32)


def _on_rows(op: Any, operand: Domain, total: int, end: int, *each: int, lanes: int = 1) -> Operands:
    """Of lanes of which the first has all rows up to ``end``, and others none."""
    rows = lanes if isinstance(op, w.RepeatRows) else total
    index = ((lanes,), (3, w.most_blocks(lanes, total)), (total,))
    return Operands(op, (operand, All(end), Blocks(end, total, lanes), All(0)), (((rows, *each), *index),))


def _dot(numbers: Any, *shapes: tuple[Shape, Shape], family: Any = None, **fields: Any) -> Operands:
    return Operands(c.DotGeneral(numbers, **fields), (PLAIN, PLAIN), shapes, family)


MATRICES = (((1,), (0,)), ((), ()))
CONTRACTIONS = [
    _dot(MATRICES, ((3, 4), (4, 5)), ((0, 4), (4, 2)), ((3, 0), (0, 2))),
    _dot((((0,), (1,)), ((), ())), ((4, 3), (5, 4))),
    _dot((((0,), (0,)), ((), ())), ((4,), (4,))),
    _dot((((), ()), ((), ())), ((3,), (2,)), ((), (2,))),
    _dot((((2,), (1,)), ((0,), (0,))), ((2, 3, 4), (2, 4, 5))),
    _dot((((0,), (0,)), ((2,), (1,))), ((4, 3, 2), (4, 2, 5))),
    _dot((((1, 3), (2, 0)), ((2,), (1,))), ((2, 3, 4, 5), (5, 4, 3, 2))),
    _dot((((), ()), ((0,), (0,))), ((3,), (3,))),
    _dot(MATRICES, ((3, 4), (4, 5)), precision=(c.Precision.HIGHEST,) * 2),
    _dot(
        MATRICES, ((3, 4), (4, 5)), preferred_element_type=dtypes.float32,
        family=frozenset({dtypes.float16, dtypes.bfloat16, dtypes.int8}),
    ),
    _dot(
        MATRICES, ((3, 4), (4, 5)), preferred_element_type=dtypes.int32,
        family=frozenset({dtypes.int8, dtypes.uint8}),
    ),
]

WHOLE = (((3, 4),), ((2, 1, 3),))
REDUCTIONS = [
    *[
        Operands(op(axes), (domain,), shapes)
        for op, domain in ((ReduceSum, PLAIN), (r.ReduceProd, PLAIN), (r.ReduceMax, MANY), (r.ReduceMin, MANY))
        for axes, shapes in (((0,), WHOLE), ((0, 1), WHOLE), ((), (((),), ((3,),))), ((1,), (((0, 4),),)))
    ],
    *[
        Operands(op((1,), keeps_nan), (REAL,), (((3, 4),),), REALS)
        for op, keeps_nan in product((r.ReduceMax, r.ReduceMin), (True, False))
    ],
    *[Operands(Softmax(axes), (PLAIN,), WHOLE) for axes in ((0,), (0, 1))],
    Operands(Softmax((1,)), (PLAIN,), (((0, 4),), ((2, 0),))),
    *[
        Operands(op(axes), (MANY,), (*WHOLE, ((0, 4),)))
        for op, axes in product((r.ReduceAnd, r.ReduceOr, r.ReduceXor), ((0,), (0, 1)))
    ],
    *[
        Operands(op((axis,), dtype), (FEW,), WHOLE)
        for op, axis, dtype in product((r.Argmax, r.Argmin), (0, 1), (dtypes.int32, dtypes.int64, dtypes.uint8))
    ],
]

CUMULATIVE = [
    *[
        Operands(op(0, reverse), (domain,), (((5,),), ((4, 2),), ((1,),), ((0, 2),)))
        for (op, domain), reverse in product(
            ((u.Cumsum, PLAIN), (u.Cumprod, PLAIN), (u.Cummax, MANY), (u.Cummin, MANY), (u.Cumlogsumexp, PLAIN)),
            (False, True),
        )
    ],
    *[Operands(op(1, False), (REAL,), (((2, 4),),), REALS) for op in (u.Cumsum, u.Cummax, u.Cummin, u.Cumlogsumexp)],
]

SORTING = [
    Operands(s.Sort(0, True, 1), (MANY,), (((5,),), ((4, 2),), ((0, 2),))),
    Operands(s.Sort(1, False, 1), (FEW,), (((3, 5),),)),
    Operands(s.Sort(0, True, 2), (KEYS, MANY, PLAIN), (((6,),) * 3, ((3, 2),) * 3)),
    Operands(s.OrderStatistics((3, 0, 3), 0), (MANY,), (((5,),), ((4, 2),))),
    Operands(s.OrderStatistics((1,), 1), (FEW,), (((3, 5),), ((0, 2),))),
    Operands(s.TopK(2, 0), (MANY,), (((5,),), ((3, 2),))),
    Operands(s.TopK(3, 1), (FEW,), (((2, 4),), ((2, 5, 3),))),
]

_F = f.FftType
TRANSFORMS = [
    *[
        Operands(f.Fft(kind, lengths), (PLAIN,), shapes, dtypes.COMPLEX)
        for kind in (_F.FFT, _F.IFFT)
        for lengths, shapes in (
            ((5,), (((5,),), ((2, 5),), ((0, 5),))), ((4, 3), (((4, 3),), ((2, 4, 3),))), ((0,), (((2, 0),),)),
            ((2, 3, 2, 3, 2), (((2, 3, 2, 3, 2),),)),
        )
    ],
    *[
        Operands(f.Fft(kind, n), (PLAIN,), tuple((shape,) for shape in shapes), family)
        for n in ((5,), (6,), (1,), (3, 4), (2, 3, 2, 3))
        for kind, family, last in ((_F.RFFT, f._REALS, n[-1]), (_F.IRFFT, dtypes.COMPLEX, n[-1] // 2 + 1))
        for shapes in [((*n[:-1], last), (2, *n[:-1], last), (0, *n[:-1], last))]
    ],
    Operands(f.Fft(_F.RFFT, (0,)), (PLAIN,), (((2, 0),),), f._REALS),
    Operands(f.Fft(_F.IRFFT, (0,)), (PLAIN,), (((2, 1),),), dtypes.COMPLEX),
]

ON_ROWS = [
    *[
        _on_rows(op, MANY, *rows)
        for op in (w.SumRows(), w.MaxRows(), w.MinRows(), w.AndRows(), w.OrRows(), w.XorRows())
        for rows in ((7, 5, 2), (130, 129))
    ],
    _on_rows(w.SumRows(), PLAIN, 7, 5, lanes=3),
    *[_on_rows(w.RepeatRows(False), PLAIN, 7, end, 2, lanes=2) for end in (0, 5)],
    _on_rows(w.RepeatRows(True), PLAIN, 7, 7, 2),
]
CASES = [*CONTRACTIONS, *REDUCTIONS, *ON_ROWS, *CUMULATIVE, *SORTING, *TRANSFORMS]
