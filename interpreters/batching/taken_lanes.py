"""Branches that all lanes evaluate, although each is defined only on the lanes that take it.

Where lanes diverge, all branches are evaluated and each lane selects its own result. A branch may be undefined on a
lane that does not take it, as ``sqrt`` is below 0. The lane's tangents are then selected away with the results; but a
cotangent of zero becomes NaN on its way back through the branch, by 0 times infinity. ``where_taken`` lets none out of
the branch. For an operand that differs from lane to lane a selection at the entry suffices. The cotangent of a value
that all lanes share is a sum over lanes, whose terms are selected where it meets values of single lanes; so shared
weights are not copied for each lane.

Lanes that do not take a branch take none of those inside it on which lanes diverge again, and iterate no such loop.
So each equation is held by the innermost of them alone, and the program is linear in their depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import BASE, inside, perform
from ...effects.control.recorded_bodies import with_types
from ...effects.core.columns import JVP, is_linear, zeros_like
from ...effects.operations.dot_general import MULTILINEAR
from ...effects.operations.elementwise.arithmetic import Unread
from ...effects.operations.elementwise.bitwise import bitwise_and
from ...effects.operations.elementwise.comparison import clamp, select
from ...effects.operations.foundations.shapes import zeros
from ...effects.programs.program import Program, bind, derived_once, interpret
from ...effects.programs.program_cache import ProgramCache
from ...effects.types.array_type import BOOL, array_type
from ...effects.types.dtypes import is_inexact
from ..analysis.dependence import Reached, body_dependence, dependence
from ..core.record import Record, record

_TRANSPARENT = ("once", "one", "loop", "until")  # how bodies are executed that are branches themselves inside a branch
_LOOPS = ProgramCache("loops where taken")
"""Loops inside a branch or a loop, without iterations for lanes that do not take it or have ended, by operation."""


def held(taken: Any, x: Any) -> Any:
    """``x``, the cotangent of which is 0 where ``taken`` is false, even if it was NaN."""
    return select(taken, x, perform(Unread(), x)) if is_inexact(x.type.dtype) else x


def while_taken(op: Any) -> Any:
    """The loop with one more shared operand, a boolean before all others; the loop iterates only while it is true."""
    return _LOOPS.get(op, lambda: _with_longer_test(op))


def _with_longer_test(op: Any) -> Any:
    test, body = op.bodies
    taken = array_type((), BOOL)
    with inside(BASE):
        tested = record(lambda x, *xs: [bitwise_and(x, interpret(test, xs)[0])], (taken, *test.in_types), test.name)
        step = record(lambda x, *xs: interpret(body, xs), (taken, *body.in_types), body.name)
    return op.with_bodies((tested, step), shared=op.shared + 1)


@derived_once
def where_taken(body: Program, mapped: tuple[bool, ...], inner: bool) -> Program:
    """The body with a further input, first: whether the lane takes it. Where not, no cotangent comes out of an input.

    ``mapped``: the inputs that differ from lane to lane; those of a body ``inner`` of a branch are held already.
    """
    recorder = Record(BASE, "")
    taken = recorder.input(array_type((), BOOL))
    inputs = recorder.inputs(body.in_types)
    varies = [numbers != 0 for numbers in dependence(body).values]
    with inside(recorder):
        entering = inputs if inner else [held(taken, x) if yes else x for x, yes in zip(inputs, mapped)]
        env = bind(body, entering)
        lanes = [*mapped, *[False] * (len(env) - len(mapped))]
        number = len(inputs)
        cell = recorder.cell
        for op, args, cell.site in zip(body.ops, body.args, body.sites.labelled_by(recorder.labeller)):
            xs, marks = [env[n] for n in args], [lanes[n] for n in args]
            shared = [n >= 0 and varies[n] and not lanes[n] and is_inexact(env[n].type.dtype) for n in args]
            reached = body_dependence(op).reached(marks) if op.bodied else None
            differs = any(marks) or bool(op.effects)
            holds = differs and any(shared)
            results = _performed(op, taken, xs, marks, shared, reached) if holds else op.as_results(perform(op, *xs))
            env[number : number + len(results)] = results
            lanes[number : number + len(results)] = reached.results if reached else [differs] * len(results)
            number += len(results)
        return recorder.freeze([env[n] for n in body.outs], body.name)


def _performed(
    op: Any, taken: Any, xs: list[Any], mapped: list[bool], shared: list[bool], reached: Reached | None
) -> Sequence[Any]:
    """The results of an operation of a branch on values of single lanes and on values that all lanes share.

    ``shared``: the operands that all lanes share and that have cotangents. The terms of these are held where such an
    operand meets values of single lanes: at the result of an operation that is linear in it; in the bodies of one that
    has bodies; else where it enters, as a value of each lane.
    """
    if reached and op.prunes and op.runs in _TRANSPARENT and not (op.solves or op.deferred):
        if reached.test or any(mapped[: op.selects]):
            op, xs = _restricted(op, taken, xs)
            return op.as_results(perform(op, *xs))
        op, xs = _entered(op, taken, xs, mapped, reached.inputs)
    elif JVP.has(type(op)) and JVP.cell(type(op)) in MULTILINEAR:
        xs = [select(taken, x, zeros(x.type)) if yes else x for x, yes in zip(xs, mapped)]
    elif not (JVP.has(type(op)) and is_linear(JVP.cell(type(op)))):
        xs = [held(taken, x) if yes else x for x, yes in zip(xs, shared)]
    return [held(taken, y) for y in op.as_results(perform(op, *xs))]


def _restricted(op: Any, taken: Any, xs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A branch or loop on which lanes diverge, for the lanes that take the branch around it, and its operands.

    For other lanes the loop has no iteration, and the branch is one more, before the others, which gives zeros.
    """
    if op.loops:
        return while_taken(op), [taken, *xs]
    body, last = op.bodies[0], len(op.bodies) - 1
    nothing = record(lambda *_: [*map(zeros_like, body.out_types)], body.in_types, "not taken")
    index = select(taken, clamp(0, xs[0], last) + 1, zeros(xs[0].type))
    return op.with_bodies((with_types(nothing, body.out_types), *op.bodies)), [index, *xs[1:]]


def _entered(
    op: Any, taken: Any, xs: Sequence[Any], mapped: Sequence[bool], inputs: Sequence[bool]
) -> tuple[Any, list[Any]]:
    """A higher-order operation with ``where_taken`` of its bodies, and its operands with ``taken`` among them.

    ``inputs``: the inputs of its bodies that differ from lane to lane.
    """
    bodies = [where_taken(body, tuple(inputs[: len(body.in_types)]), True) for body in op.bodies]
    entering = zip(xs[op.selects :], inputs, mapped[op.selects :])
    operands = [held(taken, x) if inside and not outside else x for x, inside, outside in entering]
    counts = {"shared": op.shared + 1} if op.loops else {}
    return op.with_bodies(bodies, **counts), [*xs[: op.selects], taken, *operands]
