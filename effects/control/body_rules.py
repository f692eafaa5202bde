"""Evaluation and lowering by execution mode: the rules of every higher-order operation without a rule of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.later_layers import LaterLayers
from ..base.stack import BASE, inside
from ..core.arrays import concrete
from ..core.columns import EVALUATE, LOWER
from ..core.named_axes import SizedAxis
from ..operations.foundations.shapes import zeros
from ..operations.manipulation.slicing import axis_at
from ..programs.higher_order import HigherOrder, record_body
from ..programs.literals import data_shape
from ..programs.program import Program, interpret
from ..types.array_type import ArrayType, array_type
from ..types.dtypes import int32
from ..types.extent import fits
from .lanes import Lanes
from .shard_map import ShardMap

COUNTER = array_type((), int32)


def evaluate_body(program: Program, values: Sequence[Any]) -> list[Any]:
    """The results of a program on NumPy arrays, as NumPy arrays."""
    with inside(BASE):
        arrays = [concrete(t, np.asarray(x)) for t, x in zip(program.in_types, values)]
        return [y.value for y in interpret(program, arrays)]


def branch_index(index: Any, count: int) -> int:
    """The index clamped to the range of ``count`` bodies."""
    return min(max(int(index), 0), count - 1)


@EVALUATE.mode("once")
def _(op: HigherOrder, *values: Any) -> Any:
    return evaluate_body(op.bodies[0], values)


@EVALUATE.mode("one")
def _(op: HigherOrder, index: Any, *values: Any) -> Any:
    return evaluate_body(op.bodies[branch_index(index, len(op.bodies))], values)


@EVALUATE.rule(Lanes)  # a cell, so that lanes are not compiled: mostly they perform one effect each
@EVALUATE.mode("loop")
@EVALUATE.mode("lanes")
def _(op: HigherOrder, *values: Any) -> Any:
    _, shared, carry, each = op.groups(values)
    order = range(op.length)
    rows: list[Any] = [None] * op.length
    for i in reversed(order) if op.backwards else order:
        results = evaluate_body(op.bodies[0], [*shared, *carry, *[x[i] for x in each]])
        carry, rows[i] = results[: op.carry], results[op.carry :]
    types = op.result_type()[op.carry :]
    return [*carry, *[stacked([row[k] for row in rows], t) for k, t in enumerate(types)]]


def stacked(slices: Sequence[Any], type: ArrayType) -> Any:
    """Slices stacked along a new axis 0; ``type`` is that of the result, also if there are no slices."""
    return np.stack(slices) if slices else zeros(type).value


@EVALUATE.mode("mesh")
def _(op: ShardMap, *values: Any) -> Any:
    """One axis of the mesh after the other is a dimension of all values, which collectives reduce and permute.

    What calls the host does so in each lane.
    """
    body = op.bodies[0]
    inputs, outputs = op.input_lanes, op.output_lanes
    arrays = [
        x.reshape((*[size for _, size in lanes], *data_shape(t))) for x, lanes, t in zip(values, inputs, body.in_types)
    ]
    program = body
    for axis in reversed(op.axes):
        program = _over_axis(program, axis, [axis in lanes for lanes in inputs], [axis in lanes for lanes in outputs])
    results = evaluate_body(program, arrays)
    return [y.reshape(data_shape(op.stacked(t))) for y, t in zip(results, body.out_types)]


def _over_axis(program: Program, axis: SizedAxis, inputs: Sequence[bool], outputs: Sequence[bool]) -> Program:
    """``program`` mapped over one more axis: inputs and results so marked have its lanes along a new axis 0."""
    name, size = axis
    batched, dims = LaterLayers.batch_program(program, [0 if yes else None for yes in inputs], size, name, True)

    def stacked_results(*xs: Any) -> list[Any]:
        ys = interpret(batched, xs)
        return [axis_at(y, d, 0, size) if yes else y for y, d, yes in zip(ys, dims, outputs)]

    return record_body(stacked_results, batched.in_types, program.name)


@EVALUATE.mode("until")
def _(op: HigherOrder, *values: Any) -> Any:
    test, body = op.bodies
    _, shared, carry, _ = op.groups(values)
    while evaluate_body(test, [*shared, *carry])[0]:
        carry = evaluate_body(body, [*shared, *carry])
    return carry


@LOWER.mode("once")
def _(op: HigherOrder, emit: Any, *values: Any) -> Any:
    return emit.call(op.bodies[0], op.label, values)


@LOWER.mode("until")
def _(op: HigherOrder, emit: Any, *values: Any) -> Any:
    """A while loop. One whose test has effects computes it in the body: XLA executes a body as often as it finds that
    the test holds, and then drops the test.
    """
    test, body = op.bodies
    count = op.shared
    again = lambda state: emit.program(test, state)[0]

    def step(*state: Any) -> list[Any]:
        return [*state[:count], *emit.program(body, state)]

    if not test.effects:
        return emit.repeat(lambda *state: again(state), step, *values)[count:]
    tested = lambda state: [*state, again(state)]
    return emit.repeat(lambda *state: state[-1], lambda *state: tested(step(*state[:-1])), *tested(values))[count:-1]


@LOWER.mode("loop")
@LOWER.mode("lanes")
def _(op: HigherOrder, emit: Any, *values: Any) -> Any:
    """A while loop over a counter, the carry and buffers of the stacked results; unrolled by ``op.unroll``."""
    _, shared, carry, each = op.groups(values)
    carried, length, backwards = op.carry, op.length, op.backwards
    buffers = [emit.full(0, t) for t in emit.made[carried:]]
    unroll = max(min(op.unroll, length), 1) if isinstance(length, int) else 1
    count = length // unroll  # iterations of the while loop; the remaining ones of the body follow it

    def iterate(index: Any, shared: Any, each: Any, state: Sequence[Any]) -> list[Any]:
        results = emit.program(op.bodies[0], [*shared, *state[:carried], *[emit.at(x, index) for x in each]])
        return [*results[:carried], *[emit.put(b, y, index) for b, y in zip(state[carried:], results[carried:])]]

    def slice_index(counter: Any, offset: int) -> Any:
        """The index of the slices of iteration ``counter + offset``."""
        at = emit.binary("add", counter, emit.constant(offset, COUNTER)) if offset else counter
        return emit.binary("subtract", emit.constant(length - 1, COUNTER), at) if backwards else at

    def step(counter: Any, *state: Any) -> Sequence[Any]:
        fixed, moving = state[:first], list(state[first:])
        for offset in range(unroll):
            moving = iterate(slice_index(counter, offset), fixed[: op.shared], fixed[op.shared :], moving)
        return [emit.binary("add", counter, emit.constant(unroll, COUNTER)), *fixed, *moving]

    first = op.shared + len(each)
    zero = emit.constant(0, COUNTER)
    state = [*carry, *buffers]
    if fits(2, count):
        limit = count * unroll
        more = lambda counter, *_: emit.compare("LT", counter, emit.constant(limit, COUNTER))
        state = emit.repeat(more, step, zero, *shared, *each, *state)[1 + first :]
    elif count == 1:
        state = list(step(zero, *shared, *each, *state)[1 + first :])
    for offset in range(length - count * unroll):
        state = iterate(slice_index(emit.constant(count * unroll + offset, COUNTER), 0), shared, each, state)
    return state
