"""Linear maps with deferred rules under a handler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import current
from ..core.body_transform import BodyTransformer, Mark
from .deferred_rules import DeferredRule
from .reinstallation import HandlerTemplate, Reinstallation


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
    mark = run.carried(run.join([*marks, *[run.split(x)[0] for x in values], *run.linear_marks(op)]))
    template = HandlerTemplate(run, flow, marks, [x.type for x in residuals], op.backward.shown)
    parts = [*[part for _, parts in partitioned for part in parts], *flow.operands]
    types = [run.part_types(mark, t)[0] for t in op.types]
    rules = [
        None if each is None else TransformedLinearRule(each, template, mark) for each in (op.backward, op.forward)
    ]
    transformed = type(op)(*rules, tuple([x.type for x in parts]), tuple(types))
    results = run.outer.answer(transformed, (*parts, *[run.force(x, mark)[0] for x in values]))
    return tuple([run.box(mark, [y]) for y in results])
