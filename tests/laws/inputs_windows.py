"""Inputs for operations over windows: convolutions and reductions."""

from __future__ import annotations

from itertools import product
from typing import Any

from handlax.effects.operations.windows import window_reductions as r
from handlax.effects.operations.windows.convolution import ConvGeneralDilated
from handlax.effects.operations.windows.dimension_numbers import ConvDimensionNumbers, conv_dimension_numbers
from handlax.effects.operations.windows.geometry import Window
from handlax.effects.types import dtypes
from handlax.effects.types.array_type import Shape
from handlax.testing.strategies import Domain, Operands

from .inputs import FINITE, SPECIAL

PLAIN = Domain(extremes=FINITE)
MANY = Domain(-100.0, 100.0, extremes=SPECIAL)  # few equal elements, at which max is not differentiable
NCW, NCHW = [conv_dimension_numbers((1,) * rank, (1,) * rank, None) for rank in (3, 4)]
NHWC = conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "HWIO", "NHWC"))
MIXED = conv_dimension_numbers((1,) * 4, (1,) * 4, ("HNWC", "OWHI", "CWNH"))


def _conv(
    numbers: ConvDimensionNumbers, strides: Shape, padding: Any, lhs: Shape, rhs: Shape, *shapes: tuple[Shape, Shape],
    features: int = 1, batches: int = 1, family: Any = None, **fields: Any,
) -> Operands:
    op = ConvGeneralDilated(strides, padding, lhs, rhs, numbers, features, batches, **fields)
    return Operands(op, (PLAIN, PLAIN), shapes, family)


ONES = (1, 1)
FEW = frozenset({dtypes.float64, dtypes.float32, dtypes.complex128, dtypes.bfloat16, dtypes.int32})
NARROW_INTEGERS = frozenset({dtypes.int8, dtypes.uint8})
CONVOLUTIONS = [
    _conv(NCW, (1,), ((0, 0),), (1,), (1,), ((2, 3, 5), (4, 3, 2)), ((0, 3, 5), (4, 3, 2)), ((2, 0, 5), (4, 0, 2))),
    _conv(NCW, (2,), ((2, -1),), (3,), (2,), ((1, 2, 4), (2, 2, 3)), ((1, 2, 2), (2, 2, 9)), ((1, 2, 0), (2, 2, 1)),
          family=FEW),
    _conv(ConvDimensionNumbers((0, 1), (1, 0), (1, 0)), (), (), (), (), ((3, 4), (4, 2))),
    _conv(NHWC, (2, 1), ((1, 1), (0, 2)), ONES, (2, 1), ((2, 6, 5, 3), (2, 3, 3, 4)), family=FEW),
    _conv(MIXED, (1, 3), ((-1, 2), (1, 0)), (2, 1), (1, 2), ((4, 2, 5, 4), (2, 2, 3, 2)), features=2, family=FEW),
    _conv(NCHW, (2, 1), ((1, 0), (0, 1)), (1, 2), (2, 1), ((4, 2, 4, 3), (6, 2, 2, 2)), batches=2, family=FEW),
    _conv(NCW, (1,), ((1, 1),), (1,), (1,), ((1, 1, 4), (1, 1, 3)),
          precision=None, preferred_element_type=dtypes.float32, family=frozenset({dtypes.float16, dtypes.bfloat16})),
    _conv(NCW, (1,), ((1, 1),), (1,), (1,), ((1, 2, 4), (2, 2, 3)),
          preferred_element_type=dtypes.int32, family=NARROW_INTEGERS),
]

WINDOWS = (
    (Window((3,), (1,), ((0, 0),), (1,), (1,)), ((5,), (2,), (0,))),
    (Window((2, 3), (2, 1), ((1, 0), (-1, 2)), (1, 2), (2, 1)), ((4, 3),)),
    (Window((12,), (1,), ((6, 6),), (1,), (1,)), ((14,),)),
    (Window((), (), (), (), ()), ((),)),
)
REDUCTIONS = [
    Operands(op(window), (domain,), tuple([(shape,) for shape in shapes]))
    for (op, domain), (window, shapes) in product(
        (
            (r.ReduceWindowSum, PLAIN), (r.ReduceWindowMax, MANY), (r.ReduceWindowMin, MANY), (r.WindowArgmax, MANY),
            (r.WindowArgmin, MANY),
        ),
        WINDOWS,
    )
    if window.sizes != (12,) or op in (r.ReduceWindowSum, r.WindowArgmax)  # that windows are folded by halves
]

CASES = [*CONVOLUTIONS, *REDUCTIONS]
