"""The adjoint of a loop of unknown length, with room (slots) for a fixed number of its carries: checkpointing.

Reverse mode counts the iterations, then takes the adjoint of each in reverse order. The adjoint of an iteration needs
the carry at its start. With fewer slots than iterations, a carry that is not saved is computed again from the nearest
earlier one that is. The distance to the next carry to save is the binomial schedule: with ``s`` slots,
``n <= C(s + t, t)`` iterations are each evaluated at most ``t`` times beside the evaluation that their derivative
needs, and in total ``t n - C(s + t, t - 1)`` times for the smallest such ``t``, which is the minimum.

The adjoint consists of loops with slots of their own, so that it can be differentiated in reverse mode too.

Source: Griewank & Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000), section 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base import config
from ...effects.base.errors import NotDifferentiable
from ...effects.base.stack import BASE, current, inside, perform
from ...effects.control.branches import Cond
from ...effects.control.loops import while_loop
from ...effects.control.recorded_bodies import meetings, with_types
from ...effects.core.arrays import scalar
from ...effects.core.columns import add_tangents, zeros_like
from ...effects.core.varying import LaneOperations, with_varying
from ...effects.operations.elementwise import comparison
from ...effects.operations.elementwise.arithmetic import div
from ...effects.operations.elementwise.conversion import as_type, convert
from ...effects.operations.foundations.shapes import broadcast_in_dim
from ...effects.operations.indexing.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from ...effects.programs.higher_order import Call, HigherOrder
from ...effects.programs.program import Program, interpret
from ...effects.programs.program_cache import ProgramCache
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import int32
from ..analysis.dependence import Marks, body_dependence, scattered
from ..analysis.simplify import dead_code_elimination
from ..core.record import record
from .partial_eval import split_program

# ``transpose(program, linear, nonzero)``: the adjoint program, and which linear inputs have a cotangent
BodyTranspose = Callable[[Program, Sequence[bool], Sequence[bool]], tuple[Program, Marks]]
_ADJOINTS = ProgramCache("adjoints of loops of unknown length")
"""Adjoints of while loops, by operation, linear operands, results that have a cotangent and settings."""
# The most slots of the adjoint's own loops, in each of which reverse mode saves all the carries saved here.
_STATES = 16


def transpose_until(
    op: Any, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: BodyTranspose
) -> list[Any]:
    """The cotangent of each operand of the loop; None for one that is not linear, or where it is zero.

    Raises: NotDifferentiable: the operation has no slots, or its test depends on a linear operand.
    """
    if not op.slots:
        raise NotDifferentiable(
            f"{op.name}: reverse mode cannot cross a loop of unknown length: unboundedly many carries to save.",
            hint="give while_loop max_steps=, or checkpoints=; or use fori_loop with constant bounds, or scan.",
        )
    nonzero = tuple([ct is not None for ct in cts])
    key = (op, tuple(linear), nonzero, config.current())
    adjoint = _ADJOINTS.get(key, lambda: _ReverseLoop(op, linear, nonzero, transpose).adjoint(linear))
    known = [x for x, yes in zip(operands, adjoint.marks) if not yes]
    nonzero_cts = [ct for ct, yes in zip(cts, adjoint.marks[op.shared :]) if yes and ct is not None]
    return scattered(current().answer(adjoint.op, (*known, *nonzero_cts)), adjoint.live)


def _in_step(op: Any) -> Any:
    """The loop; where lanes meet in it and may end differently, with as many iterations for each as the last one needs,
    in which those that have ended keep their carry: its adjoint is then in step as well.
    """
    axes = {at.axis for at in meetings(op.bodies[1]) if not at.tracked}
    if not axes:
        return op
    test, body = op.bodies
    any_of = LaneOperations.highest(tuple(sorted(axes, key=str)))
    again = record(lambda *xs: [perform(any_of, interpret(test, xs)[0])], test.in_types, test.name)
    ended = record(lambda *xs: xs[op.shared :], body.in_types, "ended")
    branch = Cond((with_types(ended, body.out_types), body))
    step = record(lambda *xs: perform(branch, convert(interpret(test, xs)[0], int32), *xs), body.in_types, body.name)
    return op.with_bodies((again, step))


class _LoopAdjoint(NamedTuple):
    """The adjoint of a loop, for certain linear operands and nonzero cotangents.

    ``op``: from the known operands, then the nonzero cotangents, to those of the operands marked ``live``. ``marks``:
    which operands are linear inside the loop.
    """

    op: HigherOrder
    marks: Marks
    live: Marks


class _SavedCarries(NamedTuple):
    """A stack of saved carries: ``top`` of them; entry ``k`` is the carry at the start of iteration ``indices[k]``.

    ``rows``: for each component of the carry an array with one row per slot.
    """

    top: Any
    indices: Any
    rows: list[Any]

    def last(self) -> tuple[Any, list[Any]]:
        """The iteration and the carry of the top entry."""
        at = self.top - 1
        return _row(self.indices, at), [_row(x, at) for x in self.rows]

    def push(self, index: Any, carry: Sequence[Any]) -> _SavedCarries:
        """The stack with the carry of iteration ``index`` on top; unchanged if the top entry is that carry."""
        top = self.top + convert(comparison.ne(_row(self.indices, self.top - 1), index), int32)
        rows = [_with_row(x, y, top - 1) for x, y in zip(self.rows, carry)]
        return _SavedCarries(top, _with_row(self.indices, index, top - 1), rows)

    def pop(self, index: Any) -> _SavedCarries:
        """The stack without its top entry, if that is the carry of iteration ``index``."""
        top = self.top - convert(comparison.eq(_row(self.indices, self.top - 1), index), int32)
        return self._replace(top=top)


def _row(x: Any, index: Any) -> Any:
    return dynamic_index_in_dim(x, index, keepdims=False, allow_negative_indices=False)


def _with_row(x: Any, row: Any, index: Any) -> Any:
    return dynamic_update_index_in_dim(x, row, index, 0, allow_negative_indices=False)


class _ReverseLoop:
    """Builds the adjoint of one loop, for these linear operands and these results with a cotangent.

    ``fixed``, ``linear_carry``: which shared inputs and which carries are linear. ``half``: the body, split by that.
    ``back``: the adjoint of its linear part; ``live``: which of its linear inputs have a cotangent. ``carried``: which
    linear carries have one, the least fixed point over the iterations; ``summed``: which linear shared inputs have one.
    """

    def __init__(self, op: Any, linear: Sequence[bool], nonzero: Marks, transpose: BodyTranspose):
        self.op = op = _in_step(op)
        test, self.body = op.bodies
        self.test = dead_code_elimination(test, instantiate=True).program  # it then uses known inputs only
        self.nonzero = nonzero
        reached = body_dependence(op, ordered=False).reached(linear)
        if reached.test:
            raise NotDifferentiable(
                f"{op.name}: the function must be linear, and here the test depends on its argument.",
                hint="linear_transpose takes linear functions only; vjp takes any.",
            )
        _, self.fixed, self.linear_carry, _ = op.groups(reached.inputs)
        self.marks = (*self.fixed, *self.linear_carry)
        self.half = split_program(self.body, self.marks, self.linear_carry, None, False)
        count = sum(self.fixed)
        linear_inputs = [False] * len(self.half.residuals) + [True] * sum(self.marks)
        self.carried = [ct for ct, yes in zip(nonzero, self.linear_carry) if yes]
        while True:  # a carry whose final value is not used has a cotangent if an earlier iteration uses it
            self.back, self.live = transpose(self.half.rest, linear_inputs, self.carried)
            grown = [a or b for a, b in zip(self.carried, self.live[count:])]
            if grown == self.carried:
                break
            self.carried = grown
        self.summed = self.live[:count]
        types = [t for t, yes in zip(self.body.in_types, self.marks) if yes]
        summed = [t for t, yes in zip(types, self.summed) if yes]
        self.summed_types = [t.along(given.varying) for t, given in zip(summed, self.back.out_types)]
        self.carried_types = [t for t, yes in zip(types[count:], self.carried) if yes]
        self.slots = min(op.slots, _STATES)

    def adjoint(self, linear: Sequence[bool]) -> _LoopAdjoint:
        """The adjoint, recorded as the body of a call."""
        known = [t for t, yes in zip(self.body.in_types, self.marks) if not yes]
        ct_types = [t.dual for t, yes, ct in zip(self.body.out_types, self.linear_carry, self.nonzero) if yes and ct]
        with inside(BASE):
            program = record(self.evaluate, [*known, *ct_types], self.body.name)
        marks = iter((*self.summed, *self.carried))
        live = [yes and next(marks) for yes in self.marks]
        # the initial value of a linear carry may be a known value, a zero: its cotangent is not used
        used = [yes for yes, has_cotangent in zip(linear, live) if has_cotangent]
        program = dead_code_elimination(program, used, instantiate=True).program
        return _LoopAdjoint(Call((program,), "adjoint"), self.marks, tuple([a and b for a, b in zip(live, linear)]))

    def evaluate(self, *xs: Any) -> list[Any]:
        """The cotangents of linear shared operands, then of carries; from known operands and nonzero cotangents."""
        first = len(self.fixed) - sum(self.fixed)
        start = first + len(self.linear_carry) - sum(self.linear_carry)
        shared, carry = xs[:first], list(xs[first:start])
        cts = scattered(xs[start:], [ct for ct, yes in zip(self.nonzero, self.linear_carry) if yes])
        carried = [ct for ct, yes in zip(cts, self.carried) if yes]
        cts = [typed_cotangent(ct, t) for ct, t in zip(carried, self.carried_types)]
        sums = [zeros_like(t.dual) for t in self.summed_types]
        rows = [broadcast_in_dim(c, (self.op.slots, *c.shape), range(1, c.ndim + 1)) for c in carry]
        saved = _SavedCarries(scalar(1, int32), broadcast_in_dim(scalar(0, int32), (self.op.slots,), ()), rows)
        last = self.count(shared, carry) - 1
        step = lambda state: (state[0] - 1, *self.reverse_iteration(shared, *state))
        *_, sums, cts = while_loop(
            lambda state: comparison.ge(state[0], 0), step, (last, saved, sums, cts), checkpoints=self.slots
        )
        return [*sums, *cts]

    def count(self, shared: Sequence[Any], carry: Sequence[Any]) -> Any:
        """The number of iterations; computes of the body only what the test needs."""
        more = lambda state: interpret(self.test, self.inputs(shared, state[1]))[0]
        step = lambda state: (state[0] + 1, self.advance(shared, state[1]))
        return while_loop(more, step, (scalar(0, int32), list(carry)))[0]

    def inputs(self, shared: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        """The inputs of the test, with zeros for linear ones, which it does not use."""
        known = iter((*shared, *carry))
        return [zeros_like(t) if yes else next(known) for yes, t in zip(self.marks, self.body.in_types)]

    def advance(self, shared: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        """The known carry after one iteration."""
        return list(interpret(self.half.known, [*shared, *carry])[: len(carry)])

    def reverse_iteration(
        self, shared: Sequence[Any], index: Any, saved: _SavedCarries, sums: list[Any], cts: list[Any]
    ) -> tuple[_SavedCarries, list[Any], list[Any]]:
        """The adjoint of iteration ``index``: the saved carries, sums and cotangents of carries before it."""
        saved, carry = self.reach(shared, index, saved)
        known = [*shared, *carry]
        results = interpret(self.half.known, known)
        residuals = self.half.residual_values(known, results)
        grads = scattered(interpret(self.back, [*residuals, *cts]), self.live)
        new_sums = [g for g, yes in zip(grads, self.summed) if yes]
        new_cts = [g for g, yes in zip(grads[len(self.summed) :], self.carried) if yes]
        sums = [*map(add_cotangent, sums, new_sums)]
        return saved.pop(index), sums, [typed_cotangent(ct, t) for ct, t in zip(new_cts, self.carried_types)]

    def reach(self, shared: Sequence[Any], index: Any, saved: _SavedCarries) -> tuple[_SavedCarries, list[Any]]:
        """The carry at the start of iteration ``index``, from the one on top; saves others on the way."""

        def step(state: Any) -> Any:
            at, carry, saved = state
            saved = saved.push(at, carry)
            distance = stride(index - at + 1, self.op.slots + 1 - saved.top)
            more = lambda state: comparison.gt(state[0], 0)
            onward = lambda state: (state[0] - 1, self.advance(shared, state[1]))
            _, carry = while_loop(more, onward, (distance, carry), checkpoints=self.slots)
            return at + distance, carry, saved

        start = (*saved.last(), saved)
        _, carry, saved = while_loop(lambda state: comparison.lt(state[0], index), step, start, checkpoints=self.slots)
        return saved, carry


def stride(length: Any, slots: Any) -> Any:
    """How many of ``length >= 2`` iterations to advance before the next carry is saved, to reverse them all.

    ``slots``: for this carry and all to be saved during these iterations.
    """
    length, slots = convert(length, _WIDE), convert(slots, _WIDE)

    def grow(state: Any) -> Any:
        times, _, reach = state
        return times + 1, reach, div(reach * (slots + times + 1), times + 1)

    none, one = scalar(0, _WIDE), scalar(1, _WIDE)
    times, below, _ = while_loop(lambda state: comparison.lt(state[2], length), grow, (none, one, one))
    # with t = times, ``slots`` carries and t evaluations each can reverse C(slots + t, t) >= length iterations. Those
    # before the next saved carry have all slots, t - 1 evaluations left: at most ``below`` = C(slots + t - 1, t - 1).
    # Those after it have one slot less: at least ``inner`` = C(slots + t - 2, t - 1), which need t - 1 evaluations
    inner = div(below * slots, comparison.max(slots + times - 1, one))
    return convert(comparison.min(below, length - inner), int32)


def typed_cotangent(ct: Any, type: ArrayType) -> Any:
    """The cotangent ``ct`` of a value of this type, summed over the devices that share the value, and converted to
    exactly the type of its cotangents, ``type.dual``; zeros if it is None.
    """
    return zeros_like(type.dual) if ct is None else as_type(with_varying(ct, type.varying), type.dual)


def add_cotangent(total: Any, ct: Any) -> Any:
    """``total + ct``, of the type of the total; ``ct`` may be None."""
    return total if ct is None else as_type(add_tangents(total, with_varying(ct, total.type.varying)), total.type)


_WIDE = np.dtype(np.int64)
