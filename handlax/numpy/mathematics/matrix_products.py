"""Products of vectors, matrices and tensors, most of them one ``dot_general``: dot, matmul, tensordot, kron, ..."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...effects.base import config
from ...effects.base.caches import cached
from ...effects.base.errors import BadArgument, ShapeMismatch, whole_number
from ...effects.base.stack import perform
from ...effects.core.arrays import Array, as_arrays
from ...effects.core.operation import shared
from ...effects.functions.out_shardings import cuts_result
from ...effects.operations.dot_general import DotGeneral, DotNumbers, dot_general
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.shapes import canonical_axis
from ...effects.operations.manipulation.creation import broadcasted_iota
from ...effects.operations.manipulation.operand_promotion import broadcast_shape, promote
from ...effects.operations.manipulation.slicing import index_in_dim
from ...effects.types import dtypes
from ...effects.types.dtypes import canonical
from ...interpreters.core.eager_programs import programs
from ..arrays.argument_conversion import array_of, like, no_out
from ..arrays.joining_splitting import stack
from . import reductions
from .arithmetic import conjugate

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot", "vecdot", "vecmat",
]




def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    """The operands as arrays of one dtype, by ``promote``."""
    if isinstance(a, Array) and isinstance(b, Array):
        left, right = a.type, b.type
        if left.dtype is right.dtype and left.weak is right.weak:
            return a, b
    x, y = promote(a, b)
    return x, y


def contract(x: Any, y: Any, numbers: Any, precision: Any, preferred_element_type: Any) -> Any:
    """``dot_general``; without a preferred dtype the result is weakly typed if both operands are."""
    preferred = None if preferred_element_type is None else canonical(preferred_element_type)
    return dot_general(x, y, numbers, precision, preferred)


def contraction(a: Any, b: Any, kept: Any, order: Any = None) -> tuple[bool, DotNumbers, tuple[Any, ...]]:
    """The ``dot_general`` of operands with the indices ``a`` and ``b`` that sums over shared indices not in ``kept``.

    Gives whether the operands are swapped, the dimension numbers, and the indices of the result. With ``order``, the
    wanted indices of the result, they are swapped where this spares a permutation.
    """
    rows, columns = [i for i in a if i not in b], [i for i in b if i not in a]
    swapped = bool(order and rows and columns) and order.index(rows[0]) > order.index(columns[0])
    if swapped:
        a, b, rows, columns = b, a, columns, rows
    summed = [i for i in a if i in b and i not in kept]
    batch = [i for i in a if i in b and i in kept]
    if order:
        batch.sort(key=order.index)
    numbers = tuple([tuple([tuple([side.index(i) for i in role]) for side in (a, b)]) for role in (summed, batch)])
    return swapped, numbers, (*batch, *rows, *columns)  # type: ignore[return-value]


def _scaled(x: Any, y: Any, preferred: Any) -> Any:
    """``x * y``, in the dtype ``preferred`` unless it is None."""
    z = x * y
    return z if preferred is None else convert(z, canonical(preferred))


@cuts_result
def dot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Array:
    """``dot(a, b)[i, j] == sum over k of a[i, k] * b[j, k, ...]``: the last axis of ``a``, the last but one of ``b``.

    Shapes: ``a[*s, k], b[*t, k, m] -> [*s, *t, m]``; ``b[k]`` gives ``[*s]``; a scalar scales.
    Raises: ShapeMismatch: the contracted sizes differ. Source: NumPy, ``dot``.

    >>> from handlax.numpy import arange
    >>> dot(arange(3.0), arange(3.0))
    Array(5., dtype=float32)
    """
    x, y = _pair(a, b)
    left, right = len(x.type.shape), len(y.type.shape)
    if not left or not right:
        return _scaled(x, y, preferred_element_type)
    inner = ((left - 1,), (0 if right == 1 else right - 2,))
    return contract(x, y, (inner, ((), ())), precision, preferred_element_type)


@cuts_result
def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Array:
    """``matmul(a, b)[..., i, j] == sum over k of a[..., i, k] * b[..., k, j]``, leading dimensions broadcast.

    Shapes: ``[*s, n, k], [*s, k, m] -> [*s, n, m]``; a vector ``[k]`` on either side has no dimension in the result.
    Raises: ShapeMismatch: an operand is a scalar, or sizes do not fit. Source: the array API standard, ``matmul``.

    >>> from handlax.numpy import ones
    >>> matmul(ones((5, 2, 3)), ones((3, 4))).shape
    (5, 2, 4)
    """
    x, y = _pair(a, b)
    left, right = x.type.shape, y.type.shape
    plan = _matmul_plan(left, right)
    if plan.left is not None:
        x = shapes.reshape(x, plan.left)
    if plan.right is not None:
        y = shapes.reshape(y, plan.right)
    if precision is None and preferred_element_type is None and config.current().default_matmul_precision is None:
        z = perform(plan.op, x, y)
    else:
        z = contract(x, y, plan.op.dimension_numbers, precision, preferred_element_type)
    return shapes.permute(z, plan.order) if plan.order is not None else z


class MatmulPlan(NamedTuple):
    """``matmul`` of two shapes: operands reshaped to ``left`` and ``right``, ``op``, axes permuted to ``order``.

    None where an operand has its shape, or the result its order, already.
    """

    left: tuple[int, ...] | None
    right: tuple[int, ...] | None
    op: DotGeneral
    order: tuple[int, ...] | None


def _fitting(left: tuple[int, ...], right: tuple[int, ...]) -> str:
    """The remedy for shapes of which the contracted sizes differ."""
    if len(right) > 1 and left[-1] == right[-1]:
        return "b fits transposed: a @ b.mT."
    if len(left) > 1 and left[-2] == right[-2 if len(right) > 1 else -1]:
        return "a fits transposed: a.mT @ b."
    return "a[..., n, k] @ b[..., k, m] has the shape [..., n, m]; a vector has the size k."


@cached("matmul")
def _matmul_plan(left: tuple[int, ...], right: tuple[int, ...]) -> MatmulPlan:
    """``matmul`` of operands of the shapes ``left`` and ``right``. Raises ShapeMismatch: they do not fit."""
    if not left or not right:
        raise ShapeMismatch(
            f"matmul: operands must have a dimension, got shapes {left} and {right}.", hint="multiply scalars."
        )
    rows = right[-2 if len(right) > 1 else -1]
    if left[-1] != rows:
        raise ShapeMismatch(
            f"matmul: the last dimension of a and the {'last but' if len(right) > 1 else 'only'} one of b must agree,"
            f" got {left[-1]} and {rows} of shapes {left} and {right}.",
            hint=_fitting(left, right),
        )
    lead = broadcast_shape("matmul", left[:-2], right[:-2])
    rank = len(lead)
    # indices: leading dimensions are numbered from 0, then n, k and m; a dimension of size 1 that is repeated has none
    own_left, own_right = (
        [d for d, size in enumerate(shape[:-2], rank - len(shape[:-2])) if size != 1 or lead[d] == 1]
        for shape in (left, right)
    )
    n, k, m = rank, rank + 1, rank + 2
    a, b = [*own_left, n, k] if len(left) > 1 else [k], [*own_right, k, m] if len(right) > 1 else [k]
    _, numbers, result = contraction(a, b, range(rank))
    order = tuple([result.index(i) for i in range(m + 1) if i in result])
    shape_left = (*[lead[d] for d in own_left], *left[-2:])
    shape_right = (*[lead[d] for d in own_right], *right[-2:])
    return MatmulPlan(
        shape_left if shape_left != left else None,
        shape_right if shape_right != right else None,
        shared(DotGeneral, numbers, None, None),
        order if order != tuple(range(len(order))) else None,
    )


@cuts_result
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of products over pairs of axes.

    ``axes`` is (axes of ``a``, axes of ``b``), or a number n: the last n of ``a`` with the first n of ``b``.
    Shapes: the remaining dimensions of ``a``, then those of ``b``. Source: NumPy, ``tensordot``.

    >>> from handlax.numpy import ones
    >>> tensordot(ones((2, 3, 4)), ones((3, 4, 5))).shape
    (2, 5)
    """
    x, y = _pair(a, b)
    left, right = len(x.type.shape), len(y.type.shape)
    if not hasattr(axes, "__iter__") or getattr(axes, "shape", None) == ():
        count = whole_number("tensordot: axes", axes)
        if not 0 <= count <= min(left, right):
            raise BadArgument(f"tensordot: the number of axes must be at most {min(left, right)}, got {count}.")
        inner: Any = (tuple(range(left - count, left)), tuple(range(count)))
    else:
        if len(axes) != 2:
            raise BadArgument(f"tensordot: axes are a number, or axes of a and axes of b, got {axes!r}.")
        inner = tuple([
            tuple([canonical_axis(d, rank, "tensordot") for d in shapes.axes_listed(side)])
            for side, rank in zip(axes, (left, right))
        ])
    return contract(x, y, (inner, ((), ())), precision, preferred_element_type)


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """``sum over i of conj(a[i]) * b[i]``, of arrays flattened. Source: NumPy, ``vdot``.

    >>> from handlax.numpy import array
    >>> vdot(array([1j]), array([1j]))
    Array(1.+0.j, dtype=complex64)
    """
    x, y = [shapes.reshape(v, (v.size,)) for v in as_arrays(a, b)]
    return dot(conjugate(x), y, precision=precision, preferred_element_type=preferred_element_type)


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """``inner(a, b)[i, j] == sum over k of a[i, k] * b[j, k]``: the last axes of both. Source: NumPy, ``inner``.

    >>> from handlax.numpy import ones
    >>> inner(ones((2, 3)), ones((4, 3))).shape
    (2, 4)
    """
    x, y = _pair(a, b)
    left, right = len(x.type.shape), len(y.type.shape)
    if not left or not right:
        return _scaled(x, y, preferred_element_type)
    return contract(x, y, (((left - 1,), (right - 1,)), ((), ())), precision, preferred_element_type)


def outer(a: Any, b: Any, out: None = None) -> Array:
    """``outer(a, b)[i, j] == a[i] * b[j]``, of arrays flattened. Source: NumPy, ``outer``.

    >>> from handlax.numpy import arange
    >>> outer(arange(2), arange(3)).shape
    (2, 3)
    """
    no_out(out, "outer")
    x, y = [shapes.reshape(v, (v.size,)) for v in promote(a, b)]
    shape = (x.size, y.size)
    return shapes.broadcast_in_dim(x, shape, (0,)) * shapes.broadcast_in_dim(y, shape, (1,))


def kron(a: Any, b: Any) -> Array:
    """The Kronecker product: blocks ``a[i, j] * b``. Source: NumPy, ``kron``.

    >>> from handlax.numpy import ones
    >>> kron(ones((2, 3)), ones((4, 5))).shape
    (8, 15)
    """
    x, y = promote(a, b)
    rank = max(len(x.type.shape), len(y.type.shape))
    left, right = ((1,) * (rank - len(z.type.shape)) + z.type.shape for z in (x, y))
    pairs = tuple([n for pair in zip(left, right) for n in pair])
    x = shapes.broadcast_in_dim(shapes.reshape(x, left), pairs, tuple(range(0, 2 * rank, 2)))
    y = shapes.broadcast_in_dim(shapes.reshape(y, right), pairs, tuple(range(1, 2 * rank, 2)))
    return shapes.reshape(x * y, tuple([m * n for m, n in zip(left, right)]))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The vector product along an axis of size 3.

    A vector of size 2 has the third component 0; of two such vectors the result is the third component alone.
    Raises: ShapeMismatch: a vector has another size. Source: NumPy, ``cross``.

    >>> from handlax.numpy import array
    >>> cross(array([1, 0, 0]), array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote(a, b)
    x = shapes.move_axis(x, canonical_axis(axisa, x.ndim, "cross"), x.ndim - 1)
    y = shapes.move_axis(y, canonical_axis(axisb, y.ndim, "cross"), y.ndim - 1)
    sizes = x.type.shape[-1], y.type.shape[-1]
    if not set(sizes) <= {2, 3}:
        raise ShapeMismatch(f"cross: vectors have 2 or 3 components, got {sizes[0]} and {sizes[1]}.")
    lead = broadcast_shape("cross", x.type.shape[:-1], y.type.shape[:-1])
    p, q = (
        [shapes.broadcast(index_in_dim(v, i, -1, keepdims=False), lead) for i in range(n)]
        for v, n in zip((x, y), sizes)
    )
    third = p[0] * q[1] - p[1] * q[0]
    if sizes == (2, 2):
        return third
    p, q = ([*v, shapes.zeros(v[0].type)] if len(v) == 2 else v for v in (p, q))
    parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], third]
    return stack(parts, canonical_axis(axisc, len(lead) + 1, "cross"))


def matvec(x1: Any, x2: Any, /) -> Array:
    """``matvec(a, v)[..., i] == sum over k of a[..., i, k] * v[..., k]``, leading dimensions broadcast.

    >>> from handlax.numpy import ones
    >>> matvec(ones((5, 2, 3)), ones(3)).shape
    (5, 2)
    """
    a, v = _pair(x1, x2)
    if not v.type.shape or len(a.type.shape) < 2:
        raise ShapeMismatch(f"matvec: needs a matrix and a vector, got {a.type} and {v.type}.")
    if len(v.type.shape) == 1:
        return matmul(a, v)
    return _without_last(matmul(a, shapes.reshape(v, (*v.type.shape, 1))))


def vecmat(x1: Any, x2: Any, /) -> Array:
    """``vecmat(v, a)[..., j] == sum over k of conj(v[..., k]) * a[..., k, j]``, leading dimensions broadcast.

    >>> from handlax.numpy import ones
    >>> vecmat(ones(2), ones((5, 2, 3))).shape
    (5, 3)
    """
    v, a = _pair(x1, x2)
    if not v.type.shape or len(a.type.shape) < 2:
        raise ShapeMismatch(f"vecmat: needs a vector and a matrix, got {v.type} and {a.type}.")
    v = conjugate(v)
    if len(v.type.shape) == 1:
        return matmul(v, a)
    shape = v.type.shape
    z = matmul(shapes.reshape(v, (*shape[:-1], 1, shape[-1])), a)
    return shapes.reshape(z, (*z.type.shape[:-2], z.type.shape[-1]))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """``sum over k of conj(x1[..., k]) * x2[..., k]`` along an axis, the others broadcast.

    Source: the array API standard, ``vecdot``.

    >>> from handlax.numpy import ones
    >>> vecdot(ones((2, 3)), ones(3)).shape
    (2,)
    """
    x, y = _pair(x1, x2)
    x = shapes.move_axis(x, canonical_axis(axis, x.ndim, "vecdot"), x.ndim - 1)
    y = shapes.move_axis(y, canonical_axis(axis, y.ndim, "vecdot"), y.ndim - 1)
    if x.type.shape[-1] != y.type.shape[-1]:
        raise ShapeMismatch(f"vecdot: sizes along axis {axis} must agree, got {x.type} and {y.type}.")
    x = conjugate(x)
    left, right = x.type.shape, y.type.shape
    if len(left) == 1 or len(right) == 1:
        return inner(x, y, precision=precision, preferred_element_type=preferred_element_type)
    if left == right:
        batch = tuple(range(len(left) - 1))
        numbers = (((len(batch),), (len(batch),)), (batch, batch))
        return contract(x, y, numbers, precision, preferred_element_type)
    x, y = shapes.reshape(x, (*left[:-1], 1, left[-1])), shapes.reshape(y, (*right, 1))
    z = matmul(x, y, precision=precision, preferred_element_type=preferred_element_type)
    return _without_last(_without_last(z))


def _without_last(x: Any) -> Any:
    """``x`` without its last dimension, which has size 1."""
    return shapes.reshape(x, x.type.shape[:-1])


def trace(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Array:
    """``sum over i of a[i, i + offset]``: the sum of a diagonal of two axes. Source: NumPy, ``trace``.

    >>> from handlax.numpy import eye
    >>> trace(eye(3))
    Array(3., dtype=float32)
    """
    no_out(out, "trace")
    x = array_of(a)
    rank = len(x.type.shape)
    p, q = canonical_axis(axis1, rank, "trace"), canonical_axis(axis2, rank, "trace")
    if p == q:
        raise BadArgument(f"trace: the axes must differ, got {axis1} and {axis2}.")
    sizes = (x.type.shape[p], x.type.shape[q])
    rows, columns = (broadcasted_iota("int32", sizes, d) for d in (0, 1))
    shift = rows + convert(offset, dtypes.int32)
    mask = shift == columns if p < q else shapes.permute(shift == columns, (1, 0))
    mask = shapes.broadcast_in_dim(mask, x.type.shape, (p, q) if p < q else (q, p))
    return reductions.sum(select_n(mask, like(x, 0), x), (p, q), dtype)


programs(globals(), direct=("matmul",))
