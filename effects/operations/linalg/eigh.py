"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import BadArgument
from ...base.stack import perform
from ...core.arrays import as_array
from ...core.operation import operation, shared
from ...types.array_type import array_type
from ...types.dtypes import to_real
from ..elementwise.arithmetic import like
from ..manipulation.slicing import slice_in_dim
from .lapack import Factorisation, Implementation, Routine, each_or_nan, info_type, no_implementation, or_nan
from .matrices import (
    adjoint,
    check_matrices,
    conjugate_dot,
    diagonal,
    halved_diagonal,
    inverse_gaps,
    or_not_finite,
    product,
    real_part,
    spoiled,
    triangle,
)

SYEVD = Routine("syevd", "heevd", cuda="cusolver_syevd_ffi")


class EighImplementation(Implementation):
    """How a device computes the eigenvalues of Hermitian matrices; a CPU by ``QR``, LAPACK's divide and conquer."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


_CUDA = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}


def eigen_flops(op, operands, results):
    """About 9 n^3 floating-point operations: tridiagonalisation, iteration, and back-transformation."""
    return 9 * operands[0].size * operands[0].shape[-1]


# x v = v diag(w), v unitary, w real and ascending: (v, w), or (w,) without vectors; NaN where the iteration does not
# converge, and for matrices that are not finite. One triangle of x and of its tangent is read, unless both are known to
# be Hermitian
@operation
class Eigh(Factorisation):
    lower_triangle: bool
    hermitian: bool
    vectors: bool
    implementation: EighImplementation | None
    param_names = {"lower_triangle": "lower", "implementation": "algorithm", "hermitian": None, "vectors": None}
    fixed_params = {"subset_by_index": None, "sort_eigenvalues": True}
    flops = eigen_flops

    def result_type(op, x):
        check_matrices("eigh", x, square=True)
        w = array_type(x.shape[:-1], to_real(x.dtype))
        return (x.update(weak=False), w) if op.vectors else (w,)

    def evaluate(op, x):
        _check_implementation(op, "cpu")
        function = SYEVD.on_host(x.dtype)

        def factors(x: Any) -> Any:
            w, v, info = function(x, op.vectors, op.lower_triangle)
            return *[v] * op.vectors, w, info

        read = x if op.hermitian else np.tril(x) if op.lower_triangle else np.triu(x)
        return each_or_nan(factors, op.types_for(x), read, iterative=True)

    def jvp(op, primals, tangents):
        # dw = the diagonal of v^H dx v; dv = v (f o v^H dx v), f[i, j] = 1 / (w[j] - w[i])
        (x,), (dx,) = primals, tangents
        v, w = perform(shared(Eigh, op.lower_triangle, op.hermitian, True, op.implementation), x)
        if not op.hermitian:
            half = halved_diagonal(dx if op.lower_triangle else adjoint(dx))
            dx = half + adjoint(half)
        turned = product(dx, v)
        if not op.vectors:
            return (w,), (real_part(conjugate_dot(v, turned)),)
        inner = product(adjoint(v), turned)
        return (v, w), (product(v, inner * inverse_gaps(w, inner.type.dtype)), real_part(diagonal(inner)))

    def lower(op, emit, x):
        _check_implementation(op, emit.platform)
        v, w = x.type.update(weak=False), emit.made[-1]
        letters = {"mode": "V" if op.vectors else "N", "uplo": "L" if op.lower_triangle else "U"}
        flags = {"lower": op.lower_triangle, "algorithm": np.uint8(_CUDA.get(op.implementation, 0))}
        read = x if op.hermitian else emit.decompose(lambda x: triangle(x, upper=not op.lower_triangle), x)
        given = emit.decompose(spoiled, read)
        v, w, info = SYEVD(emit, given, types=(v, w, info_type(x)), into={0: 0}, attributes=letters, cuda=flags)
        info = emit.decompose(or_not_finite, info, read)
        return or_nan(emit, info, (v, w) if op.vectors else (w,))


def _check_implementation(op: Eigh, platform: str) -> None:
    """Raise MissingRule unless the platform has the implementation that the operation asks for."""
    if op.implementation not in (_CUDA if platform == "cuda" else (None, EighImplementation.QR)):
        raise no_implementation("eigh", "implementation", op.implementation, platform)


def hermitian_part(x: Any) -> Any:
    """``(x + x^H) / 2``."""
    return (x + adjoint(x)) / like(x, 2)


def subset(name: str, part: Any, size: int) -> tuple[int, int]:
    """The bounds (start, end) of ``subset_by_index``, by default of all. Raises BadArgument: they are out of range."""
    if part is None:
        return 0, size
    start, end = part
    if not 0 <= start <= end <= size:
        raise BadArgument(f"{name}: subset_by_index must be a part of the {size} that there are, got {part}.")
    return start, end


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """The eigenvectors and eigenvalues of Hermitian matrices: ``v, w``; ``w`` is real and ascends.

        x @ v == v * w        v^H @ v == 1

    Shapes: ``x[*s, n, n] -> v[*s, n, n], w[*s, n]``. They are NaN where the iteration does not
    converge, and where an element is not finite.

    The derivative takes ``x`` as Hermitian. The tangent of ``v`` has no component along ``v``, whose phases are free;
    where eigenvalues are equal, it is infinite or NaN, but symmetric functions of the eigenvalues, such as sums, have
    derivatives.

    Args:
        lower: which triangle is read.
        symmetrize_input: take ``(x + x^H) / 2`` for ``x``.
        sort_eigenvalues: they are sorted in any case.
        subset_by_index: (start, end): the eigenvalues with these indices, and their vectors.
        implementation: the algorithm; by default the device's choice.
    Raises: ShapeMismatch: matrices that are not square. DTypeMismatch: neither 32- nor 64-bit floats or complex
    numbers. MissingRule: the device has no such implementation.
    Source: LAPACK, ``syevd``; M. Giles, An extended collection of matrix derivative results (2008), section 3.1.

    >>> v, w = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w, abs(v).round(3)
    (Array([1., 3.], dtype=float64), Array([[0.707, 0.707],
           [0.707, 0.707]], dtype=float64))
    """
    v, w = _performed(x, lower, symmetrize_input, True, implementation)
    start, end = subset("eigh", subset_by_index, w.shape[-1])
    if end - start == w.shape[-1]:
        return v, w
    return slice_in_dim(v, start, end, axis=v.ndim - 1), slice_in_dim(w, start, end, axis=w.ndim - 1)


def _performed(x: Any, lower: Any, symmetrize: Any, vectors: bool, implementation: Any = None) -> Any:
    """The results of ``Eigh`` for ``x``, or for ``(x + x^H) / 2`` if ``symmetrize``."""
    x = as_array(x)
    check_matrices("eigh", x.type, square=True)
    x = hermitian_part(x) if symmetrize else x
    return perform(shared(Eigh, bool(lower), bool(symmetrize), vectors, implementation), x)


def eigvalsh(x: Any, lower: bool = True, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of Hermitian matrices, in ascending order, without eigenvectors: faster than ``eigh``.

    >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float64)
    """
    return _performed(x, lower, symmetrize_input, False)[0]
