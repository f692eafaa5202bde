"""Cumulative sums, products and extremes, and the parallel prefix scan by any associative function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...base.errors import BadArgument, ShapeMismatch, TreeMismatch
from ...base.later_layers import LaterLayers
from ...base.stack import perform
from ...base.tracebacks import boundary
from ...core.arrays import Array, as_array, scalar
from ...core.columns import linear, per_operand
from ...core.containers import need_no_container
from ...core.operation import Operation, operation, shared
from ...core.signatures import X
from ...sharding.sharding_rules import alike
from ...trees.pytrees import tree_flatten, tree_unflatten
from ...trees.structure import difference
from ...types.array_type import ArrayType
from ...types.dtypes import (
    ANY,
    FOUR_BITS,
    INEXACT,
    NUMERIC,
    float32,
    int32,
    is_bool,
    is_complex,
)
from ...types.extent import Extent, positive
from ...types.parts_of_axes import smaller
from ...types.sized import surely_at_most
from ..elementwise import comparison, complex_functions
from ..elementwise.arithmetic import add
from ..elementwise.bitwise import bitwise_or
from ..elementwise.comparison import eq, ge, le, select, select_n
from ..elementwise.complex_functions import assembled
from ..elementwise.conversion import convert
from ..elementwise.transcendental import logaddexp, logaddexp_share, stable_logaddexp
from ..foundations.half_precision import HALF, in_bytes
from ..foundations.shapes import broadcast_in_dim, canonical_axis, need_dtype, reduce_sum, zeros
from ..manipulation.creation import broadcasted_iota
from ..manipulation.slicing import concatenate, pad, rev, slice_in_dim
from .reductions import (
    Combine,
    highest,
    lowest,
    performed_whole_nan,
    product_rule,
    whole_nan,
    with_signed_zeros,
)


class Cumulative(Operation):
    """y[k] = x[0] o x[1] o ... o x[k] along ``axis``, or x[k] o ... o x[n - 1] where ``reverse``."""

    __slots__ = ()
    axis: int
    reverse: bool
    unit: ClassVar[Any] = staticmethod(lambda dtype: 0)
    flops = per_operand

    def result_type(self, x: ArrayType) -> ArrayType:
        need_dtype(self, x)
        if not 0 <= self.axis < len(x.shape):
            raise BadArgument(f"{self.name}: the axis must be a dimension of {x}, got {self.axis}.")
        return x

    def sharding_rule(op, operands, results):
        return alike(op, operands, results)._replace(whole={op.axis})

    def batch(op: Any, dims: tuple[int], x: Any) -> tuple[Any, int]:
        """The batch rule: the same operation with its axis shifted."""
        (d,) = dims
        return perform(shared(type(op), op.axis + int(op.axis >= d), op.reverse), x), d


FEW = 64  # up to so many integers are summed by one operation per prefix
_BLOCK = 16  # elements whose prefixes are folded one by one


def _running(f: Any, unit: Any) -> Callable[..., Any]:
    """The ``evaluate`` rule of a cumulative ufunc, with the association order of compiled programs.

    Prefixes are folded from the lowest index; beyond ``_BLOCK`` elements, prefixes within blocks are combined with
    prefixes of the blocks' totals. So eager and compiled results overflow and round alike, and errors grow with log n.
    """

    def windows(x: Any, reverse: bool) -> Any:
        """The prefixes of ``x``, which may be overwritten."""
        one = x.dtype.type(unit)  # every prefix starts with it, so that a sum of -0 alone is 0
        if reverse:
            y = f(one, x.T)
            for last in range(1, len(y)):
                f(y[:last], x.T[last], out=y[:last])
            return y.T
        first = x[..., :1]
        f(one, first, out=first)
        if isinstance(f, np.ufunc) and x.size < 8192:  # beyond, all rows together are up to ten times as fast
            return f.accumulate(x, -1, out=x)
        for k in range(1, x.shape[-1]):
            f(x[..., k - 1], x[..., k], out=x[..., k])
        return x

    def blockwise(x: Any, reverse: bool) -> Any:
        size = x.shape[-1]
        if size <= _BLOCK:
            return windows(x.copy(), reverse)
        padded = np.empty((*x.shape[:-1], -(-size // _BLOCK) * _BLOCK), x.dtype)
        padded[..., :size] = x
        padded[..., size:] = unit
        blocks = windows(padded.reshape((*x.shape[:-1], -1, _BLOCK)), reverse)
        end, before, rest = (0, slice(1, None), slice(-1)) if reverse else (-1, slice(-1), slice(1, None))
        totals = blockwise(blocks[..., end], reverse)[..., before, None]
        f(totals, blocks[..., rest, :], out=blocks[..., rest, :])
        return blocks.reshape(padded.shape)[..., :size]

    def rule(op: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if x.dtype.kind in "iu":  # in any order
            y = f.accumulate(np.flip(x, op.axis) if op.reverse else x, op.axis, dtype=x.dtype)
            return np.flip(y, op.axis) if op.reverse else y
        y = x.astype(float32) if x.dtype in HALF else x
        return blockwise(y.swapaxes(op.axis, -1), op.reverse).swapaxes(op.axis, -1).astype(x.dtype, copy=False)

    return rule


def _running_extreme(ufunc: np.ufunc, larger: bool) -> Callable[..., Any]:
    """The ``evaluate`` rule of cumulative max and min, with -0 < +0."""

    def rule(op: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        x = np.flip(x, op.axis) if op.reverse else x
        y = with_signed_zeros(x, ufunc.accumulate(x, op.axis), larger, np.logical_or.accumulate, op.axis)
        y = whole_nan(y) if x.dtype.kind == "c" else y
        return np.flip(y, op.axis) if op.reverse else y

    return rule


_of_complex = assembled(complex_functions.logaddexp)


def _logaddexp_of_complex(x: Any, y: Any, out: Any = None) -> Any:
    """log(e^x + e^y) of complex arrays, into ``out`` where it is given."""
    z = _of_complex(x, y)
    if out is not None:
        out[...] = z
    return z


_logsumexp, _logsumexp_of_complex = _running(np.logaddexp, -np.inf), _running(_logaddexp_of_complex, -np.inf)


def _scanned(combine: Combine) -> Callable[..., Any]:
    """The jvp rule: the scan by ``combine`` of pairs of primal and tangent."""

    def rule(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        y, dy = prefixes(combine, [*primals, *tangents], op.axis, op.reverse)
        return y, dy

    return rule


def _lower(op: Any, emit: Any, x: Any, body: Callable[..., Any]) -> Any:
    """The lowering: a reduce_window as long as the dimension, padded on one side, so that each window is a prefix."""
    shape = x.type.shape
    size = shape[op.axis]
    if size == 0:
        return x
    window = [size if d == op.axis else 1 for d in range(len(shape))]
    low_high = (0, size - 1) if op.reverse else (size - 1, 0)
    padding = [low_high if d == op.axis else (0, 0) for d in range(len(shape))]
    ones = [1] * len(shape)
    start = emit.constant(op.unit(x.type.dtype), x.type.update(shape=()))
    return emit.reduce_window([x], [start], (window, ones, padding, ones, ones), [x.type], body)[0]


# y[k] = x[0] + ... + x[k]
@operation
class Cumsum(Cumulative):
    axis: int
    reverse: bool
    dtypes = NUMERIC | FOUR_BITS

    evaluate = in_bytes(_running(np.add, 0))
    jvp = linear

    def transpose(op, ct, x):
        return perform(shared(Cumsum, op.axis, not op.reverse), ct)

    def lower(op, emit, x):
        if x.type.dtype.kind in "iu" and len(x.type.shape) == 1 and surely_at_most(x.type.size, FEW):
            return emit.decompose(lambda x: _each_prefix(x, op.reverse), x)
        return emit.wide(x, lambda x: _lower(op, emit, x, lambda a, b: [emit.binary("add", a, b)]))


def _each_prefix(x: Any, reverse: bool) -> Any:
    """Prefix sums of a few integers, each an independent sum that XLA fuses, unlike a reduce_window."""
    square = (x.type.size, x.type.size)
    row, column = [broadcasted_iota(int32, square, d) for d in (0, 1)]
    within = ge(column, row) if reverse else le(column, row)
    each = broadcast_in_dim(x, square, (1,))
    return convert(reduce_sum(select(within, each, zeros(each.type)), (1,)), x.type.dtype, x.type.weak)


# y[k] = x[0] ... x[k]
@operation
class Cumprod(Cumulative):
    axis: int
    reverse: bool
    dtypes = NUMERIC | FOUR_BITS
    unit = staticmethod(lambda dtype: 1)

    evaluate = in_bytes(_running(np.multiply, 1))
    jvp = _scanned(product_rule)

    def lower(op, emit, x):
        return emit.wide(x, lambda x: _lower(op, emit, x, lambda a, b: [emit.binary("multiply", a, b)]))


def _extreme(choose: Callable[[Any, Any], Any], better: Callable[[Any, Any], Any]) -> Combine:
    """The combination for max and min of (primal, tangent) pairs; of equal primals the tangents' mean."""

    def combine(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
        (a, da), (b, db) = left, right
        mean = (da + db) * scalar(0.5, da.type.dtype, da.type.weak)
        return choose(a, b), select_n(eq(a, b), select_n(better(a, b), db, da), mean)

    return combine


def _lower_extreme(op: Any, emit: Any, x: Any, name: str, choose: Callable[[Any, Any], Any]) -> Any:
    """The lowering of running extremes: StableHLO's operation ``name`` combines two, for complex numbers ``choose``."""
    if is_complex(x.type.dtype):
        y = _lower(op, emit, x, lambda a, b: emit.decompose(lambda a, b: [choose(a, b)], a, b))
        return emit.decompose(performed_whole_nan, y)
    return _lower(op, emit, x, lambda a, b: [emit.binary(name, a, b)])


# y[k] = max(x[0], ..., x[k])
@operation
class Cummax(Cumulative):
    axis: int
    reverse: bool
    dtypes = ANY | FOUR_BITS
    unit = staticmethod(lowest)

    evaluate = in_bytes(_running_extreme(np.maximum, True))
    jvp = _scanned(_extreme(comparison.max, comparison.gt))

    def lower(op, emit, x):
        return _lower_extreme(op, emit, x, "maximum", comparison.max)


# y[k] = min(x[0], ..., x[k])
@operation
class Cummin(Cumulative):
    axis: int
    reverse: bool
    dtypes = ANY | FOUR_BITS
    unit = staticmethod(highest)

    evaluate = in_bytes(_running_extreme(np.minimum, False))
    jvp = _scanned(_extreme(comparison.min, comparison.lt))

    def lower(op, emit, x):
        return _lower_extreme(op, emit, x, "minimum", comparison.min)


def _logsumexp_rule(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
    """The logsumexp of two (primal, tangent) pairs; tangents are weighted by the softmax of the primals."""
    (a, da), (b, db) = left, right
    c = logaddexp(a, b)  # its own rule has all derivatives at ties, where those of max and abs have none
    return c, da * logaddexp_share(a, b, c) + db * logaddexp_share(b, a, c)


# y[k] = log(e^x[0] + ... + e^x[k])
@operation
class Cumlogsumexp(Cumulative):
    axis: int
    reverse: bool
    dtypes = INEXACT
    unit = staticmethod(lambda dtype: -np.inf)

    def evaluate(op, x):
        return (_logsumexp_of_complex if x.dtype.kind == "c" else _logsumexp)(op, x)

    jvp = _scanned(_logsumexp_rule)

    def lower(op, emit, x):
        body = lambda a, b: emit.decompose(lambda a, b: [stable_logaddexp(a, b)], a, b)
        return emit.wide(x, lambda x: _lower(op, emit, x, body))


def prefixes(combine: Combine, xs: Sequence[Any], axis: int, reverse: bool = False) -> list[Any]:
    """All prefixes of the arrays combined along ``axis``, in about log n steps: by recursion on pairs of neighbours.

    Source: Blelloch, Prefix sums and their applications (1990).
    """
    if reverse:
        return [rev(y, (axis,)) for y in prefixes(combine, [rev(x, (axis,)) for x in xs], axis)]
    size = xs[0].type.shape[axis]
    if type(size) is Extent:
        first = [slice_in_dim(x, 0, 1, axis=axis) for x in xs]
        one, rest = smaller(1, size), positive(size - 1)
        others = [slice_in_dim(x, one, one + rest, axis=axis) for x in xs]
        ys = LaterLayers.scan_along_lane(combine, first, others, axis)[1]
        return [concatenate([slice_in_dim(x, 0, one, axis=axis), y], axis) for x, y in zip(xs, ys)]
    if size < 2:
        return list(xs)

    def part(x: Any, start: int, limit: int | None = None, stride: int = 1) -> Any:
        return slice_in_dim(x, start, limit, stride, axis)

    pairs = combine([part(x, 0, size - 1, 2) for x in xs], [part(x, 1, None, 2) for x in xs])
    odd = prefixes(combine, pairs, axis)
    if size == 2:
        even = [part(x, 0, 1) for x in xs]
    else:
        before = [part(y, 0, -1) for y in odd] if size % 2 == 0 else odd
        rest = combine(before, [part(x, 2, None, 2) for x in xs])
        even = [concatenate([part(x, 0, 1), y], axis) for x, y in zip(xs, rest)]
    return [_interleave(a, b, axis) for a, b in zip(even, odd)]


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """The array even[0], odd[0], even[1], ...: the sum of both, padded with zeros between elements."""
    kind = even.type
    zero = scalar(False if is_bool(kind.dtype) else 0, kind.dtype, kind.weak)
    size = kind.shape[axis] + odd.type.shape[axis]

    def dilated(x: Any, low: int) -> Any:
        high = size - low - (2 * x.type.shape[axis] - 1)
        return pad(x, zero, [(low, high, 1) if d == axis else (0, 0, 0) for d in range(len(kind.shape))])

    return (bitwise_or if is_bool(kind.dtype) else add)(dilated(even, 0), dilated(odd, 1))


def _cumulative(kind: Any, operand: Any, axis: Any, reverse: bool) -> Any:
    """Perform the cumulative operation of this class."""
    x = as_array(operand)
    return perform(shared(kind, canonical_axis(axis, len(x.type.shape), kind.name), bool(reverse)), x)


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """``y[k] = operand[0] + ... + operand[k]`` along ``axis``; from k to the end where ``reverse``.

    >>> cumsum(np.array([1, 2, 3])), cumsum(np.array([1, 2, 3]), reverse=True)
    (Array([1, 3, 6], dtype=int64), Array([6, 5, 3], dtype=int64))
    """
    return _cumulative(Cumsum, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """``y[k] = operand[0] * ... * operand[k]`` along ``axis``; from k to the end where ``reverse``.

    >>> cumprod(np.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int64)
    """
    return _cumulative(Cumprod, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """``y[k] = max(operand[0], ..., operand[k])`` along ``axis``, NaN from the first one on.

    >>> cummax(np.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int64)
    """
    return _cumulative(Cummax, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """``y[k] = min(operand[0], ..., operand[k])`` along ``axis``, NaN from the first one on.

    >>> cummin(np.array([2, 3, 1]))
    Array([2, 2, 1], dtype=int64)
    """
    return _cumulative(Cummin, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
    """``y[k] = log(exp(operand[0]) + ... + exp(operand[k]))`` along ``axis``, without overflow.

    >>> cumlogsumexp(np.zeros(2)).shape
    (2,)
    """
    return _cumulative(Cumlogsumexp, operand, axis, reverse)


@boundary
def associative_scan(fn: Callable[[X, X], X], elems: X, reverse: bool = False, axis: int = 0) -> X:
    """All prefixes of ``elems`` combined by an associative function, in about log n steps.

        y[k] = fn(...fn(fn(elems[0], elems[1]), elems[2])..., elems[k])

    Shapes: leaves of ``elems`` have one size along ``axis``; ``fn`` combines such pytrees, many slices at once.
    Raises: ShapeMismatch: sizes differ, or there is no leaf. TreeMismatch: ``fn`` gives a tree of another structure.

    >>> associative_scan(lambda a, b: a * b, np.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int64)
    """
    if not callable(fn):
        raise BadArgument(f"associative_scan: the first argument must be a function, got {fn!r}.")
    leaves, tree = tree_flatten(elems)
    need_no_container("associative_scan", tree)
    xs = [as_array(x) for x in leaves]
    if not xs:
        raise ShapeMismatch("associative_scan: there must be at least one array to scan, got none.")
    axis = canonical_axis(axis, len(xs[0].type.shape), "associative_scan")
    if len({x.type.shape[axis : axis + 1] for x in xs}) > 1:
        raise ShapeMismatch(
            f"associative_scan: sizes along axis {axis} must agree, got {', '.join([str(x.type) for x in xs])}."
        )

    def combine(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        ys, made = tree_flatten(fn(tree_unflatten(tree, left), tree_unflatten(tree, right)))
        if made != tree:
            one, two, where = difference(tree, made)
            raise TreeMismatch(
                "associative_scan: the function must give a tree of the structure of elems, got "
                f"{two} for {one}{where}.",
                hint="return the same tree of containers as each argument.",
            )
        return [as_array(y) for y in ys]

    return tree_unflatten(tree, prefixes(combine, xs, axis, reverse))
