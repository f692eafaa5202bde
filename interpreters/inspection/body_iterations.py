"""The iterations of a higher-order operation one at a time; the state between two of them is a value.

    r = first_iteration(op, operands);  while not over(r): r = execute(r);  results(r) == the results of op

The sequence follows from the operation's execution mode ``runs``: no operation is treated by name. A branch or call is
one iteration; a ``while`` alternates between its test and its body; lanes are iterated in index order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pyrsistent import PVector, pvector

from ...effects.control.body_rules import branch_index, stacked
from ...effects.core.arrays import concrete
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program, interpret


class BodyIteration(NamedTuple):
    """The state before an iteration: ``at`` iterations are done; ``carry`` and the stacked ``rows`` are their results.

    In a ``while``, ``testing`` says whether the test is next, and ``more`` is its last result.
    """

    op: HigherOrder
    operands: tuple[Any, ...]
    at: int
    carry: tuple[Any, ...]
    rows: PVector[tuple[Any, ...]]
    testing: bool
    more: bool


def first_iteration(op: HigherOrder, operands: Sequence[Any]) -> BodyIteration:
    """The state before the first iteration of a higher-order operation on these operands."""
    carry = tuple(op.groups(operands).carry)
    return BodyIteration(op, tuple(operands), 0, carry, pvector(), op.runs == "until", True)


def count(op: HigherOrder) -> int | None:
    """The number of iterations of the operation; None if a test decides."""
    return None if op.runs == "until" else op.length if op.stacks else 1


def over(r: BodyIteration) -> bool:
    """Whether all iterations of the operation are done."""
    total = count(r.op)
    return not r.more if total is None else r.at >= total


def body(r: BodyIteration) -> Program:
    """The sub-program that is executed next: the test, the body, or the branch that is chosen."""
    if r.op.runs == "one":
        return r.op.bodies[branch_index(r.operands[0].value, len(r.op.bodies))]
    return r.op.bodies[0] if r.testing else r.op.main[0]


def slice_index(r: BodyIteration) -> int:
    """The index of the slice of stacked operands and results that belongs to the iteration that comes next."""
    return r.op.length - 1 - r.at if r.op.backwards else r.at


def inputs(r: BodyIteration) -> list[Any]:
    """The inputs of the sub-program that comes next: shared operands, carry, and slices of the stacked operands."""
    _, shared, _, each = r.op.groups(r.operands)
    if r.op.stacks:
        types = r.op.groups((*[None] * r.op.selects, *body(r).in_types)).each
        each = [concrete(t, np.asarray(x.value[slice_index(r)])) for t, x in zip(types, each)]
    return [*shared, *r.carry, *each]


def after(r: BodyIteration, results: Sequence[Any]) -> BodyIteration:
    """The state after the sub-program that comes next, if it returned ``results``."""
    if r.testing:
        return r._replace(testing=False, more=bool(results[0]))
    split = len(r.carry)
    return r._replace(
        at=r.at + 1,
        carry=tuple(results[:split]),
        rows=r.rows.append(tuple(results[split:])),
        testing=r.op.runs == "until",
    )


def execute(r: BodyIteration) -> BodyIteration:
    """The state after the sub-program that comes next, executed under the handlers in force."""
    return after(r, interpret(body(r), inputs(r)))


def results(r: BodyIteration) -> tuple[Any, ...]:
    """The results of the higher-order operation; all of its iterations must be done."""
    if not r.op.stacks:
        return (*r.carry, *(r.rows[-1] if r.rows else ()))
    rows = list(reversed(r.rows)) if r.op.backwards else list(r.rows)
    types = map(r.op.stacked, r.op.main[0].out_types[r.op.carry :])
    return (*r.carry, *[concrete(t, stacked([row[k].value for row in rows], t)) for k, t in enumerate(types)])
