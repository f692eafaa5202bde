"""Deferred rules: a user's derivatives, linear maps and batching rules, recorded only when a transformation needs them.

    derivative    run(operands, tangents) -> (results, tangents)                    None is the symbolic zero
    linear map    rule(residuals, values) -> values
    batching      rule(size, mapped, operands) -> (results, mapped)                 lanes along the first axis

A deferred rule is a field of an operation with bodies. When a handler crosses the operation, it transforms the body
now, but it cannot transform the rule, which is no program yet. So it replaces the rule by one that records the handler:
a transformed rule. To evaluate that, the handler is installed again over the stack in force (``Reinstallation``), the
operands are boxed from their parts, the inner rule is evaluated, and its results are partitioned again.

Rules are values: equal if the user's functions and the handlers that transformed them are equal, so that operations
with rules can be cache keys.
"""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import BadCall, CannotCross, DTypeMismatch, ShapeMismatch, StateTypeError
from ...effects.base.frozen_values import Value
from ...effects.base.source_locations import Site
from ...effects.base.stack import BASE, Run, current, inside, installed
from ...effects.core.arrays import Array, as_array
from ...effects.core.columns import add_tangents, zeros_like
from ...effects.core.named_axes import Axis
from ...effects.functions.fingerprint import KeyedValue
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.printer import WRITERS
from ...effects.programs.program import Program, interpret
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..core.body_transform import STATELESS, BodyTransformContext, BodyTransformer, Mark, StateFlow, cross
from ..core.record import record
from .jvp import Jvp


def describe_function(f: Any) -> str:
    """The name of a user's function in messages, such as ``f_jvp at model.py:17``."""
    name = getattr(f, "__qualname__", None) or type(f).__qualname__
    code = getattr(inspect.unwrap(f), "__code__", None)
    return f"{name} at {Site(code, 0)}" if code is not None else name


class DeferredRule(Value):
    """A deferred rule. ``shown`` names the user's function, in messages and in the text of programs."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        WRITERS[cls] = lambda printer, value: f"?{value.shown!r}"

    @property
    def shown(self) -> str:
        """The name of the user's function; of a transformed rule, that of the inner one."""
        return self.inner.shown  # type: ignore[attr-defined]

    @property
    def by_user(self) -> Any:
        """The rule itself; of a transformed rule, the user's."""
        return self

    def __repr__(self) -> str:
        return f"<{self.shown}>"


class DerivativeRule(DeferredRule):
    """A jvp rule ``run(operands, tangents) -> (results, tangents)``; None is the symbolic zero.

    The rule is the derivative by the arguments. Results also depend on states of handlers that transformed the rule,
    and on values that it captured: that part of a tangent is the derivative of the rule itself by these. The tangent of
    what the rule performs, such as the final state of a handler, is the derivative of the rule by states and arguments.
    Both are computed by runs of forward mode outside all these handlers, so that they go through their clauses.

    One of the user's has ``defined_by``, the function, and ``boxes``, the placeholders of what it captured.
    """

    @abstractmethod
    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results, and their tangents by the arguments: ``PERFORMED`` for those that the rule does not give."""

    def states(self, count: int) -> list[int]:
        """Which of ``count`` operands are states of handlers or captured values."""
        return []

    def differentiable(self) -> bool:
        """Whether a result with a derivative is ``PERFORMED``."""
        return False

    def pulled_by(self, backward: Any) -> bool:
        """Whether the tangents of this rule are linear maps with this backward rule of the user's."""
        return False

    def run(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The results and their tangents, under the handlers in force."""
        states = {*self.states(len(operands))}
        dvalues = [None if i in states else dx for i, dx in enumerate(tangents)]
        performs = self.differentiable()
        moved = [i for i, dx in enumerate(tangents) if dx is not None and (performs or i in states)]
        if not moved:
            ys, dys = self.within(operands, dvalues)
            return ys, [None if dy is PERFORMED else dy for dy in dys]
        by_state = JvpOfRule(current(), self.by_user)
        by_value = JvpOfRule(by_state, self.by_user)
        boxes = [*operands]
        for i in moved:
            boxes[i] = (by_state if i in states else by_value).pair(operands[i], tangents[i])
        try:
            with installed(by_value):
                ys, dys = self.within(boxes, dvalues)
        finally:
            by_state.ended = by_value.ended = True
        if all([dx is None for dx in dvalues]):  # the rule is linear
            dys = [dy if dy is PERFORMED else None for dy in dys]
        return _results(ys, dys, by_state, by_value)

    def transformed(self, context: BodyTransformContext) -> TransformedJvpRule:
        """The same rule under a handler, for the operation over bodies that the handler transformed."""
        ends, types = tuple(context.state_layout.types), context.body.out_types
        marks = tuple(context.result_marks)
        template = HandlerTemplate.of(context, self.shown, context.body)
        return TransformedJvpRule(self, template, context.extra, types, marks, ends)


class BatchingRule(DeferredRule):
    """A batching rule ``rule(size, mapped, operands) -> (results, mapped)``, with lanes along the first axis."""

    @property
    def in_order(self) -> bool:
        """Whether the rule calls the function with one lane after the other."""
        return bool(self.inner.in_order)  # type: ignore[attr-defined]

    def varies(self, mapped: Sequence[bool]) -> bool:
        """Whether an argument of the user's function is mapped."""
        return any(mapped)

    @abstractmethod
    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """The results for all lanes and which of them are mapped, under the handlers in force."""

    def transformed(self, context: BodyTransformContext) -> TransformedLanesRule:
        """The same rule under a handler, for the operation over bodies that the handler transformed."""
        template = HandlerTemplate.of(context, self.shown)
        return TransformedLanesRule(self, template, context.extra, tuple(context.result_marks))


# A handler that is installed again


class HandlerTemplate:
    """A handler to be installed again: its run without values, its state flow, and the marks of the operands it boxes.

    ``counts``: the number of parts of each operand. The operands of the transformed operation are captured values, then
    the parts of the original operands, then the state. Templates compare by ``key``.
    """

    __slots__ = ("run", "flow", "marks", "counts", "key")

    def __init__(
        self, run: BodyTransformer, flow: StateFlow, marks: Sequence[Mark], types: Sequence[ArrayType], rule: str,
        body: Program | None = None,
    ):  # fmt: skip
        self.run = run.fresh(BASE)
        self.run.restrict(rule, body)
        self.flow = copy.copy(flow)
        if flow is not STATELESS:
            self.flow.operands = ()
            self.flow.begin(self.run, [None] * len(flow.operands))
        self.marks = tuple(marks)
        self.counts = tuple([len(run.part_types(mark, t)) for mark, t in zip(marks, types)])
        key = self.run.key()
        structure = KeyedValue(getattr(flow, "structure", None))
        identity = KeyedValue(self.run) if key is None else (key, type(flow), structure)
        self.key = (identity, self.marks, self.counts)

    @classmethod
    def of(cls, context: BodyTransformContext, rule: str, body: Program | None = None) -> HandlerTemplate:
        """The template of the handler that transformed the body of an operation with this rule."""
        return cls(context.run, context.flow, context.marks, context.body.in_types, rule, body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HandlerTemplate) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def parts(self, items: Sequence[Any], extra: int = 0) -> tuple[list[Sequence[Any]], Sequence[Any]]:
        """Items of the operands of the transformed operation: a group per original operand, then those of the state.

        ``extra``: the number of captured values, which stand first.
        """
        groups = []
        for count in self.counts:
            groups.append(items[extra : extra + count])
            extra += count
        return groups, items[extra:]


class Reinstallation(installed):
    """``with Reinstallation(template, outer, state) as handler:`` a new run of the handler is in force over ``outer``.

    Its state starts from the values ``state``. ``start`` and, after the block, ``end`` are the state's values and their
    structure; after the block the parts of boxes may still be read.
    """

    __slots__ = ("template", "start", "end")
    run: BodyTransformer

    def __init__(self, template: HandlerTemplate, outer: Run, state: Sequence[Any]):
        super().__init__(template.run.fresh(outer))
        self.template = template
        with inside(outer):
            template.flow.begin(self.run, state)
            self.start = template.flow.end(self.run)

    def __enter__(self) -> Any:
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if error[0] is None:
            with inside(self.run.outer):
                self.end = self.template.flow.end(self.run)

    def boxes(self, groups: Sequence[Sequence[Any]], marks: Sequence[Mark] | None = None) -> list[Any]:
        """The values with these parts and marks, by default the template's; None where the parts are None."""
        pairs = zip(self.template.marks if marks is None else marks, groups)
        return [None if group[0] is None else self.run.box(mark, group) for mark, group in pairs]

    def typed(self, y: Any, type: ArrayType, mark: Mark) -> list[Any]:
        """The parts of a result under ``mark``, converted to ``run.part_types(mark, type)``."""
        return [convert(x, t.dtype, t.weak) for x, t in zip(self.run.force(y, mark), self.run.part_types(mark, type))]

    def unchanged_state(self, shown: str) -> Sequence[Any]:
        """The values of the state, which the rule has only read.

        Raises: CannotCross: the rule has changed the state, and the operation has no results for a new one.
        """
        (before, structure), (after, other) = self.start, self.end
        if structure != other or len(before) != len(after) or any([x is not y for x, y in zip(before, after)]):
            raise CannotCross(
                f"{shown}: the rule performs an effect that changes the state of {self.run.label}, and is called where "
                "that state can no longer change.",
                hint="perform it in the function, or in a derivative's forward rule, and pass on its result.",
            )
        return after


# A derivative's rule under a handler


class JvpOfRule(Jvp):
    """Forward mode through a user's rule, under which functions with that rule are differentiated by their operations.

    Their values still have the rule, for derivatives further out.
    """

    __slots__ = ("rule",)

    def __init__(self, outer: Run, rule: Any):
        super().__init__(outer, "")
        self.rule = rule

    def fresh(self, outer: Run) -> JvpOfRule:
        return JvpOfRule(outer, self.rule)

    def key(self) -> Any:
        return ("jvp of rule", self.rule)

    def concerns(self, rule: DerivativeRule) -> bool:
        """Whether it is the rule; one that captured boxes is another value in each call, so it is known by its name."""
        this, other = self.rule, rule.by_user
        return other.shown == this.shown and bool(other.defined_by == this.defined_by or this.boxes or other.boxes)

    def by_rule(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.deferred and op.bodied and isinstance(op.rule, DerivativeRule) and self.concerns(op.rule):
            with inside(self):
                results = interpret(op.bodies[0], operands)
            primals, _ = self.parts(operands)
            values, tangents = self.parts(results)
            with inside(self.outer):
                return tuple(map(self.pair, with_rule(op, primals, values), tangents))
        if op.deferred and not op.bodied and self.rule.pulled_by(op.rule.by_user):
            return self.outer.answer(op, self.parts(operands)[0])  # the derivative of the rule's own tangents is unused
        return super().by_rule(op, operands)


def with_rule(op: Any, operands: tuple[Any, ...], values: Sequence[Any]) -> Sequence[Any]:
    """The values of the body of an operation with a rule, as results of the operation: with its rule for derivatives.

    Where an effect would be performed again they stay the body's; the rule then performs none (``PerformedRule``).
    """
    if not op.effects:
        return current().answer(op, operands)
    count = len(values)
    first = record(lambda *xs: xs[:count], [x.type for x in (*values, *operands)], op.bodies[0].name, "")
    return current().answer(type(op)((first,), count + op.shared, PerformedRule(op.rule, count)), (*values, *operands))


class PerformedRule(DerivativeRule):
    """The rule of a function whose effects have been performed. Operands: its ``count`` results, then its operands."""

    inner: Any
    count: int

    @property
    def by_user(self) -> Any:
        return self.inner.by_user

    def states(self, count: int) -> list[int]:
        return [self.count + i for i in self.inner.states(count - self.count)]

    def differentiable(self) -> bool:
        return bool(self.inner.differentiable())

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        with installed(EffectsPerformed(current(), self.shown)):
            return self.inner.within(operands[self.count :], tangents[self.count :])


class EffectsPerformed(BodyTransformer):
    """A handler under which effects without results do nothing: they have been performed before. ``label``: the rule.

    Raises: CannotCross: an effect has results, which are not known any more.
    """

    __slots__ = ()

    def key(self) -> Any:
        return ("performed", self.label)

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if all([isinstance(effect, Axis) for effect in op.effects]):
            return self.outer.answer(op, operands)
        if op.bodied:
            with inside(self.outer):
                return cross(self, op, operands)
        if op.result_type(*[x.type for x in operands]):
            raise CannotCross(
                f"{self.label}: the function was performed before its derivative, and performs "
                f"{op.name}, which its rule would perform a second time.",
                hint="handle the effect in the function, or perform it before or after the function.",
            )
        return ()


class _Performed:
    """The type of ``PERFORMED``, the tangent of a result that the rule's operations compute, such as a state."""

    def __repr__(self) -> str:
        return "performed"


PERFORMED = _Performed()


def _results(ys: Any, dys: Any, by_state: Jvp, by_value: Jvp) -> tuple[list[Any], list[Any]]:
    """Values and tangents, from the rule's own results and the derivatives that the two runs of jvp computed."""

    def parts(x: Any) -> tuple[Any, Any, Any]:
        within, by_argument = by_value.unbox(x)
        value, tangent = by_state.unbox(within)
        return value, tangent, None if by_argument is None else by_state.unbox(by_argument)[0]

    outs, douts = [], []
    for y, dy in zip(ys, dys):
        value, tangent, other = parts(y)
        if dy is not PERFORMED:
            other = None if dy is None else parts(dy)[0]
        outs.append(value)
        douts.append(add_tangents(tangent, other))
    return outs, douts


class TransformedJvpRule(DerivativeRule):
    """A jvp rule under a handler. A tangent is partitioned as its primal.

    ``extra``: number of captured values; ``out_types``, ``wanted``: types and marks of the results; ``ends``: types of
    the final state.
    """

    inner: Any
    handler: HandlerTemplate
    extra: int
    out_types: tuple[ArrayType, ...]
    wanted: tuple[Mark, ...]
    ends: tuple[ArrayType, ...]

    @property
    def by_user(self) -> Any:
        return self.inner.by_user

    def states(self, count: int) -> list[int]:
        groups, own = self.handler.parts(range(count), self.extra)
        return [*[i for at in self.inner.states(len(groups)) for i in groups[at]], *own]

    def differentiable(self) -> bool:
        return any([is_inexact(t.dtype) for t in self.ends]) or bool(self.inner.differentiable())

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values, state = self.handler.parts(operands, self.extra)
        dvalues, _ = self.handler.parts(tangents, self.extra)
        with Reinstallation(self.handler, current(), state) as handler:
            ys, dys = self.inner.within(handler.boxes(values), handler.boxes(dvalues))
        ends, _ = handler.end
        if len(ends) != len(self.ends):
            raise StateTypeError(
                f"{self.shown}: the rule must leave the state of {handler.run.label} with the structure that the "
                f"function leaves, {len(self.ends)} leaves, got {len(ends)}.",
                hint="perform the same effects in the rule and in the function, or handle them inside.",
            )
        outs: list[Any] = []
        douts: list[Any] = []
        for y, dy, t, mark in zip(ys, dys, self.out_types, self.wanted):
            parts = handler.typed(y, t, mark)
            outs += parts
            given = dy is None or dy is PERFORMED
            douts += [dy] * len(parts) if given else handler.typed(dy, t, mark)
        last = [convert(x, t.dtype, t.weak) for x, t in zip(ends, self.ends)]
        return [*outs, *last], [*douts, *[PERFORMED] * len(last)]


# A linear map under a handler


class TransformedLinearRule(DeferredRule):
    """A linear map under a handler. It may read the handler's state, but not change it."""

    inner: Any
    handler: HandlerTemplate
    mark: Mark

    @property
    def by_user(self) -> Any:
        return self.inner.by_user

    def __call__(self, residuals: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        parts, state = self.handler.parts(residuals)
        with Reinstallation(self.handler, current(), state) as handler:
            boxes = handler.boxes([(x,) for x in values], [self.mark] * len(values))
            ys = self.inner(handler.boxes(parts), boxes)
        handler.unchanged_state(self.shown)
        return [None if y is None else handler.run.force(y, self.mark)[0] for y in ys]


def cross_linear(run: BodyTransformer, op: Any, operands: tuple[Any, ...]) -> Any:
    """Answer a linear map with deferred rules: perform the same map outside, with rules under the handler."""
    flow = run.flow(op)
    count = len(op.residuals)
    residuals, values = operands[:count], operands[count:]
    partitioned = [run.split(x) for x in residuals]
    marks = [mark for mark, _ in partitioned]
    mark = run.carried(run.join([*marks, *[run.split(x)[0] for x in values]]))
    template = HandlerTemplate(run, flow, marks, [x.type for x in residuals], op.backward.shown)
    parts = [*[part for _, parts in partitioned for part in parts], *flow.operands]
    types = [run.part_types(mark, t)[0] for t in op.types]
    rules = [
        None if each is None else TransformedLinearRule(each, template, mark) for each in (op.backward, op.forward)
    ]
    transformed = type(op)(*rules, tuple([x.type for x in parts]), tuple(types))
    results = run.outer.answer(transformed, (*parts, *[run.force(x, mark)[0] for x in values]))
    return tuple([run.box(mark, [y]) for y in results])


# A batching rule under a handler


class TransformedLanesRule(BatchingRule):
    """A batching rule under a handler whose values have one part. It may read the handler's state, not change it."""

    inner: Any
    handler: HandlerTemplate
    extra: int
    wanted: tuple[Mark, ...]

    def varies(self, mapped: Sequence[bool]) -> bool:
        lanes, _ = self.handler.parts(mapped, self.extra)
        return bool(self.inner.varies([yes for group in lanes for yes in group]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        parts, state = self.handler.parts(operands, self.extra)
        groups, state_lanes = self.handler.parts(mapped, self.extra)
        lanes = [yes for yes, *_ in groups]
        with Reinstallation(self.handler, current(), state) as handler:
            run = handler.run
            marks = [run.stack(mark) if yes else mark for mark, yes in zip(self.handler.marks, lanes)]
            ys, found = self.inner(size, lanes, handler.boxes(parts, marks))
        ends = handler.unchanged_state(self.shown)
        wanted = [run.stack(mark) if yes else mark for mark, yes in zip(self.wanted, found)]
        of_state = {id(x): yes for x, yes in zip(state, state_lanes)}
        found = [*found, *[of_state.get(id(x), False) for x in ends]]
        return [*[run.force(y, mark)[0] for y, mark in zip(ys, wanted)], *ends], found


# Results of rules


def checked(shown: str, what: str, y: Any, t: ArrayType) -> Array:
    """A result ``y`` of a rule, converted to exactly the type ``t``; ``what`` names it in messages.

    Raises: BadCall: it is no array. ShapeMismatch, DTypeMismatch: it has another shape or dtype.
    """
    try:
        x = as_array(y)
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
    """The values, with zeros of these types for None."""
    return [zeros_like(t) if x is None else x for x, t in zip(values, types)]
