"""Functions of square matrices: exponential, square root, and general functions by eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import numpy as hnp
from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.control.branches import cond
from ...effects.control.loops import fori_loop, scan
from ...effects.core.arrays import Array
from ...effects.operations.linalg.matrices import adjoint, identity, product
from ...effects.operations.linalg.schur import schur
from ...effects.types import dtypes
from ...interpreters.core.eager_programs import programs
from ...interpreters.custom.custom_jvp import custom_jvp
from ...interpreters.transformations.derivatives import jvp
from ...numpy.linalg import decompositions, solutions
from .systems import solve_sylvester, solve_triangular

__all__ = ["expm", "expm_frechet", "funm", "sqrtm"]

# the degree of the rational function, and the largest norm up to which it is as precise as the dtype
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices: ``sum(matrix_power(A, k) / factorial(k))`` over all ``k``.

    By scaling and squaring: a Padé approximant of ``A / 2**s`` is squared ``s`` times.
    Shapes: ``A[*s, n, n] -> [*s, n, n]``.

    Args:
        upper_triangular: the matrices are upper triangular.
        max_squarings: the result is NaN if more squarings would be needed.
    Source: N. Higham, The scaling and squaring method for the matrix exponential revisited (2005).

    >>> from handlax.numpy import zeros
    >>> expm(zeros((2, 2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    x = decompositions.matrices("expm", A, square=True)
    if not x.size:
        return x
    degree, bound = _DEGREES[dtypes.to_real(x.dtype).itemsize]
    size = abs(x).sum(-2).max(-1)
    count = hnp.maximum(hnp.ceil(hnp.log2(size / bound)), 0)
    scale = hnp.where(count <= max_squarings, 2.0 ** -hnp.minimum(count, max_squarings), hnp.nan)
    above, below = _rational(x * scale[..., None, None].astype(x.dtype), degree)
    y = solve_triangular(below, above) if upper_triangular else solutions.solution(below, above)
    most = count.max()

    def squared(y: Any, k: Any) -> tuple[Any, None]:
        square = lambda y: hnp.where((k < count)[..., None, None], product(y, y), y)
        return cond(k < most, square, lambda y: y, y), None

    return scan(squared, y, hnp.arange(max_squarings).astype(count.dtype))[0]


def _rational(x: Any, m: int) -> tuple[Any, Any]:
    """The numerator and denominator of the Padé approximant of the exponential, of odd degree ``m``."""
    c = [math.comb(m, k) * math.factorial(2 * m - k) // math.factorial(m) for k in range(m + 1)]
    coefficients = [float(n) / c[-1] for n in c]
    square = product(x, x)
    fourth = product(square, square)
    powers = [identity(x.type), square, fourth, product(fourth, square)]
    odd, even = (_polynomial(coefficients[start::2], powers) for start in (1, 0))
    odd = product(x, odd)
    return even + odd, even - odd


def _polynomial(c: list[float], powers: list[Any]) -> Any:
    """``sum(c[k] * powers[1]**k)``, from the powers 0 to 3 of a matrix, for at most 7 coefficients."""
    low = sum(a * p for a, p in zip(c, powers))
    return low + product(powers[3], sum(a * p for a, p in zip(c[4:], powers[1:]))) if len(c) > 4 else low


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The exponential of square matrices, and its derivative in the direction ``E``; only the latter without
    ``compute_expm``.

    ``method`` is ignored. Raises: ShapeMismatch: the shapes differ. Source: SciPy, ``linalg.expm_frechet``.

    >>> from handlax.numpy import eye, zeros
    >>> expm_frechet(zeros((2, 2)), eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    x, direction = (decompositions.matrices("expm_frechet", z, square=True) for z in (A, E))
    if x.shape != direction.shape:
        raise ShapeMismatch(f"expm_frechet: shapes must be equal, got {x.type} and {direction.type}.")
    y, dy = jvp(expm, (x,), (direction.astype(x.dtype),))
    return (y, dy) if compute_expm else dy


def sqrtm(A: Any, blocksize: int = 1) -> Array:
    """The principal square root of square matrices, which is complex: ``sqrtm(A) @ sqrtm(A) == A``.

    Shapes: ``A[*s, n, n] -> [*s, n, n]``. ``blocksize`` must be 1.
    Source: Björck & Hammarling, A Schur method for the square root of a matrix (1983).

    >>> from handlax.numpy import array
    >>> sqrtm(array([[4.0, 0.0], [0.0, 9.0]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    if blocksize > 1:
        raise BadArgument(f"sqrtm: the blocksize must be 1, got {blocksize}.")
    x = decompositions.matrices("sqrtm", A, square=True)
    return _root(x.astype(dtypes.to_complex(x.dtype)))


@custom_jvp
def _root(x: Any) -> Any:
    """The square root of complex matrices, from that of their Schur form."""
    t, z = schur(x)
    return product(z, product(_triangular_root(t), adjoint(z)))


@_root.defjvp
def _root_jvp(primals: Any, tangents: Any) -> Any:
    y = _root(*primals)
    return y, solve_sylvester(y, y, tangents[0], tol=0.0)


def _triangular_root(t: Any) -> Any:
    """The square root of upper triangular matrices, diagonal by diagonal from the main one upwards.

        u_ij = (t_ij - sum(u_ik u_kj, i < k < j)) / (u_ii + u_jj)
    """
    ends = hnp.sqrt(hnp.diagonal(t, axis1=-2, axis2=-1))
    return _by_diagonals(ends, t, lambda u: t - product(u, u), ends[..., :, None] + ends[..., None, :])


def _by_diagonals(ends: Any, t: Any, rest: Callable[[Any], Any], divisors: Any) -> Any:
    """An upper triangular matrix from its main diagonal ``ends``; each next diagonal is that of ``rest(y) / divisors``.

    ``rest(y)`` depends on earlier diagonals only. 0 / 0 is 0.
    """
    n = t.shape[-1]
    distance = hnp.arange(n)[None, :] - hnp.arange(n)[:, None]

    def diagonal(k: Any, y: Any) -> Any:
        above = rest(y)
        quotient = hnp.where(above == 0, 0, above / hnp.where(above == 0, 1, divisors))
        return hnp.where(distance == k, quotient, y)

    return fori_loop(1, n, diagonal, ends[..., None] * identity(t.type))


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of a square matrix with distinct eigenvalues, from the scalar function ``func``: ``f(A)``.

    ``func`` takes an array of complex numbers. The result is complex; with ``disp=False`` it comes with an estimate of
    its error.
    Source: Golub & Van Loan, Matrix Computations (4th ed., 2013), 9.1.2 (Parlett's recurrence).

    >>> from handlax.numpy import array
    >>> funm(array([[1.0, 0.0], [0.0, 3.0]]), lambda x: x * x)
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 9.+0.j]], dtype=complex64)
    """
    x = decompositions.matrices("funm", A, square=True)
    if x.ndim != 2:
        raise ShapeMismatch(f"funm: one square matrix is needed, got {x.type}.")
    t, z = schur(x.astype(dtypes.to_complex(x.dtype)))
    ends = hnp.diagonal(t)
    gaps = ends[None, :] - ends[:, None]
    gaps = hnp.where(gaps == 0, 1, gaps)
    above = hnp.triu(t, 1)

    def rest(y: Any) -> Any:
        values = hnp.diagonal(y)
        return t * (values[None, :] - values[:, None]) + product(above, hnp.triu(y, 1)) - product(hnp.triu(y, 1), above)

    f = _by_diagonals(func(ends).astype(t.dtype), t, rest, gaps)
    y = product(z, product(f, adjoint(z)))
    if disp:
        return y
    eps = float(dtypes.finfo(t.dtype).eps)
    n = t.shape[-1]
    least = abs(hnp.where(hnp.triu(hnp.ones((n, n), bool), 1), gaps, hnp.inf)).min(initial=abs(ends[0]))
    least = hnp.where(least == 0, eps, least)
    size = abs(above).sum(0).max(initial=0)
    error = hnp.minimum(1, hnp.maximum(eps, eps / least * size))
    return y, hnp.where((~hnp.isfinite(f)).any(), hnp.inf, error)


programs(globals())
