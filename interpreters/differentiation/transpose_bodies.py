"""The adjoint of an operation with bodies: the same operation over the adjoints of its bodies, in reverse order.

    forward      shared, carry, each -> carry, out
    adjoint      residuals, cotangents of carry and out -> cotangents of carry, of shared (a sum), of each

Known inputs of a body stay inputs of its adjoint. The cotangents of linear carries are carries. The cotangents of
linear shared inputs are summed over the iterations, in a carry that starts from zero; those of linear ``each`` inputs
are stacked as ``out``. Lanes carry nothing: the cotangents of their shared inputs are stacked, and summed afterwards.
Cotangents that are unreduced over the devices of a mesh leave the bodies so, except those of carries, and except the
mesh. Loops iterate in reverse order. Which carries have a cotangent is the least fixed point over the iterations. A
loop of unknown length has its own adjoint, in ``while_adjoint``.

The fixed point gives the last iteration, which the adjoint begins with, cotangents that are zero. A backward rule of
the user's must not perform its effects for them: where the adjoint performs, that iteration is peeled off the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...effects.base import config
from ...effects.base.errors import CannotCross, NotDifferentiable
from ...effects.base.stack import BASE, current, inside
from ...effects.control.branches import CondAdjoint
from ...effects.control.recorded_bodies import may_part
from ...effects.core.columns import zeros_like
from ...effects.core.named_axes import in_bodies_of, is_root, under
from ...effects.operations.elementwise.comparison import clamp, eq, select
from ...effects.operations.foundations.shapes import reshape
from ...effects.operations.manipulation.slicing import concatenate, index_in_dim, slice_in_dim
from ...effects.operations.reductions.reductions import reduce_sum
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program, interpret
from ...effects.programs.program_cache import ProgramCache
from ...effects.types.array_type import ArrayType
from ..analysis.dependence import Marks, as_set, body_dependence, dependence, scattered
from ..analysis.simplify import dead_code_elimination
from ..core.record import Record
from .partial_eval import split_operation
from .remat_barriers import delayed
from .while_adjoint import BodyTranspose, add_cotangent, transpose_until, typed_cotangent

_BODIES = ProgramCache("transpose_operation")
"""Adjoints of operations with bodies, by operation, linear operands, results that have a cotangent and settings."""


def transpose_operation(
    op: HigherOrder, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: BodyTranspose
) -> list[Any]:
    """The cotangent of each operand; None for one that is not linear, or where it is zero."""
    if op.runs == "until":
        return transpose_until(op, cts, operands, linear, transpose)
    marks, nonzero = tuple(linear), tuple([ct is not None for ct in cts])
    with inside(in_bodies_of(op)):
        key = (op, marks, nonzero, transpose, current().scope, config.current())
        adjoint = _BODIES.get(key, lambda: _adjoint(op, marks, nonzero, transpose))
    if adjoint is None:
        return _after_known(op, cts, operands, linear, transpose)
    if isinstance(adjoint, Program):
        return _through(adjoint, cts, operands, marks, transpose)
    carries = [typed_cotangent(cts[i], t) for i, t in adjoint.carried]
    sums = [zeros_like(t.dual) for t in adjoint.sums]
    out_cts = [ct for ct in cts[op.carry :] if ct is not None]
    fixed, residuals = [operands[i] for i in adjoint.fixed], [operands[i] for i in adjoint.residuals]
    if adjoint.parts:
        index = clamp(0, operands[0], len(op.bodies) - 1)
        chosen = [eq(index, k) for k in range(len(op.bodies))]
        out_cts = [select(yes, ct, zeros_like(ct)) for yes in chosen for ct in out_cts]
    xs = (*fixed, *carries, *sums, *residuals, *out_cts)
    # a user's rule is that of the function, and no rule of its adjoint
    results = interpret(adjoint.op.bodies[0], xs) if op.deferred else current().answer(adjoint.op, xs)
    grads: list[Any] = [None] * len(operands)
    of_lanes = [] if op.loops else map(op.slices, op.bodies[0].in_types[: op.shared])  # a cotangent of each lane
    summed = [op.selects + k for k, yes in enumerate(of_lanes) if yes]
    for i, grad in zip(adjoint.grads, results):
        if linear[i]:
            grads[i] = reduce_sum(grad, (0,)) if i in summed else grad
    return grads


def _through(
    program: Program, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: BodyTranspose
) -> list[Any]:
    """The cotangents for an operation that computes what ``program`` does, which is transposed instead."""
    adjoint, live = transpose(program, linear, [ct is not None for ct in cts])
    known = [x for x, yes in zip(operands, linear) if not yes]
    grads = interpret(adjoint, [*known, *[ct for ct in cts if ct is not None]])
    return scattered(scattered(grads, live), linear)


def _after_known(
    op: HigherOrder, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: BodyTranspose
) -> list[Any]:
    """The cotangents for a loop that also computes known carries: its known part is performed, its rest transposed."""
    parts = split_operation(op, linear)
    values = list(operands)
    for known, sources in parts.known:
        values += current().answer(known, tuple([values[n] for n in sources]))
    if parts.rest is None:
        return [None] * len(operands)
    inner = [values[n] for n in parts.sources]
    marks = [n < len(linear) and linear[n] for n in parts.sources]
    unknown_cts = [ct for ct, (known, _) in zip(cts, parts.results) if known is None]
    grads: list[Any] = [None] * len(operands)
    for n, grad in zip(parts.sources, transpose_operation(parts.rest, unknown_cts, inner, marks, transpose)):
        if n < len(linear) and grad is not None:
            grads[n] = grad
    return grads


class _BodyAdjoint(NamedTuple):
    """The adjoint operation ``op`` on ``fixed``, ``carried``, ``sums``, ``residuals``, and cotangents of ``out``.

    ``fixed`` (selecting and known shared) and ``residuals`` (known ``each``) are numbers of operands of the original
    operation; ``carried``: the carries that have a cotangent, with their types; ``sums``: types of the sums. The
    results are the cotangents of the operands ``grads``. ``parts``: it takes the cotangents of ``out`` for each branch.
    """

    op: HigherOrder
    fixed: tuple[int, ...]
    carried: tuple[tuple[int, ArrayType], ...]
    sums: tuple[ArrayType, ...]
    residuals: tuple[int, ...]
    grads: tuple[int, ...]
    parts: bool


class _LiveCotangents(NamedTuple):
    """Which linear carries, shared inputs and ``each`` inputs of an operation with bodies have a cotangent."""

    carried: Marks
    summed: Marks
    sliced: Marks


def _fixed_point(
    op: HigherOrder, linear: Sequence[bool], shared: int, nonzero: Marks, transpose: BodyTranspose
) -> tuple[list[tuple[Program, Marks]], _LiveCotangents]:
    """The adjoints of the bodies, and what has a cotangent in any iteration; ``shared``: that many are shared."""
    carry = op.carry
    carried = nonzero[:carry]
    while True:
        adjoints = [transpose(body, linear, (*carried, *nonzero[carry:])) for body in op.bodies]
        live = tuple([any(column) for column in zip(*[marks for _, marks in adjoints])])
        grown = tuple([a or b for a, b in zip(carried, live[shared : shared + carry])])
        if grown == carried:
            return adjoints, _LiveCotangents(carried, live[:shared], live[shared + carry :])
        carried = grown


def _adjoint(
    op: HigherOrder, linear: Marks, nonzero: Marks, transpose: BodyTranspose
) -> _BodyAdjoint | Program | None:
    """The adjoint operation; None for a loop with known carries, which its linear part may need.

    For a loop whose adjoint would perform effects for cotangents that are zero: the same loop with its end peeled off.
    """
    if any(linear[: op.selects]):
        raise NotDifferentiable(
            f"{op.name}: the function must be linear, and here the branch depends on its argument.",
            hint="linear_transpose takes linear functions only; vjp takes any.",
        )
    # a carry whose initial value is known, such as zero, may be linear inside the loop
    inner = body_dependence(op, ordered=False).reached(linear).inputs if op.loops else linear[op.selects :]
    marks = op.groups((*linear[: op.selects], *inner))
    if op.loops and not all(marks.carry):
        return None
    count = sum(marks.shared)
    adjoints, cotangents = _fixed_point(op, inner, count, nonzero, transpose)
    carried = cotangents.carried
    if op.runs == "loop" and op.length and carried != nonzero[: op.carry]:
        effects = [str(step) for program, _ in adjoints for step in program.ops if is_root(step)]
        if effects:
            return _peeled(op, effects)
    grad_types = _grad_types(op, inner, adjoints)
    bodies = [_body(op, program, own, marks, cotangents, nonzero, grad_types) for program, own in adjoints]
    if not all(nonzero):  # remove the recomputation that only served results without a cotangent
        bodies = [
            dead_code_elimination(new, instantiate=True).program if _recomputes(body, inner) else new
            for body, new in zip(op.bodies, bodies)
        ]
    fixed = len(marks.shared) - count
    if op.prevent_cse:
        bodies = [delayed(body, len(body.in_types) - sum(nonzero)) for body in bodies]
    carries = sum(carried) + sum(cotangents.summed) if op.loops else 0
    parts = op.runs == "one" and not isinstance(op, CondAdjoint) and may_part(bodies)
    if parts:
        new: Any = CondAdjoint(tuple(_with_own_cotangents(bodies, sum(nonzero))), fixed)
    else:
        new = op.with_bodies(bodies, shared=fixed, carry=carries).reversed()
    numbers, types = op.groups(range(len(linear))), op.bodies[0].in_types
    sums = _only(numbers.shared, marks.shared, cotangents.summed)
    return _BodyAdjoint(
        new,
        (*numbers.selects, *[i for i, yes in zip(numbers.shared, marks.shared) if not yes]),
        tuple([(k, types[op.shared + k]) for k, yes in enumerate(carried) if yes]),
        tuple([grad_types[i - op.selects] for i in sums]) if op.loops else (),
        tuple([i for i, yes in zip(numbers.each, marks.each) if not yes]),
        (*_only(numbers.carry, marks.carry, carried), *sums, *_only(numbers.each, marks.each, cotangents.sliced)),
        parts,
    )


def _with_own_cotangents(bodies: Sequence[Program], count: int) -> list[Program]:
    """The bodies, of which each takes the last ``count`` inputs from its own place among those of all bodies."""
    first = len(bodies[0].in_types) - count
    types = (*bodies[0].in_types[:first], *[t for body in bodies for t in body.in_types[first:]])
    places = [first + k * count for k in range(len(bodies))]
    return [body.rewired(types, [*range(first), *range(at, at + count)]) for body, at in zip(bodies, places)]


def _grad_types(
    op: HigherOrder, linear: Sequence[bool], adjoints: Sequence[tuple[Program, Marks]]
) -> list[ArrayType]:
    """The types of the cotangents of the inputs of the bodies: unreduced along the axes along which all bodies give it
    so, except that carries are reduced, and that no unreduced value leaves the mesh.
    """
    types = list(op.bodies[0].in_types)
    if op.binds is not None:
        return types
    grads = [scattered(scattered(program.out_types, live), linear) for program, live in adjoints]
    for k, t in enumerate(types):
        given = [own[k].varying for own in grads if own[k] is not None]
        if given and not op.shared <= k < op.shared + op.carry:
            types[k] = t.along(given[0].intersection(*given[1:]))
    return types


def _peeled(op: HigherOrder, effects: Sequence[str]) -> Program:
    """The program of a loop over all slices but the last one, then of its body on that one.

    Raises: CannotCross: the length is no field, or a symbolic dimension. ``effects``: what its adjoint performs.
    """
    if "length" not in op._names or not isinstance(op.length, int):
        raise CannotCross(
            f"{op.name}: a backward rule performs {', '.join(sorted(effects))}, and would do so for "
            "cotangents that are zero in the last iteration alone.",
            hint="use a scan of constant length, whose last iteration can be taken apart.",
        )
    rest, last = op.length - 1, 0 if op.backwards else op.length - 1
    first = 1 if op.backwards else 0
    recorder = Record(under(BASE, current().scope), "")
    types = op.groups(op.bodies[0].in_types)
    shared, carry = recorder.inputs(types.shared), recorder.inputs(types.carry)
    each = recorder.inputs([*map(op.stacked, types.each)])
    with inside(recorder):
        loop = op.with_bodies(op.bodies, length=rest)
        earlier = recorder.answer(loop, (*shared, *carry, *[slice_in_dim(x, first, first + rest) for x in each]))
        row = [index_in_dim(x, last, keepdims=False) for x in each]
        ends = interpret(op.bodies[0], [*shared, *earlier[: op.carry], *row])
        pairs = [(ys, reshape(y, (1, *y.type.shape))) for ys, y in zip(earlier[op.carry :], ends[op.carry :])]
        stacked = [concatenate(pair[::-1] if op.backwards else pair, 0) for pair in pairs]
        return recorder.freeze([*ends[: op.carry], *stacked], op.name)


def _recomputes(body: Program, linear: Marks) -> bool:
    """Whether the adjoint of a body computes an equation again, because the equation depends on no linear input."""
    marked = as_set(linear)
    return any([not numbers & marked for numbers in dependence(body).values[len(linear) :]])


def _only(numbers: Sequence[int], linear: Sequence[bool], live: Marks) -> list[int]:
    """Those operands that are linear and whose cotangent is ``live``."""
    return [i for i, yes in zip([i for i, yes in zip(numbers, linear) if yes], live) if yes]


def _body(
    op: HigherOrder, adjoint: Program, live: Marks, marks: Any, cotangents: _LiveCotangents, nonzero: Marks,
    grad_types: Sequence[ArrayType],
) -> Program:
    """A body of the adjoint operation, from the adjoint of a body whose linear inputs ``live`` have cotangents.

    From known shared inputs, cotangents of the carries, sums, known ``each`` inputs and cotangents of ``out``, to
    cotangents of the carries, sums and cotangents of ``each``.
    """
    types = op.bodies[0].in_types
    carried, summed, sliced = cotangents
    shared, carry = op.shared, op.carry
    linear_shared = [t for t, yes in zip(grad_types, marks.shared) if yes]
    linear_each = [t for t, yes in zip(grad_types[shared + carry :], marks.each) if yes]
    if not op.loops and live == (*summed, *sliced):  # no carries, and all branches have the same cotangents
        types_of_live = [t.dual for t, yes in zip([*linear_shared, *linear_each], live) if yes]
        if adjoint.out_types == tuple(types_of_live):
            return adjoint
    recorder = Record(BASE, "")

    inputs = recorder.inputs
    fixed = inputs([t for t, yes in zip(types, marks.shared) if not yes])
    cts = inputs([t.dual for t, yes in zip(types[shared:], carried) if yes])
    sums = inputs([t.dual for t, yes in zip(linear_shared, summed) if yes and op.loops])
    residuals = inputs([t for t, yes in zip(types[shared + carry :], marks.each) if not yes])
    out_cts = inputs([t.dual for t, yes in zip(op.bodies[0].out_types[carry:], nonzero[carry:]) if yes])
    with inside(recorder):
        grads = scattered(interpret(adjoint, [*fixed, *residuals, *cts, *out_cts]), live)
        end = len(summed) + carry
        of_shared, of_carry, of_each = grads[: len(summed)], grads[len(summed) : end], grads[end:]
        totals = iter(sums)
        new_sums = [
            add_cotangent(next(totals), g) if op.loops else typed_cotangent(g, t)
            for g, t, yes in zip(of_shared, linear_shared, summed)
            if yes
        ]
        new_cts = [typed_cotangent(g, t) for g, t, yes in zip(of_carry, types[shared:], carried) if yes]
        slices = [typed_cotangent(g, t) for g, t, yes in zip(of_each, linear_each, sliced) if yes]
        return recorder.freeze([*new_cts, *new_sums, *slices], adjoint.name)
