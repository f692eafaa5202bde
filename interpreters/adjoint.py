"""The adjoint of an operation with bodies, from the adjoints of the bodies.

    linear shared -> carry, a sum over the runs;  carry -> carry;  linear each -> out;  out -> each;  residuals stay

The runs come in the opposite order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects import config
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
    marks, nonzero = tuple(linear), tuple([ct is not None for ct in cts])
    key = (op, marks, nonzero, config.current())
    made = _BODIES.get(key, lambda: _adjoint(op, marks, nonzero, transpose))
    if made is None:
        return _after_known(op, cts, operands, linear, transpose)
    moving = [_full(cts[i], t) for i, t in made.moving]
    sums = [zeros_like(t) for t in made.sums]
    given = [ct for ct in cts[op.carry :] if ct is not None]
    residuals = [operands[i] for i in made.residuals]
    results = current().answer(made.op, (*[operands[i] for i in made.fixed], *moving, *sums, *residuals, *given))
    grads: list[Any] = [None] * len(operands)
    for i, grad in zip(made.grads, results):
        if linear[i]:
            grads[i] = grad
    return grads


def _full(ct: Any, type: ArrayType) -> Any:
    """A cotangent with exactly this type; None is zero."""
    return zeros_like(type) if ct is None else convert(ct, type.dtype, type.weak)


def _after_known(
    op: HigherOrder, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: Transpose
) -> list[Any]:
    """A loop that computes what its linear part needs: that is run first, then the linear part has an adjoint."""
    parts = split_operation(op.plain(), linear)
    values = list(operands)
    for known, sources in parts.known:
        values += current().answer(known, tuple([values[n] for n in sources]))
    if parts.rest is None:
        return [None] * len(operands)
    inner = [values[n] for n in parts.sources]
    marks = [n < len(linear) and linear[n] for n in parts.sources]
    wanted = [ct for ct, (known, _) in zip(cts, parts.results) if known is None]
    grads: list[Any] = [None] * len(operands)
    for n, grad in zip(parts.sources, transpose_operation(parts.rest, wanted, inner, marks, transpose)):
        if n < len(linear) and grad is not None:
            grads[n] = add_tangents(grads[n], grad)
    return grads


class _Adjoint(NamedTuple):
    """An adjoint operation over what is ``fixed``, ``moving``, ``sums``, ``residuals``, and cotangents of ``out``.

    ``fixed`` and ``residuals`` are numbers of operands of the former operation; ``moving`` are numbers and types of the
    cotangents that go round; ``sums`` the types of the sums, which begin from zero. Each result is the cotangent of
    the operand whose number is in ``grads``.
    """

    op: HigherOrder
    fixed: tuple[int, ...]
    moving: tuple[tuple[int, ArrayType], ...]
    sums: tuple[ArrayType, ...]
    residuals: tuple[int, ...]
    grads: tuple[int, ...]


def _adjoint(op: HigherOrder, linear: Marks, nonzero: Marks, transpose: Transpose) -> _Adjoint | None:
    """The adjoint operation; None for a loop that computes what its linear part needs."""
    # a carry that starts from a known value, a zero, may be linear inside
    inner = dependent_inputs(op, linear)
    marks = op.groups((*linear[: op.selects], *inner))
    if op.loops and not all(marks.carry):
        return None
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
    places, types = op.groups(range(len(linear))), op.bodies[0].in_types
    sums = _only(places.shared, marks.shared, summed)
    carry = _only(places.carry, marks.carry, moving)
    return _Adjoint(
        new,
        (*places.selects, *[i for i, yes in zip(places.shared, marks.shared) if not yes]),
        tuple([(k, types[op.shared + k]) for k, yes in enumerate(moving) if yes]),
        tuple([types[i - op.selects] for i in sums]) if op.loops else (),
        tuple([i for i, yes in zip(places.each, marks.each) if not yes]),
        (*carry, *sums, *_only(places.each, marks.each, sliced)),
    )


def _only(places: Sequence[int], linear: Sequence[bool], live: Marks) -> list[int]:
    """The linear ones among these operands that have a cotangent."""
    return [i for i, yes in zip([i for i, yes in zip(places, linear) if yes], live) if yes]


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
