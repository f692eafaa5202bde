"""A handler installed again over another stack, on values that are given by their parts."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.frozen_values import Value
from ...effects.base.stack import BASE, Run, inside, installed
from ...effects.base.value_identity import ByIdentity
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..core.body_transform import BodyTransformContext, BodyTransformer
from ..core.state_flow import STATELESS, Mark, StateFlow


def grouped(parts: Sequence[Any], counts: Sequence[int]) -> list[Sequence[Any]]:
    """``parts`` divided into consecutive groups of these sizes."""
    ends = itertools.accumulate(counts)
    return [parts[end - count : end] for end, count in zip(ends, counts)]


class HandlerTemplate:
    """A handler to be installed again: its run without values, its state flow, and the marks of the operands it boxes.

    ``counts``: the number of parts of each operand. The operands of the transformed operation are captured values, then
    the parts of the original operands, then the state. Templates compare by ``key``.
    """

    __slots__ = ("run", "flow", "marks", "counts", "key")

    def __init__(
        self, run: BodyTransformer, flow: StateFlow, marks: Sequence[Mark], types: Sequence[ArrayType], rule: str,
        body: Program | None = None,
    ):
        self.run = run.again(BASE)
        self.run.restrict(rule, body)
        self.flow = flow.without_values()
        if flow is not STATELESS:
            self.flow.begin(self.run, [None] * len(flow.operands))
        self.marks = tuple(marks)
        self.counts = tuple([len(run.part_types(mark, t)) for mark, t in zip(marks, types)])
        key = self.run.key()
        self.key = (ByIdentity(self.run) if key is None else (key, self.flow.key()), self.marks, self.counts)

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
        end = extra + sum(self.counts)
        return grouped(items[extra:end], self.counts), items[end:]


class Reader(Value):
    """A deferred rule, by name, that is called where the state of a handler can no longer change: it may be read."""

    rule: str

    def flow(self, flow: StateFlow) -> UnchangedState:
        """How the state crosses operations in the rule whose results may not show that it is the same."""
        return UnchangedState(flow, self)

    def check(self, run: Run, start: tuple[Sequence[Any], Any], end: tuple[Sequence[Any], Any]) -> None:
        """Compare the values and the structure of the state. Raises: CannotCross: the rule has changed it."""
        (before, structure), (after, other) = start, end
        if structure != other or len(before) != len(after) or any([x is not y for x, y in zip(before, after)]):
            raise CannotCross(
                f"{self.rule}: the rule performs an effect that changes the state of {run.label}, and is called where "
                "that state can no longer change.",
                hint="perform it in the function, or in a derivative's forward rule, and pass on its result.",
            )


class UnchangedState(StateFlow):
    """The flow of a state that bodies may read but not change: it enters as by ``inner``, and nothing leaves."""

    def __init__(self, inner: StateFlow, reader: Reader):
        self.inner = inner
        self.reader = reader
        self.operands = inner.operands

    def key(self) -> Hashable:
        key = self.inner.key()
        return None if key is None else (self.reader, key)

    def without_values(self) -> UnchangedState:
        return UnchangedState(self.inner.without_values(), self.reader)

    def inner_types(self) -> list[ArrayType]:
        return self.inner.inner_types()

    def begin(self, run: Any, values: Sequence[Any]) -> None:
        self.inner.begin(run, values)
        self.start = self.inner.end(run)

    def end(self, run: Any) -> tuple[Sequence[Any], Any]:
        self.reader.check(run, self.start, self.inner.end(run))
        return (), None


class Reinstallation(installed):
    """``with Reinstallation(template, outer, state) as handler:`` a new run of the handler is in force over ``outer``.

    Its state starts from the values ``state``. A rule named ``reader`` may only read it. ``start`` and, after the
    block, ``end`` are the state's values and their structure; after the block the parts of boxes may still be read.
    """

    __slots__ = ("template", "start", "end")
    run: BodyTransformer

    def __init__(self, template: HandlerTemplate, outer: Run, state: Sequence[Any], reader: str | None = None):
        super().__init__(template.run.again(outer))
        self.template = template
        if reader is not None:
            self.run.reader = Reader(reader)
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
        """The boxes with these parts and marks, by default those of the template; None where the parts are None."""
        pairs = zip(self.template.marks if marks is None else marks, groups)
        return [None if group[0] is None else self.run.box(mark, group) for mark, group in pairs]

    def tangents(self, groups: Sequence[Sequence[Any]], dgroups: Sequence[Sequence[Any]]) -> list[Any]:
        """The tangents, given by their parts, as boxes of the handler; None where the first part is None.

        A part without a derivative, such as an index, is that of the value itself.
        """
        kept = lambda x, dx: dx if is_inexact(x.type.dtype) else x
        return self.boxes([dx if dx[0] is None else [*map(kept, x, dx)] for x, dx in zip(groups, dgroups)])

    def typed(self, y: Any, type: ArrayType, mark: Mark) -> list[Any]:
        """The parts of a result under ``mark``, converted to ``run.part_types(mark, type)``."""
        return [convert(x, t.dtype, t.weak) for x, t in zip(self.run.force(y, mark), self.run.part_types(mark, type))]

    def unchanged_state(self) -> Sequence[Any]:
        """The values of the state, which the rule has only read. Raises: CannotCross: it has changed it."""
        self.run.reader.check(self.run, self.start, self.end)
        return self.end[0]
