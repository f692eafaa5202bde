"""Comparison and selection: ==, <, ..., IEEE total order, select, max, min, clamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.errors import BadArgument, DTypeMismatch, ShapeMismatch
from ...base.stack import perform
from ...core.arrays import Array, as_array, as_arrays, scalar
from ...core.columns import SHARDING_RULE, zeros_like
from ...core.operation import operation
from ...sharding.sharding_rules import ShardingRule, numbered
from ...types import dtypes
from ...types.array_type import array_type
from ...types.dtypes import ANY, EVERY, ORDERED
from ..foundations.elementwise_factory import Elementwise, Function, elementwise, surface, unbroadcast
from ..foundations.half_precision import silent
from ..foundations.shapes import broadcast


def _comparison(
    name: str, symbol: str, family: Any, evaluate: Callable[..., Any], direction: str, total: bool = False
) -> Any:
    """The class of ``z = x symbol y``."""

    def lower(op, emit, x, y):
        x, y = emit.spread(x, y)
        if dtypes.is_complex(x.type.dtype) and direction not in ("EQ", "NE"):
            return _compare_parts(emit, direction, x, y)
        return emit.compare(direction, x, y, total)

    if total:
        order = ", in IEEE 754's total order: -NaN < -inf < -0 < +0 < inf < NaN"
    else:
        order = "" if symbol in ("==", "!=") else "; false where one is NaN, complex by real, then imaginary parts"
    shape = "Shapes: equal but for sizes 1, or rank 0"
    doc = f"``z[i] = x[i] {symbol} y[i]``{order}.\n\n    {shape}. The result is boolean."
    return elementwise(name, family, evaluate, arity=2, result=lambda dtype: dtypes.bool_, lower=lower, doc=doc)


def _compare_parts(emit, direction, x, y):
    """Compare complex numbers by their real parts, and where these are equal by their imaginary parts; NaN is false."""
    (a, c), (b, d) = emit.parts(x), emit.parts(y)
    by_imaginary, by_real = emit.compare(direction, c, d), emit.compare(direction, a, b)
    numbers = emit.binary("and", emit.compare("EQ", x, x), emit.compare("EQ", y, y))
    return emit.binary("and", numbers, emit.select(emit.compare("EQ", a, b), by_imaginary, by_real))


def total_order(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers ordered as IEEE 754's totalOrder orders the floats ``x``; other dtypes as they are."""
    if not dtypes.is_floating(x.dtype):
        return x
    signed = np.dtype(f"int{x.dtype.itemsize * 8}")
    bits = np.ascontiguousarray(x).reshape(x.shape).view(signed)
    return np.where(bits < 0, bits ^ np.asarray(np.iinfo(signed).max, signed), bits)


def _total(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: f(total_order(x), total_order(y))


# z = x == y, x != y, x < y, x <= y, x > y, x >= y
Eq = _comparison("eq", "==", EVERY, np.equal, "EQ")
Ne = _comparison("ne", "!=", EVERY, np.not_equal, "NE")
Lt = _comparison("lt", "<", EVERY, np.less, "LT")
Le = _comparison("le", "<=", EVERY, np.less_equal, "LE")
Gt = _comparison("gt", ">", EVERY, np.greater, "GT")
Ge = _comparison("ge", ">=", EVERY, np.greater_equal, "GE")
EqTo = _comparison("eq_to", "==", ORDERED, _total(np.equal), "EQ", total=True)
LtTo = _comparison("lt_to", "<", ORDERED, _total(np.less), "LT", total=True)
LeTo = _comparison("le_to", "<=", ORDERED, _total(np.less_equal), "LE", total=True)

eq: Function = surface(Eq)
ne: Function = surface(Ne)
lt: Function = surface(Lt)
le: Function = surface(Le)
gt: Function = surface(Gt)
ge: Function = surface(Ge)
eq_to: Function = surface(EqTo)
lt_to: Function = surface(LtTo)
le_to: Function = surface(LeTo)


@silent
def _chosen(which: Any, x: Any, y: Any) -> Any:
    return np.where(which, y, x)


def _chosen_case(which: Any, *cases: Any) -> Any:
    if len(cases) == 1:
        return np.broadcast_to(cases[0], np.broadcast_shapes(which.shape, cases[0].shape))
    if len(cases) == 2:
        return np.where(which if which.dtype.kind == "b" else which > 0, cases[1], cases[0])
    z = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        z = np.where(which <= i, cases[i], z)
    return z


# z[i] = cases[which[i]][i]
@operation
class SelectN(Elementwise):
    name = "select_n"
    dtypes = EVERY
    rounding = "correct"
    exempt = {"finite_differences": "the first operand is an index"}

    def result_type(op, which, *cases):  # type: ignore[override]
        if which.dtype != dtypes.bool_ and which.dtype != dtypes.int32:
            raise DTypeMismatch(f"select_n: the index must be bool or i32, got {which}.")
        if not cases or (which.dtype == dtypes.bool_ and len(cases) > 2):
            raise BadArgument(
                f"select_n: a boolean index needs one or two cases, an integer one at least one, got {len(cases)}."
            )
        first = cases[0]
        shape = first.shape
        weak = first.weak
        for case in cases[1:]:
            if case.dtype != first.dtype:
                raise DTypeMismatch(f"select_n: cases must have one dtype, got {' and '.join(map(str, cases))}.")
            shape = shape or case.shape
            if case.shape and case.shape != shape:
                raise ShapeMismatch(f"select_n: cases must have one shape, got {' and '.join(map(str, cases))}.")
            weak = weak and case.weak
        if which.shape and shape and which.shape != shape:
            raise ShapeMismatch(
                f"select_n: the index must have the shape of the cases or rank 0, got {which} for {shape}.",
                hint="hx.numpy.where broadcasts.",
            )
        return array_type(shape or which.shape, first.dtype, weak)

    linear_in = slice(1, None)

    def evaluate(op, which, *cases):
        return _chosen_case(which, *cases)

    def numpy_function(op, types):
        which, *cases = types
        dtype = cases[0].dtype
        if isinstance(dtype, dtypes.ExtendedDType):  # the words of a key are chosen together
            words = (1,) * len(dtype.shape) if which.shape else ()
            return lambda which, *cases: _chosen_case(which.reshape((*which.shape, *words)), *cases)
        return _chosen if which.dtype == dtypes.bool_ and len(cases) == 2 else None

    def jvp(op, primals, tangents):
        which, *cases = primals
        z = perform(op, *primals)
        if all(d is None for d in tangents[1:]):
            return z, None
        dcases = [zeros_like(x) if d is None else d for x, d in zip(cases, tangents[1:])]
        return z, perform(op, which, *dcases)

    def transpose(op, ct, which, *cases, wrt):
        zero = scalar(0, ct.type.dtype, ct.type.weak)
        chosen = [ct if i == wrt - 1 else zero for i in range(len(cases))]
        return unbroadcast(perform(op, which, *chosen), cases[wrt - 1])

    def lower(op, emit, which, *cases):
        result = emit.made
        cases = emit.spread(*cases)
        if len(cases) == 1:
            return cases[0]
        if which.type.shape != result.shape:
            which = which if which.type.dtype == dtypes.bool_ and not which.type.shape else emit.spread(which)[0]
        if which.type.dtype == dtypes.bool_:
            return emit.select(emit.aligned(which, result), cases[1], cases[0])
        z = cases[-1]
        for i in range(len(cases) - 2, -1, -1):
            below = emit.compare("LT", which, emit.full(i + 1, which.type))
            z = emit.select(emit.aligned(below, result), cases[i], z)
        return z


_select_n = SelectN()


def select_n(which: Any, *cases: Any) -> Array:
    """``select_n(which, *cases)[i] == cases[which[i]][i]``; an index out of range is clamped.

    Shapes: ``which: bool or i32`` of the shape of the cases or rank 0; cases of one dtype, of one shape or rank 0.
    Raises: DTypeMismatch, ShapeMismatch: the operands do not agree. BadArgument: more than two cases for a boolean.

    >>> select_n(np.array([True, False]), np.array([1, 2]), np.array([10, 20]))
    Array([10,  2], dtype=int64)
    """
    return perform(_select_n, as_array(which), *as_arrays(*cases))


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """``select(pred, x, y)[i] == x[i] if pred[i] else y[i]``: ``select_n(pred, y, x)``.

    >>> select(np.array([True, False]), np.array([1, 2]), np.array([10, 20]))
    Array([ 1, 20], dtype=int64)
    """
    return select_n(pred, on_false, on_true)


def _share(x: Any, y: Any, z: Any) -> Any:
    """The derivative of ``z``, max or min, by ``x``: 1 where ``x`` is chosen, 1/2 where both are equal, 0 elsewhere."""
    dtype, weak = z.type.dtype, z.type.weak
    zero, half, one = (scalar(value, dtype, weak) for value in (0, 0.5, 1))
    return select_n(eq(x, z), zero, select_n(eq(y, z), one, half))


def has_zero(x: Any, negative: bool) -> bool:
    """Whether a float array may have a zero of this sign; exactly, if it is large.

    As integers, -0 is the least one with a sign, and 0 the least one without.
    """
    size = x.dtype.itemsize
    if x.size <= _FEW:
        return x.tobytes().find(_ZEROS[negative].get(size, b"")) >= 0  # ``in`` takes ten times as long
    integer, least = _LEAST[negative, size]
    return bool(np.minimum.reduce(x.view(integer), axis=None) == least)


_FEW = 64
# the bytes of a zero, by whether it is negative and the size of the float
_ZEROS = {negative: {n: np.asarray(zero, f"f{n}").tobytes() for n in (2, 4, 8)}
          for negative, zero in ((False, 0.0), (True, -0.0))}
_LEAST = {(negative, n): (np.dtype(f"{'ui'[negative]}{n}"), -(1 << (8 * n - 1)) if negative else 0)
          for negative in (False, True) for n in (1, 2, 4, 8)}


def _signed_zeros(f: Callable[..., Any], larger: bool) -> Callable[..., Any]:
    """max or min with -0 < +0, as IEEE 754-2019 and StableHLO have it; NumPy's choice depends on the processor."""

    zeros = _ZEROS[larger]

    @silent
    def evaluate(x: Any, y: Any) -> Any:
        z = f(x, y)
        if z.size <= _FEW and z.tobytes().find(zeros.get(z.itemsize, b"")) < 0:  # ``has_zero``, without a call
            return z
        if z.dtype.kind not in "fV" or not has_zero(z, larger):
            return z
        signs = np.signbit(x), np.signbit(y)
        negative = signs[0] & signs[1] if larger else signs[0] | signs[1]
        return np.where(z == 0, np.where(negative, z.dtype.type(-0.0), z.dtype.type(0.0)), z)

    return evaluate


def _extreme(name: str, f: Callable[..., Any], stablehlo: str, direction: str, doc: str) -> Any:
    """The class of max or min; NumPy orders complex numbers by their real parts, then by their imaginary parts."""

    def lower(op, emit, x, y):
        if not dtypes.is_complex(emit.made.dtype):
            return emit.elementwise(stablehlo, x, y)
        x, y = emit.spread(x, y)
        chosen = _compare_parts(emit, direction, x, y)
        return emit.select(emit.binary("or", chosen, emit.compare("NE", x, x)), x, y)

    jvp = (lambda x, y, dx, z: dx * _share(x, y, z), lambda x, y, dy, z: dy * _share(y, x, z))
    return elementwise(name, ANY, f, arity=2, jvp=jvp, lower=lower, rounding="correct", doc=doc)


_maximum, _minimum = _signed_zeros(np.maximum, True), _signed_zeros(np.minimum, False)

# z = the larger, the smaller of x and y; NaN where one is NaN
Max = _extreme(
    "max", _maximum, "maximum", "GE",
    "``z[i]`` is the larger of ``x[i]`` and ``y[i]``, NaN where one is NaN; -0 is less than 0."
    "\n\n    Complex numbers are ordered by their real, then by their imaginary parts."
    "\n    The derivative is shared equally where both are equal.",
)
Min = _extreme(
    "min", _minimum, "minimum", "LE",
    "``z[i]`` is the smaller of ``x[i]`` and ``y[i]``, NaN where one is NaN; -0 is less than 0."
    "\n\n    Complex numbers are ordered by their real, then by their imaginary parts."
    "\n    The derivative is shared equally where both are equal.",
)
max: Function = surface(Max)
min: Function = surface(Min)


def _where(mask: Any, dx: Any, z: Any) -> Any:
    """``dx`` where the mask is true, zero elsewhere."""
    return select_n(mask, scalar(0, z.type.dtype, z.type.weak), broadcast(dx, z.type.shape))


def _clamped(op, emit, low, x, high):
    """Booleans by their bounds: XLA's older emitter for CPUs has no clamp of them."""
    if dtypes.is_bool(x.type.dtype):
        return emit.elementwise("and", emit.elementwise("or", x, low), high)
    return emit.elementwise("clamp", low, x, high)


# z = min(max(x, low), high)
Clamp = elementwise(
    "clamp", ORDERED, lambda low, x, high: _minimum(_maximum(x, low), high), arity=3,
    jvp=(
        lambda low, x, high, d, z: _where((low > x) & (low < high), d, z),
        lambda low, x, high, d, z: _where((x > low) & (x < high), d, z),
        lambda low, x, high, d, z: _where(high < x, d, z),
    ),
    lower=_clamped,
)


@SHARDING_RULE.rule(Clamp)
def _(op, operands, results):  # as x, however its bounds are cut
    bounded = [[("bound", i, d) for d in numbered(t)] for i, t in enumerate(operands)]
    return ShardingRule([bounded[0], numbered(operands[1]), bounded[2]], [numbered(results[0])])


_clamp = Clamp()


def clamp(min: Any, x: Any, max: Any) -> Array:
    """``clamp(low, x, high)[i] == min(max(x[i], low[i]), high[i])``.

    Shapes: the bounds have the shape of ``x`` or rank 0. The derivative by ``x`` is 1 strictly between the bounds.

    >>> clamp(0.0, np.float32(3.0), 1.0)
    Array(1., dtype=float32)
    """
    return perform(_clamp, *as_arrays(min, x, max))
