"""Factors of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.operations.elementwise.complex_parts import conj
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.linalg import cholesky as cholesky_factor
from ...effects.operations.linalg import qr as orthogonal_factors
from ...effects.operations.linalg.matrices import flipped
from ...effects.types import dtypes
from ..arrays.argument_conversion import inexact

__all__ = ["cholesky", "qr"]


class QRResult(NamedTuple):
    """An orthogonal and a triangular factor; in mode "raw" as LAPACK stores them."""

    Q: Any
    R: Any


def matrices(name: str, a: Any, square: bool = False) -> Any:
    """``a`` as matrices of floats or complex numbers, of no weak type. Raises ShapeMismatch: they are none."""
    x = inexact(a)
    shape = x.type.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        raise ShapeMismatch(f"{name}: {'square matrices' if square else 'matrices'} are needed, got {x.type}.")
    return convert(x, x.type.dtype)


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with ``L @ conj(L).T == a``, or the upper U with ``conj(U).T @ U == a``.

    Shapes: ``[*s, n, n]``, Hermitian and positive definite; else NaN. Source: NumPy, ``linalg.cholesky``.

    >>> from handlax.numpy import eye
    >>> cholesky(4 * eye(2))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, square=True)
    factor = cholesky_factor.cholesky(x, symmetrize_input=symmetrize_input)
    if not upper:
        return factor
    turned = flipped(factor)
    return conj(turned) if dtypes.is_complex(turned.type.dtype) else turned


def qr(a: Any, mode: str = "reduced") -> Any:
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
        reflections, taus = orthogonal_factors.geqrf(x)
        return QRResult(flipped(reflections), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise BadArgument(f"qr: the mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}.")
    q, r = orthogonal_factors.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)
