"""Units of measure: ``measured(f, *units)(*xs)`` gives f(*xs) and its unit, and refuses to add metres to seconds.

    python examples/interpreters/units_of_measure.py

A unit is static: a mark of the value, known while the program is traced, so that it costs nothing when it runs. A
carry of a loop must keep its unit, and the branches of a condition must agree on theirs. Zero has every unit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax import operations as o
from handlax.extend import STACK, BodyTransformer, Box, Column, as_array, cross, inside, installed

UNITS = Column(
    "units", doc="the unit of the result from those of the operands; without a cell all are numbers",
    default=lambda op, *units: same(op.name, ONE, *units),
)


class Unit(tuple[Any, ...]):
    """A product of powers, ``Unit(m=1, s=-2)``; None in place of a unit is that of zero, which is every one."""

    __slots__ = ()

    def __new__(cls, **powers: Any) -> Unit:
        return super().__new__(cls, sorted((name, Fraction(n)) for name, n in powers.items() if n))

    def times(self, other: Unit, k: Any = 1) -> Unit:
        powers = dict(self)
        for name, n in other:
            powers[name] = powers.get(name, 0) + k * n
        return Unit(**powers)

    def __repr__(self) -> str:
        return " ".join([name if n == 1 else f"{name}^{n}" for name, n in self]) or "1"


ONE = Unit()


def same(what: str, *units: Any) -> Any:
    """The unit that all have. Raises: BadArgument: two differ."""
    known = {unit for unit in units if unit is not None}
    if len(known) > 1:
        raise hx.errors.BadArgument(f"{what}: the units {' and '.join(sorted(map(repr, known)))} differ.")
    return known.pop() if known else None


UNITS.rule(o.Add, o.Sub, o.Max, o.Min, o.Clamp, o.Rem, o.Concatenate, o.Pad)(lambda op, *units: same(op.name, *units))
UNITS.rule(o.SelectN)(lambda op, which, *units: same(op.name, *units))
UNITS.rule(o.Neg, o.Abs, o.ReduceSum, o.ReduceMax, o.ReduceMin, o.Cumsum, o.Reshape, o.Transpose, o.BroadcastInDim,
           o.Slice, o.Rev, o.Gather, o.DynamicSlice, o.ConvertElementType, o.StopGradient)(lambda op, unit, *_: unit)
POWERS = {o.Mul: (1, 1), o.DotGeneral: (1, 1), o.Div: (1, -1), o.Square: (2,), o.Sqrt: (Fraction(1, 2),),
          o.Rsqrt: (Fraction(-1, 2),), o.Cbrt: (Fraction(1, 3),)}


@UNITS.rule(o.Lt, o.Le, o.Gt, o.Ge, o.Eq, o.Ne, o.Sign, o.IsFinite, o.Atan2)
def number(op, *units):
    same(op.name, *units)
    return ONE


@UNITS.rule(*POWERS, o.IntegerPow)
def powers(op, *units):
    if None in units:
        return None
    unit = ONE
    for factor, k in zip(units, POWERS.get(type(op)) or (op.y,)):
        unit = unit.times(factor, k)
    return unit


class Quantity(Box):
    __slots__ = ("unit", "x")

    def __init__(self, run: Any, x: Any, unit: Any):
        self.run, self.type, self.x, self.unit = run, x.type, x, unit


class Measures(BodyTransformer):
    """Its boxes have units as marks. A value that is no box of its own is a number, or zero."""

    __slots__ = ()

    def key(self) -> str:
        return "units"

    def split(self, x: Any) -> Any:
        if x.run is self:
            return ("unit", x.unit), (x.x,)
        zero = hnp.issubdtype(x.dtype, hnp.floating) and not isinstance(x, Box) and not np.any(np.asarray(x))
        return ("unit", None) if zero else None, (x,)

    def box(self, mark: Any, parts: Any) -> Any:
        return parts[0] if mark is None or mark[1] == ONE else Quantity(self, parts[0], mark[1])

    def unit(self, mark: Any) -> Any:
        return ONE if mark is None else mark[1]

    def join(self, marks: Any) -> Any:
        unit = same(f"{self.label}, a loop or branch", *map(self.unit, marks))
        return None if unit == ONE else ("unit", unit)

    def answer(self, op: Any, operands: Any) -> Any:
        if all([x.run is not self for x in operands]):
            return self.outer.answer(op, operands)
        with inside(self.outer):
            if op.bodied:
                return cross(self, op, operands)
            if hx.columns.DECOMPOSE.has(type(op)) and not UNITS.has(type(op)):
                return self.decompose(op, operands)
            marks, parts = zip(*map(self.split, operands))
            unit = UNITS.find(type(op))(op, *map(self.unit, marks))
            y = hx.perform(op, *[part for part, in parts])
            return op.from_results([self.box(("unit", unit), (part,)) for part in op.as_results(y)])


def measured(f: Any, *units: Any) -> Any:
    """``measured(f, *units)(*xs)``: the result of ``f``, one array, and its unit."""

    def measuring(*xs: Any) -> Any:
        run = Measures(STACK.get(), "measured")
        with installed(run):
            y = as_array(f(*[run.box(("unit", unit), (as_array(x),)) for x, unit in zip(xs, units)]))
        mark, (value,) = run.split(y)
        return value, run.unit(mark)

    return measuring


def main() -> None:
    metre, second = Unit(m=1), Unit(s=1)

    def fall(height: Any, gravity: Any, step: Any) -> Any:
        """The speed on the ground, by small steps of time."""
        speed, height = lax.while_loop(
            lambda c: c[1] > 0, lambda c: (c[0] + gravity * step, c[1] - c[0] * step), (0.0, height)
        )
        return speed

    arguments, units = (20.0, 9.81, 1e-3), (metre, Unit(m=1, s=-2), second)
    speed, unit = measured(hx.jit(fall), *units)(*arguments)
    print(f"{float(speed):.1f} {unit}")
    assert unit == Unit(m=1, s=-1) and abs(speed - (2 * 20.0 * 9.81) ** 0.5) < 0.1
    try:
        measured(lambda height, gravity, step: height + gravity * step, *units)(*arguments)
    except hx.errors.BadArgument as error:
        print(error)


if __name__ == "__main__":
    main()
