"""Complex numbers and their real and imaginary parts.

The pairing of cotangents has no conjugation: <u, z> = Re(u z). These operations are linear over the reals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.stack import perform
from ...core.arrays import Array, as_array, scalar
from ...core.columns import data_movement, linear
from ...types.dtypes import COMPLEX, float32, float64, is_complex, to_complex, to_real
from ..foundations.elementwise_factory import Function, elementwise, surface, unbroadcast


def _zero(x: Any) -> Any:
    """The scalar 0 with the dtype and weakness of ``x``."""
    return scalar(0, x.type.dtype, x.type.weak)


def _combine(x, y):
    """x + iy by assignment of the parts: arithmetic would give NaN for infinities."""
    z = np.empty(np.broadcast_shapes(x.shape, y.shape), to_complex(x.dtype))
    z.real, z.imag = x, y
    return z


def _lower_conj(op, emit, z):
    x, y = emit.parts(z)
    return emit.elementwise("complex", x, emit.unary("negate", y))


# x = Re z, y = Im z, w = x - iy, z = x + iy
Real = elementwise(
    "real", COMPLEX, np.real, result=to_real, jvp=linear, lower="real",
    transpose=lambda op, ct, z: complex(ct, _zero(ct)), flops=data_movement,
    doc="The real part: ``real(x + iy) == x``.\n\n    Shapes: ``c64[*s] -> f32[*s]``, ``c128[*s] -> f64[*s]``.",
)
Imag = elementwise(
    "imag", COMPLEX, np.imag, result=to_real, jvp=linear, lower="imag",
    transpose=lambda op, ct, z: complex(_zero(ct), -ct), flops=data_movement,
    doc="The imaginary part: ``imag(x + iy) == y``.\n\n    Shapes: ``c64[*s] -> f32[*s]``, ``c128[*s] -> f64[*s]``.",
)
Conj = elementwise("conj", COMPLEX, np.conj, jvp=linear, transpose=lambda op, ct, z: conj(ct), lower=_lower_conj)
Complex = elementwise(
    "complex", (float32, float64), _combine, arity=2, result=to_complex, jvp=linear,
    transpose=lambda op, ct, x, y, *, wrt: unbroadcast(real(ct), x) if wrt == 0 else unbroadcast(-imag(ct), y),
    lower="complex",
    doc="``complex(x, y) == x + iy``.\n\n    Shapes: ``f32[*s], f32[*s] -> c64[*s]``, or rank 0; f64 gives c128.",
)

real: Function = surface(Real)
imag: Function = surface(Imag)
complex: Function = surface(Complex)
_conj = Conj()


def conj(x: Any) -> Array:
    """The conjugate: ``conj(x + iy) == x - iy``; a real ``x`` becomes complex.

    >>> conj(np.complex64(1 + 2j))
    Array(1.-2.j, dtype=complex64)
    """
    x = as_array(x)
    return perform(_conj, x if is_complex(x.type.dtype) else complex(x, _zero(x)))
