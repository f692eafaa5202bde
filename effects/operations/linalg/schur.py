"""Unitary similarity transformations of square matrices to Schur, Hessenberg and tridiagonal form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...base.errors import BadArgument, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import as_array
from ...core.operation import operation, shared
from ...types.array_type import array_type
from ...types.dtypes import is_complex, to_real
from .eigh import eigen_flops
from .lapack import Factorisation, Routine, each_or_nan, info_type, or_nan
from .matrices import check_matrices, or_not_finite

GEES = Routine("gees")
GEHRD = Routine("gehrd")
SYTRD = Routine("sytrd", "hetrd", cuda="cusolver_sytrd_ffi")


# x = z t z^H, z unitary, t upper triangular, of reals with blocks of 2 by 2 on its diagonal: (t, z), or (t,) without
# vectors; NaN where the iteration does not converge
@operation
class Schur(Factorisation):
    vectors: bool
    param_names = {"vectors": "compute_schur_vectors"}
    fixed_params = {"select_callable": None, "sort_eig_vals": False}
    flops = eigen_flops
    exempt = {"jvp": "the vectors of a real matrix change by jumps, where two eigenvalues become complex"}

    def result_type(op, x):
        check_matrices("schur", x, square=True)
        return (x.update(weak=False),) * (1 + op.vectors)

    def evaluate(op, x):
        if not x.size:
            return (x,) * (1 + op.vectors)
        function = partial(GEES.on_host(x.dtype), lambda *_: None, compute_v=op.vectors, sort_t=0)
        *_, workspace, _ = function(x.reshape(-1, *x.shape[-2:])[0], lwork=-1)

        def factors(x: Any) -> Any:
            t, *_, z, _, info = function(x, lwork=int(workspace[0].real))
            return *(t, z)[: 1 + op.vectors], info

        return each_or_nan(factors, op.types_for(x), x, iterative=True)

    def lower(op, emit, x):
        (t, *_), n = emit.made, x.type.update(shape=x.type.shape[:-1])
        values = [n] if is_complex(x.type.dtype) else [n, n]
        modes = {"mode": "V" if op.vectors else "N", "sort": "N"}
        types = (t, t, *values, info_type(x), info_type(x))
        t, z, *_, info = GEES(emit, x, types=types, into={0: 0}, attributes=modes)
        return or_nan(emit, emit.decompose(or_not_finite, info, x), (t, z)[: 1 + op.vectors])


# x = q h q^H, q unitary, h zero below the diagonal beneath its own: (a, taus), h in a's upper part, and below it the
# vectors of the reflections of which q is the product
@operation
class Hessenberg(Factorisation):
    flops = eigen_flops
    exempt = {"jvp": "of reflections as LAPACK stores them"}

    def result_type(op, x):
        check_matrices("hessenberg", x, square=True)
        return x.update(weak=False), x.update(shape=(*x.shape[:-2], max(x.shape[-1] - 1, 0)), weak=False)

    def evaluate(op, x):
        types = op.types_for(x)
        if x.shape[-1] < 2:  # SciPy returns one factor too many
            return x, np.zeros(types[1].shape, x.dtype)
        return each_or_nan(GEHRD.on_host(x.dtype, x.shape[-1]), types, x)

    def lower(op, emit, x):
        a, taus = emit.made
        if not taus.shape[-1]:
            return x, emit.full(0, taus)
        ends = {"low": np.int32(1), "high": np.int32(x.type.shape[-1])}
        *factors, info = GEHRD(emit, x, types=(a, taus, info_type(x)), into={0: 0}, attributes=ends)
        return or_nan(emit, info, factors)


# x = q t q^H, x Hermitian, q unitary, t of three diagonals: (a, d, e, taus), d and e t's diagonals, its own and those
# beside it, and in a, as LAPACK stores them, the vectors of the reflections of which q is the product
@operation
class Tridiagonal(Factorisation):
    lower_triangle: bool
    param_names = {"lower_triangle": "lower"}
    flops = eigen_flops
    exempt = {"jvp": "of reflections as LAPACK stores them"}

    def result_type(op, x):
        check_matrices("tridiagonal", x, square=True)
        *lanes, n, _ = x.shape
        if not n:
            raise ShapeMismatch(f"tridiagonal: matrices must not be empty, got {x}.")
        real = to_real(x.dtype)
        d, e = (array_type((*lanes, size), real) for size in (n, n - 1))
        return x.update(weak=False), d, e, array_type((*lanes, n - 1), x.dtype)

    def evaluate(op, x):
        types = op.types_for(x)
        if x.shape[-1] == 1:  # for which SciPy returns too many elements
            return np.asarray(x.real, x.dtype), x.real[..., 0], *[np.zeros(t.shape, t.dtype) for t in types[2:]]
        function = SYTRD.on_host(x.dtype, x.shape[-1], op.lower_triangle)
        return each_or_nan(lambda x: function(x, lower=op.lower_triangle), types, x)

    def lower(op, emit, x):
        letters, flags = {"uplo": "L" if op.lower_triangle else "U"}, {"lower": op.lower_triangle}
        *parts, info = SYTRD(emit, x, types=(*emit.made, info_type(x)), into={0: 0}, attributes=letters, cuda=flags)
        return or_nan(emit, info, parts)


def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """The Schur form of square matrices: ``t, z``, or ``(t,)`` without vectors.

        x == z @ t @ z^H        z^H @ z == 1

    For real matrices ``t`` has a 2 by 2 block on its diagonal for each pair of complex eigenvalues. There is no
    derivative. Shapes: ``x[*s, n, n] -> t[*s, n, n], z[*s, n, n]``. Where the iteration does not converge, or there is
    a NaN or an infinity, they are NaN. Raises: BadArgument: ``sort_eig_vals``, which LAPACK does not offer here.
    ShapeMismatch, DTypeMismatch: other matrices. Source: LAPACK, ``gees``.

    >>> t, z = schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t
    Array([[1., 2.],
           [0., 3.]], dtype=float64)
    """
    if sort_eig_vals or select_callable is not None:
        raise BadArgument(
            f"schur: sort_eig_vals must be False and select_callable None, got {sort_eig_vals!r}, {select_callable!r}.",
            hint="eigenvalues have the order in which LAPACK finds them.",
        )
    return tuple(perform(shared(Schur, bool(compute_schur_vectors)), as_array(x)))


def hessenberg(a: Any) -> tuple[Any, Any]:
    """The Hessenberg form of square matrices, as LAPACK stores it: ``a, taus``.

    ``h`` is the upper triangle with the first subdiagonal, and ``q = householder_product`` of the rest:

        x == q @ h @ q^H

    Shapes: ``a[*s, n, n] -> a[*s, n, n], taus[*s, n - 1]``. There is no derivative.
    Raises: ShapeMismatch, DTypeMismatch: other matrices. Source: LAPACK, ``gehrd``.

    >>> a, taus = hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> a
    Array([[1., 2.],
           [3., 4.]], dtype=float64)
    """
    return tuple(perform(Hessenberg(), as_array(a)))


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """The tridiagonal form of Hermitian matrices: ``a, d, e, taus``.

        x == q @ (diag(d) + diag(e, 1) + diag(e, -1)) @ q^H

    Shapes: ``a[*s, n, n] -> a[*s, n, n], d[*s, n], e[*s, n - 1], taus[*s, n - 1]``; ``d`` and ``e`` are real, and ``a``
    and ``taus`` hold ``q`` as reflections. There is no derivative.

    Args:
        lower: which triangle is read.
    Raises: ShapeMismatch, DTypeMismatch: other matrices, or empty ones. Source: LAPACK, ``sytrd``.

    >>> _, d, e, _ = tridiagonal(np.array([[1.0, 2.0], [2.0, 4.0]]))
    >>> d, e
    (Array([1., 4.], dtype=float64), Array([2.], dtype=float64))
    """
    return tuple(perform(shared(Tridiagonal, bool(lower)), as_array(a)))
