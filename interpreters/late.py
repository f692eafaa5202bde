"""Rules recorded late, and what handlers make of them.

A rule is a value: it is compared by the user's function and by the handlers that lifted it. To perform it, each of
these handlers is installed anew over the stack of the moment, and the user's function runs inside.

    derivative    run(operands, tangents) -> (results, tangents)                    None is the symbolic zero
    linear map    rule(residuals, values) -> values
    lanes         rule(size, mapped, operands) -> (results, mapped)                 lanes along the first axis
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any

from ..effects.arrays import Array, lift
from ..effects.columns import add_tangents, zeros_like
from ..effects.conversion import convert
from ..effects.dtypes import is_inexact
from ..effects.errors import BadCall, CannotCross, DTypeMismatch, ShapeMismatch, StateTypeError
from ..effects.identity import fingerprint
from ..effects.operations import bits
from ..effects.printing import WRITERS
from ..effects.programs import interpret
from ..effects.sources import Site
from ..effects.stack import BASE, Run, current, inside, installed
from ..effects.types import ArrayType
from ..effects.values import Value
from .cross import NO_FLOW, Crossing, Flow, Lift, Mark, cross
from .jvp import Jvp


class Held:
    """A Python value as part of a key: compared by type and bits where it can be hashed.

    Arrays are compared by identity; what else cannot be hashed may change, and is like nothing that was held before.
    ``reads``: a function is compared by what it is and reads when it is first compared.
    """

    __slots__ = ("value", "reads", "_key")

    def __init__(self, value: Any, reads: bool = False):
        self.value = value
        self.reads = reads

    @property
    def key(self) -> Any:
        try:
            return self._key
        except AttributeError:
            self._key: Any = self.compared()
            return self._key

    def compared(self) -> Any:
        mark = fingerprint(self.value) if self.reads and callable(self.value) else None
        if mark is not None:
            return mark
        try:
            key = bits(self.value)
            hash(key)
        except TypeError:
            return ("identity", id(self.value)) if isinstance(self.value, Array) else object()
        return key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and type(self.value) is type(other.value) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash((type(self.value), self.key))

    def __reduce__(self) -> Any:
        return Held, (self.value, self.reads)


def place_of(f: Any) -> str:
    """``f_jvp at model.py:17``: what messages call a function of the user's."""
    name = getattr(f, "__qualname__", None) or type(f).__qualname__
    code = getattr(inspect.unwrap(f), "__code__", None)
    return f"{name} at {Site(code, 0)}" if code is not None else name


class Rule(Value):
    """A late rule. ``shown`` says whose it is: texts of programs show it by the user's function."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        WRITERS[cls] = lambda printer, value: f"?{value.shown!r}"

    @property
    def shown(self) -> str:
        return self.inner.shown  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{self.shown}>"


class Again:
    """A handler to be installed again: it holds none of the values that the handler had. Compared by its key."""

    __slots__ = ("run", "flow", "key")

    def __init__(self, run: Crossing, flow: Flow):
        self.run = run.fresh(BASE)
        self.flow = copy.copy(flow)
        if flow is not NO_FLOW:
            self.flow.operands = ()
            self.flow.begin(self.run, [None] * len(flow.operands))
        key = self.run.key()
        self.key = Held(self.run) if key is None else (key, type(flow), Held(getattr(flow, "structure", None)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Again) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Parts(Value):
    """How the parts of some values are distributed: their marks, and how many parts each has."""

    marks: tuple[Mark, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, run: Crossing, marks: Sequence[Mark], types: Sequence[ArrayType]) -> Parts:
        return cls(tuple(marks), tuple([len(run.part_types(mark, t)) for mark, t in zip(marks, types)]))

    def boxes(self, run: Crossing, parts: Sequence[Any]) -> list[Any]:
        """The values with these parts; None where all parts are None."""
        pairs = zip(self.marks, self.grouped(parts))
        return [None if group[0] is None else run.box(mark, group) for mark, group in pairs]

    def grouped(self, items: Sequence[Any]) -> list[list[Any]]:
        """The parts of each value, or what goes with them."""
        found = iter(items)
        return [[next(found) for _ in range(count)] for count in self.counts]


# A derivative's rule under a handler


class Unruled(Crossing):
    """Performs functions with one certain rule as if they had none.

    While a rule is differentiated for the sake of a state, the function that it calls again is what its operations are.
    """

    __slots__ = ("shown",)

    def __init__(self, outer: Run, shown: str):
        super().__init__(outer, "")
        self.shown = shown

    def fresh(self, outer: Run) -> Unruled:
        return Unruled(outer, self.shown)

    def key(self) -> Any:
        return ("unruled", self.shown)

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        within = [kind for body in op.bodies for kind in body.operations] if op.bodied else []
        if not any([kind.late for kind in within]) and not (op.bodied and op.late):
            return self.outer.answer(op, operands)
        if op.late and op.rule.shown == self.shown:
            with inside(self):
                return interpret(op.bodies[0], operands)
        with inside(self.outer):
            return cross(self, op, operands)


class LiftedJvp(Rule):
    """The rule of a derivative as a handler makes it.

    A tangent has the marks of its primal. The state's tangent is the derivative of what the rule does to it.
    """

    inner: Any
    again: Again
    extra: int
    ins: Parts
    out_types: tuple[ArrayType, ...]
    wanted: tuple[Mark, ...]
    ends: tuple[ArrayType, ...]

    def run(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        last = self.extra + sum(self.ins.counts)
        values, state = operands[self.extra : last], operands[last:]
        dvalues, dstate = tangents[self.extra : last], tangents[last:]
        moves = any([is_inexact(t.dtype) for t in self.ends]) and any([dx is not None for dx in (*dvalues, *dstate)])
        if not moves:
            ys, dys, ends = self.within(current(), values, dvalues, state)
            return [*ys, *ends], [*dys, *[None] * len(ends)]
        by_state = Jvp(current(), "")
        by_value = Jvp(by_state, "")
        paired = [by_state.pair(x, dx) for x, dx in zip(state, dstate)]
        moved = [by_value.pair(x, dx) for x, dx in zip(values, dvalues)]
        try:
            ys, dys, ends = self.within(Unruled(by_value, self.shown), moved, dvalues, paired)
        finally:
            by_state.ended = by_value.ended = True
        return self.results(ys, dys, ends, by_state, by_value)

    def within(self, outer: Any, values: Sequence[Any], dvalues: Sequence[Any], state: Sequence[Any]) -> Any:
        """The rule under the handler: parts of its results, of their tangents, and what the state ends as."""
        run, flow = self.again.run.fresh(outer), self.again.flow
        with inside(outer):
            flow.begin(run, state)
        boxes, tangents = self.ins.boxes(run, values), self.ins.boxes(run, dvalues)
        with installed(run):
            ys, dys = self.inner.run(boxes, tangents)
        with inside(outer):
            ends, _ = flow.end(run)
            if len(ends) != len(self.ends):
                raise StateTypeError(
                    f"{self.shown}: the rule must leave the state of {run.label} with the structure that the function "
                    f"leaves, {len(self.ends)} leaves, got {len(ends)}.",
                    hint="perform the same effects in the rule and in the function, or handle them inside.",
                )
            ends = [convert(x, t.dtype, t.weak) for x, t in zip(ends, self.ends)]
            outs = [self.typed(run, y, t, mark) for y, t, mark in zip(ys, self.out_types, self.wanted)]
            douts = [
                [None] * len(parts) if dy is None else self.typed(run, dy, t, mark)
                for dy, t, mark, parts in zip(dys, self.out_types, self.wanted, outs)
            ]
        return [part for parts in outs for part in parts], [part for parts in douts for part in parts], ends

    def typed(self, run: Crossing, y: Any, type: ArrayType, mark: Mark) -> list[Any]:
        return [convert(x, t.dtype, t.weak) for x, t in zip(run.force(y, mark), run.part_types(mark, type))]

    def results(self, ys: Any, dys: Any, ends: Any, by_state: Jvp, by_value: Jvp) -> tuple[list[Any], list[Any]]:
        """Values and tangents: what the rule says by the arguments, and the derivative by the state of what it does."""

        def parts(x: Any) -> tuple[Any, Any, Any]:
            within, by_argument = by_value.unbox(x)
            value, tangent = by_state.unbox(within)
            return value, tangent, None if by_argument is None else by_state.unbox(by_argument)[0]

        outs, douts = [], []
        for y, dy in zip(ys, dys):
            value, tangent, _ = parts(y)
            outs.append(value)
            douts.append(add_tangents(tangent, None if dy is None else parts(dy)[0]))
        for x in ends:
            value, tangent, other = parts(x)
            outs.append(value)
            douts.append(add_tangents(tangent, other))
        return outs, douts

    def lifted(self, lift: Lift) -> LiftedJvp:
        return lifted_jvp(self, lift)


def lifted_jvp(inner: Any, lift: Lift) -> LiftedJvp:
    again = Again(lift.run, lift.flow)
    ins = Parts.of(lift.run, lift.marks, lift.body.in_types)
    ends = tuple(lift.joined.types)
    return LiftedJvp(inner, again, lift.extra, ins, lift.body.out_types, tuple(lift.wanted), ends)


# A linear map under a handler


class LiftedLinear(Rule):
    """A linear map as a handler makes it; the state is read, and must stay as it is."""

    inner: Any
    again: Again
    ins: Parts
    mark: Mark

    def __call__(self, residuals: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        outer = current()
        run, flow = self.again.run.fresh(outer), self.again.flow
        last = sum(self.ins.counts)
        flow.begin(run, residuals[last:])
        boxes = self.ins.boxes(run, residuals[:last])
        given = [None if x is None else run.box(self.mark, [x]) for x in values]
        with installed(run):
            ys = self.inner(boxes, given)
        unmoved(self.shown, run, flow, residuals[last:])
        return [None if y is None else run.force(y, self.mark)[0] for y in ys]


def unmoved(shown: str, run: Crossing, flow: Flow, before: Sequence[Any]) -> None:
    """Raises CannotCross where a rule has changed the state of a handler, for which there is no place any more."""
    ends, _ = flow.end(run)
    if len(ends) != len(before) or any([x is not y for x, y in zip(ends, before)]):
        raise CannotCross(
            f"{shown}: the rule performs an effect that changes the state of {run.label}, and runs where there is no "
            "such state any more.",
            hint="perform it in the function, or in the forward rule, and pass on what it gives.",
        )


def cross_linear(run: Crossing, op: Any, operands: tuple[Any, ...]) -> Any:
    """Answer a linear map known by a late rule: the same map, outside, over its rules as the handler makes them."""
    flow = run.flow(op)
    residuals, values = operands[: op.residuals], operands[op.residuals :]
    found = [run.split(x) for x in residuals]
    marks = [mark for mark, _ in found]
    mark = run.carried(run.join([*marks, *[run.split(x)[0] for x in values]]))
    again = Again(run, flow)
    ins = Parts.of(run, marks, [x.type for x in residuals])
    parts = [*[part for _, parts in found for part in parts], *flow.operands]
    types = [run.part_types(mark, t)[0] for t in op.types]
    rules = [None if each is None else LiftedLinear(each, again, ins, mark) for each in (op.backward, op.forward)]
    made = type(op)(*rules, len(parts), tuple(types))
    results = run.outer.answer(made, (*parts, *[run.force(x, mark)[0] for x in values]))
    return tuple([run.box(mark, [y]) for y in results])


# A rule for lanes under a handler


class LiftedLanes(Rule):
    """A rule for lanes as a handler makes it, one whose values have one part; the state passes by."""

    inner: Any
    again: Again
    extra: int
    ins: Parts
    wanted: tuple[Mark, ...]

    def speaks(self, mapped: Sequence[bool]) -> bool:
        return bool(self.inner.speaks(mapped[self.extra : self.extra + sum(self.ins.counts)]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        run, flow = self.again.run.fresh(current()), self.again.flow
        last = self.extra + sum(self.ins.counts)
        state = list(operands[last:])
        flow.begin(run, state)
        lanes = [yes[0] for yes in self.ins.grouped(mapped[self.extra : last])]
        groups = self.ins.grouped(operands[self.extra : last])
        marks = [run.stack(mark) if yes else mark for mark, yes in zip(self.ins.marks, lanes)]
        with installed(run):
            ys, found = self.inner(size, lanes, [run.box(mark, group) for mark, group in zip(marks, groups)])
        unmoved(self.shown, run, flow, state)
        wanted = [run.stack(mark) if yes else mark for mark, yes in zip(self.wanted, found)]
        return [*[run.force(y, mark)[0] for y, mark in zip(ys, wanted)], *state], [*found, *mapped[last:]]

    def lifted(self, lift: Lift) -> LiftedLanes:
        return lifted_lanes(self, lift)


def lifted_lanes(inner: Any, lift: Lift) -> LiftedLanes:
    again = Again(lift.run, lift.flow)
    ins = Parts.of(lift.run, lift.marks, lift.body.in_types)
    return LiftedLanes(inner, again, lift.extra, ins, tuple(lift.wanted))


# What rules give, checked


def checked(shown: str, what: str, y: Any, t: ArrayType) -> Array:
    """What a rule gave, as this type.

    Raises: ShapeMismatch, DTypeMismatch: it has another shape or dtype.
    """
    try:
        x = lift(y)
    except TypeError as error:
        raise BadCall(f"{shown}: the rule must give arrays, got {type(y).__name__} for {what}.") from error
    if x.type.shape != t.shape:
        raise ShapeMismatch(f"{shown}: the rule must give {what} of shape {t.shape}, got {x.type}.")
    if x.type.dtype != t.dtype and not x.type.weak:
        raise DTypeMismatch(
            f"{shown}: the rule must give {what} of dtype {t.dtype}, got {x.type}.", hint="convert with astype."
        )
    return convert(x, t.dtype, t.weak)


def full(values: Sequence[Any], types: Sequence[ArrayType]) -> list[Any]:
    """The values, zeros for None."""
    return [zeros_like(t) if x is None else x for x, t in zip(values, types)]

