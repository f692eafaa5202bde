"""The adjoint of an operation with bodies, from the adjoints of the bodies.

    linear shared -> carry, a sum over the runs;  carry -> carry;  linear each -> out;  out -> each;  residuals stay

The runs come in the opposite order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects.caches import Cache
from ..effects.columns import add_tangents, zeros_like
from ..effects.control import HigherOrder
from ..effects.conversion import convert
from ..effects.programs import Program, interpret
from ..effects.stack import BASE, current, inside
from ..effects.types import ArrayType
from .delaying import delayed
from .dependence import dependent_inputs
from .partial_eval import split_operation
from .record import Record
from .revolve import transpose_until
from .simplify import dead_code_elimination

Marks = tuple[bool, ...]
# ``transpose(program, linear, nonzero)``: the adjoint program, and which linear inputs have a cotangent
Transpose = Callable[[Program, Sequence[bool], Sequence[bool]], tuple[Program, Marks]]
_BODIES = Cache("transpose_operation")


def transpose_operation(
    op: HigherOrder, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: Transpose
) -> list[Any]:
    """The cotangent of each operand; None for one that is not linear, or where it is zero."""
    if op.runs == "until":
        return transpose_until(op, cts, operands, linear, transpose)
    # a carry that starts from a known value, a zero, may be linear inside
    inner = (*linear[: op.selects], *dependent_inputs(op, linear))
    marks = op.groups(inner)
    if op.loops and not all(marks.carry):
        return _after_known(op, cts, operands, linear, transpose)
    made = _adjoint(op, inner, tuple([ct is not None for ct in cts]), transpose)
    selects, shared, carry, each = op.groups(operands)
    fixed = [x for x, yes in zip(shared, marks.shared) if not yes]
    residuals = [x for x, yes in zip(each, marks.each) if not yes]
    moving = [_full(ct, _type(t)) for ct, t, yes in zip(cts, carry, made.moving) if yes]
    sums = [zeros_like(t) for t, yes in zip(_linear(shared, marks.shared), made.summed) if yes] if op.loops else []
    given = [ct for ct in cts[op.carry :] if ct is not None]
    results = current().answer(made.op, (*selects, *fixed, *moving, *sums, *residuals, *given))
    return [grad if yes else None for grad, yes in zip(made.place(list(results), marks), linear)]


def _linear(items: Sequence[Any], marks: Sequence[bool]) -> list[Any]:
    return [x for x, yes in zip(items, marks) if yes]


def _type(x: Any) -> ArrayType:
    """The type of an operand; a linear one comes as its type."""
    return x if isinstance(x, ArrayType) else x.type


def _full(ct: Any, type: ArrayType) -> Any:
    """A cotangent with exactly this type; None is zero."""
    return zeros_like(type) if ct is None else convert(ct, type.dtype, type.weak)


def _after_known(
    op: HigherOrder, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: Transpose
) -> list[Any]:
    """A loop that computes what its linear part needs: that is run first, then the linear part has an adjoint."""
    parts = split_operation(op.plain(), linear)
    found: list[Any] = []
    for known, sources in parts.known:
        found += current().answer(known, tuple([operands[n] if given else found[n] for given, n in sources]))
    if parts.rest is None:
        return [None] * len(operands)
    inner = [operands[n] if given else found[n] for given, n in parts.sources]
    marks = [given and linear[n] for given, n in parts.sources]
    wanted = [ct for ct, (known, _) in zip(cts, parts.results) if known is None]
    grads: list[Any] = [None] * len(operands)
    for (given, n), grad in zip(parts.sources, transpose_operation(parts.rest, wanted, inner, marks, transpose)):
        if given and grad is not None:
            grads[n] = add_tangents(grads[n], grad)
    return grads


class _Made:
    """An adjoint operation, and what its results are."""

    def __init__(self, op: HigherOrder, moving: Marks, summed: Marks, sliced: Marks, loops: bool):
        self.op = op
        self.moving = moving  # of each carry: whether its cotangent goes round
        self.summed = summed  # of each linear shared operand: whether it has a cotangent
        self.sliced = sliced  # of each linear ``each``
        self.loops = loops

    def place(self, results: list[Any], marks: Any) -> list[Any]:
        found = iter(results)
        moving = [next(found) if yes else None for yes in self.moving]
        sums = iter([next(found) if yes else None for yes in self.summed])
        slices = iter([next(found) if yes else None for yes in self.sliced])
        shared = [next(sums) if yes else None for yes in marks.shared]
        each = [next(slices) if yes else None for yes in marks.each]
        return [*[None] * len(marks.selects), *shared, *moving, *each]


def _adjoint(op: HigherOrder, linear: Marks, nonzero: Marks, transpose: Transpose) -> _Made:
    return _BODIES.get((op, linear, nonzero), lambda: _make(op, linear, nonzero, transpose))


def _make(op: HigherOrder, linear: Marks, nonzero: Marks, transpose: Transpose) -> _Made:
    marks = op.groups(linear)
    inner = (*marks.shared, *marks.carry, *marks.each)
    count, carried = sum(marks.shared), op.carry
    moving = nonzero[:carried]
    while True:
        made = [transpose(body, inner, (*moving, *nonzero[carried:])) for body in op.bodies]
        found = tuple([any(column) for column in zip(*[live for _, live in made])])
        grown = tuple([a or b for a, b in zip(moving, found[count : count + carried])])
        if grown == moving:
            break
        moving = grown
    summed, sliced = found[:count], found[count + carried :]
    bodies = [_body(op, program, live, marks, (moving, summed, sliced), nonzero) for program, live in made]
    fixed = len(marks.shared) - count
    if getattr(op, "prevent_cse", False):
        bodies = [delayed(body, len(body.in_types) - sum(nonzero)) for body in bodies]
    new = op.with_bodies(bodies, shared=fixed, carry=sum(moving) + sum(summed) if op.loops else 0).reversed()
    return _Made(new, moving, summed, sliced, op.loops)


def _body(
    op: HigherOrder, adjoint: Program, live: Marks, marks: Any, kept: tuple[Marks, Marks, Marks], nonzero: Marks
) -> Program:
    """From shared residuals, cotangents of the carry, sums, slices of residuals and of cotangents of ``out``."""
    types = op.bodies[0].in_types
    moving, summed, sliced = kept
    shared, carry = op.shared, op.carry
    linear_shared = [t for t, yes in zip(types, marks.shared) if yes]
    linear_each = [t for t, yes in zip(types[shared + carry :], marks.each) if yes]
    if not op.loops and live == (*summed, *sliced):  # nothing goes round, and nothing is zero in one branch alone
        wanted = [t for t, yes in zip([*linear_shared, *linear_each], live) if yes]
        if adjoint.out_types == tuple(wanted):
            return adjoint if all(nonzero) else dead_code_elimination(adjoint, instantiate=True).program
    recorder = Record(BASE, "")

    def inputs(items: Sequence[Any]) -> list[Any]:
        return [recorder.input(t) for t in items]

    fixed = inputs([t for t, yes in zip(types, marks.shared) if not yes])
    cts = inputs([t for t, yes in zip(types[shared:], moving) if yes])
    sums = inputs([t for t, yes in zip(linear_shared, summed) if yes and op.loops])
    residuals = inputs([t for t, yes in zip(types[shared + carry :], marks.each) if not yes])
    given = inputs([t for t, yes in zip(op.bodies[0].out_types[carry:], nonzero[carry:]) if yes])
    with inside(recorder):
        found = iter(interpret(adjoint, [*fixed, *residuals, *cts, *given]))
        grads = [next(found) if yes else None for yes in live]
        parts = (grads[: len(summed)], grads[len(summed) : len(summed) + carry], grads[len(summed) + carry :])
        totals = iter(sums)
        new_sums = [
            _full(add_tangents(next(totals), g), t) if op.loops else _full(g, t)
            for g, t, yes in zip(parts[0], linear_shared, summed)
            if yes
        ]
        new_cts = [_full(g, t) for g, t, yes in zip(parts[1], types[shared:], moving) if yes]
        slices = [_full(g, t) for g, t, yes in zip(parts[2], linear_each, sliced) if yes]
        made = recorder.freeze([*new_cts, *new_sums, *slices], adjoint.name)
    # what served the results without a cotangent alone is not computed again
    return made if all(nonzero) else dead_code_elimination(made, instantiate=True).program
