"""Reduction by any associative function: what ``reductions`` has for the common ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import bitwise, comparison
from .arithmetic import Add, Mul
from .arrays import ConcreteArray, concrete, lift, scalar
from .columns import zeros_like
from .control import HigherOrder, bodies, record_body
from .conversion import convert
from .elementwise import Elementwise
from .errors import BadArgument, CannotCross, DTypeMismatch, ShapeMismatch, need_function
from .operations import Operation, operation, shared
from .programs import Program, interpret
from .reductions import ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceXor
from .refusals import no_sharding
from .shapes import ReduceSum, broadcast_in_dim, canonical_axes, permute, reshape
from .slicing import axis_at, concatenate, slice_in_dim
from .stack import BASE, inside, perform
from .trees import tree_flatten, tree_unflatten

Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]

# operations that are associative and commutative, with the reduction by each
MONOIDS: Mapping[Any, Any] = {
    Add: ReduceSum, Mul: ReduceProd, comparison.Max: ReduceMax, comparison.Min: ReduceMin,
    bitwise.And: ReduceAnd, bitwise.Or: ReduceOr, bitwise.Xor: ReduceXor,
}  # fmt: skip


def elementwise(body: Program) -> Combine:
    """A body on numbers, for arrays of them: lists of arrays of one shape to lists of such arrays."""
    direct = all(issubclass(kind, Elementwise) for kind in body.operations)

    def combine(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
        xs = [*left, *right]
        shape = xs[0].type.shape
        if direct:
            ys = interpret(body, xs)
            return [y if y.type.shape == shape else broadcast_in_dim(y, shape, ()) for y in ys]
        lanes = [reshape(x, (x.type.size,)) for x in xs]
        size = lanes[0].type.size
        program, dims = bodies().batch(body, (0,) * len(xs), size)
        ys = interpret(program, lanes)
        return [reshape(axis_at(y, d, 0, size), shape) for y, d in zip(ys, dims)]

    return combine


def fold_with(combine: Combine, starts: Sequence[Any], xs: Sequence[Any], axes: Sequence[int]) -> Sequence[Any]:
    """``starts`` combined with all elements along ``axes`` in order: neighbours first, until one slice is left."""
    shape = xs[0].type.shape
    kept = tuple([d for d in range(len(shape)) if d not in axes])
    made = tuple([shape[d] for d in kept])
    count = int(np.prod([shape[d] for d in axes], dtype=int))
    first = [s if s.type.shape == made else broadcast_in_dim(s, made, ()) for s in starts]
    if count == 0:
        return first
    rows = [reshape(permute(x, (*axes, *kept)), (count, *made)) for x in xs]
    while count > 1:
        even = count - count % 2
        pairs = combine([slice_in_dim(x, 0, even, 2) for x in rows], [slice_in_dim(x, 1, even, 2) for x in rows])
        rows = [concatenate([y, slice_in_dim(x, even, count)], 0) if count % 2 else y for y, x in zip(pairs, rows)]
        count = (count + 1) // 2
    return combine(first, [reshape(x, made) for x in rows])


# y[j, ...] = start o x[i] o ... over i along axes, o being the body, an associative function of numbers
@operation
class Reduce(HigherOrder):
    bodies: tuple[Program, ...]
    carry: int
    axes: tuple[int, ...]
    runs = "loop"
    prunes = False
    shared = 0

    def result_type(op, *types):
        starts, xs = types[: op.carry], types[op.carry :]
        if len(xs) != len(starts) or not xs:
            raise BadArgument(f"reduce: there must be one start for each operand, got {len(starts)} for {len(xs)}.")
        shape = xs[0].shape
        if any(x.shape != shape for x in xs) or any(s.shape for s in starts):
            raise ShapeMismatch(f"reduce: one shape for operands, rank 0 for starts, got {', '.join(map(str, types))}.")
        if not op.axes or not all(0 <= axis < len(shape) for axis in op.axes):
            raise BadArgument(f"reduce: there must be axes, all of them dimensions of {xs[0]}, got {op.axes}.")
        if any(s.dtype != x.dtype for s, x in zip(starts, xs)):
            raise DTypeMismatch(f"reduce: starts must have the operands' dtypes, got {', '.join(map(str, types))}.")
        kept = tuple([n for d, n in enumerate(shape) if d not in op.axes])
        return tuple([t.update(shape=kept) for t in op.bodies[0].out_types])

    def times(op, *types):
        return types[-1].size

    def evaluate(op, *values):
        with inside(BASE):
            made = op.bodies[0].in_types
            xs = [concrete(t.update(shape=x.shape), x) for t, x in zip(made, values)]
            ys = fold_with(elementwise(op.bodies[0]), xs[: op.carry], xs[op.carry :], op.axes)
            return tuple([y.value for y in ys])

    def batch(op, dims, *operands):
        size = next(x.type.shape[d] for x, d in zip(operands, dims) if d is not None)
        starts, xs = operands[: op.carry], [axis_at(x, d, 0, size) for x, d in zip(operands, dims)][op.carry :]
        axes = tuple([axis + 1 for axis in op.axes])
        if all(d is None for d in dims[: op.carry]):
            return perform(Reduce(op.bodies, op.carry, axes), *starts, *xs), 0
        kept = (size, *[n for d, n in enumerate(xs[0].type.shape[1:]) if d not in op.axes])
        lanes = [broadcast_in_dim(axis_at(s, d, 0, size), kept, (0,)) for s, d in zip(starts, dims)]
        return fold_with(elementwise(op.bodies[0]), lanes, xs, axes), 0

    def jvp(op, primals, tangents):
        count, body = op.carry, op.bodies[0]
        marks = tuple([a is not None or b is not None for a, b in zip(tangents[:count], tangents[count:])])
        while True:
            program, found = bodies().jvp(body, (*marks, *marks))
            joined = tuple([a or b for a, b in zip(marks, found)])
            if joined == marks:
                break
            marks = joined
        moving = [i for i in range(count) if marks[i]]
        step = elementwise(program)

        def combine(left: Sequence[Any], right: Sequence[Any]) -> Sequence[Any]:
            a, da, b, db = left[:count], left[count:], right[:count], right[count:]
            results = step([*a, *b], [*da, *db])
            derived = iter(results[count:])
            known = {i: next(derived) for i in range(count) if found[i]}
            return [*results[:count], *[known[i] if i in known else zeros_like(results[i]) for i in moving]]

        def pairs(part: slice) -> list[Any]:
            xs, dxs = primals[part], tangents[part]
            return [*xs, *[zeros_like(xs[i]) if dxs[i] is None else dxs[i] for i in moving]]

        derived = fold_with(combine, pairs(slice(0, count)), pairs(slice(count, None)), op.axes)[count:]
        dys = dict(zip(moving, derived))
        return perform(op, *primals), [dys.get(i) for i in range(count)]

    def lower(op, emit, *values):
        return emit.fold(values[op.carry :], values[: op.carry], op.axes, lambda *v: emit.program(op.bodies[0], v))


def monoid(body: Program) -> type[Operation] | None:
    """The one operation that a body is, where it is associative and commutative."""
    if len(body.ops) != 1 or body.outs != (2,) or body.args[0] not in ((0, 1), (1, 0)):
        return None
    kind = type(body.ops[0])
    return kind if kind in MONOIDS else None


def body_of(name: str, computation: Callable[[Any, Any], Any], tree: Any, types: Sequence[Any]) -> Program:
    """The program of a function of two trees of numbers, which gives such a tree."""

    def flat(*xs: Any) -> list[Any]:
        half = len(types)
        leaves, made = tree_flatten(computation(tree_unflatten(tree, xs[:half]), tree_unflatten(tree, xs[half:])))
        if made != tree:
            raise BadArgument(f"{name}: the computation must give a tree like its arguments, {tree}, got {made}.")
        ys = [lift(y) for y in leaves]
        for y, t in zip(ys, types):
            if y.type.shape or y.type.dtype != t.dtype:
                raise DTypeMismatch(f"{name}: the computation must give {t} for {t}, got {y.type}.")
        return [convert(y, t.dtype, t.weak) for y, t in zip(ys, types)]

    body = record_body(flat, [*types, *types], name)
    if body.effects:
        raise CannotCross(
            f"{name}: the computation must be pure, for its order is not fixed; it performs {set(body.effects)}.",
            hint="lax.scan and lax.fori_loop run in order.",
        )
    if not body.closed:
        raise BadArgument(
            f"{name}: the computation may use its arguments and constants only, but it uses a value being transformed.",
            hint="combine with that value outside, or use lax.scan.",
        )
    return body


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Fold arrays over ``dimensions`` by an associative function of which the start is a unit.

        y = computation(...computation(computation(init, x[0]), x[1])..., x[n - 1])

    Shapes: leaves of ``operands`` have one shape, those of ``init_values`` rank 0. The computation takes two trees of
        numbers, or of arrays of them.
    Raises: DTypeMismatch: a start or a result has another dtype than its operand. CannotCross: the computation performs
        an effect.
    Source: the StableHLO specification, ``reduce``.

    >>> reduce(np.array([1, 5, 3]), 0, comparison.max, (0,))
    Array(5, dtype=int64)
    """
    no_sharding("reduce", out_sharding)
    need_function("reduce", computation)
    leaves, tree = tree_flatten(operands)
    initial, start_tree = tree_flatten(init_values)
    if tree != start_tree or not leaves:
        raise BadArgument(f"reduce: starts must form a tree like the operands, {tree}, got {start_tree}.")
    xs = [lift(x) for x in leaves]
    starts = [_start(value, x) for value, x in zip(initial, xs)]
    axes = canonical_axes(dimensions, len(xs[0].type.shape), "reduce")
    types = [x.type.update(shape=()) for x in xs]
    body = body_of("reduce", computation, tree, types)
    known = monoid(body)
    if known is not None:
        y = perform(shared(MONOIDS[known], axes), xs[0])
        return tree_unflatten(tree, [y if _is_unit(known, starts[0]) else perform(known(), y, starts[0])])
    if not axes:
        return tree_unflatten(tree, list(fold_with(elementwise(body), starts, xs, axes)))
    return tree_unflatten(tree, list(perform(Reduce((body,), len(xs), axes), *starts, *xs)))


def _start(value: Any, x: Any) -> Any:
    """A start with the operand's type: a number takes its dtype."""
    if isinstance(value, (bool, int, float, complex)):
        return scalar(value, x.type.dtype, x.type.weak)
    start = lift(value)
    return convert(start, x.type.dtype, x.type.weak) if start.type.weak or start.type.dtype == x.type.dtype else start


def _is_unit(kind: type[Operation], start: Any) -> bool:
    """Whether combining with ``start`` changes nothing: the reduction of no element at all."""
    if not isinstance(start, ConcreteArray):
        return False
    with inside(BASE):
        nothing = concrete(start.type.update(shape=(0,)), np.zeros((0,), start.type.dtype))
        return bool(perform(shared(MONOIDS[kind], (0,)), nothing).value == start.value)
