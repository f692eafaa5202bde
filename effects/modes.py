"""What the ways of running bodies mean: one rule each for NumPy and for StableHLO, whatever the operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import concrete
from .columns import EVALUATE, LOWER
from .control import HigherOrder
from .dtypes import int32
from .lanes import Lanes
from .programs import Program, interpret
from .shapes import zeros
from .stack import BASE, inside
from .types import ArrayType, array_type

COUNTER = array_type((), int32)


def run(program: Program, values: Sequence[Any]) -> list[Any]:
    """A program on NumPy arrays."""
    with inside(BASE):
        arrays = [concrete(t, np.asarray(x)) for t, x in zip(program.in_types, values)]
        return [y.value for y in interpret(program, arrays)]


def chosen(index: Any, count: int) -> int:
    """Which of ``count`` bodies an index means: the nearest that there is."""
    return min(max(int(index), 0), count - 1)


@EVALUATE.mode("once")
def _(op: HigherOrder, *values: Any) -> Any:
    return run(op.bodies[0], values)


@EVALUATE.mode("one")
def _(op: HigherOrder, index: Any, *values: Any) -> Any:
    return run(op.bodies[chosen(index, len(op.bodies))], values)


@EVALUATE.rule(Lanes)  # compiling pays for loops; lanes come here for the effects of one equation
@EVALUATE.mode("loop")
@EVALUATE.mode("lanes")
def _(op: HigherOrder, *values: Any) -> Any:
    _, shared, carry, each = op.groups(values)
    order = range(op.length)
    rows: list[Any] = [None] * op.length
    for i in reversed(order) if getattr(op, "backwards", False) else order:
        results = run(op.bodies[0], [*shared, *carry, *[x[i] for x in each]])
        carry, rows[i] = results[: op.carry], results[op.carry :]
    types = op.result_type()[op.carry :]
    return [*carry, *[_stack([row[k] for row in rows], t) for k, t in enumerate(types)]]


def _stack(slices: list[Any], type: ArrayType) -> Any:
    return np.stack(slices) if slices else zeros(type).value


@EVALUATE.mode("until")
def _(op: HigherOrder, *values: Any) -> Any:
    test, body = op.bodies
    _, shared, carry, _ = op.groups(values)
    while run(test, [*shared, *carry])[0]:
        carry = run(body, [*shared, *carry])
    return carry


@LOWER.mode("once")
def _(op: Any, emit: Any, *values: Any) -> Any:
    return emit.call(op.bodies[0], getattr(op, "label", op.name), values)


@LOWER.mode("one")
def _(op: HigherOrder, emit: Any, index: Any, *values: Any) -> Any:
    return emit.case(index, [lambda body=body: emit.program(body, values) for body in op.bodies], emit.made)


@LOWER.mode("until")
def _(op: HigherOrder, emit: Any, *values: Any) -> Any:
    test, body = op.bodies
    count = op.shared

    def step(*state: Any) -> Sequence[Any]:
        return [*state[:count], *emit.program(body, state)]

    return emit.repeat(lambda *state: emit.program(test, state)[0], step, *values)[count:]


@LOWER.mode("loop")
@LOWER.mode("lanes")
def _(op: HigherOrder, emit: Any, *values: Any) -> Any:
    """A counter, the carry and buffers for what is stacked go round; ``unroll`` runs share one round."""
    _, shared, carry, each = op.groups(values)
    carried, length, backwards = op.carry, op.length, getattr(op, "backwards", False)
    buffers = [emit.full(0, t) for t in emit.made[carried:]]
    rounds = max(min(getattr(op, "unroll", 1), length), 1)
    whole = length // rounds

    def once(place: Any, shared: Any, each: Any, state: Sequence[Any]) -> list[Any]:
        results = emit.program(op.bodies[0], [*shared, *state[:carried], *[emit.at(x, place) for x in each]])
        return [*results[:carried], *[emit.put(b, y, place) for b, y in zip(state[carried:], results[carried:])]]

    def place(counter: Any, offset: int) -> Any:
        """Where run ``counter + offset`` stands along the stacked axis."""
        at = emit.binary("add", counter, emit.constant(offset, COUNTER)) if offset else counter
        return emit.binary("subtract", emit.constant(length - 1, COUNTER), at) if backwards else at

    def step(counter: Any, *state: Any) -> Sequence[Any]:
        fixed, moving = state[:first], list(state[first:])
        for offset in range(rounds):
            moving = once(place(counter, offset), fixed[: op.shared], fixed[op.shared :], moving)
        return [emit.binary("add", counter, emit.constant(rounds, COUNTER)), *fixed, *moving]

    first = op.shared + len(each)
    zero = emit.constant(0, COUNTER)
    state = [*carry, *buffers]
    if whole > 1:
        limit = whole * rounds
        more = lambda counter, *_: emit.compare("LT", counter, emit.constant(limit, COUNTER))
        state = emit.repeat(more, step, zero, *shared, *each, *state)[1 + first :]
    elif whole == 1:
        state = list(step(zero, *shared, *each, *state)[1 + first :])
    for offset in range(whole * rounds, length):
        state = once(place(emit.constant(offset, COUNTER), 0), shared, each, state)
    return state
