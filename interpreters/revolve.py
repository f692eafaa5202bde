"""Reverse mode through a loop of unknown length, with room for a fixed number of its carries.

The runs are counted, then taken in the opposite order. A carry that is not kept is computed again from the nearest one
before it that is. How far to go before the next one is kept is the binomial schedule: with room for ``s`` carries,
``n <= C(s + t, t)`` runs cost at most ``t`` evaluations each beside the one that their derivative needs, and altogether
as few as there can be: ``t n - C(s + t, t - 1)`` for the smallest such ``t``.

The adjoint is made of loops with room of their own, so that it has a reverse mode too.

Source: Griewank & Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000), section 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..effects import comparison, config
from ..effects.arithmetic import div
from ..effects.arrays import scalar
from ..effects.caches import Cache
from ..effects.columns import add_tangents, zeros_like
from ..effects.control import Call, HigherOrder
from ..effects.conversion import convert
from ..effects.dtypes import int32
from ..effects.dynamic import dynamic_index_in_dim, dynamic_update_index_in_dim
from ..effects.errors import NotDifferentiable
from ..effects.loops import while_loop
from ..effects.programs import Program, interpret
from ..effects.shapes import broadcast_in_dim
from ..effects.stack import BASE, current, inside
from ..effects.types import ArrayType
from .dependence import dependent_inputs, dependent_test
from .partial_eval import halve
from .record import record
from .simplify import dead_code_elimination

Marks = tuple[bool, ...]
# ``transpose(program, linear, nonzero)``: the adjoint program, and which linear inputs have a cotangent
Transpose = Callable[[Program, Sequence[bool], Sequence[bool]], tuple[Program, Marks]]
_ADJOINTS = Cache("adjoints of loops of unknown length")
# Derivatives of an adjoint keep its whole state, all rows of it: so many times at most.
_STATES = 16


def transpose_until(
    op: Any, cts: Sequence[Any], operands: Sequence[Any], linear: Sequence[bool], transpose: Transpose
) -> list[Any]:
    """The cotangent of each operand; None for one that is not linear, or where it is zero.

    Raises: NotDifferentiable: the operation has no slots, or its test depends on a linear operand.
    """
    if not op.slots:
        raise NotDifferentiable(
            f"{op.name}: reverse mode cannot cross a loop of unknown length: nothing bounds what it would keep.",
            hint="give while_loop max_steps=, or checkpoints=; or use fori_loop with constant bounds, or scan.",
        )
    nonzero = tuple([ct is not None for ct in cts])
    key = (op, tuple(linear), nonzero, config.current())
    made = _ADJOINTS.get(key, lambda: _Reverse(op, linear, nonzero, transpose).adjoint(linear))
    known = [x for x, yes in zip(operands, made.marks) if not yes]
    given = [ct for ct, yes in zip(cts, made.marks[op.shared :]) if yes and ct is not None]
    found = iter(current().answer(made.op, (*known, *given)))
    return [next(found) if yes else None for yes in made.live]


class _Adjoint(NamedTuple):
    """``op`` takes the known operands and the cotangents that there are, and gives those of the operands ``live``.

    ``marks``: for each operand whether it is linear inside the loop.
    """

    op: HigherOrder
    marks: Marks
    live: Marks


class _Kept(NamedTuple):
    """The carries that are kept: ``top`` of them, the last one in front of run ``places[top - 1]``."""

    top: Any
    places: Any
    rows: list[Any]

    def last(self) -> tuple[Any, list[Any]]:
        """The place and the carry that were kept last."""
        at = self.top - 1
        return _row(self.places, at), [_row(x, at) for x in self.rows]

    def keep(self, place: Any, carry: Sequence[Any]) -> _Kept:
        """With this carry kept too, if it is not."""
        top = self.top + convert(comparison.ne(_row(self.places, self.top - 1), place), int32)
        rows = [_with_row(x, y, top - 1) for x, y in zip(self.rows, carry)]
        return _Kept(top, _with_row(self.places, place, top - 1), rows)

    def without(self, place: Any) -> _Kept:
        """Without the carry of this place, which was kept last if it was kept at all."""
        top = self.top - convert(comparison.eq(_row(self.places, self.top - 1), place), int32)
        return self._replace(top=top)


def _row(x: Any, place: Any) -> Any:
    return dynamic_index_in_dim(x, place, keepdims=False, allow_negative_indices=False)


def _with_row(x: Any, row: Any, place: Any) -> Any:
    return dynamic_update_index_in_dim(x, row, place, 0, allow_negative_indices=False)


class _Reverse:
    """The adjoint of one loop, for these linear operands and these results with a cotangent."""

    def __init__(self, op: Any, linear: Sequence[bool], nonzero: Marks, transpose: Transpose):
        self.op = op
        test, self.body = op.bodies
        self.test = dead_code_elimination(test, instantiate=True).program  # what stays needs known inputs alone
        self.nonzero = nonzero
        if dependent_test(op, linear):
            raise NotDifferentiable(
                f"{op.name}: the function must be linear, and here the test depends on its argument.",
                hint="linear_transpose takes linear functions only; vjp takes any.",
            )
        _, self.fixed, self.moving, _ = op.groups(dependent_inputs(op, linear))
        self.marks = (*self.fixed, *self.moving)
        self.half = halve(self.body, self.marks, self.moving, None, False)
        count = sum(self.fixed)
        linear_inputs = [False] * len(self.half.residuals) + [True] * sum(self.marks)
        self.moved = [ct for ct, yes in zip(nonzero, self.moving) if yes]
        while True:  # a carry whose last value nobody uses has a cotangent if the run before uses it
            self.back, self.live = transpose(self.half.rest, linear_inputs, self.moved)
            grown = [a or b for a, b in zip(self.moved, self.live[count:])]
            if grown == self.moved:
                break
            self.moved = grown
        self.summed = self.live[:count]
        types = [t for t, yes in zip(self.body.in_types, self.marks) if yes]
        self.summed_types = [t for t, yes in zip(types, self.summed) if yes]
        self.moved_types = [t for t, yes in zip(types[count:], self.moved) if yes]
        self.again = min(op.slots, _STATES)

    def adjoint(self, linear: Sequence[bool]) -> _Adjoint:
        known = [t for t, yes in zip(self.body.in_types, self.marks) if not yes]
        given = [t for t, yes, ct in zip(self.body.out_types, self.moving, self.nonzero) if yes and ct]
        with inside(BASE):
            program = record(self.run, [*known, *given], self.body.name)
        marks = iter((*self.summed, *self.moved))
        made = [yes and next(marks) for yes in self.marks]
        # a linear carry may start from a known value, a zero: nobody asks for its cotangent
        used = [yes for yes, there in zip(linear, made) if there]
        program = dead_code_elimination(program, used, instantiate=True).program
        return _Adjoint(Call((program,), "adjoint"), self.marks, tuple([a and b for a, b in zip(made, linear)]))

    def run(self, *xs: Any) -> list[Any]:
        """From known shared operands, known carries and the cotangents that there are, to those of linear operands."""
        first = len(self.fixed) - sum(self.fixed)
        start = first + len(self.moving) - sum(self.moving)
        shared, carry, given = xs[:first], list(xs[first:start]), iter(xs[start:])
        ends = [ct for ct, yes in zip(self.nonzero, self.moving) if yes]
        cts = [next(given) if there else None for there in ends]
        cts = [_full(ct, t) for ct, t in zip([ct for ct, yes in zip(cts, self.moved) if yes], self.moved_types)]
        sums = [zeros_like(t) for t in self.summed_types]
        rows = [broadcast_in_dim(c, (self.op.slots, *c.shape), range(1, c.ndim + 1)) for c in carry]
        kept = _Kept(scalar(1, int32), broadcast_in_dim(scalar(0, int32), (self.op.slots,), ()), rows)
        last = self.count(shared, carry) - 1
        turn = lambda state: (state[0] - 1, *self.turn(shared, *state))
        *_, sums, cts = while_loop(
            lambda state: comparison.ge(state[0], 0), turn, (last, kept, sums, cts), checkpoints=self.again
        )
        return [*sums, *cts]

    def count(self, shared: Sequence[Any], carry: Sequence[Any]) -> Any:
        """How many runs there are; what the test does not need is not computed."""
        more = lambda state: interpret(self.test, self.inputs(shared, state[1]))[0]
        step = lambda state: (state[0] + 1, self.advance(shared, state[1]))
        return while_loop(more, step, (scalar(0, int32), list(carry)))[0]

    def inputs(self, shared: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        """The inputs of a body; nothing that is computed here needs the linear ones."""
        found = iter((*shared, *carry))
        return [zeros_like(t) if yes else next(found) for yes, t in zip(self.marks, self.body.in_types)]

    def advance(self, shared: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        """The carry after one run."""
        return list(interpret(self.half.known, [*shared, *carry])[: len(carry)])

    def turn(self, shared: Sequence[Any], place: Any, kept: _Kept, sums: list[Any], cts: list[Any]) -> Any:
        """The adjoint of run ``place``, the last one whose adjoint is missing."""
        kept, carry = self.reach(shared, place, kept)
        known = [*shared, *carry]
        results = interpret(self.half.known, known)
        residuals = [known[n] if given else results[n] for given, n in self.half.residuals]
        found = iter(interpret(self.back, [*residuals, *cts]))
        grads = [next(found) if yes else None for yes in self.live]
        new_sums = [g for g, yes in zip(grads, self.summed) if yes]
        new_cts = [g for g, yes in zip(grads[len(self.summed) :], self.moved) if yes]
        sums = [_full(add_tangents(a, b), t) for a, b, t in zip(sums, new_sums, self.summed_types)]
        return kept.without(place), sums, [_full(ct, t) for ct, t in zip(new_cts, self.moved_types)]

    def reach(self, shared: Sequence[Any], place: Any, kept: _Kept) -> tuple[_Kept, list[Any]]:
        """The carry in front of run ``place``, from the last one that is kept; keeps others on the way."""

        def step(state: Any) -> Any:
            at, carry, kept = state
            kept = kept.keep(at, carry)
            far = stride(place - at + 1, self.op.slots + 1 - kept.top)
            more = lambda state: comparison.gt(state[0], 0)
            onward = lambda state: (state[0] - 1, self.advance(shared, state[1]))
            _, carry = while_loop(more, onward, (far, carry), checkpoints=self.again)
            return at + far, carry, kept

        start = (*kept.last(), kept)
        _, carry, kept = while_loop(lambda state: comparison.lt(state[0], place), step, start, checkpoints=self.again)
        return kept, carry


def stride(length: Any, room: Any) -> Any:
    """How far to go before the next carry is kept, on the way to the last of ``length`` runs, at least two.

    There is room for ``room`` carries, of which the one that the way starts from is one.
    """
    length, room = convert(length, _WIDE), convert(room, _WIDE)

    def grow(state: Any) -> Any:
        times, _, reach = state
        return times + 1, reach, div(reach * (room + times + 1), times + 1)

    none, one = scalar(0, _WIDE), scalar(1, _WIDE)
    times, below, _ = while_loop(lambda state: comparison.lt(state[2], length), grow, (none, one, one))
    # C(room + times, times) runs can be reversed, ``below`` of them with one evaluation less, and as many behind the
    # next carry that is kept as one carry less can serve
    inner = div(below * room, comparison.max(room + times - 1, one))
    return convert(comparison.min(below, length - inner), int32)


def _full(ct: Any, type: ArrayType) -> Any:
    """A cotangent with exactly this type; None is zero."""
    return zeros_like(type) if ct is None else convert(ct, type.dtype, type.weak)


_WIDE = np.dtype(np.int64)
