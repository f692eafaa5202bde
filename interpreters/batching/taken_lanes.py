"""Branches that all lanes evaluate, although each is defined only on the lanes that take it.

Where lanes diverge, all branches are evaluated and each lane selects its own result. A branch may be undefined on a
lane that does not take it, as ``sqrt`` is below 0. The lane's tangents are then selected away with the results; but a
cotangent of zero becomes NaN on its way back through the branch, by 0 times infinity. ``where_taken`` lets none out of
the branch. For an operand that differs from lane to lane a selection at the entry suffices. The cotangent of a value
that all lanes share is a sum over lanes, whose terms are selected where it meets values of single lanes; so shared
weights are not copied for each lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import BASE, inside, perform
from ...effects.core.arrays import ConcreteArray
from ...effects.core.columns import JVP, is_linear, multilinear
from ...effects.operations.dot_general import multilinear_or_zero
from ...effects.operations.elementwise.arithmetic import Unread
from ...effects.operations.elementwise.comparison import select
from ...effects.operations.foundations.shapes import zeros
from ...effects.programs.program import Program, bind, derived_once
from ...effects.types.array_type import BOOL, array_type
from ...effects.types.dtypes import is_inexact
from ..analysis.dependence import body_dependence
from ..core.record import Record

_TRANSPARENT = ("once", "one", "loop", "until")  # how bodies are executed that are branches themselves inside a branch
_MULTILINEAR = (multilinear, multilinear_or_zero)


def held(taken: Any, x: Any) -> Any:
    """``x``, the cotangent of which is 0 where ``taken`` is false, even if it was NaN."""
    return select(taken, x, perform(Unread(), x)) if is_inexact(x.type.dtype) else x


@derived_once
def where_taken(body: Program, mapped: tuple[bool, ...], inner: bool) -> Program:
    """The body with a further input, first: whether the lane takes it. Where not, no cotangent comes out of an input.

    ``mapped``: the inputs that differ from lane to lane; those of a body ``inner`` of a branch are held already.
    """
    recorder = Record(BASE, "")
    taken = recorder.input(array_type((), BOOL))
    inputs = recorder.inputs(body.in_types)
    with inside(recorder):
        entering = inputs if inner else [held(taken, x) if yes else x for x, yes in zip(inputs, mapped)]
        env = bind(body, entering)
        lanes = [*mapped, *[False] * (len(env) - len(mapped))]
        number = len(inputs)
        cell = recorder.cell
        for op, args, cell.site in zip(body.ops, body.args, body.sites.labelled_by(recorder.labeller)):
            results, differ = _performed(op, taken, [env[n] for n in args], [lanes[n] for n in args])
            env[number : number + len(results)], lanes[number : number + len(results)] = results, differ
            number += len(results)
        return recorder.freeze([env[n] for n in body.outs], body.name)


def _performed(op: Any, taken: Any, xs: list[Any], mapped: list[bool]) -> tuple[Sequence[Any], Sequence[bool]]:
    """The results of an operation of a branch, and which of them differ from lane to lane.

    Terms of the cotangent of a value that all lanes share are held where it meets values of single lanes: at the result
    of an operation that is linear in the shared value; else where it enters, as a value of each lane.
    """
    reached = body_dependence(op).reached(mapped).results if op.bodied else None
    differs = any(mapped) or bool(op.effects)
    shared = [not yes and is_inexact(x.type.dtype) and not isinstance(x, ConcreteArray) for x, yes in zip(xs, mapped)]
    if not differs or not any(shared):
        results = op.as_results(perform(op, *xs))
        return results, reached or [differs] * len(results)
    if op.bodied and op.prunes and op.runs in _TRANSPARENT and not (op.solves or op.deferred):
        op, xs = _entered(op, taken, xs, mapped)
    elif JVP.has(type(op)) and JVP.cell(type(op)) in _MULTILINEAR:
        xs = [select(taken, x, zeros(x.type)) if yes else x for x, yes in zip(xs, mapped)]
    elif not (JVP.has(type(op)) and is_linear(JVP.cell(type(op)))):
        xs = [held(taken, x) if yes else x for x, yes in zip(xs, shared)]
    results = op.as_results(perform(op, *xs))
    return [held(taken, y) for y in results], reached or [True] * len(results)


def _entered(op: Any, taken: Any, xs: Sequence[Any], mapped: Sequence[bool]) -> tuple[Any, list[Any]]:
    """A higher-order operation with ``where_taken`` of its bodies, and its operands with ``taken`` among them."""
    inputs = body_dependence(op).reached(mapped).inputs
    bodies = [where_taken(body, inputs[: len(body.in_types)], True) for body in op.bodies]
    entering = zip(xs[op.selects :], inputs, mapped[op.selects :])
    operands = [held(taken, x) if inside and not outside else x for x, inside, outside in entering]
    counts = {"shared": op.shared + 1} if op.loops else {}
    return op.with_bodies(bodies, **counts), [*xs[: op.selects], taken, *operands]
