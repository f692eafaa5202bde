"""Inputs for elementwise operations."""

from __future__ import annotations

from laws.inputs import INTEGERS, POSITIVE, REAL, SMOOTH, SPECIAL, UNIT

from handlax.effects.operations.elementwise import arithmetic as a
from handlax.effects.operations.elementwise import bitwise as b
from handlax.effects.operations.elementwise import comparison as c
from handlax.effects.operations.elementwise import complex_parts as z
from handlax.effects.operations.elementwise import conversion as v
from handlax.effects.operations.elementwise import floor_division as f
from handlax.effects.operations.elementwise import transcendental as s
from handlax.effects.operations.special import bessel_functions, common_divisors
from handlax.effects.operations.special import special_functions as g
from handlax.effects.operations.special.common_divisors import Gcd
from handlax.effects.types import dtypes
from handlax.effects.types.array_type import Shape
from handlax.experimental.sparse.todense import Todense
from handlax.testing.strategies import Domain, Operands

WHOLE = tuple(float(n) for n in range(-4, 5))
HALVES = tuple(n / 2 for n in range(-7, 8))
NONZERO = Domain(0.2, 3.0, imaginary=(0.2, 2.0), extremes=SPECIAL)
ABOVE_ONE = Domain(1.1, 4.0, imaginary=(0.2, 2.0), extremes=SPECIAL)
EVERYWHERE = Domain(-100.0, 100.0, extremes=(*SPECIAL, -128, 127, 2**31 - 1, -(2**31), -(2**63)))
DIVISOR = Domain(-7.0, 7.0, apart=(0.0,), margin=0.5, extremes=(*SPECIAL, -128))
APART = tuple(Domain(low, low + 1.5, extremes=SPECIAL) for low in (-2.0, 0.0))
LEFT, RIGHT = APART
PARAMETER = Domain(0.3, 6.0)
SMALL = Domain(0.0, 2.0)
BESSEL = Domain(-12.0, 12.0, apart=(0.0,), extremes=(0.0, 30.0, -30.0))
INDEX_SHAPES: tuple[tuple[Shape, ...], ...] = (((), (), ()), ((3,),) * 3, ((), (2, 3), (2, 3)), ((0, 2),) * 3)

ARITHMETIC = [
    Operands(a.Neg(), (EVERYWHERE,)),
    Operands(a.Add(), (EVERYWHERE, EVERYWHERE)),
    Operands(a.Sub(), (EVERYWHERE, EVERYWHERE)),
    Operands(a.Mul(), (EVERYWHERE, EVERYWHERE)),
    Operands(a.Div(), (EVERYWHERE, DIVISOR)),
    Operands(a.Rem(), (Domain(0.2, 0.9, extremes=SPECIAL), Domain(1.0, 2.0, extremes=SPECIAL)), dtypes=dtypes.FLOATING),
    Operands(a.Rem(), (Domain(2.2, 2.8), Domain(1.0, 1.09)), dtypes=dtypes.FLOATING),
    Operands(a.Rem(), (EVERYWHERE, DIVISOR), dtypes=dtypes.INTEGER),
    *[
        case
        for op in (f.FloorDivide(), f.Mod())
        for case in (
            Operands(
                op, (Domain(2.2, 2.8, extremes=SPECIAL), Domain(1.0, 1.09, extremes=SPECIAL)), dtypes=dtypes.FLOATING
            ),
            Operands(op, (EVERYWHERE, DIVISOR), dtypes=dtypes.INTEGER),
        )
    ],
    Operands(a.Sign(), (SMOOTH,)),
    Operands(a.Abs(), (SMOOTH,)),
    Operands(a.Floor(), (Domain(apart=WHOLE, extremes=SPECIAL),)),
    Operands(a.Ceil(), (Domain(apart=WHOLE, extremes=SPECIAL),)),
    Operands(a.IsFinite(), (REAL,)),
    *[Operands(a.Round(method), (Domain(apart=HALVES, extremes=(*SPECIAL, *HALVES)),)) for method in a.RoundingMethod],
    Operands(a.Sqrt(), (POSITIVE,)),
    Operands(a.Rsqrt(), (POSITIVE,)),
    Operands(a.Cbrt(), (Domain(-8.0, 8.0, apart=(0.0,), margin=0.3, extremes=SPECIAL),)),
    Operands(a.Square(), (EVERYWHERE,)),
    *[Operands(a.IntegerPow(n), (NONZERO,)) for n in (0, 1, 2, 3, 7)],
    *[Operands(a.IntegerPow(n), (NONZERO,), dtypes=dtypes.INEXACT) for n in (-1, -3)],
    Operands(a.Nextafter(), (REAL, REAL)),
    *[
        Operands(a.ReducePrecision(exponent, mantissa), (Domain(-9.0, 9.0, extremes=SPECIAL),))
        for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (2, 1))
    ],
    Operands(a.Mulhi(), (INTEGERS, INTEGERS)),
    Operands(a.StopGradient(), (REAL,)),
    Operands(Todense(), (REAL,)),
    Operands(a.Unread(), (REAL,)),
]

SPECIAL_FUNCTIONS = [
    *[Operands(op(), (REAL,)) for op in (s.Exp, s.Exp2, s.Expm1, s.Logistic, s.Sin, s.Cos)],
    *[Operands(op(), (REAL,)) for op in (s.Sinh, s.Cosh, s.Tanh, s.Asinh)],
    *[Operands(op(), (POSITIVE,)) for op in (s.Log, s.Log1p)],
    *[Operands(op(), (UNIT,)) for op in (s.Tan, s.Asin, s.Acos, s.Atanh, s.ErfInv)],
    Operands(s.Atan(), (Domain(-3.0, 3.0, imaginary=(-0.8, 0.8), extremes=SPECIAL),)),
    Operands(s.Acosh(), (ABOVE_ONE,)),
    Operands(s.Atan2(), (SMOOTH, SMOOTH), dtypes=dtypes.FLOATING),
    Operands(s.Atan2(), (NONZERO, NONZERO)),
    Operands(s.Pow(), (NONZERO, REAL)),
    Operands(s.Pow(), (SMOOTH, Domain(-3.0, 3.0, dtype=dtypes.int32))),
    *[Operands(op(), (REAL,)) for op in (s.Erf, s.Erfc)],
    Operands(s.Logaddexp(), (REAL, REAL)),
]

COMPARISON = [
    *[Operands(op(), (EVERYWHERE, EVERYWHERE)) for op in (c.Eq, c.Ne, c.Lt, c.Le, c.Gt, c.Ge)],
    *[Operands(op(), (EVERYWHERE, EVERYWHERE)) for op in (c.EqTo, c.LtTo, c.LeTo)],
    *[Operands(op(), (SMALL, SMALL), dtypes=dtypes.ORDERED - dtypes.FLOATING) for op in (c.Eq, c.Le, c.LtTo)],
    *[Operands(op(), operands) for op in (c.Max, c.Min) for operands in ((LEFT, RIGHT), (RIGHT, LEFT))],
    *[
        Operands(c.Clamp(), (Domain(-1.0, -0.5), x, Domain(0.5, 1.0)))
        for x in (Domain(-0.4, 0.4), Domain(2.0, 3.0), Domain(-3.0, -2.0))
    ],
    Operands(
        c.Clamp(), (Domain(1.0, 3.0), Domain(0.0, 9.0), Domain(4.0, 6.0)),
        dtypes=frozenset([d for d in dtypes.INTEGER if d.kind == "u"]),
    ),
    Operands(c.SelectN(), (Domain(dtype=dtypes.bool_), REAL, REAL), shapes=INDEX_SHAPES),
    Operands(c.SelectN(), (Domain(-1.0, 3.0, dtype=dtypes.int32), REAL, REAL), shapes=INDEX_SHAPES),
    Operands(
        c.SelectN(),
        (Domain(-1.0, 4.0, dtype=dtypes.int32), REAL, REAL, REAL),
        shapes=(((), (2,), (2,), (2,)), ((2,), (2,), (2,), ()), ((2, 3),) * 4),
    ),
]

BITWISE = [
    Operands(common_divisors.Gcd(), (INTEGERS, INTEGERS)),
    Operands(Gcd(), (Domain(-60.0, 60.0), Domain(-60.0, 60.0, extremes=(0,)))),
    *[Operands(op(), (INTEGERS, INTEGERS)) for op in (b.And, b.Or, b.Xor)],
    Operands(b.Not(), (INTEGERS,)),
    *[Operands(op(), (INTEGERS,)) for op in (b.PopulationCount, b.Clz)],
    *[
        Operands(op(), (INTEGERS, Domain(-3.0, 70.0, extremes=(0, 7, 8, 15, 16, 31, 32, 63, 64, -1, -128))))
        for op in (b.ShiftLeft, b.ShiftRightLogical, b.ShiftRightArithmetic)
    ],
]

COMPLEX = [
    *[Operands(op(), (REAL,)) for op in (z.Real, z.Imag, z.Conj)],
    Operands(z.Complex(), (REAL, REAL)),
]

GAMMA = [
    *[Operands(op(), (Domain(0.2, 8.0, extremes=(0.5, 30.0)),)) for op in (g.Lgamma, g.Digamma)],
    Operands(g.Lgamma(), (Domain(-3.4, -0.3, apart=(-1.0, -2.0, -3.0), margin=0.2),)),
    Operands(g.Digamma(), (Domain(-3.4, -0.3, apart=(-1.0, -2.0, -3.0), margin=0.2),)),
    *[Operands(g.Polygamma(), (Domain(n, n), Domain(0.4, 6.0))) for n in (0.0, 1.0, 2.0, 3.0)],
    Operands(g.Zeta(), (Domain(1.6, 5.0), Domain(0.4, 6.0))),
    *[Operands(op(), (PARAMETER, Domain(0.1, 12.0))) for op in (g.Igamma, g.Igammac, g.IgammaGradA, g.RandomGammaGrad)],
    Operands(g.RegularizedIncompleteBeta(), (PARAMETER, PARAMETER, Domain(0.05, 0.95))),
    *[Operands(op(), (BESSEL,)) for op in (bessel_functions.BesselI0e, bessel_functions.BesselI1e)],
]

CONVERSIONS = [
    Operands(
        v.ConvertElementType(dtype), (Domain(-200.0, 200.0, extremes=(*SPECIAL, 1e30, -1e30, 2**31 - 1, -(2**63))),)
    )
    for dtype in sorted(dtypes.ANY, key=str)
]

CASES = [*ARITHMETIC, *SPECIAL_FUNCTIONS, *COMPARISON, *BITWISE, *COMPLEX, *GAMMA, *CONVERSIONS]
