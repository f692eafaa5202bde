"""Deferred derivative rules: how a user's jvp rule is differentiated itself, and how it is transformed by a handler."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import CannotCross, MissingRule, NotDifferentiable, StateTypeError, TreeMismatch
from ...effects.base.stack import Run, current, inside, installed
from ...effects.core.columns import add_tangents
from ...effects.core.named_axes import is_root
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.program import has_rule, holds_rules, interpret
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..core.body_transform import BodyTransformContext, BodyTransformer, cross
from ..core.record import record, record_apart
from ..core.state_flow import Mark
from .deferred_rules import DeferredRule
from .jvp import Jvp
from .linear_rules import cross_linear
from .reinstallation import HandlerTemplate, Reinstallation


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
        """The results and their tangents by the arguments; ``PERFORMED`` for tangents that the rule does not give."""

    def states(self, count: int) -> list[int]:
        """For each of ``count`` operands whether it is a state of a handler or a value that the rule captured."""
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


class MissingTangent:
    """The tangent of a result of an operation without a derivative: ``error`` is raised where it is needed."""

    __slots__ = ("error",)
    run = None

    def __init__(self, error: MissingRule | NotDifferentiable):
        self.error = error


class JvpOfRule(Jvp):
    """Forward mode through a user's rule, under which functions with that rule are differentiated by their operations.

    Their values still have the rule, for derivatives further out. Tangents are needed of what the rule performs alone:
    others may be missing, where the rule is the only derivative.
    """

    __slots__ = ("rule",)

    def __init__(self, outer: Run, rule: Any):
        super().__init__(outer, "")
        self.rule = rule

    def fresh(self, outer: Run) -> JvpOfRule:
        return JvpOfRule(outer, self.rule)

    def key(self) -> Any:
        return ("jvp of rule", self.rule)

    def split(self, x: Any) -> tuple[bool | None, Sequence[Any]]:
        mark, parts = super().split(x)
        if mark:
            _needed(parts[1])
        return mark, parts

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        primals, tangents = self.parts(operands)
        missing = next((dx for dx in tangents if type(dx) is MissingTangent), None)
        if missing is None:
            try:
                return super().answer(op, operands)
            except (MissingRule, NotDifferentiable) as error:
                if op.deferred and (is_root(op) or not op.bodied or op.derives):
                    raise  # a rule of another function has performed a part of it
                missing = MissingTangent(error)
        results = op.as_results(self.outer.answer(op, primals))
        boxes = tuple([self.pair(y, missing if is_inexact(y.type.dtype) else None) for y in results])
        return boxes if op.multiple_results else boxes[0]

    def concerns(self, rule: DerivativeRule) -> bool:
        """Whether ``rule`` is this rule; rules that captured boxes are made anew in each call, and compared by name."""
        this, other = self.rule, rule.by_user
        return other.shown == this.shown and bool(other.defined_by is this.defined_by or this.boxes or other.boxes)

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


def _needed(dx: Any) -> Any:
    """The tangent ``dx``. Raises: MissingRule, NotDifferentiable: it is missing."""
    if type(dx) is MissingTangent:
        raise dx.error
    return dx


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
    """The derivative rule of a function whose effects have been performed.

    Operands: the function's ``count`` results, then its operands.
    """

    inner: Any
    count: int

    def states(self, count: int) -> list[int]:
        return [self.count + i for i in self.inner.states(count - self.count)]

    def differentiable(self) -> bool:
        return bool(self.inner.differentiable())

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        with installed(EffectsPerformed(current(), self.shown)):
            return self.inner.within(operands[self.count :], tangents[self.count :])


def may_perform(op: Any) -> bool:
    """Whether ``op`` performs an effect, or rules of the user inside of it may when it is differentiated."""
    return is_root(op) or (op.bodied and (has_rule(op) or any(map(holds_rules, op.bodies))))


class EffectsPerformed(BodyTransformer):
    """A handler under which effects without results do nothing: they have been performed before. ``label``: the rule.

    Raises: CannotCross: an effect has results, which are not known any more.
    """

    __slots__ = ()

    def key(self) -> Any:
        return (type(self), self.label)

    def lost(self, op: Any) -> CannotCross:
        """The error for an effect with results."""
        return CannotCross(
            f"{self.label}: the function was performed before its derivative, and performs "
            f"{op.name}, which its rule would perform a second time.",
            hint="handle the effect in the function, or perform it before or after the function.",
        )

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if not may_perform(op):
            return self.outer.answer(op, operands)
        if op.bodied and not op.scopes:
            with inside(self.outer):
                return cross(self, op, operands)
        self.skip(op, operands)
        return ()

    def skip(self, op: Any, operands: tuple[Any, ...]) -> None:
        """Check that the effect may be left out."""
        if op.result_type(*[x.type for x in operands]):
            raise self.lost(op)


class Repeated(EffectsPerformed):
    """The handler of what is computed a second time: effects are performed where it is computed first.

    A backward rule is called for each of the two that has a cotangent: its effects are refused.
    """

    __slots__ = ()

    def lost(self, op: Any) -> CannotCross:
        return CannotCross(
            f"{self.label}: the derivative of a checkpoint computes the function again, and performs {op.name}, which "
            "would be performed a second time.",
            hint="let the policy of the checkpoint save its results, or handle the effect inside of the checkpoint.",
        )

    def answer(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.deferred and not op.bodied:
            with inside(self.outer):
                return cross_linear(RepeatedBackward(self.outer, op.backward.shown), op, operands)
        return super().answer(op, operands)


class RepeatedBackward(Repeated):
    """The handler of a backward rule of what is computed a second time, under which all effects are refused."""

    __slots__ = ()

    def skip(self, op: Any, operands: tuple[Any, ...]) -> None:
        raise self.lost(op)


def repeated(op: Any, types: Sequence[ArrayType]) -> Any:
    """``op`` on operands of these types, computed a second time: without its effects and those of its rules."""
    label = op.rule.shown if op.deferred else op.name
    program, _ = record_apart(lambda *xs: (Repeated(current(), label).answer(op, xs), None), types)
    return program.ops[-1]


class _Performed:
    """The type of ``PERFORMED``, which stands for the tangent of a result that only the rule's operations determine."""

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
        douts.append(add_tangents(_needed(tangent), _needed(other)))
    return outs, douts


class TransformedJvpRule(DerivativeRule):
    """A user's jvp rule under a handler; the tangent of a value has parts as the value has.

    ``extra``: number of captured values; ``out_types``, ``result_marks``: types and marks of the results; ``ends``:
    types of the final state.
    """

    inner: Any
    handler: HandlerTemplate
    extra: int
    out_types: tuple[ArrayType, ...]
    result_marks: tuple[Mark, ...]
    ends: tuple[ArrayType, ...]

    def states(self, count: int) -> list[int]:
        groups, own = self.handler.parts(range(count), self.extra)
        return [*[i for at in self.inner.states(len(groups)) for i in groups[at]], *own]

    def differentiable(self) -> bool:
        return any([is_inexact(t.dtype) for t in self.ends]) or bool(self.inner.differentiable())

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values, state = self.handler.parts(operands, self.extra)
        dvalues, _ = self.handler.parts(tangents, self.extra)
        with Reinstallation(self.handler, current(), state) as handler:
            ys, dys = self.inner.within(handler.boxes(values), handler.tangents(values, dvalues))
        ends, _ = handler.end
        if len(ends) != len(self.ends):
            raise StateTypeError(
                f"{self.shown}: the rule must leave the state of {handler.run.label} with the structure that the "
                f"function leaves, {len(self.ends)} leaves, got {len(ends)}.",
                hint="perform the same effects in the rule and in the function, or handle them inside.",
            )
        outs: list[Any] = []
        douts: list[Any] = []
        for y, dy, t, mark in zip(ys, dys, self.out_types, self.result_marks):
            parts = handler.typed(y, t, mark)
            outs += parts
            if dy is None or dy is PERFORMED:
                douts += [dy] * len(parts)
            else:
                tangents = handler.typed(handler.run.tangent(dy, mark), t, mark)
                smooth = [is_inexact(dx.type.dtype) for dx in tangents]
                if not all([yes or dx is x for yes, dx, x in zip(smooth, tangents, parts)]):
                    raise TreeMismatch(
                        f"{self.shown}: under {handler.run.label} a result and its tangent must have the very same "
                        "indices, got others.",
                        hint="compute the tangent with the tangents of the arguments, by the operations of the result.",
                    )
                douts += [dx if yes else None for yes, dx in zip(smooth, tangents)]
        last = [convert(x, t.dtype, t.weak) for x, t in zip(ends, self.ends)]
        return [*outs, *last], [*douts, *[PERFORMED] * len(last)]
