"""The rules of interval_bounds.py: the ends of each operation's result, rounded outwards, from those of its operands.

An interval is a pair (lo, hi), of floats of 32 or 64 bits, of booleans (surely, possibly), or of integers, the
arithmetic of which does not wrap around. Source: Moore, Kearfott & Cloud, Introduction to interval analysis (2009).
"""

from __future__ import annotations

import math
from typing import Any

from interval_rounding import below, outwards

import handlax as hx
from handlax import numpy as hnp
from handlax import operations as o
from handlax.extend import Column

BOUNDS = Column("bounds", doc="the ends of the result from those of the operands")
ULPS = 16  # more than the errors that docs/explanation/accuracy.md lists for the functions below
LOGICAL = (o.And, o.Or, o.ReduceAnd, o.ReduceOr)  # of booleans; of integers they are not monotone
EXACT = (*LOGICAL, o.Max, o.Min, o.Clamp, o.ReduceMax, o.ReduceMin, o.Cummax, o.Cummin, o.Floor, o.Ceil, o.Round,
         o.Sign, o.StopGradient, o.Name, o.Reshape, o.Transpose, o.BroadcastInDim, o.Slice, o.Concatenate, o.Rev, o.Pad,
         o.Neg, o.Not)
DOMAIN = {o.Sqrt: (0, math.inf), o.Rsqrt: (0, math.inf), o.Log: (0, math.inf), o.Log1p: (-1, math.inf),
          o.Asin: (-1, 1), o.Acos: (-1, 1)}


def rounded(op: Any, lo: Any, hi: Any) -> Any:
    """The ends of a result of ``op``, rounded outwards by the error of the operation, which may be none."""
    return (lo, hi) if type(op) in EXACT else outwards(lo, hi, ULPS if op.rounding == "loose" else 0)


def need(op: Any, holds: bool, what: str) -> None:
    if not holds:
        raise hx.errors.MissingRule(f"bounds: {op.name} has a rule for {what} alone.")


def hull(*ends: Any) -> Any:
    return hnp.stack(ends).min(0), hnp.stack(ends).max(0)


@BOUNDS.rule(*EXACT[:-2], o.Add, o.Exp, o.Exp2, o.Expm1, o.Log, o.Log1p, o.Sqrt, o.Cbrt, o.Sinh, o.Tanh, o.Asin,
             o.Atan, o.Asinh, o.Erf, o.Logistic)
def increasing(op, *xs):
    need(op, type(op) not in LOGICAL or xs[0][0].dtype == bool, "booleans")
    if type(op) in DOMAIN:
        xs = [[hnp.clip(end, *DOMAIN[type(op)]) for end in x] for x in xs]
    return rounded(op, *[hx.perform(op, *ends) for ends in zip(*xs)])


@BOUNDS.rule(o.ConvertElementType)
def conversion(op, x):
    """What is not zero is true; where an integer wraps around, or a float is beyond all of them, nothing is known."""
    need(op, not hnp.issubdtype(op.dtype, hnp.complexfloating), "real numbers")
    if op.dtype == bool:
        return (x[0] > 0) | (x[1] < 0), (x[0] != 0) | (x[1] != 0)
    if not hnp.issubdtype(op.dtype, hnp.integer):
        return increasing(op, x)
    least, largest = hnp.iinfo(op.dtype).min, hnp.iinfo(op.dtype).max
    fits = (x[0].astype("float64") >= least) & (x[1].astype("float64") <= largest)
    return [hnp.where(fits, y, end) for y, end in zip(increasing(op, x), (least, largest))]


@BOUNDS.rule(o.Neg, o.Not, o.Acos, o.Rsqrt)
def decreasing(op, x):
    return increasing(op, x[::-1])


@BOUNDS.rule(o.Sub)
def difference(op, x, y):
    return increasing(op, x, y[::-1])


@BOUNDS.rule(o.Mul)
def product(op, x, y):
    return rounded(op, *hull(*[hx.perform(op, a, b) for a in x for b in y]))


@BOUNDS.rule(o.Div)
def quotient(op, x, y):
    lo, hi = product(op, x, y)
    pole = (y[0] <= 0) & (y[1] >= 0)
    return hnp.where(pole, -hnp.inf, lo), hnp.where(pole, hnp.inf, hi)


@BOUNDS.rule(o.Square, o.Abs, o.Cosh)
def even(op, x):
    lo, hi = rounded(op, *hull(*[hx.perform(op, end) for end in x]))
    least = hx.perform(op, hnp.zeros_like(x[0]))
    return hnp.where((x[0] <= 0) & (x[1] >= 0), least, hnp.maximum(lo, least)), hi


@BOUNDS.rule(o.IntegerPow)
def power(op, x):
    """x^y as a product of two smaller powers, so that the error of each operation is known."""
    if op.y < 0:
        one = (hnp.ones_like(x[0]),) * 2
        return quotient(o.Div(), one, power(o.IntegerPow(-op.y), x))
    if op.y > ULPS:
        return product(o.Mul(), power(o.IntegerPow(op.y // 2), x), power(o.IntegerPow(op.y - op.y // 2), x))
    return increasing(op, x) if op.y % 2 else even(op, x)


@BOUNDS.rule(o.Sin, o.Cos)
def wave(op, x):
    """The hull of the ends, with 1 and -1 where such an extremum may lie between them."""
    first, last = outwards(*[end / (2 * math.pi) for end in x], ULPS)
    passes = lambda turn: hnp.floor(last - turn) >= hnp.ceil(first - turn)
    top = 0.25 if type(op) is o.Sin else 0.0
    lo, hi = rounded(op, *hull(*[hx.perform(op, end) for end in x]))
    return hnp.where(passes(top + 0.5), -1.0, lo), hnp.where(passes(top), 1.0, hi)


@BOUNDS.rule(o.ReduceSum)
def total(op, x):
    (lo, hi), size = [hx.perform(op, end) for end in x], hx.perform(op, hnp.maximum(*map(abs, x)))
    if not hnp.issubdtype(lo.dtype, hnp.floating):
        return lo, hi
    terms, info = x[0].size // max(lo.size, 1), hnp.finfo(lo.dtype)
    slack = size * (2 * terms * info.eps) + terms * info.tiny
    return outwards(lo - slack, hi + slack)


@BOUNDS.rule(o.DotGeneral)
def contraction(op, x, y):
    """By midpoints and radii. Source: Rump, Fast and parallel interval arithmetic (1999)."""
    need(op, hnp.issubdtype(x[0].dtype, hnp.floating), "floats")
    a, b = [lo / 2 + hi / 2 for lo, hi in (x, y)]
    r, s = [-below(-hnp.maximum(hi - mid, mid - lo), 0) for mid, (lo, hi) in ((a, x), (b, y))]
    info, terms = hnp.finfo(a.dtype), math.prod([a.shape[d] for d in op.dimension_numbers[0][0]])
    error = hx.perform(op, abs(a) + r, abs(b) + s) * (4 * (terms + 4) * info.eps) + terms * info.tiny
    middle, radius = hx.perform(op, a, b), hx.perform(op, abs(a), s) + hx.perform(op, r, abs(b) + s) + error
    return outwards(middle - radius, middle + radius)


@BOUNDS.rule(o.Lt, o.Le, o.Gt, o.Ge)
def comparison(op, x, y):
    """Whether it surely is true, and whether it possibly is."""
    x, y = (x, y) if type(op) in (o.Lt, o.Le) else (x[::-1], y[::-1])
    return hx.perform(op, x[1], y[0]), hx.perform(op, x[0], y[1])


@BOUNDS.rule(o.SelectN)
def selection(op, which, *cases):
    if which[0].dtype != bool:
        return hull(*[hx.perform(op, which[0], *[end] * len(cases)) for case in cases for end in case])
    return hull(*[hx.perform(op, at, *ends) for at in which for ends in zip(*cases)])


@BOUNDS.rule(o.Eq, o.Ne)
def equality(op, x, y):
    """Surely equal are single numbers, possibly equal are intervals with a common one."""
    surely, possibly = (x[0] == y[1]) & (x[1] == y[0]), (x[0] <= y[1]) & (y[0] <= x[1])
    return (surely, possibly) if type(op) is o.Eq else (~possibly, ~surely)


@BOUNDS.rule(o.IsFinite)
def finite(op, x):
    return hx.perform(op, x[0]) & hx.perform(op, x[1]), hnp.ones(x[0].shape, bool)
