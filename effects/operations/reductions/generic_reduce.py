"""Reduction by any associative function, recorded as a program of scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...base.errors import BadArgument, CannotCross, DTypeMismatch, ShapeMismatch, need_function
from ...base.later_layers import LaterLayers
from ...base.stack import BASE, inside, perform
from ...base.tracebacks import boundary
from ...core.arrays import ConcreteArray, as_array, concrete, is_number
from ...core.columns import zeros_like
from ...core.operation import Operation, operation, shared
from ...functions.out_shardings import cuts_result
from ...programs.higher_order import HigherOrder, record_body
from ...programs.program import Program, interpret
from ...trees.pytrees import tree_flatten, tree_unflatten
from ...types.array_type import ArrayType
from ..elementwise import arithmetic, bitwise, comparison
from ..elementwise.arithmetic import Add, Mul
from ..elementwise.conversion import convert
from ..foundations.elementwise_factory import Elementwise
from ..foundations.shapes import ReduceSum, broadcast_in_dim, canonical_axes, permute, reshape
from ..manipulation.slicing import axis_at, concatenate, lanes_first, slice_in_dim
from .reductions import Combine, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceXor

# associative and commutative functions, the elementwise operations that they perform, and the reductions by these
_FUNCTIONS: tuple[tuple[Any, Any, Any], ...] = (
    (arithmetic.add, Add, ReduceSum), (arithmetic.mul, Mul, ReduceProd), (comparison.max, comparison.Max, ReduceMax),
    (comparison.min, comparison.Min, ReduceMin), (bitwise.bitwise_and, bitwise.And, ReduceAnd),
    (bitwise.bitwise_or, bitwise.Or, ReduceOr), (bitwise.bitwise_xor, bitwise.Xor, ReduceXor),
)
MONOIDS: Mapping[Any, Any] = {kind: reduction for _, kind, reduction in _FUNCTIONS}


def function_of(computation: Any) -> type[Operation] | None:
    """The class in ``MONOIDS`` of the operation that this function of lax performs, or None."""
    return next((kind for function, kind, _ in _FUNCTIONS if function is computation), None)


def over_elements(body: Program) -> Combine:
    """A program of scalars as an elementwise function of lists of arrays of one shape."""
    direct = all(issubclass(kind, Elementwise) for kind in body.operations)

    def combine(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
        xs = [*left, *right]
        shape = xs[0].type.shape
        if direct:
            ys = interpret(body, xs)
            return [y if y.type.shape == shape else broadcast_in_dim(y, shape, ()) for y in ys]
        lanes = [reshape(x, (x.type.size,)) for x in xs]
        size = lanes[0].type.size
        program, dims = LaterLayers.batch_program(body, (0,) * len(xs), size)
        ys = interpret(program, lanes)
        return [reshape(axis_at(y, d, 0, size), shape) for y, d in zip(ys, dims)]

    return combine


def fold_with(combine: Combine, starts: Sequence[Any], xs: Sequence[Any], axes: Sequence[int]) -> Sequence[Any]:
    """``starts`` combined with all elements along ``axes`` in order, by a tree: neighbours first, until one slice is
    left.

    ``starts`` have rank 0, or are vectors along the first dimension of the arrays, which is none of ``axes``.
    """
    shape = xs[0].type.shape
    remaining = tuple([d for d in range(len(shape)) if d not in axes])
    result = tuple([shape[d] for d in remaining])
    count = int(np.prod([shape[d] for d in axes], dtype=int))
    first = [s if s.type.shape == result else broadcast_in_dim(s, result, tuple(range(s.ndim))) for s in starts]
    if count == 0:
        return first
    rows = [reshape(permute(x, (*axes, *remaining)), (count, *result)) for x in xs]
    while count > 1:
        even = count - count % 2
        pairs = combine([slice_in_dim(x, 0, even, 2) for x in rows], [slice_in_dim(x, 1, even, 2) for x in rows])
        rows = [concatenate([y, slice_in_dim(x, even, count)], 0) if count % 2 else y for y, x in zip(pairs, rows)]
        count = (count + 1) // 2
    return combine(first, [reshape(x, result) for x in rows])


def derived_combination(
    op: Any, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Combine, Callable[[slice], list[Any]], list[int]]:
    """The jvp of a fold by a body: a fold of primals and tangents.

    Returns the function that combines two lists of values followed by tangents, a function that makes such a list of
    the initial values or the operands, and the indices of those with a tangent.
    """
    count, body = op.carry, op.bodies[0]
    marks = tuple([a is not None or b is not None for a, b in zip(tangents[:count], tangents[count:])])
    while True:  # the least fixed point: a result with a tangent is an operand of the next step
        program, out_marks = LaterLayers.jvp_program(body, (*marks, *marks))
        joined = tuple([a or b for a, b in zip(marks, out_marks)])
        if joined == marks:
            break
        marks = joined
    active = [i for i in range(count) if marks[i]]
    step = over_elements(program)

    def combine(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
        a, da, b, db = left[:count], left[count:], right[:count], right[count:]
        results = step([*a, *b], [*da, *db])
        derived = iter(results[count:])
        known = {i: next(derived) for i in range(count) if out_marks[i]}
        return [*results[:count], *[known[i] if i in known else zeros_like(results[i]) for i in active]]

    def pairs(part: slice) -> list[Any]:
        xs, dxs = primals[part], tangents[part]
        return [*xs, *[zeros_like(xs[i]) if dxs[i] is None else dxs[i] for i in active]]

    return combine, pairs, active


class HigherOrderFold(HigherOrder):
    """A fold of arrays by an associative function of scalars, the body; operands are ``carry`` initial values, then as
    many arrays.

    ``fold(combine, starts, xs)`` combines the initial values, of which each lane may have its own, with the elements of
    the arrays, in order; ``with_lanes()`` is the operation on arrays with lanes along a further, first dimension.
    """

    __slots__ = ()
    runs = "loop"
    prunes = False
    shared = 0
    fold: ClassVar[Callable[..., Sequence[Any]]]
    with_lanes: ClassVar[Callable[..., Any]]

    def forwards(self, result: int) -> int | None:
        """None: no result of the body is one of the operands unchanged."""
        return None

    def folded_types(op: Any, types: Sequence[ArrayType], shape: Callable[[ArrayType], Any]) -> tuple[ArrayType, ...]:
        """The types of the results, with shape ``shape(t)`` for an operand of type t, after checks of the operands."""
        starts, xs = types[: op.carry], types[op.carry :]
        if len(xs) != len(starts) or not xs:
            raise BadArgument(f"{op.name}: there must be one start for each operand, got {len(starts)} for {len(xs)}.")
        shown = ", ".join(map(str, types))
        if any(x.shape != xs[0].shape for x in xs) or any(s.shape for s in starts):
            raise ShapeMismatch(f"{op.name}: operands need one shape, starts rank 0, got {shown}.")
        if any(s.dtype != x.dtype for s, x in zip(starts, xs)):
            raise DTypeMismatch(f"{op.name}: starts must have the operands' dtypes, got {shown}.")
        return tuple([t.update(shape=shape(xs[0])) for t in op.bodies[0].out_types])

    def evaluate(op: Any, *values: Any) -> Any:
        with inside(BASE):
            xs = [concrete(t.update(shape=x.shape), x) for t, x in zip(op.bodies[0].in_types, values)]
            return tuple([y.value for y in op.fold(over_elements(op.bodies[0]), xs[: op.carry], xs[op.carry :])])

    def batch(op: Any, dims: Any, *operands: Any) -> Any:
        lanes, beside = lanes_first(operands, dims), op.with_lanes()
        if all(d is None for d in dims[: op.carry]):
            return perform(beside, *operands[: op.carry], *lanes[op.carry :]), 0
        return beside.fold(over_elements(op.bodies[0]), lanes[: op.carry], lanes[op.carry :]), 0

    def jvp(op: Any, primals: Any, tangents: Any) -> Any:
        combine, pairs, active = derived_combination(op, primals, tangents)
        derived = op.fold(combine, pairs(slice(0, op.carry)), pairs(slice(op.carry, None)))
        dys = dict(zip(active, derived[op.carry :]))
        return perform(op, *primals), [dys.get(i) for i in range(op.carry)]


# y[j] = start o x[i] o ... over i along axes; o is the body, an associative function of scalars
@operation
class Reduce(HigherOrderFold):
    bodies: tuple[Program, ...]
    carry: int
    axes: tuple[int, ...]
    param_names = {"axes": "dimensions"}

    def fold(op, combine, starts, xs):
        return fold_with(combine, starts, xs, op.axes)

    def result_type(op, *types):
        def shape(x):
            if not op.axes or not all(0 <= axis < len(x.shape) for axis in op.axes):
                raise BadArgument(f"reduce: there must be axes, all of them dimensions of {x}, got {op.axes}.")
            return tuple([n for d, n in enumerate(x.shape) if d not in op.axes])

        return op.folded_types(types, shape)

    def times(op, *types):
        return types[-1].size

    def with_lanes(op):
        return Reduce(op.bodies, op.carry, tuple([axis + 1 for axis in op.axes]))

    def lower(op, emit, *values):
        return emit.fold(values[op.carry :], values[: op.carry], op.axes, lambda *v: emit.program(op.bodies[0], v))


def monoid(body: Program) -> type[Operation] | None:
    """The class in ``MONOIDS`` of the operation that is the entire body, or None."""
    if len(body.ops) != 1 or body.outs != (2,) or body.args[0] not in ((0, 1), (1, 0)):
        return None
    kind = type(body.ops[0])
    return kind if kind in MONOIDS else None


def body_of(name: str, computation: Callable[[Any, Any], Any], tree: Any, types: Sequence[Any]) -> Program:
    """The program of ``computation``, a function of two pytrees of scalars of these types that returns such a pytree.

    Raises: BadArgument, DTypeMismatch, CannotCross: it returns something else, performs an effect or closes over a box.
    """

    def flat(*xs: Any) -> list[Any]:
        half = len(types)
        leaves, out_tree = tree_flatten(computation(tree_unflatten(tree, xs[:half]), tree_unflatten(tree, xs[half:])))
        if out_tree != tree:
            raise BadArgument(f"{name}: the computation must give a tree like its arguments, {tree}, got {out_tree}.")
        ys = [as_array(y) for y in leaves]
        for y, t in zip(ys, types):
            if y.type.shape or y.type.dtype != t.dtype:
                raise DTypeMismatch(f"{name}: the computation must give {t} for {t}, got {y.type}.")
        return [convert(y, t.dtype, t.weak) for y, t in zip(ys, types)]

    body = record_body(flat, [*types, *types], name)
    if body.effects:
        raise CannotCross(
            f"{name}: the computation must be pure, as its order is not defined, got the effects {set(body.effects)}.",
            hint="lax.scan and lax.fori_loop iterate in order.",
        )
    if not body.closed:
        raise BadArgument(
            f"{name}: the computation may use its arguments and constants only, but it uses a value being transformed.",
            hint="combine with that value outside, or use lax.scan.",
        )
    return body


def starts_and_operands(name: str, init_values: Any, operands: Any) -> tuple[list[Any], list[Any], Any]:
    """The leaves of two trees with the same structure, and the structure.

    Raises: BadArgument: the structures differ. ShapeMismatch: a start is no scalar.
    """
    leaves, tree = tree_flatten(operands)
    initial, start_tree = tree_flatten(init_values)
    if tree != start_tree or not leaves:
        raise BadArgument(f"{name}: starts must form a tree like the operands, {tree}, got {start_tree}.")
    xs = [as_array(x) for x in leaves]
    starts = [start_of(value, x) for value, x in zip(initial, xs)]
    if any([start.type.shape for start in starts]):
        raise ShapeMismatch(f"{name}: starts must be scalars, got {', '.join([str(start.type) for start in starts])}.")
    return starts, xs, tree


@boundary
@cuts_result
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Reduce arrays over ``dimensions`` by an associative function, of which the initial value is an identity.

        y = computation(...computation(computation(init, x[0]), x[1])..., x[n - 1])

    Shapes: leaves of ``operands`` have one shape, those of ``init_values`` rank 0. The computation takes two
        pytrees of scalars, or of arrays of scalars.
    Raises: DTypeMismatch: a start or a result has another dtype than its operand. CannotCross: the computation performs
        an effect.
    Source: the StableHLO specification, ``reduce``.

    >>> reduce(np.array([1, 5, 3]), 0, comparison.max, (0,))
    Array(5, dtype=int64)
    """
    need_function("reduce", computation)
    starts, xs, tree = starts_and_operands("reduce", init_values, operands)
    axes = canonical_axes(dimensions, len(xs[0].type.shape), "reduce")
    body = body_of("reduce", computation, tree, [x.type.update(shape=()) for x in xs])
    known = monoid(body)
    if known is not None:
        y = perform(shared(MONOIDS[known], axes), xs[0])
        return tree_unflatten(tree, [y if _is_unit(known, starts[0]) else perform(known(), y, starts[0])])
    if not axes:
        return tree_unflatten(tree, list(fold_with(over_elements(body), starts, xs, axes)))
    return tree_unflatten(tree, list(perform(Reduce((body,), len(xs), axes), *starts, *xs)))


def start_of(value: Any, x: Any) -> Any:
    """The initial value as an array; Python numbers and weak arrays get the dtype and weakness of the operand ``x``."""
    if is_number(value):
        return convert(value, x.type.dtype, x.type.weak)
    start = as_array(value)
    return convert(start, x.type.dtype, x.type.weak) if start.type.weak or start.type.dtype == x.type.dtype else start


def _is_unit(kind: type[Operation], start: Any) -> bool:
    """Whether ``start`` is statically known to be the operation's identity, the value of its reduction over no element.
    """
    if not isinstance(start, ConcreteArray):
        return False
    with inside(BASE):
        nothing = concrete(start.type.update(shape=(0,)), np.zeros((0,), start.type.dtype))
        return bool(perform(shared(MONOIDS[kind], (0,)), nothing).value == start.value)
