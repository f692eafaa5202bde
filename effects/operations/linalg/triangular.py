"""Linear systems with a triangular matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import Array, as_arrays
from ...core.operation import operation, shared
from ...types.array_type import ArrayType, array_type
from ...types.dtypes import is_complex
from ..elementwise.complex_parts import conj
from ..foundations.shapes import move_axis, reshape
from ..manipulation.last_axes import EachMatrix
from .lapack import Routine, each_matrix
from .matrices import LAPACK, batch_system, check_matrices, flipped, product, triangle

TRSM = Routine("trsm")


def check_beside(name: str, what: str, of: str, a: ArrayType, b: ArrayType, left: bool = True) -> None:
    """Check that matrices ``a``, called ``of`` in errors, and ``b``, called ``what``, have one dtype and fitting sizes.

    The columns of ``b`` are as long as those of ``a``; unless ``left``, its rows.
    Raises: DTypeMismatch, ShapeMismatch.
    """
    if a.dtype != b.dtype:
        raise DTypeMismatch(f"{name}: operands must have one dtype, got {a} and {b}.")
    if len(a.shape) != len(b.shape) or a.shape[:-2] != b.shape[:-2] or a.shape[-2] != b.shape[-2 if left else -1]:
        line = "row" if left else "column"
        raise ShapeMismatch(
            f"{name}: {what} must have a {line} for each row of {of}, and its leading sizes, got {a} and {b}."
        )


def solve_flops(op, operands, results):
    """One multiplication for each element of the result and each row of the matrix."""
    return results[0].size * operands[0].shape[-1]


# op(a) y = b, or y op(a) = b; op(a) is a, its conjugate, transpose or adjoint, and a is triangular
@operation
class TriangularSolve(EachMatrix):
    left_side: bool
    lower: bool
    transpose_a: bool
    conjugate_a: bool
    unit_diagonal: bool
    dtypes = LAPACK

    def result_type(op, a, b):
        check_matrices("triangular_solve", a, square=True)
        check_beside("triangular_solve", "b", "a", a, b, op.left_side)
        return b

    def evaluate(op, a, b):
        solve = TRSM.on_host(a.dtype)
        a = np.conj(a) if op.conjugate_a and not op.transpose_a else a
        mode = (2 if op.conjugate_a else 1) if op.transpose_a else 0
        flags = {"side": not op.left_side, "lower": op.lower, "trans_a": mode, "diag": op.unit_diagonal}
        return each_matrix(lambda a, b: (solve(1.0, a, b, **flags),), [array_type(b.shape, b.dtype)], a, b)[0]

    def batch(op, dims, a, b):
        if op.left_side or dims[0] is not None:
            return batch_system(op, dims, a, b)
        rank = len(a.type.shape)
        wide = move_axis(b, dims[1], rank - 2)  # lanes become rows
        lanes = wide.type.shape
        y = perform(op, a, reshape(wide, (*lanes[: rank - 2], lanes[-3] * lanes[-2], lanes[-1])))
        return reshape(y, lanes), rank - 2

    def jvp(op, primals, tangents):
        # op(a) dy = db - op(da) y
        (a, b), (da, db) = primals, tangents
        y = perform(op, a, b)
        if da is not None:
            read = triangle(da, int(op.unit_diagonal), not op.lower)
            read = flipped(read) if op.transpose_a else read
            read = conj(read) if op.conjugate_a and is_complex(read.type.dtype) else read
            change = product(read, y) if op.left_side else product(y, read)
            db = -change if db is None else db - change
        return y, None if db is None else perform(op, a, db)

    def transpose(op, ct, a, b, *, wrt):
        other = shared(TriangularSolve, op.left_side, op.lower, not op.transpose_a, op.conjugate_a, op.unit_diagonal)
        return perform(other, a, ct)

    def lower(op, emit, a, b):  # type: ignore[no-redef]  # the rule; the field of this name is BLAS's
        if not b.type.size:
            return b
        if op.conjugate_a and not op.transpose_a and is_complex(a.type.dtype):
            a = emit.decompose(conj, a)
        mode = ("ADJOINT" if op.conjugate_a else "TRANSPOSE") if op.transpose_a else "NO_TRANSPOSE"
        if emit.platform == "cpu":  # XLA's own loop inverts blocks, which spreads infinities and NaNs
            letters = {
                "side": "L" if op.left_side else "R", "uplo": "L" if op.lower else "U",
                "trans_x": "C" if mode == "ADJOINT" else mode[0], "diag": "U" if op.unit_diagonal else "N",
            }
            return TRSM(emit, a, b, types=[b.type], into={1: 0}, attributes=letters)[0]
        flags = (("left_side", op.left_side), ("lower", op.lower), ("unit_diagonal", op.unit_diagonal))
        texts = [f"{name} = {'true' if flag else 'false'}" for name, flag in flags]
        texts.append(f"transpose_a = #stablehlo<transpose {mode}>")
        return emit.op("triangular_solve", a, b, attributes=", ".join(texts))

    flops = solve_flops


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve ``op(a) y = b``, or ``y op(a) = b``, for a triangular matrix ``a``.

    Shapes: ``a[*s, m, m]``, ``b[*s, m, n]`` if ``left_side``, else ``b[*s, n, m]``; ``n`` may be missing.

    Args:
        left_side: solve ``op(a) y = b`` rather than ``y op(a) = b``.
        lower: which triangle of ``a`` is read.
        transpose_a, conjugate_a: ``op(a)`` is the transpose, the conjugate, or both.
        unit_diagonal: the diagonal is taken to be ones and not read.
    Raises: ShapeMismatch: sizes do not agree. DTypeMismatch: dtypes differ, or are neither 32- nor 64-bit floats.

    >>> triangular_solve(np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0]), left_side=True, lower=True)
    Array([1., 2.], dtype=float64)
    """
    a, b = as_arrays(a, b)
    vector = len(b.type.shape) == len(a.type.shape) - 1
    if vector:
        shape = b.type.shape
        b = reshape(b, (*shape, 1) if left_side else (*shape[:-1], 1, shape[-1]))
    conjugate = bool(conjugate_a) and is_complex(a.type.dtype)
    op = shared(TriangularSolve, bool(left_side), bool(lower), bool(transpose_a), conjugate, bool(unit_diagonal))
    y = perform(op, a, b)
    return reshape(y, shape) if vector else y
