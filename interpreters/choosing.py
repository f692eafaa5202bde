"""Lanes that go different ways: the two ways of running that a mapped choice needs a rule of its own for."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..effects.bitwise import bitwise_and
from ..effects.caches import Cache
from ..effects.comparison import clamp, gt, select_n
from ..effects.control import HigherOrder
from ..effects.dtypes import bool_
from ..effects.dynamic import DynamicSlice, DynamicUpdateSlice
from ..effects.programs import Program, bind, interpret
from ..effects.reductions import ReduceOr
from ..effects.stack import BASE, current, inside, perform
from ..effects.types import array_type
from .cross import Crossing, Wanted, lift
from .dependence import dependent_test
from .record import Record, record
from .simplify import is_root

_STEPS = Cache("while_any")
_GUARDS = Cache("guarded loops")


def all_branches(op: HigherOrder, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Every branch, and of each result the one that was chosen."""
    index, *xs = operands
    answers = [interpret(body, xs) for body in op.bodies]
    count = len(answers)
    if count == 1:
        return answers[0]
    which = gt(index, 0) if count == 2 else clamp(0, index, count - 1)
    return tuple([select_n(which, *cases) for cases in zip(*answers)])


def while_any(run: Crossing, op: Any, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """As long as one lane goes on; the carry of a lane whose test has failed stays as it is."""
    test, body = op.bodies
    _, shared, carry, _ = op.groups(operands)
    fixed = [run.split(x) for x in shared]
    mapped = tuple([mark is not None for mark, _ in fixed])
    step = _STEPS.get((test, body, mapped), lambda: _step(test, body, mapped))
    marks = [mark for mark, _ in fixed] + [0] * op.carry
    going, moving = (
        lift(run, test, marks, Wanted([0])).program,
        lift(run, step, marks, Wanted([0] * op.carry)).program,
    )
    any_going = record(lambda *xs: [perform(ReduceOr((0,)), interpret(going, xs)[0])], going.in_types, going.name)
    parts = [part for _, parts in fixed for part in parts]
    with inside(run.outer):
        carried = [part for x in carry for part in run.force(x, 0)]
        results = perform(op.with_bodies((any_going, moving), shared=len(parts)), *parts, *carried)
    return tuple([run.box(0, [y]) for y in results])


def _step(test: Program, body: Program, mapped: tuple[bool, ...]) -> Program:
    """The body for a carry that goes on, else the carry. ``mapped``: which shared operands differ from lane to lane."""
    recorder = Record(BASE, "")
    inputs = [recorder.input(t) for t in body.in_types]
    with inside(recorder):
        (more,) = interpret(test, inputs)
        env, guarded = _guarded(body, inputs, more, mapped)
        first = len(mapped)
        ends = [_end(body, env, guarded, more, first + i, n) for i, n in enumerate(body.outs)]
        return recorder.freeze(ends, body.name)


def _guarded(body: Program, inputs: list[Any], more: Any, mapped: tuple[bool, ...]) -> tuple[list[Any], set[int]]:
    """The values of the body, whose loops of unknown length do not run where ``more`` is false, and which loops those
    are: the ones whose length differs from lane to lane anyway."""
    env = bind(body, inputs)
    lanes = [*mapped, *[True] * (len(inputs) - len(mapped)), *[False] * (len(env) - len(inputs))]
    number = len(inputs)
    guarded = set()
    cell = current().cell
    for i, (op, args, cell.site) in enumerate(zip(body.ops, body.args, body.sites.through(current().seen))):
        operands, marks = [env[n] for n in args], [lanes[n] for n in args]
        loop: Any = op
        if op.bodied and loop.runs == "until" and not is_root(op) and dependent_test(loop, marks):
            guarded.add(i)
            operands.insert(0, more)
            op = _GUARDS.get(loop, functools.partial(_guard, loop))
        y = perform(op, *operands)
        for value in y if op.multiple else (y,):
            env[number], lanes[number] = value, any(marks)
            number += 1
    cell.site = None
    return env, guarded


def _guard(op: Any) -> Any:
    """The loop that runs only if its first operand is true."""
    test, body = op.bodies
    more = array_type((), bool_)
    with inside(BASE):
        tested = record(lambda x, *xs: [bitwise_and(x, interpret(test, xs)[0])], (more, *test.in_types), test.name)
        step = record(lambda x, *xs: interpret(body, xs), (more, *body.in_types), body.name)
    return op.with_bodies((tested, step), shared=op.shared + 1)


def _end(body: Program, env: Sequence[Any], guarded: set[int], more: Any, before: int, after: int) -> Any:
    """Value ``after`` of the body where the lane goes on, else value ``before``, what it is of the carry.

    To select a buffer costs as much as all of its rows. Where a run replaces one piece of it, the piece is selected; a
    loop that did not run gives what it started from.
    """
    old, new = env[before], env[after]
    i, k = _made_by(body, after)
    if i is not None:
        op: Any = body.ops[i]
        args = body.args[i]
        if i in guarded and args[op.shared + k] == before:
            return new
        if type(op) is DynamicUpdateSlice and args[0] == before:
            piece, starts = env[args[1]], [env[n] for n in args[2:]]
            kept = perform(DynamicSlice(piece.type.shape), old, *starts)
            return perform(op, old, select_n(more, kept, piece), *starts)
    return old if before == after else select_n(more, old, new)


def _made_by(body: Program, number: int) -> tuple[int | None, int]:
    """The equation that gives a value, and which of its results it is; None for inputs and constants."""
    at = len(body.in_types)
    for i, (op, made) in enumerate(zip(body.ops, body.types)):
        count = len(made) if op.multiple else 1
        if at <= number < at + count:
            return i, number - at
        at += count
    return None, 0
