"""Arithmetic: the elementwise operations of algebra, each with its derivative."""

from __future__ import annotations

import numpy as np

from . import columns
from .columns import linear, multilinear
from .dtypes import INEXACT, NUMERIC
from .elementwise import elementwise, fit, surface
from .shapes import broadcast
from .stack import perform


def _jvp_add(op, primals, tangents):
    y = perform(op, *primals)
    dx, dy = tangents
    if dx is None or dy is None:
        d = dy if dx is None else dx
        return y, broadcast(d, y.type.shape) if d.type.shape != y.type.shape else d
    return y, perform(op, dx, dy)


Neg = elementwise(
    "neg", NUMERIC, np.negative, jvp=linear, transpose=lambda op, ct, x: neg(ct), lower="negate"
)
Add = elementwise(
    "add", NUMERIC, np.add, arity=2, jvp=_jvp_add,
    transpose=lambda op, ct, x, y, *, wrt: fit(ct, (x, y)[wrt]), lower="add",
)  # fmt: skip
Mul = elementwise(
    "mul", NUMERIC, np.multiply, arity=2, jvp=multilinear,
    transpose=lambda op, ct, x, y, *, wrt: fit(mul(ct, y), x) if wrt == 0 else fit(mul(x, ct), y), lower="multiply",
)  # fmt: skip
Sin = elementwise("sin", INEXACT, np.sin, jvp=lambda x, dx: dx * cos(x), lower="sine")
Cos = elementwise("cos", INEXACT, np.cos, jvp=lambda x, dx: -(dx * sin(x)), lower="cosine")

neg, add, mul, sin, cos = map(surface, (Neg, Add, Mul, Sin, Cos))
columns.provide_add(add)
