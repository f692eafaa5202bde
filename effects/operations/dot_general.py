"""Contraction: sums of products over shared dimensions, of which matrix products are one case."""

from __future__ import annotations

import enum
from dataclasses import replace
from functools import partial
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from ..base import config
from ..base.caches import cached
from ..base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ..base.stack import perform
from ..core.arrays import Array, as_arrays
from ..core.columns import multilinear, zero
from ..core.operation import operation, result_type, shared
from ..functions.out_shardings import cuts_result
from ..sharding.sharding_rules import ShardingRule, numbered
from ..types.array_type import ArrayType, array_type
from ..types.dtype_promotion import promote_all
from ..types.dtypes import (
    ANY,
    ANY_INTEGER,
    COMPLEX,
    EVERY,
    SMALL,
    SMALL_FLOATING,
    DType,
    canonical,
    float32,
    is_inexact,
    itemsize_bits,
)
from .elementwise.conversion import convert
from .foundations.half_precision import AS_ARRAY
from .foundations.shapes import inverse_permutation, permute

Pair = tuple[tuple[int, ...], tuple[int, ...]]
DotNumbers = tuple[Pair, Pair]


class Precision(enum.Enum):
    """How exactly a device multiplies floats that are wider than its multipliers.

    ``DEFAULT`` is the fastest, ``HIGH`` takes several passes, ``HIGHEST`` is exact for the operands' dtype.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    __repr__ = enum.Enum.__str__

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """How a device computes a product: the parameters of StableHLO's ``dot_algorithm``."""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class Recipe(NamedTuple):
    """A named algorithm: the dtypes of multiplier and accumulator, the dtypes that operands may have, and passes."""

    multiply: str
    accumulate: str
    storage: tuple[str, ...]
    passes: int = 1
    imprecise: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: dtype of lhs, of rhs, of the accumulator, and ``X3``, ``X6``, ``X9`` for that many passes.

    Source: the StableHLO specification, ``dot_general``.
    """

    DEFAULT = None
    ANY_F8_ANY_F8_F32 = Recipe("f8", "float32", ())
    ANY_F8_ANY_F8_F32_FAST_ACCUM = Recipe("f8", "float32", (), 1, True)
    ANY_F8_ANY_F8_ANY = Recipe("f8", "", ())
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = Recipe("f8", "", (), 1, True)
    F16_F16_F16 = Recipe("float16", "float16", ("float16",))
    F16_F16_F32 = Recipe("float16", "float32", ("float16",))
    BF16_BF16_BF16 = Recipe("bfloat16", "bfloat16", ("bfloat16",))
    BF16_BF16_F32 = Recipe("bfloat16", "float32", ("bfloat16", "float32"))
    BF16_BF16_F32_X3 = Recipe("bfloat16", "float32", ("float32",), 3)
    BF16_BF16_F32_X6 = Recipe("bfloat16", "float32", ("float32",), 6)
    BF16_BF16_F32_X9 = Recipe("bfloat16", "float32", ("float32",), 9)
    TF32_TF32_F32 = Recipe("tf32", "float32", ("float32",))
    TF32_TF32_F32_X3 = Recipe("tf32", "float32", ("float32",), 3)
    F32_F32_F32 = Recipe("float32", "float32", ("float32",))
    F64_F64_F64 = Recipe("float64", "float64", ("float64",))

    __repr__ = enum.Enum.__str__

    def __str__(self) -> str:
        return self.name


SHARED_BY_BLAS = 460_000
"""Multiplications of a product from which NumPy's may be shared among threads."""

_PRECISIONS = {
    **{p.name.lower(): p for p in Precision},
    "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT, "tensorfloat32": Precision.HIGH,
    "float32": Precision.HIGHEST,
}
config.add_choices(
    "default_matmul_precision", (None, *_PRECISIONS, *[p.name for p in DotAlgorithmPreset if p.value])
)
_FLOAT8 = frozenset(d for d in SMALL_FLOATING if "float8" in d.name)


def canonical_precision(precision: Any, default: Any = None) -> Any:
    """A precision as a field of ``DotGeneral``: None, a pair of ``Precision``, or an algorithm. None means ``default``.

    Raises: BadArgument: it is no precision.
    """
    precision = default if precision is None else precision
    if precision is None:
        return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return None if precision is DotAlgorithmPreset.DEFAULT else precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__ and precision != "DEFAULT":
        return DotAlgorithmPreset[precision]
    pair = tuple(precision) if isinstance(precision, (tuple, list)) else (precision, precision)
    result = tuple([_PRECISIONS.get(p.lower(), p) if isinstance(p, str) else p or Precision.DEFAULT for p in pair])
    if len(result) != 2 or not all(isinstance(p, Precision) for p in result):
        raise BadArgument(
            f"precision: must be a lax.Precision, its name, a pair of these or a dot algorithm, got {precision!r}.",
            hint=f"names are {', '.join(_PRECISIONS)} and those of lax.DotAlgorithmPreset.",
        )
    return result


def multilinear_or_zero(op: Any, primals: Any, tangents: Any) -> Any:
    """``multilinear``, or ``zero`` where the result is of integers."""
    dtype = result_type(op, tuple([x.type for x in primals])).dtype
    return (multilinear if is_inexact(dtype) else zero)(op, primals, tangents)


MULTILINEAR = (multilinear, multilinear_or_zero)
"""The jvp rules of operations that are linear in each operand."""


# z[b, i, j] = sum over k of x[b, i, k] y[b, k, j]; dimension_numbers = ((k in x, k in y), (b in x, b in y))
@operation
class DotGeneral:
    dimension_numbers: DotNumbers
    precision: Any = None
    preferred_element_type: DType | None = None
    fixed_params = {"out_sharding": None}
    dtypes = ANY
    contracts = True

    def result_type(op, x, y):
        return contraction_type(op.dimension_numbers, op.preferred_element_type, x, y)

    def sharding_rule(op, operands, results):
        plan = layout(op.dimension_numbers, *[len(t.shape) for t in operands])
        batch, rows, inner = [[(role, i) for i in range(len(ds))] for role, ds in zip(("b", "x", "k"), plan.lhs)]
        columns = [("y", i) for i in range(len(plan.rhs[2]))]
        lhs, rhs = dict(zip(plan.order_lhs, batch + rows + inner)), dict(zip(plan.order_rhs, batch + inner + columns))
        factors = [[lhs[d] for d in numbered(operands[0])], [rhs[d] for d in numbered(operands[1])]]
        return ShardingRule(factors, [batch + rows + columns], equal=batch)

    @property
    def summed_dims(op):
        return op.dimension_numbers[0]

    def of_parts(op, x, y):
        """The products of each part of the dimensions summed over: parts are batch dimensions, the first of the result.
        """
        (lhs_inner, rhs_inner), (lhs_batch, rhs_batch) = op.dimension_numbers
        inner = [k for d in lhs_inner for k in x.inner[d]], [k for d in rhs_inner for k in y.inner[d]]
        batch = [*x.lanes, *[x.inner[d][-1] for d in lhs_batch]], [*y.lanes, *[y.inner[d][-1] for d in rhs_batch]]
        numbers = (tuple(inner[0]), tuple(inner[1])), (tuple(batch[0]), tuple(batch[1]))
        return perform(replace(op, dimension_numbers=numbers), x.array, y.array), [*range(len(x.lanes))]

    def evaluate(op, x, y):
        if is_matmul(op, x, y):
            return np.matmul(x, y)
        return contract_numpy(op, x, y)

    def numpy_function(op, types):
        if not is_matmul(op, *types):
            return None
        return partial(np.matmul, **AS_ARRAY) if len(types[0].shape) == len(types[1].shape) == 1 else np.matmul

    def batch(op, dims, x, y):
        return batch_dot(op, dims, x, y)

    jvp = multilinear_or_zero

    def transpose(op, ct, x, y, *, wrt):
        return dot_adjoint(op, ct, x if wrt == 0 else y, y if wrt == 0 else x, wrt)

    def lower(op, emit, x, y):
        return lower_dot(op, emit, x, y)

    def flops(op, operands, results):
        return 2 * _multiplications(op, *operands)

    def workload_size(op, x, y):
        """The number of multiplications; 0 for two vectors whose product NumPy computes at the speed of memory.

        OpenBLAS, which NumPy uses, shares products among threads from 460,800 multiplications on, and these threads
        spin while they wait: beside other work on the same cores a product of 128 by 128 takes 20 milliseconds instead
        of 40 microseconds. XLA's threads sleep. So the size of such a product is infinite.
        """
        if len(x.shape) == len(y.shape) == 1 and is_matmul(op, x, y):
            return 0
        count = _multiplications(op, x, y)
        return count if count < SHARED_BY_BLAS else inf


def _multiplications(op: Any, x: Any, y: Any) -> Any:
    (contracting, _), _ = op.dimension_numbers
    return op.result_type(x, y).size * prod([x.shape[d] for d in contracting])


def is_matmul(op: Any, x: Any, y: Any) -> bool:
    """Whether ``np.matmul`` computes this operation."""
    same = x.dtype == y.dtype and op.preferred_element_type is None and op.precision is None
    exact = x.dtype.kind in "fciu" and x.dtype != np.float16
    return same and exact and matrices(op.dimension_numbers, len(x.shape), len(y.shape))


@cached("products of matrices")
def matrices(numbers: DotNumbers, lhs_rank: int, rhs_rank: int) -> bool:
    """Whether these numbers are those of NumPy's product of vectors, or of matrices in the last two dimensions."""
    batch = tuple(range(lhs_rank - 2))
    if lhs_rank == rhs_rank and lhs_rank >= 2:
        return numbers == (((lhs_rank - 1,), (lhs_rank - 2,)), (batch, batch))
    return 0 < lhs_rank <= 2 and 0 < rhs_rank <= 2 and numbers == (((lhs_rank - 1,), (0,)), ((), ()))


def contract_numpy(op: Any, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Any contraction as a product of matrices: dimensions grouped by role, each group reshaped to one dimension."""
    result = op.preferred_element_type or common_dtype(x.dtype, y.dtype)
    summed = common_dtype(common_dtype(x.dtype, y.dtype), result)
    recipe = op.precision.value if isinstance(op.precision, DotAlgorithmPreset) else None
    if recipe is not None and recipe.storage:
        x, y = [v if v.dtype.name in recipe.storage else v.astype(canonical(recipe.storage[0])) for v in (x, y)]
        summed = canonical(recipe.accumulate)
    wide = accumulator(summed)
    plan = layout(op.dimension_numbers, x.ndim, y.ndim)
    batch, rows, inner = [tuple([x.shape[d] for d in dims]) for dims in plan.lhs]
    columns = tuple([y.shape[d] for d in plan.rhs[2]])
    head = (prod(batch),) if batch else ()
    lhs = x.astype(wide, copy=False).transpose(plan.order_lhs).reshape((*head, prod(rows), prod(inner)))
    rhs = y.astype(wide, copy=False).transpose(plan.order_rhs).reshape((*head, prod(inner), prod(columns)))
    z = np.matmul(lhs, rhs).reshape((*batch, *rows, *columns))
    return z.astype(summed, copy=False).astype(result, copy=False)


class DotLayout(NamedTuple):
    """Dimensions by role, of lhs (batch, rows, inner), of rhs (batch, inner, columns); the orders concatenate them."""

    lhs: tuple[tuple[int, ...], ...]
    rhs: tuple[tuple[int, ...], ...]
    order_lhs: tuple[int, ...]
    order_rhs: tuple[int, ...]


@cached("contraction layouts")
def layout(numbers: DotNumbers, lhs_rank: int, rhs_rank: int) -> DotLayout:
    """The dimensions of operands of these ranks, by their role in a contraction."""
    (lhs_inner, rhs_inner), (lhs_batch, rhs_batch) = numbers
    rows = tuple([d for d in range(lhs_rank) if d not in lhs_inner and d not in lhs_batch])
    columns = tuple([d for d in range(rhs_rank) if d not in rhs_inner and d not in rhs_batch])
    return DotLayout(
        (lhs_batch, rows, lhs_inner),
        (rhs_batch, rhs_inner, columns),
        (*lhs_batch, *rows, *lhs_inner),
        (*rhs_batch, *rhs_inner, *columns),
    )


def accumulator(dtype: Any) -> Any:
    """The dtype in which NumPy sums products: f32 for narrower floats, i32 for integers of less than a byte."""
    if dtype.kind in "biufc":
        return float32 if dtype == np.float16 else dtype
    return np.dtype("int32") if dtype in ANY_INTEGER else float32


def common_dtype(a: Any, b: Any) -> Any:
    """The dtype that represents both; of an 8-bit float or smaller dtype and an ordinary one it is the ordinary one.

    It does not depend on the setting ``numpy_dtype_promotion``, which is for what programs say.
    """
    if a == b:
        return a
    if a in SMALL or b in SMALL:
        return float32 if a in SMALL and b in SMALL else b if a in SMALL else a
    return _bound(a, b)


def _bound(a: Any, b: Any) -> Any:
    return a if a is b else promote_all(((a, False), (b, False)), strict=False)[0]


def contraction_type(numbers: DotNumbers, preferred: Any, x: ArrayType, y: ArrayType) -> ArrayType:
    """The type of a contraction, whose dimensions, sizes and dtypes are checked."""
    (lhs_inner, rhs_inner), (lhs_batch, rhs_batch) = numbers
    for side, kind, dims in (("lhs", x, lhs_batch + lhs_inner), ("rhs", y, rhs_batch + rhs_inner)):
        if len(set(dims)) != len(dims) or not all(0 <= d < len(kind.shape) for d in dims):
            raise BadArgument(f"dot_general: dimensions of {side} must be distinct dimensions of {kind}, got {dims}.")
    for role, left, right in (("contracting", lhs_inner, rhs_inner), ("batch", lhs_batch, rhs_batch)):
        if len(left) != len(right):
            raise BadArgument(f"dot_general: lhs and rhs must have as many {role} dimensions, got {left} and {right}.")
        for a, b in zip(left, right):
            if x.shape[a] != y.shape[b]:
                raise ShapeMismatch(
                    f"dot_general: {role} sizes must agree, got {x.shape[a]} (lhs {x}, dim {a}) and {y.shape[b]} "
                    f"(rhs {y}, dim {b}).",
                    hint=_transposed(x, y, a, b),
                )
    for kind in (x, y):
        if kind.dtype not in EVERY:
            raise DTypeMismatch(f"dot_general: operands must be numeric, got {kind}.")
    dtype = _bound(x.dtype, y.dtype) if preferred is None else preferred
    for kind in (x, y):
        need_represented("dot_general", kind, dtype, EVERY)
    plan = layout(numbers, len(x.shape), len(y.shape))
    shape = [x.shape[d] for d in plan.lhs[0] + plan.lhs[1]] + [y.shape[d] for d in plan.rhs[2]]
    return array_type(tuple(shape), dtype, x.weak and y.weak and preferred is None)


def need_represented(name: str, kind: ArrayType, dtype: Any, family: frozenset[Any]) -> None:
    """Check that ``dtype``, in which products are summed, is one of ``family`` that represents an operand of this type.

    Raises: DTypeMismatch.
    """
    integers = kind.dtype in ANY_INTEGER and dtype in ANY_INTEGER
    narrower = integers and itemsize_bits(dtype) < itemsize_bits(kind.dtype)
    if narrower or dtype not in family or (kind.dtype in COMPLEX and dtype not in COMPLEX):
        raise DTypeMismatch(f"{name}: preferred_element_type must represent all of {kind}, got {dtype}.")


def _transposed(x: ArrayType, y: ArrayType, a: int, b: int) -> str | None:
    """The hint that one operand, transposed, would fit."""
    if len(y.shape) == 2 and y.shape[1 - b] == x.shape[a]:
        return "rhs would fit transposed."
    return "lhs would fit transposed." if len(x.shape) == 2 and x.shape[1 - a] == y.shape[b] else None


def batch_dot(op: Any, dims: tuple[int | None, int | None], x: Any, y: Any) -> tuple[Any, int]:
    """The batch rule: a new batch dimension where both operands are mapped, else a free dimension of the mapped one."""
    (lhs_inner, rhs_inner), (lhs_batch, rhs_batch) = op.dimension_numbers
    p, q = dims

    def shifted(d: int | None, ds: tuple[int, ...]) -> tuple[int, ...]:
        return ds if d is None else tuple([i + (i >= d) for i in ds])

    inner = (shifted(p, lhs_inner), shifted(q, rhs_inner))
    batch = (shifted(p, lhs_batch), shifted(q, rhs_batch))
    if p is not None and q is not None:
        batch = ((p, *batch[0]), (q, *batch[1]))
        return perform(shared(DotGeneral, (inner, batch), *op.fields[1:]), x, y), 0
    plan = layout((inner, batch), len(x.type.shape), len(y.type.shape))
    z = perform(shared(DotGeneral, (inner, batch), *op.fields[1:]), x, y)
    if p is not None:
        return z, len(batch[0]) + plan.lhs[1].index(p)
    return z, len(batch[0]) + len(plan.lhs[1]) + plan.rhs[2].index(q)


def dot_adjoint(op: Any, ct: Any, operand: Any, other: Any, wrt: int) -> Any:
    """The cotangent of operand ``wrt``: ``ct`` contracted with the other operand, then transposed."""
    kind = operand.type if not isinstance(operand, ArrayType) else operand
    own, others = len(kind.shape), len(other.type.shape)
    numbers, order = adjoint(op.dimension_numbers, *((own, others) if wrt == 0 else (others, own)), wrt)
    z = perform(shared(DotGeneral, numbers, op.precision, op.preferred_element_type), ct, other)
    return convert(permute(z, order), kind.dtype, kind.weak)


@cached("contraction adjoints")
def adjoint(numbers: DotNumbers, lhs_rank: int, rhs_rank: int, wrt: int) -> tuple[DotNumbers, tuple[int, ...]]:
    """The dimension numbers that contract a cotangent with the other operand, and the permutation of that result."""
    plan = layout(numbers, lhs_rank, rhs_rank)
    batch, rows, columns = len(plan.lhs[0]), len(plan.lhs[1]), len(plan.rhs[2])
    (own_inner, other_inner), (own_batch, other_batch) = ((tuple(pair[::-1]) if wrt else pair) for pair in numbers)
    if wrt == 0:
        own_free, other_free, summed = plan.lhs[1], plan.rhs[2], tuple(range(batch + rows, batch + rows + columns))
    else:
        own_free, other_free, summed = plan.rhs[2], plan.lhs[1], tuple(range(batch, batch + rows))
    # the dimensions of the result: batch, those free in the operand, and the contracted ones in the other's order
    inner = [own_inner[i] for i in sorted(range(len(other_inner)), key=other_inner.__getitem__)]
    order = inverse_permutation((*own_batch, *own_free, *inner))
    return ((summed, other_free), (tuple(range(batch)), other_batch)), order


def lower_dot(op: Any, emit: Any, x: Any, y: Any) -> Any:
    """The ``lower`` rule. Operands of two dtypes are converted to the result's, unless both are eight-bit floats."""
    out = emit.made
    result = out.dtype
    recipe = op.precision.value if isinstance(op.precision, DotAlgorithmPreset) else None
    if recipe is not None:
        if recipe.storage:
            stored = canonical(recipe.storage[0])
            x, y = [v if v.type.dtype.name in recipe.storage else emit.convert(v, stored) for v in (x, y)]
        if recipe.accumulate and not (x.type.dtype == result and result.name in recipe.storage):
            result = canonical(recipe.accumulate)
    elif not (x.type.dtype in _FLOAT8 and y.type.dtype in _FLOAT8):
        nibbles = x.type.dtype in SMALL and x.type.dtype != result  # XLA's own conversion of these fails to compile
        if nibbles or x.type.dtype != y.type.dtype:
            x, y = emit.convert(x, result), emit.convert(y, result)
    z = emit.dot_general(x, y, op.dimension_numbers, _precision_names(op.precision, result), out.update(dtype=result))
    return emit.convert(z, out.dtype)


def _precision_names(precision: Any, result: Any) -> tuple[str, str, Any]:
    """The two precisions by name, and the algorithm with its dtypes' names, or None."""
    if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
        return precision[0].name, precision[1].name, None
    if isinstance(precision, DotAlgorithmPreset):
        recipe = precision.value
        multiply = "float8_e5m2" if recipe.multiply == "f8" else recipe.multiply
        accumulate = recipe.accumulate or result.name
        precision = DotAlgorithm(multiply, multiply, accumulate, 1, 1, recipe.passes, recipe.imprecise)
    return "DEFAULT", "DEFAULT", precision


def _integers(dims: Any) -> tuple[int, ...]:
    """Dimensions as Python integers. Raises BadArgument: they are not a sequence of integers."""
    try:
        return tuple([d.__index__() for d in dims])
    except (AttributeError, TypeError):
        raise BadArgument(f"dot_general: dimensions are sequences of integers, got {dims!r}.") from None


def canonical_numbers(dimension_numbers: Any, lhs_rank: int, rhs_rank: int) -> DotNumbers:
    """Dimension numbers as tuples of ints counted from the front. Raises BadArgument: they have another structure."""
    try:
        (inner, batch) = dimension_numbers
        (lhs_inner, rhs_inner), (lhs_batch, rhs_batch) = inner, batch
    except (TypeError, ValueError):
        raise BadArgument(
            f"dot_general: dimension_numbers are ((lhs, rhs) contracted, (lhs, rhs) batch), got {dimension_numbers!r}.",
        ) from None

    def front(dims: Any, rank: int) -> tuple[int, ...]:
        return tuple([d + rank if -rank <= d < 0 else d for d in _integers(dims)])

    return (
        (front(lhs_inner, lhs_rank), front(rhs_inner, rhs_rank)),
        (front(lhs_batch, lhs_rank), front(rhs_batch, rhs_rank)),
    )


@cached("dot_general")
def _known(numbers: Any, lhs_rank: int, rhs_rank: int, precision: Any, preferred: Any, default: Any) -> DotGeneral:
    """The operation for the arguments of ``dot_general``; ``default`` is the configured precision."""
    dtype = None if preferred is None else canonical(preferred)
    return shared(
        DotGeneral, canonical_numbers(numbers, lhs_rank, rhs_rank), canonical_precision(precision, default), dtype
    )


@cuts_result
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The sum of products over contracting dimensions of two arrays, for each index of their batch dimensions.

        z[b, i, j] = sum over k of lhs[b, i, k] * rhs[b, k, j]

    Shapes: batch dimensions first, then the remaining ones of ``lhs``, then those of ``rhs``, each in order.
    Dtypes: ``preferred_element_type``, or if None the dtype to which the operands promote.

    Args:
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
        precision: a ``Precision``, its name, a pair, a dot algorithm, or None for ``config.default_matmul_precision``.
        preferred_element_type: the dtype in which products are summed and which the result has.
    Raises: ShapeMismatch: paired sizes differ. BadArgument: a dimension is repeated or out of range.
    Source: the StableHLO specification, ``dot_general``.

    >>> dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    if not (isinstance(lhs, Array) and isinstance(rhs, Array)):
        lhs, rhs = as_arrays(lhs, rhs)
    default = config.current().default_matmul_precision
    known = (dimension_numbers, len(lhs.type.shape), len(rhs.type.shape), precision, preferred_element_type, default)
    try:
        op = _known(*known)
    except TypeError:  # lists cannot be hashed
        op = _known.__wrapped__(*known)  # type: ignore[attr-defined]
    return perform(op, lhs, rhs)


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Vector and matrix products: the last dimension of ``lhs`` with the first of ``rhs``.

    Raises: ShapeMismatch: operands without ``dimension_numbers`` are not of rank 1 or 2, or their sizes differ.

    >>> float(dot(np.float32([1, 2]), np.float32([3, 4])))
    11.0
    """
    lhs, rhs = as_arrays(lhs, rhs)
    if dimension_numbers is None:
        left, right = lhs.type, rhs.type
        if not (len(left.shape) in (1, 2) and len(right.shape) in (1, 2)):
            raise ShapeMismatch(
                f"dot: operands must be vectors or matrices, got {left} and {right}.",
                hint="numpy.dot takes any rank; dot_general has numbers for the dimensions to contract.",
            )
        dimension_numbers = (((len(left.shape) - 1,), (0,)), ((), ()))
    return dot_general(
        lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Products of matrices in the last two dimensions, for each index of the leading ones.

        z[b] = lhs[b] @ rhs[b]

    Raises: ShapeMismatch: ranks or leading sizes differ, or there are fewer than two dimensions.

    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    lhs, rhs = as_arrays(lhs, rhs)
    rank = len(lhs.type.shape)
    if rank < 2 or len(rhs.type.shape) != rank:
        raise ShapeMismatch(
            f"batch_matmul: operands must be of one rank, at least 2, got {lhs.type} and {rhs.type}.",
            hint="numpy.matmul broadcasts.",
        )
    batch = tuple(range(rank - 2))
    return dot_general(lhs, rhs, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)
