"""Eigenvalues and eigenvectors of general square matrices, which are complex."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import MissingRule, NotDifferentiable
from ...base.stack import perform
from ...core.arrays import as_array
from ...core.operation import operation, shared
from ...types.array_type import ArrayType
from ...types.dtypes import is_complex, to_complex
from ..elementwise.arithmetic import abs as absolute
from ..elementwise.arithmetic import like
from ..elementwise.comparison import eq, gt, lt, select_n
from ..elementwise.complex_parts import complex as complex_number
from ..elementwise.complex_parts import conj, imag, real
from ..elementwise.conversion import convert
from ..foundations.shapes import full, reduce_sum
from ..manipulation.creation import broadcasted_iota
from ..manipulation.slicing import concatenate, slice_in_dim
from ..reductions.reductions import argmax
from .eigh import eigen_flops
from .lapack import Factorisation, Implementation, Routine, each_or_nan, info_type, or_nan
from .lu import Lu, lu_solve
from .matrices import (
    adjoint,
    check_matrices,
    columns_of,
    conjugate_dot,
    diagonal,
    inverse_gaps,
    or_not_finite,
    product,
    spoiled,
)

GEEV = Routine("geev", cuda="cusolver_geev_ffi")


class EigImplementation(Implementation):
    """How a device computes the eigenvalues of square matrices: a CPU by ``LAPACK``."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


# x vr = vr diag(w), vl^H x = diag(w) vl^H: (w, vl, vr), vectors only as requested; a vector has norm 1, and its largest
# element is real; NaN where the iteration does not converge
@operation
class Eig(Factorisation):
    left: bool
    right: bool
    differentiable: bool
    param_names = {
        "left": "compute_left_eigenvectors", "right": "compute_right_eigenvectors",
        "differentiable": "enable_eigvec_derivs",
    }
    fixed_params = {"implementation": None}
    flops = eigen_flops

    def result_type(op, x):
        check_matrices("eig", x, square=True)
        v = x.update(dtype=to_complex(x.dtype), weak=False)
        return (v.update(shape=x.shape[:-1]), *[v] * (op.left + op.right))

    def evaluate(op, x):
        return each_or_nan(lambda x: _of_one(op, x), op.types_for(x), x, iterative=True)

    def jvp(op, primals, tangents):
        (x,), (dx,) = primals, tangents
        vectors = op.left or op.right
        if vectors and not op.differentiable:
            raise NotDifferentiable(
                "eig: vectors have derivatives where eigenvalues differ and each has one element of the largest size.",
                hint="lax.linalg.eig(x, enable_eigvec_derivs=True) takes that for granted; eigvals has a derivative.",
            )
        # second derivatives of eigenvalues do not depend on the norm and the phase of vectors
        w, *vl, vr = perform(shared(Eig, op.left, True, op.differentiable or not vectors), x)
        dx = convert(dx, vr.dtype)
        dw, dvr = _tangents(w, vr, dx, op.right)
        dvl = [_tangents(conj(w), v, adjoint(dx), True)[1] for v in vl]
        return (w, *vl, *[vr] * op.right), (dw, *dvl, *[dvr] * op.right)

    def lower(op, emit, x):
        w, v = shared(Eig, False, True, False).result_type(x.type)
        if emit.platform == "cuda" and x.type.size:
            return _by_cusolver(op, emit, x, w)
        modes = {"compute_left": "V" if op.left else "N", "compute_right": "V" if op.right else "N"}
        values = [w] if is_complex(x.type.dtype) else [w.update(dtype=x.type.dtype)] * 2
        *parts, vl, vr, info = GEEV(emit, x, types=(*values, v, v, info_type(x)), into={}, attributes=modes)
        w = parts[0] if len(parts) == 1 else emit.decompose(complex_number, *parts)
        return or_nan(emit, info, (w, *[vl] * op.left, *[vr] * op.right))


def _by_cusolver(op: Eig, emit: Any, x: Any, w: ArrayType) -> tuple[Any, ...]:
    """The lowering for a GPU. Raises MissingRule: for left eigenvectors, which cuSOLVER has not."""
    if op.left:
        raise MissingRule(
            "eig: left eigenvectors have no counterpart on the platform 'cuda'.",
            hint="compute them on the host: jit(f, device=devices('cpu')[0]).",
        )
    types, cuda = (x.type, w, x.type, x.type, info_type(x)), {"left": False, "right": op.right}
    _, values, _, v, info = GEEV(emit, emit.decompose(spoiled, x), types=types, cuda=cuda)
    if not is_complex(x.type.dtype):
        (v,) = emit.decompose(lambda w, v: [_of_pairs(w, v)], values, v)
    info = emit.decompose(or_not_finite, info, x)
    return or_nan(emit, info, (values, v)[: 1 + op.right])


def _of_pairs(w: Any, v: Any) -> Any:
    """``_paired`` of several matrices: column j of a pair's first is its real part, the next one its imaginary part."""
    last, n = v.ndim - 1, v.shape[-1]
    turned = lambda k: concatenate([slice_in_dim(v, k, n, axis=last), slice_in_dim(v, 0, k, axis=last)], last)
    first, second = (columns_of(compare(imag(w), like(imag(w), 0)), n) for compare in (gt, lt))
    parts = select_n(second, v, turned(n - 1)), select_n(first, select_n(second, like(v, 0), -v), turned(1))
    return complex_number(*parts)


def _of_one(op: Eig, x: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """The eigenvalues and eigenvectors of one matrix, and LAPACK's ``info``."""
    *values, vl, vr, info = GEEV.on_host(x.dtype, len(x), op.left, op.right)(x, op.left, op.right)
    w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
    vectors = [v if len(values) == 1 else _paired(w, v) for v, wanted in ((vl, op.left), (vr, op.right)) if wanted]
    return w, *vectors, info


def _paired(w: Any, v: Any) -> Any:
    """Complex vectors from LAPACK's real form, in which conjugate pairs are stored as real and imaginary part."""
    first = np.flatnonzero(w.imag > 0)
    y = v.astype(w.dtype)
    y[:, first] = v[:, first] + 1j * v[:, first + 1]
    y[:, first + 1] = y[:, first].conj()
    return y


def _tangents(w: Any, v: Any, dx: Any, vectors: bool) -> tuple[Any, Any]:
    """The tangents of eigenvalues and, if ``vectors``, of eigenvectors of norm 1 with their largest element real.

        p = v^-1 dx v,  dw = diag p,  u = v (f o p), f[i, j] = 1 / (w[j] - w[i]),  dv[j] = u[j] + c[j] v[j]

    where f is 0 on the diagonal, and c keeps the norm and the phase. Source: M. Giles, An extended collection of matrix
    derivative results (2008).
    """
    lu, _, permutation = perform(Lu(), v)
    p = lu_solve(lu, permutation, product(dx, v))
    dw = diagonal(p)
    if not vectors:
        return dw, None
    u = product(v, p * inverse_gaps(w, v.dtype))
    if not v.type.size:
        return dw, u
    rows = v.ndim - 2
    largest = columns_of(argmax(absolute(v), rows, np.int32), v.shape[rows])
    is_largest = eq(broadcasted_iota(np.int32, v.shape, rows), largest)
    at = lambda y: reduce_sum(select_n(is_largest, full(y.type, 0), y), (rows,))
    factor = complex_number(-real(conjugate_dot(v, u)), -imag(at(u)) / real(at(v)))
    return dw, u + v * columns_of(factor, v.shape[rows])


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """The eigenvalues of square matrices, in no order, and their vectors: ``[w, vl, vr]``, all of them complex.

        x @ vr == vr * w        vl^H @ x == w[:, None] * vl^H

    Each vector has norm 1, and its largest element is real.
    Shapes: ``x[*s, n, n] -> w[*s, n], vl[*s, n, n], vr[*s, n, n]``. Where the iteration does not converge, or there is
    a NaN or an infinity, they are NaN.

    Derivatives are those of distinct eigenvalues, and of vectors whose largest element is the only one of its size;
    else they are infinite or NaN, or those of the element that was chosen.

    Args:
        compute_left_eigenvectors, compute_right_eigenvectors: which vectors the list contains.
        enable_eigvec_derivs: assume this; without it vectors have no derivative, as in JAX.
        implementation, use_magma: LAPACK on a CPU is the only implementation.
    Raises: ShapeMismatch: matrices that are not square. DTypeMismatch: neither 32- nor 64-bit floats or complex
    numbers. MissingRule: another implementation. NotDifferentiable: a derivative of vectors that was not enabled.
    Source: LAPACK, ``geev``.

    >>> w, vr = eig(np.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex128)
    """
    if implementation not in (None, EigImplementation.LAPACK):
        raise MissingRule(f"eig: the implementation must be EigImplementation.LAPACK, got {implementation!r}.")
    kind = bool(compute_left_eigenvectors), bool(compute_right_eigenvectors), bool(enable_eigvec_derivs)
    return list(perform(shared(Eig, *kind), as_array(x)))
