"""Complex numbers: their parts, and how they are made of them.

Cotangents pair without conjugation: <u, z> = Re(u z). Derivatives of these operations are linear over the reals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import lift, scalar
from .columns import linear
from .dtypes import COMPLEX, float32, float64, is_complex, to_complex, to_real
from .elementwise import Function, elementwise, fit, surface
from .stack import perform


def _zero(x: Any) -> Any:
    """The zero that stands for an array like ``x``."""
    return scalar(0, x.type.dtype, x.type.weak)


def _combine(x, y):
    """x + iy without arithmetic, which would make NaN of infinities."""
    z = np.empty(np.broadcast_shapes(x.shape, y.shape), to_complex(x.dtype))
    z.real, z.imag = x, y
    return z


def _lower_conj(op, emit, z):
    x, y = emit.parts(z)
    return emit.elementwise("complex", x, emit.unary("negate", y))


# x = Re z, y = Im z, w = x - iy, z = x + iy
Real = elementwise(
    "real", COMPLEX, np.real, result=to_real, jvp=linear, lower="real",
    transpose=lambda op, ct, z: complex(ct, _zero(ct)),
    doc="The real part: ``real(x + iy) == x``.\n\n    Shapes: ``c64[*s] -> f32[*s]``, ``c128[*s] -> f64[*s]``.",
)  # fmt: skip
Imag = elementwise(
    "imag", COMPLEX, np.imag, result=to_real, jvp=linear, lower="imag",
    transpose=lambda op, ct, z: complex(_zero(ct), -ct),
    doc="The imaginary part: ``imag(x + iy) == y``.\n\n    Shapes: ``c64[*s] -> f32[*s]``, ``c128[*s] -> f64[*s]``.",
)  # fmt: skip
Conj = elementwise("conj", COMPLEX, np.conj, jvp=linear, transpose=lambda op, ct, z: conj(ct), lower=_lower_conj)
Complex = elementwise(
    "complex", (float32, float64), _combine, arity=2, result=to_complex, jvp=linear,
    transpose=lambda op, ct, x, y, *, wrt: fit(real(ct), x) if wrt == 0 else fit(-imag(ct), y), lower="complex",
    doc="``complex(x, y) == x + iy``.\n\n    Shapes: ``f32[*s], f32[*s] -> c64[*s]``, or rank 0; f64 gives c128.",
)  # fmt: skip

real: Function = surface(Real)
imag: Function = surface(Imag)
complex: Function = surface(Complex)
_conj = Conj()


def conj(x: Any) -> Any:
    """The conjugate: ``conj(x + iy) == x - iy``; a real ``x`` becomes complex.

    >>> conj(np.complex64(1 + 2j))
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    x = lift(x)
    return perform(_conj, x if is_complex(x.type.dtype) else complex(x, _zero(x)))
