"""Factors of matrices."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from ...effects.base.errors import BadArgument, need_one_of
from ...effects.core.arrays import Array
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.linalg.cholesky import cholesky as _cholesky
from ...effects.operations.linalg.eig import eig as _eig
from ...effects.operations.linalg.eigh import eigh as _eigh
from ...effects.operations.linalg.eigh import eigvalsh as _eigvalsh
from ...effects.operations.linalg.matrices import adjoint, check_matrices, flipped
from ...effects.operations.linalg.qr import geqrf
from ...effects.operations.linalg.qr import qr as _qr
from ...effects.operations.linalg.svd import svd as _svd
from ...effects.operations.manipulation.rearranging import expand_dims
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import inexact
from ..arrays.index_arrays import where
from ..arrays.indexing_operations import take_along_axis
from ..arrays.shape_manipulation import flip
from ..statistics.sorting_searching import argsort

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class QRResult(NamedTuple):
    """An orthogonal and a triangular factor; in mode "raw" as LAPACK stores them."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Singular values between their vectors: ``(U * S) @ Vh``."""

    U: Array
    S: Array
    Vh: Array


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues of Hermitian matrices, which ascend, and eigenvectors in columns."""

    eigenvalues: Array
    eigenvectors: Array


def matrices(name: str, a: Any, square: bool = False) -> Any:
    """``a`` as matrices of floats or complex numbers, of no weak type. Raises: as ``check_matrices``."""
    x = inexact(a)
    check_matrices(name, x.type, square)
    return convert(x, x.type.dtype)


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with ``L @ conj(L).T == a``, or the upper U with ``conj(U).T @ U == a``.

    Shapes: ``[*s, n, n]``, Hermitian and positive definite; else NaN. Source: NumPy, ``linalg.cholesky``.

    >>> from handlax.numpy import eye
    >>> cholesky(4 * eye(2))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    factor = _cholesky(matrices("cholesky", a, square=True), symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@overload
def qr(a: Any, mode: Literal["reduced", "complete", "raw"] = "reduced") -> QRResult: ...
@overload
def qr(a: Any, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: Any, mode: str) -> QRResult | Array: ...
def qr(a: Any, mode: str = "reduced") -> QRResult | Array:
    """The orthogonal and triangular factors of matrices: ``a == Q @ R``.

    Shapes: ``a[*s, m, n] -> Q[*s, m, k], R[*s, k, n]``; ``k = min(m, n)``, with mode "complete" ``m``. Mode "r" gives
    ``R`` alone; "raw" the reflections and their factors, as LAPACK stores them, transposed.
    Raises: BadArgument: another mode. Source: NumPy, ``linalg.qr``.

    >>> from handlax.numpy import array, abs
    >>> abs(qr(array([[3.0], [4.0]])).R)
    Array([[5.]], dtype=float32)
    """
    x = matrices("qr", a)
    if mode == "raw":
        reflections, taus = geqrf(x)
        return QRResult(flipped(reflections), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise BadArgument(f"qr: the mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}.")
    q, r = _qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@overload
def svd(
    a: Any, full_matrices: bool = True, compute_uv: Literal[True] = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: Any, full_matrices: bool = True, *, compute_uv: Literal[False], hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array: ...
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array:
    """Singular values, which descend, and their vectors: ``a == (U * S) @ Vh``; ``S`` alone without ``compute_uv``.

    Shapes: ``a[*s, m, n] -> U[*s, m, k], S[*s, k], Vh[*s, k, n]`` with ``k = min(m, n)``; with ``full_matrices`` U and
    Vh are square.

    Args:
        hermitian: the matrices are Hermitian, which is computed from their eigenvalues.
        subset_by_index: the singular values from one number up to another, with their vectors.
    Source: NumPy, ``linalg.svd``.

    >>> from handlax.numpy import array
    >>> svd(array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    x = matrices("svd", a, square=hermitian)
    if hermitian:
        return _hermitian_svd(x, compute_uv, subset_by_index)
    factors = _svd(x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*factors) if compute_uv else factors


def _hermitian_svd(x: Any, compute_uv: bool, part: tuple[int, int] | None) -> Any:
    """The SVD of Hermitian matrices from their eigenvalues ``w``: ``S`` is ``abs(w)``, ``Vh`` takes the signs."""
    vectors, w = _eigh(x, subset_by_index=part)
    order = flip(argsort(abs(w), axis=-1), -1)
    w = take_along_axis(w, order, -1)
    if not compute_uv:
        return abs(w)
    u = take_along_axis(vectors, expand_dims(order, -2), -1)
    signs = expand_dims(convert(where(w < 0, -1, 1), u.type.dtype), -2)
    return SVDResult(u, abs(w), adjoint(u * signs))


def svdvals(x: Any, /) -> Array:
    """Singular values, which descend. Source: the array API standard, ``linalg.svdvals``.

    >>> from handlax.numpy import eye
    >>> svdvals(2 * eye(2))
    Array([2., 2.], dtype=float32)
    """
    return svd(x, compute_uv=False)


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues of Hermitian matrices, which ascend, and their vectors: ``a @ v == v * w``.

    ``UPLO``: which triangle is read, "L" or "U", if ``symmetrize_input`` is False.
    Shapes: ``a[*s, n, n] -> w[*s, n], v[*s, n, n]``. Raises: BadArgument: another ``UPLO``.
    Source: NumPy, ``linalg.eigh``.

    >>> from handlax.numpy import array
    >>> eigh(array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    x = matrices("eigh", a, square=True)
    vectors, w = _eigh(x, lower=_is_lower("eigh", UPLO), symmetrize_input=symmetrize_input)
    return EighResult(w, vectors)


def _is_lower(name: str, word: str | None) -> bool:
    """Whether ``UPLO`` names the lower triangle, as None does. Raises BadArgument: it is neither "L" nor "U"."""
    need_one_of(f"{name}: UPLO", word, (None, "L", "U"))
    return word != "U"


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Eigenvalues of Hermitian matrices, which ascend; arguments as for ``eigh``.

    >>> from handlax.numpy import array
    >>> eigvalsh(array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return _eigvalsh(matrices("eigvalsh", a, square=True), _is_lower("eigvalsh", UPLO), symmetrize_input)


def eig(a: Any) -> EigResult:
    """Eigenvalues of square matrices, in no order, and their vectors: ``a @ v == v * w``; both are complex.

    Shapes: ``a[*s, n, n] -> w[*s, n], v[*s, n, n]``. Source: NumPy, ``linalg.eig``.

    >>> from handlax.numpy import array
    >>> eig(array([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    w, vectors = _eig(matrices("eig", a, square=True), compute_left_eigenvectors=False)
    return EigResult(w, vectors)


def eigvals(a: Any) -> Array:
    """Eigenvalues of square matrices, complex and in no order.

    >>> from handlax.numpy import array
    >>> eigvals(array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    x = matrices("eigvals", a, square=True)
    return _eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


programs(globals())
