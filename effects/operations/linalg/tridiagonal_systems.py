"""Linear systems with a tridiagonal matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import Array, as_arrays, scalar
from ...core.columns import add_tangents
from ...core.operation import operation, shared
from ...types import dtypes
from ...types.array_type import array_type
from ...types.dtypes import int32
from ..elementwise.arithmetic import add, like
from ..elementwise.comparison import eq, ge, lt, select
from ..elementwise.conversion import convert
from ..foundations.shapes import broadcast_in_dim, full, zeros
from ..indexing.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from ..manipulation.last_axes import OnLastAxes
from ..manipulation.rearranging import expand_dims
from ..manipulation.slicing import concatenate, slice_in_dim
from ..reductions.reductions import reduce_max, reduce_or
from .lapack import Routine, each_or_nan, info_type, or_nan
from .matrices import LAPACK, batch_system, real_part, resized, rows_of

GTSV = Routine("gtsv")


# dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] = b[i]; the first of dl and the last of du are not read; NaN where the
# matrix is singular; with perturb_singular pivots for which x would not be finite are moved away from 0
@operation
class TridiagonalSolve(OnLastAxes):
    perturb_singular: bool
    last_axes = 1
    dtypes = LAPACK

    def result_type(op, dl, d, du, b):
        if not d.shape or dl.shape != d.shape or du.shape != d.shape or b.shape[:-1] != d.shape:
            raise ShapeMismatch(
                f"tridiagonal_solve: diagonals of shape [*s, m] and a right side [*s, m, k] are needed, got {dl}, "
                f"{d}, {du} and {b}."
            )
        if len({x.dtype for x in (dl, d, du, b)}) > 1 or b.dtype not in LAPACK:
            raise DTypeMismatch(
                "tridiagonal_solve: operands must have one dtype, of 32- or 64-bit floats or complex numbers of these, "
                f"got {dl}, {d}, {du} and {b}."
            )
        return b

    def evaluate(op, dl, d, du, b):
        if op.perturb_singular and b.size:
            return _evaluated(dl, d, du, b)
        function, last = GTSV.on_host(b.dtype), max(b.shape[-2] - 1, 1)  # SciPy needs one element even for a single row
        solved = lambda dl, d, du, b: function(dl[-last:], d, du[:last], b)[3:]
        return each_or_nan(solved, [array_type(b.shape, b.dtype)], dl, d, du, b)[0]

    batch = batch_system

    def jvp(op, primals, tangents):
        # the matrix times dx is db less the change of the matrix times x
        *diagonals, b = primals
        *changes, db = tangents
        x = perform(op, *diagonals, b)
        k = b.type.shape[-1]
        axis = x.ndim - 2
        for change, near in zip(changes, (_shifted(x, 1, axis), x, _shifted(x, -1, axis))):
            if change is not None:
                db = add_tangents(db, -rows_of(change, k) * near)
        return x, perform(op, *diagonals, db)

    def transpose(op, ct, dl, d, du, b, *, wrt):
        axis = d.ndim - 1
        return perform(op, _shifted(du, 1, axis), d, _shifted(dl, -1, axis), ct)

    def lower(op, emit, dl, d, du, b):
        if not b.type.size:
            return b
        if emit.platform == "cpu" and not op.perturb_singular:
            types = (dl.type, d.type, du.type, b.type, info_type(b))
            *_, x, info = GTSV(emit, dl, d, du, b, types=types, into={i: i for i in range(4)})
            return or_nan(emit, info, [x])[0]
        return _emitted(emit, op.perturb_singular, dl, d, du, b)

    def flops(op, operands, results):
        """Four multiplications and a division for each element."""
        return 5 * results[0].size


def _shifted(x: Any, by: int, axis: int) -> Any:
    """``x`` shifted along ``axis`` by 1 or -1, filled with zeros."""
    size = x.shape[axis]
    gap = zeros(x.type.update(shape=(*x.shape[:axis], 1, *x.shape[axis + 1 :])))
    rest = slice_in_dim(x, 0, size - 1, axis=axis) if by == 1 else slice_in_dim(x, 1, size, axis=axis)
    return concatenate([gap, rest] if by == 1 else [rest, gap], axis)


class _RowArithmetic(NamedTuple):
    """The functions by which a system is eliminated, on NumPy arrays or by operations, besides infix operators.

    ``at(x, i)`` is row ``i`` of ``x[*s, m, k]``, and ``put(x, i, row)`` is ``x`` with that row replaced.
    """

    at: Callable[[Any, Any], Any]
    put: Callable[[Any, Any, Any], Any]
    where: Callable[[Any, Any, Any], Any]
    real: Callable[[Any], Any]
    cast: Callable[[Any, Any], Any]
    largest: Callable[[Any], Any]


def _put_in_numpy(x: np.ndarray[Any, Any], i: int, row: Any) -> np.ndarray[Any, Any]:
    """``x``, whose row ``i`` is overwritten."""
    x[..., i : i + 1, :] = row
    return x


_IN_NUMPY = _RowArithmetic(  # rows are views until they are put
    at=lambda x, i: x[..., i : i + 1, :], put=_put_in_numpy, where=np.where, real=np.real,
    cast=lambda x, dtype: np.asarray(x, dtype), largest=lambda x: np.max(x, -2, keepdims=True),
)
_IN_OPERATIONS = _RowArithmetic(
    at=lambda x, i: dynamic_slice_in_dim(x, i, 1, x.ndim - 2),
    put=lambda x, i, row: dynamic_update_slice_in_dim(x, row, i, x.ndim - 2),
    where=select, real=real_part, cast=convert, largest=lambda x: expand_dims(reduce_max(x, (x.ndim - 2,)), x.ndim - 2),
)


def _eliminate(w: _RowArithmetic, i: Any, low: Any, p: Any, q: Any, r: Any, y: Any) -> list[Any]:
    """One step of elimination with partial pivoting: row ``i + 1`` minus a multiple of row ``i``, swapped if its pivot
    is larger.

    Up to row ``i``, p, q and r are the diagonals of the triangular factor, and y the right-hand side; after it, those
    of the matrix. Source: Golub & Van Loan, Matrix Computations (4th ed., 2013), 4.3.5; LAPACK, ``gtsv``.
    """
    own = [w.at(x, i) for x in (p, q, r, y)]
    next_ = [w.at(x, i + 1) for x in (low, p, q, y)]
    swap = abs(next_[0]) > abs(own[0])
    pivot = [w.where(swap, a, b) for a, b in zip(next_, own)]
    other = [w.where(swap, b, a) for a, b in zip(next_, own)]
    factor = w.where(other[0] == 0, other[0], other[0] / pivot[0])
    rest = [a - factor * b for a, b in zip(other[1:], pivot[1:])]
    eliminated = [w.put(x, i, row) for x, row in zip((p, q, r, y), pivot)]
    changed = [w.put(x, i + 1, row) for x, row in zip((eliminated[0], eliminated[1], eliminated[3]), rest)]
    return [low, changed[0], changed[1], eliminated[2], changed[2]]


def _substitute(w: _RowArithmetic, i: Any, shift: Any, p: Any, q: Any, r: Any, y: Any) -> list[Any]:
    """One step of back substitution: element ``i`` of the solution, in y, from the later ones.

    If ``shift`` is not 0, a pivot that would make it overflow is moved away from 0, by at least ``shift``.
    Source: LAPACK, ``lagts``.
    """
    value = w.at(y, i) - w.at(q, i) * w.at(y, i + 1) - w.at(r, i) * w.at(y, i + 2)
    pivot = w.at(p, i)
    tiny = float(dtypes.finfo(shift.dtype).tiny)
    size, needed = abs(pivot), abs(value) * tiny
    near = (size < tiny) | ((size < 1) & (needed > size))
    by = w.where(near & (needed < 1) & (shift > 0), shift + needed, shift * 0)
    moved = pivot + w.cast(w.where(w.real(pivot) < 0, -by, by), pivot.dtype)
    return [shift, p, q, r, w.put(y, i, value / moved)]


def _least_shift(w: _RowArithmetic, p: Any, q: Any, r: Any) -> Any:
    """About epsilon times the largest element of the triangular factor, for each column."""
    limits = dtypes.finfo(p.dtype)
    sizes = [w.largest(abs(x)) for x in (p, q, r)]
    return (sizes[0] + sizes[1] + sizes[2]) * float(limits.eps) + float(limits.tiny)


def _evaluated(dl: Any, d: Any, du: Any, b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The solution with pivots moved away from 0, in NumPy: elimination and back substitution, row by row."""
    m = b.shape[-2]
    state = []
    for x, rows in ((dl, m), (d, m), (du, m - 1), (None, 0), (b, m)):  # and two rows of zeros
        wide = np.zeros((*b.shape[:-2], m + 2, b.shape[-1]), b.dtype)
        if x is not None:
            wide[..., :rows, :] = x[..., :rows, :] if x is b else x[..., :rows, None]
        state.append(wide)
    for i in range(m - 1):
        state = _eliminate(_IN_NUMPY, i, *state)
    state[0] = _least_shift(_IN_NUMPY, *state[1:4])
    for i in reversed(range(m)):
        state = _substitute(_IN_NUMPY, i, *state)
    return state[4][..., :m, :]


def _emitted(emit: Any, perturb: bool, dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The solution of the tridiagonal systems, emitted as two loops over their rows: elimination, back substitution.

    ``perturb``: a singular system has the large solution instead of NaN.
    """
    m, k = b.type.shape[-2:]

    def start(dl: Any, d: Any, du: Any, b: Any) -> list[Any]:  # and two rows of zeros
        low, p, q = (rows_of(x, k) for x in (dl, d, du))
        parts = low, p, resized(q, m - 1, k), resized(q, 0, k), b
        return [resized(x, m + 2, k) for x in parts]

    def counted(step: Callable[..., list[Any]], by: int) -> Callable[..., list[Any]]:
        return lambda i, *state: [add(i, scalar(by, int32)), *step(_IN_OPERATIONS, i, *state)]

    number = array_type((), int32)
    state = emit.decompose(start, dl, d, du, b)
    more = lambda i, *_: lt(i, scalar(m - 1, int32))
    _, _, p, q, r, y = emit.loop(more, counted(_eliminate, 1), emit.constant(0, number), *state)
    pivots = p
    shift = emit.decompose(partial(_least_shift, _IN_OPERATIONS), p, q, r)
    if not perturb:
        shift = emit.full(0, shift.type)
    more = lambda i, *_: ge(i, scalar(0, int32))
    *_, y = emit.loop(more, counted(_substitute, -1), emit.constant(m - 1, number), shift, p, q, r, y)
    y = emit.decompose(lambda y: resized(y, m, k), y)
    return y if perturb else emit.decompose(_nan_where_singular, y, pivots)


def _nan_where_singular(x: Any, pivots: Any) -> Any:
    """The solutions, NaN where a pivot is 0; rows after the pivots are zero padding."""
    m, k = x.type.shape[-2:]
    zero = eq(resized(pivots, m, k), like(x, 0))
    spread = broadcast_in_dim(reduce_or(zero, (x.ndim - 2,)), x.type.shape, (*range(x.ndim - 2), x.ndim - 1))
    return select(spread, full(x.type, np.nan), x)


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Array:
    """The solution of linear systems with a tridiagonal matrix.

        dl[i] x[i - 1] + d[i] x[i] + du[i] x[i + 1] == b[i]        the first of dl and the last of du are not read

    Shapes: ``dl, d, du: a[*s, m], b: a[*s, m, k] -> a[*s, m, k]``. For a singular matrix it is NaN.

    Args:
        perturb_singular: move pivots that would cause overflow away from 0, by about epsilon times the largest element,
            so that the solution of a singular system is large but finite, as inverse iteration requires.
    Raises: ShapeMismatch, DTypeMismatch: other shapes, or dtypes that differ or are neither 32- nor 64-bit.
    Source: LAPACK, ``gtsv`` and ``lagts``.

    >>> tridiagonal_solve(np.array([0.0, 1.0]), np.array([2.0, 2.0]), np.array([1.0, 0.0]), np.array([[3.0], [3.0]]))
    Array([[1.],
           [1.]], dtype=float64)
    """
    return perform(shared(TridiagonalSolve, bool(perturb_singular)), *as_arrays(dl, d, du, b))
