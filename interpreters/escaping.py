"""Escaping: a program that may end early, as one that does not. An exception is a value: a flag and what it carries.

    escaping(p) gives the results of p, what was thrown, and whether it was

After an equation that may throw, the rest runs only where it has not; so does every run of a loop. A loop until a test
fails ends there: a real early exit. Lanes become a loop, so that the first one throws.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ..effects.arrays import lift
from ..effects.bitwise import bitwise_and, bitwise_not
from ..effects.branches import Cond
from ..effects.closing import close_all
from ..effects.columns import zeros_like
from ..effects.control import Call
from ..effects.conversion import convert
from ..effects.dtypes import int32
from ..effects.errors import DTypeMismatch
from ..effects.operations import effect
from ..effects.programs import Program, bind, interpret
from ..effects.stack import current
from ..effects.types import ArrayType
from .record import record


# the program ends here, with the operands as its answer
@effect(vmap="per_lane", diff="stop")
class Abort:
    def result_type(op, *answer):
        return ()


ABORT = Abort()


def escaping(program: Program) -> Program:
    """The program with results, what was thrown, and the flag; the types thrown are those of the results."""
    return _escaping(program, program.out_types)


def _escaping(program: Program, thrown: Sequence[ArrayType]) -> Program:
    def flat(*xs: Any) -> list[Any]:
        return _go(program, bind(program, xs), 0, len(xs), thrown)

    return record(flat, program.in_types, program.name, "")


def _zeros(types: Sequence[ArrayType]) -> list[Any]:
    return [zeros_like(t) for t in types]


def _go(program: Program, env: list[Any], at: int, number: int, thrown: Sequence[ArrayType]) -> list[Any]:
    """The equations from ``at`` on, whose first result is value ``number``."""
    answer = current().answer
    for i in range(at, len(program.ops)):
        op = program.ops[i]
        xs = tuple([env[n] for n in program.args[i]])
        if isinstance(op, Abort):
            return [*_zeros(program.out_types), *_agreeing(xs, thrown), lift(True)]
        if op.bodied and Abort in _kinds(op):
            results = _higher(op, xs, thrown)
            count = len(program.types[i])
            env[number : number + count] = results[:count]
            flag, payload = results[-1], results[count:-1]
            if i + 1 == len(program.ops):
                return [*[env[n] for n in program.outs], *payload, flag]
            rest = lambda: _go(program, list(env), i + 1, number + count, thrown)
            return either(flag, lambda: [*_zeros(program.out_types), *payload, flag], rest)
        y = answer(op, xs)
        made = y if op.multiple else (y,)
        env[number : number + len(made)] = made
        number += len(made)
    return [*[env[n] for n in program.outs], *_zeros(thrown), lift(False)]


def _kinds(op: Any) -> set[type]:
    return {kind for body in op.bodies for kind in body.operations}


def _agreeing(xs: Sequence[Any], thrown: Sequence[ArrayType]) -> list[Any]:
    for x, t in zip(xs, thrown):
        if x.type.shape != t.shape or (x.type.dtype != t.dtype and not x.type.weak):
            raise DTypeMismatch(
                f"final: a clause must give what the handled function gives, {t}, got {x.type}.",
                hint="convert with astype, or broadcast, in the clause or in returns=.",
            )
    return [convert(x, t.dtype, t.weak) for x, t in zip(xs, thrown)]


def either(flag: Any, ended: Callable[[], list[Any]], rest: Callable[[], list[Any]]) -> list[Any]:
    """What ``ended`` gives where the flag holds, else what ``rest`` gives."""
    programs = [record(lambda: rest(), (), "rest", ""), record(lambda: ended(), (), "ended", "")]
    types = programs[0].out_types
    bodies, captured = close_all(programs)
    assert bodies[1].out_types == types
    return list(current().answer(Cond(bodies, len(captured)), (convert(flag, int32), *captured)))


def _higher(op: Any, xs: Sequence[Any], thrown: Sequence[ArrayType]) -> list[Any]:
    """Results, what was thrown, and the flag, of an operation whose bodies may throw."""
    if op.runs == "lanes":
        op = op.as_loop()
    if op.late:  # a function that may end early gives more than its rule speaks of
        op = Call(op.bodies)
    selects, shared, carry, each = op.groups(xs)
    if not op.loops:
        bodies, captured = close_all([_escaping(body, thrown) for body in op.bodies])
        made = op.with_bodies(bodies, shared=op.shared + len(captured))
        return list(current().answer(made, (*selects, *captured, *shared, *carry, *each)))
    body = op.main[0]
    first, last = op.shared, op.shared + op.carry
    state = [*thrown, lift(False).type]
    inner = _escaping(body, thrown)

    def step(*values: Any) -> list[Any]:
        fixed, moving, status, rows = _cut(values, first, last, last + len(state))
        out_types = body.out_types[op.carry :]

        def go_on() -> list[Any]:
            results = interpret(inner, [*fixed, *moving, *rows])
            return [*results[: op.carry], *results[len(body.outs) :], *results[op.carry : len(body.outs)]]

        return either(status[-1], lambda: [*moving, *status, *_zeros(out_types)], go_on)

    def test(*values: Any) -> list[Any]:
        (more,) = interpret(op.bodies[0], values[:last])
        return [bitwise_and(more, bitwise_not(values[-1]))]

    types = [*body.in_types[:last], *state, *body.in_types[last:]]
    functions = [*([test] if op.runs == "until" else []), step]
    bodies, captured = close_all([record(f, types, op.name, "") for f in functions])
    made = op.with_bodies(bodies, shared=first + len(captured), carry=op.carry + len(state))
    start = [*_zeros(thrown), lift(False)]
    results = list(current().answer(made, (*captured, *shared, *carry, *start, *each)))
    carried, status, outs, _ = _cut(results, op.carry, op.carry + len(state), len(results))
    return [*carried, *outs, *status]


def _cut(items: Sequence[Any], *places: int) -> list[list[Any]]:
    bounds = [0, *places, len(items)]
    return [list(items[a:b]) for a, b in itertools.pairwise(bounds)]
