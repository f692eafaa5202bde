"""Deferred batching rules of users' functions, and their transformation by another handler."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import current
from ..core.body_transform import BodyTransformContext
from ..core.state_flow import Mark
from ..differentiation.deferred_rules import DeferredRule
from ..differentiation.reinstallation import HandlerTemplate, Reinstallation


class BatchingRule(DeferredRule):
    """A user's batching rule as ``rule(size, mapped, operands) -> (results, mapped)``; lanes are the first axis."""

    @property
    def in_order(self) -> bool:
        """Whether the rule calls the user's function for one lane after another, in the order of their indices."""
        return bool(self.inner.in_order)  # type: ignore[attr-defined]

    def varies(self, mapped: Sequence[bool]) -> bool:
        """Whether an argument of the user's function differs from lane to lane."""
        return any(mapped)

    @abstractmethod
    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """The results for all lanes, and which results are mapped, computed under the handlers in force."""

    def transformed(self, context: BodyTransformContext) -> TransformedLanesRule:
        """The rule of the operation that a handler makes from this one by transforming the bodies."""
        template = HandlerTemplate.of(context, self.shown)
        return TransformedLanesRule(self, template, context.extra, tuple(context.result_marks))


class TransformedLanesRule(BatchingRule):
    """A batching rule inside a handler that gives each value one value; it reads the handler's state at most."""

    inner: Any
    handler: HandlerTemplate
    extra: int
    result_marks: tuple[Mark, ...]

    def varies(self, mapped: Sequence[bool]) -> bool:
        lanes, _ = self.handler.parts(mapped, self.extra)
        return bool(self.inner.varies([yes for group in lanes for yes in group]))

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        parts, state = self.handler.parts(operands, self.extra)
        groups, state_lanes = self.handler.parts(mapped, self.extra)
        lanes = [yes for yes, *_ in groups]
        with Reinstallation(self.handler, current(), state, self.shown) as handler:
            run = handler.run
            marks = [run.stack(mark) if yes else mark for mark, yes in zip(self.handler.marks, lanes)]
            ys, mapped = self.inner(size, lanes, handler.boxes(parts, marks))
        ends = handler.unchanged_state()
        marks = [run.stack(mark) if yes else mark for mark, yes in zip(self.result_marks, mapped)]
        of_state = {id(x): yes for x, yes in zip(state, state_lanes)}
        mapped = [*mapped, *[of_state.get(id(x), False) for x in ends]]
        return [*[run.force(y, mark)[0] for y, mark in zip(ys, marks)], *ends], mapped
