"""How a handler crosses linear maps whose rules are deferred functions of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.stack import current
from ..core.body_transform import BodyTransformer
from ..core.state_flow import Mark
from .deferred_rules import DeferredRule
from .reinstallation import HandlerTemplate, Reinstallation, grouped


class TransformedLinearRule(DeferredRule):
    """A user's linear map under a handler, whose state it may read but not change.

    ``marks``: of its operands; ``counts``: the number of parts of each; ``result_marks``, ``result_counts``: likewise.
    """

    inner: Any
    handler: HandlerTemplate
    marks: tuple[Mark, ...]
    counts: tuple[int, ...]
    result_marks: tuple[Mark, ...]
    result_counts: tuple[int, ...]

    def __call__(self, residuals: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        parts, state = self.handler.parts(residuals)
        with Reinstallation(self.handler, current(), state, self.shown) as handler:
            ys = self.inner(handler.boxes(parts), handler.boxes(grouped(values, self.counts), self.marks))
        handler.unchanged_state()
        results: list[Any] = []
        for y, mark, count in zip(ys, self.result_marks, self.result_counts):
            results += [None] * count if y is None else handler.run.force(y, mark)
        return results


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
    inputs = _side(run, mark, [x.type for x in values])
    results = _side(run, mark, op.types)
    transformed = type(op)(
        _under(op.backward, template, results, inputs), _under(op.forward, template, inputs, results),
        tuple([x.type for x in parts]),
        tuple([part for m, t in zip(results[0], op.types) for part in run.part_types(m, t)]),
    )
    forced = [part for x, m in zip(values, inputs[0]) for part in run.force(x, m)]
    ys = grouped(run.outer.answer(transformed, (*parts, *forced)), results[1])
    return tuple([run.box(m, y) for m, y in zip(results[0], ys)])


def _side(run: BodyTransformer, mark: Mark, types: Sequence[Any]) -> tuple[tuple[Mark, ...], tuple[int, ...]]:
    """For the operands, or the results, of a linear map: their marks, and the number of parts of each."""
    marks = tuple([run.mark_of_type(mark, t) for t in types])
    return marks, tuple([len(run.part_types(m, t)) for m, t in zip(marks, types)])


def _under(rule: Any, template: HandlerTemplate, inputs: Any, results: Any) -> Any:
    return None if rule is None else TransformedLinearRule(rule, template, *inputs, *results)
