"""Early exit: a program that performs ``Abort`` is rewritten into one that returns a flag and a payload instead.

    with_exit_flag(p)  :  inputs of p -> (results of p, payload of the abort, whether it aborted)

The equations after one that may abort stand in a branch that is executed only if it did not; so does the body of a
loop. A ``while`` also tests the flag, so it ends at the abort. Lanes become a loop, so that the first one aborts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.stack import current
from ...effects.control.branches import Cond
from ...effects.core.arrays import as_array
from ...effects.core.columns import zeros_like
from ...effects.core.operation import effect
from ...effects.operations.elementwise.bitwise import bitwise_and, bitwise_not
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.closure_conversion import close_all
from ...effects.programs.higher_order import Call
from ...effects.programs.program import Program, bind, interpret
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import int32
from ..core.record import record
from .answer_conversion import as_result


# ends the program, with the operands as its results
@effect(vmap="per_lane", diff="stop")
class Abort:
    by: str  # name of the operation whose clause ends it

    def result_type(op, *answer):
        return ()


def with_exit_flag(program: Program) -> Program:
    """The program that gives results, payload and flag; the payload has the types of the results.

    Without an abort the payload is zero; after one the results are.
    """
    return _with_exit_flag(program, program.out_types)


def _with_exit_flag(program: Program, payload: Sequence[ArrayType]) -> Program:
    def flat(*xs: Any) -> list[Any]:
        return _evaluate_from(program, bind(program, xs), 0, len(xs), payload)

    return record(flat, program.in_types, program.name, "")


def _zeros(types: Sequence[ArrayType]) -> list[Any]:
    return [zeros_like(t) for t in types]


def _evaluate_from(
    program: Program, env: list[Any], at: int, number: int, payload: Sequence[ArrayType]
) -> list[Any]:
    """Results, payload and flag of the equations from ``at`` on, of which the first result is value ``number``."""
    answer = current().answer
    for i in range(at, len(program.ops)):
        op = program.ops[i]
        xs = tuple([env[n] for n in program.args[i]])
        if isinstance(op, Abort):
            return [*_zeros(program.out_types), *_as_payload(op, xs, payload), as_array(True)]
        if op.bodied and _may_abort(op):
            results = _higher_order(op, xs, payload)
            count = len(program.types[i])
            env[number : number + count] = results[:count]
            flag, leaving = results[-1], results[count:-1]
            if i + 1 == len(program.ops):
                return [*[env[n] for n in program.outs], *leaving, flag]
            rest = lambda: _evaluate_from(program, list(env), i + 1, number + count, payload)
            return _branch(flag, lambda: [*_zeros(program.out_types), *leaving, flag], rest)
        y = answer(op, xs)
        results = op.as_results(y)
        env[number : number + len(results)] = results
        number += len(results)
    return [*[env[n] for n in program.outs], *_zeros(payload), as_array(False)]


def _may_abort(op: Any) -> bool:
    return any([Abort in body.operations for body in op.bodies])


def _as_payload(op: Any, xs: Sequence[Any], payload: Sequence[ArrayType]) -> list[Any]:
    """The operands of an abort, converted to the payload's types. Raises: DTypeMismatch: they do not fit."""
    return [as_result(op.by, x, t, "what the handled function gives") for x, t in zip(xs, payload)]


def _branch(flag: Any, ended: Callable[[], list[Any]], rest: Callable[[], list[Any]]) -> list[Any]:
    """A ``Cond``: the results of ``ended`` if the flag is True, else those of ``rest``."""
    programs = [record(lambda: rest(), (), "rest", ""), record(lambda: ended(), (), "ended", "")]
    types = programs[0].out_types
    bodies, captured = close_all(programs)
    assert bodies[1].out_types == types
    return list(current().answer(Cond(bodies, len(captured)), (convert(flag, int32), *captured)))


def _higher_order(op: Any, xs: Sequence[Any], payload: Sequence[ArrayType]) -> list[Any]:
    """Results, payload and flag of an operation with a body that may abort."""
    if op.runs == "lanes":
        op = op.as_loop()
    if op.deferred:  # with payload and flag the body has more results than a custom rule accounts for
        op = Call(op.bodies)
    selects, shared, carry, each = op.groups(xs)
    if not op.loops:
        bodies, captured = close_all([_with_exit_flag(body, payload) for body in op.bodies])
        new = op.with_bodies(bodies, shared=op.shared + len(captured))
        return list(current().answer(new, (*selects, *captured, *shared, *carry, *each)))
    types, functions = _loop_functions(op, payload)
    closed, captured = close_all([record(f, types, op.name, "") for f in functions])
    status = [*_zeros(payload), as_array(False)]
    end = op.carry + len(status)
    new = op.with_bodies(closed, shared=op.shared + len(captured), carry=end)
    results = list(current().answer(new, (*captured, *shared, *carry, *status, *each)))
    carried, status, outs = _split_at(results, op.carry, end)
    return [*carried, *outs, *status]


def _loop_functions(op: Any, payload: Sequence[ArrayType]) -> tuple[list[ArrayType], list[Callable[..., list[Any]]]]:
    """The test, of a ``while``, and the body of a loop that carries payload and flag too; the types of their inputs."""
    body = op.main[0]
    first, last = op.shared, op.shared + op.carry
    status_types = [*payload, as_array(False).type]
    inner = _with_exit_flag(body, payload)

    def step(*values: Any) -> list[Any]:
        shared, carry, status, each = _split_at(values, first, last, last + len(status_types))
        out_types = body.out_types[op.carry :]

        def rest() -> list[Any]:
            results = interpret(inner, [*shared, *carry, *each])
            return [*results[: op.carry], *results[len(body.outs) :], *results[op.carry : len(body.outs)]]

        return _branch(status[-1], lambda: [*carry, *status, *_zeros(out_types)], rest)

    def test(*values: Any) -> list[Any]:
        (more,) = interpret(op.bodies[0], values[:last])
        return [bitwise_and(more, bitwise_not(values[-1]))]

    types = [*body.in_types[:last], *status_types, *body.in_types[last:]]
    return types, [*([test] if op.runs == "until" else []), step]


def _split_at(items: Sequence[Any], *indices: int) -> list[list[Any]]:
    """The items before the first index, between each two, and from the last on."""
    bounds = [0, *indices, len(items)]
    return [list(items[a:b]) for a, b in itertools.pairwise(bounds)]
