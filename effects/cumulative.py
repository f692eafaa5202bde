"""Running sums, products and extremes, and the scan by any associative function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import arithmetic, comparison
from .arithmetic import add, mul, neg, sub
from .arrays import lift, scalar
from .bitwise import bitwise_or
from .columns import linear
from .comparison import eq, ne, select_n
from .dtypes import ANY, FLOATING, NUMERIC, is_bool, is_complex
from .errors import BadArgument, DTypeMismatch, ShapeMismatch
from .operations import Operation, operation, shared
from .precise import wide
from .reductions import highest, lowest
from .shapes import canonical_axis
from .slicing import concatenate, pad, rev, slice_in_dim
from .special import exp, log1p
from .stack import perform
from .trees import tree_flatten, tree_unflatten
from .types import ArrayType

Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


class Cumulative(Operation):
    """y[k] = x[0] o x[1] o ... o x[k] along ``axis``, or x[k] o ... o x[n - 1] where ``reverse``."""

    __slots__ = ()
    axis: int
    reverse: bool

    def result_type(self, x: ArrayType) -> ArrayType:
        if self.dtypes is not None and x.dtype not in self.dtypes:
            raise DTypeMismatch(f"{self.name}: does not take {x}.")
        if not 0 <= self.axis < len(x.shape):
            raise BadArgument(f"{self.name}: the axis must be a dimension of {x}, got {self.axis}.")
        return x


def _accumulate(f: Callable[..., Any]) -> Callable[..., Any]:
    """The NumPy rule: ``f(x, axis)``, from the other end where ``op.reverse``."""

    def rule(op: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        y = wide(lambda v: f(v, op.axis))(np.flip(x, op.axis) if op.reverse else x)
        return np.flip(y, op.axis) if op.reverse else y

    return rule


def _batch(op: Any, dims: tuple[int], x: Any) -> tuple[Any, int]:
    (d,) = dims
    return perform(shared(type(op), op.axis + int(op.axis >= d), op.reverse), x), d


def _scanned(combine: Combine) -> Callable[..., Any]:
    """The derivative by the scan of pairs of a value and its tangent."""

    def rule(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        pair = [*primals, *tangents]
        return perform(op, *primals), prefixes(combine, pair, op.axis, op.reverse)[1]

    return rule


def _lower(op: Any, emit: Any, x: Any, unit: Any, body: Callable[..., Any]) -> Any:
    """A window as long as the dimension, over elements that reach out of it on one side."""
    shape = x.type.shape
    size = shape[op.axis]
    if size == 0:
        return x
    window = [size if d == op.axis else 1 for d in range(len(shape))]
    reach = (0, size - 1) if op.reverse else (size - 1, 0)
    padding = [reach if d == op.axis else (0, 0) for d in range(len(shape))]
    still = [1] * len(shape)
    start = emit.constant(unit, x.type.update(shape=()))
    return emit.reduce_window([x], [start], (window, still, padding, still, still), [x.type], body)[0]


# y[k] = x[0] + ... + x[k]
@operation
class Cumsum(Cumulative):
    axis: int
    reverse: bool
    dtypes = NUMERIC

    evaluate = _accumulate(lambda x, axis: np.cumsum(x, axis, dtype=x.dtype))
    batch = _batch
    jvp = linear

    def transpose(op, ct, x):
        return perform(shared(Cumsum, op.axis, not op.reverse), ct)

    def lower(op, emit, x):
        return _lower(op, emit, x, 0, lambda a, b: [emit.binary("add", a, b)])


def _times(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
    (a, da), (b, db) = left, right
    return mul(a, b), add(mul(da, b), mul(a, db))


# y[k] = x[0] ... x[k]
@operation
class Cumprod(Cumulative):
    axis: int
    reverse: bool
    dtypes = NUMERIC

    evaluate = _accumulate(lambda x, axis: np.cumprod(x, axis, dtype=x.dtype))
    batch = _batch
    jvp = _scanned(_times)

    def lower(op, emit, x):
        return _lower(op, emit, x, 1, lambda a, b: [emit.binary("multiply", a, b)])


def _extreme(choose: Callable[[Any, Any], Any]) -> Combine:
    """The larger (or smaller) with its tangent; the mean of both tangents where they are equal."""

    def combine(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
        (a, da), (b, db) = left, right
        c = choose(a, b)
        half = scalar(0.5, c.type.dtype, c.type.weak)
        return c, select_n(eq(a, c), db, select_n(eq(b, c), da, mul(add(da, db), half)))

    return combine


def _lower_extreme(op: Any, emit: Any, x: Any, name: str, unit: Any, choose: Callable[[Any, Any], Any]) -> Any:
    if is_complex(x.type.dtype):
        return _lower(op, emit, x, unit, lambda a, b: emit.decompose(lambda a, b: [choose(a, b)], a, b))
    return _lower(op, emit, x, unit, lambda a, b: [emit.binary(name, a, b)])


# y[k] = max(x[0], ..., x[k])
@operation
class Cummax(Cumulative):
    axis: int
    reverse: bool
    dtypes = ANY

    evaluate = _accumulate(lambda x, axis: np.maximum.accumulate(x, axis))
    batch = _batch
    jvp = _scanned(_extreme(comparison.max))

    def lower(op, emit, x):
        return _lower_extreme(op, emit, x, "maximum", lowest(x.type.dtype), comparison.max)


# y[k] = min(x[0], ..., x[k])
@operation
class Cummin(Cumulative):
    axis: int
    reverse: bool
    dtypes = ANY

    evaluate = _accumulate(lambda x, axis: np.minimum.accumulate(x, axis))
    batch = _batch
    jvp = _scanned(_extreme(comparison.min))

    def lower(op, emit, x):
        return _lower_extreme(op, emit, x, "minimum", highest(x.type.dtype), comparison.min)


def _log_add(a: Any, b: Any) -> Any:
    """log(e^a + e^b); equal infinities have no difference."""
    far = sub(a, b)
    near = log1p(exp(neg(arithmetic.abs(far))))
    return select_n(ne(far, far), add(comparison.max(a, b), near), add(a, b))


def _jvp_logsumexp(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Each element counts with its share of the sum: scan pairs of the running logsumexp and the weighted tangent."""

    def share(a: Any, c: Any) -> Any:
        # infinities cancel in the difference of equal ones
        return select_n(eq(a, c), exp(sub(a, c)), scalar(1, c.type.dtype, c.type.weak))

    def combine(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
        (a, da), (b, db) = left, right
        c = _log_add(a, b)
        return c, add(mul(da, share(a, c)), mul(db, share(b, c)))

    pair = [*primals, *tangents]
    return perform(op, *primals), prefixes(combine, pair, op.axis, op.reverse)[1]


# y[k] = log(e^x[0] + ... + e^x[k])
@operation
class Cumlogsumexp(Cumulative):
    axis: int
    reverse: bool
    dtypes = FLOATING

    evaluate = _accumulate(lambda x, axis: np.logaddexp.accumulate(x, axis))
    batch = _batch
    jvp = _jvp_logsumexp

    def lower(op, emit, x):
        return _lower(op, emit, x, -np.inf, lambda a, b: emit.decompose(lambda a, b: [_log_add(a, b)], a, b))


def prefixes(combine: Combine, xs: Sequence[Any], axis: int, reverse: bool = False) -> list[Any]:
    """All prefixes of arrays combined along ``axis``, in log n steps: pairs first, then every second prefix of these.

    Source: Blelloch, Prefix sums and their applications (1990).
    """
    if reverse:
        return [rev(y, (axis,)) for y in prefixes(combine, [rev(x, (axis,)) for x in xs], axis)]
    size = xs[0].type.shape[axis]
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
    """even[0], odd[0], even[1], ...: both spread out over zeros, and added."""
    kind = even.type
    zero = scalar(False if is_bool(kind.dtype) else 0, kind.dtype, kind.weak)
    size = kind.shape[axis] + odd.type.shape[axis]

    def spread(x: Any, low: int) -> Any:
        high = size - low - (2 * x.type.shape[axis] - 1)
        return pad(x, zero, [(low, high, 1) if d == axis else (0, 0, 0) for d in range(len(kind.shape))])

    return (bitwise_or if is_bool(kind.dtype) else add)(spread(even, 0), spread(odd, 1))


def _cumulative(kind: Any, operand: Any, axis: Any, reverse: bool) -> Any:
    x = lift(operand)
    return perform(shared(kind, canonical_axis(axis, len(x.type.shape), kind.name), bool(reverse)), x)


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``y[k] = operand[0] + ... + operand[k]`` along ``axis``; from k to the end where ``reverse``.

    >>> cumsum(np.array([1, 2, 3])), cumsum(np.array([1, 2, 3]), reverse=True)
    (Array([1, 3, 6], dtype=int64), Array([6, 5, 3], dtype=int64))
    """
    return _cumulative(Cumsum, operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``y[k] = operand[0] * ... * operand[k]`` along ``axis``; from k to the end where ``reverse``.

    >>> cumprod(np.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int64)
    """
    return _cumulative(Cumprod, operand, axis, reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``y[k] = max(operand[0], ..., operand[k])`` along ``axis``, NaN from the first one on.

    >>> cummax(np.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int64)
    """
    return _cumulative(Cummax, operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``y[k] = min(operand[0], ..., operand[k])`` along ``axis``, NaN from the first one on.

    >>> cummin(np.array([2, 3, 1]))
    Array([2, 2, 1], dtype=int64)
    """
    return _cumulative(Cummin, operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """``y[k] = log(exp(operand[0]) + ... + exp(operand[k]))`` along ``axis``, without overflow.

    >>> cumlogsumexp(np.zeros(2)).shape
    (2,)
    """
    return _cumulative(Cumlogsumexp, operand, axis, reverse)


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of ``elems`` combined by an associative function, in about log n steps.

        y[k] = fn(...fn(fn(elems[0], elems[1]), elems[2])..., elems[k])

    Shapes: leaves of ``elems`` have one size along ``axis``; ``fn`` combines trees of arrays, many slices at once.
    Raises: ShapeMismatch: sizes differ, or there is no leaf.

    >>> associative_scan(lambda a, b: a * b, np.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int64)
    """
    if not callable(fn):
        raise BadArgument(f"associative_scan: the first argument must be a function, got {fn!r}.")
    leaves, tree = tree_flatten(elems)
    xs = [lift(x) for x in leaves]
    if not xs:
        raise ShapeMismatch("associative_scan: there must be at least one array to scan, got none.")
    axis = canonical_axis(axis, len(xs[0].type.shape), "associative_scan")
    if len({x.type.shape[axis : axis + 1] for x in xs}) > 1:
        raise ShapeMismatch(
            f"associative_scan: sizes along axis {axis} must agree, got {', '.join([str(x.type) for x in xs])}."
        )

    def combine(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        return [lift(y) for y in tree_flatten(fn(tree_unflatten(tree, left), tree_unflatten(tree, right)))[0]]

    return tree_unflatten(tree, prefixes(combine, xs, axis, reverse))
