"""A handler installed again over another stack, on values that are given by their parts."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import BASE, Run, inside, installed
from ...effects.base.value_identity import ByIdentity
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..core.body_transform import STATELESS, BodyTransformContext, BodyTransformer, Mark, StateFlow


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
        self.run = run.fresh(BASE)
        self.run.restrict(rule, body)
        self.flow = copy.copy(flow)
        if flow is not STATELESS:
            self.flow.operands = ()
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
