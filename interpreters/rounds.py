"""Rounds: the runs of an operation's sub-programs one after the other, with the whole state between two as a value.

    after(r, run(r)) until over(r), then results(r), is what the operation gives

How it goes on follows from the way the operation runs its bodies, whatever operation it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pyrsistent import PVector, pvector

from ..effects.arrays import concrete
from ..effects.control import HigherOrder
from ..effects.literals import data_shape
from ..effects.modes import chosen
from ..effects.programs import Program, interpret


class Round(NamedTuple):
    """What has been run so far: ``at`` runs, what they handed on, and what each gave.

    Where a test decides, ``testing`` says that it comes next, and ``more`` what it last said.
    """

    op: HigherOrder
    operands: tuple[Any, ...]
    at: int
    carry: tuple[Any, ...]
    rows: PVector[tuple[Any, ...]]
    testing: bool
    more: bool


def first_round(op: HigherOrder, operands: Sequence[Any]) -> Round:
    """Before any run."""
    carry = tuple(op.groups(operands).carry)
    return Round(op, tuple(operands), 0, carry, pvector(), op.runs == "until", True)


def count(op: HigherOrder) -> int | None:
    """How many runs there are; None where a test decides."""
    return None if op.runs == "until" else op.length if op.stacks else 1


def over(r: Round) -> bool:
    """Whether no run is left."""
    runs = count(r.op)
    return not r.more if runs is None else r.at >= runs


def body(r: Round) -> Program:
    """The sub-program that runs next."""
    if r.op.runs == "one":
        return r.op.bodies[chosen(r.operands[0].value, len(r.op.bodies))]
    return r.op.bodies[0] if r.testing else r.op.main[0]


def place(r: Round) -> int:
    """The slice of stacked operands and results that belongs to the next run."""
    return r.op.length - 1 - r.at if getattr(r.op, "backwards", False) else r.at


def inputs(r: Round) -> list[Any]:
    """What the next run takes."""
    _, shared, _, each = r.op.groups(r.operands)
    if r.op.stacks:
        types = r.op.groups((*[None] * r.op.selects, *body(r).in_types)).each
        each = [concrete(t, np.asarray(x.value[place(r)])) for t, x in zip(types, each)]
    return [*shared, *r.carry, *each]


def after(r: Round, results: Sequence[Any]) -> Round:
    """When the next run has given ``results``."""
    if r.testing:
        return r._replace(testing=False, more=bool(results[0]))
    made = len(r.carry)
    return r._replace(
        at=r.at + 1,
        carry=tuple(results[:made]),
        rows=r.rows.append(tuple(results[made:])),
        testing=r.op.runs == "until",
    )


def run(r: Round) -> Round:
    """When the next run has been performed, under the handlers in force."""
    return after(r, interpret(body(r), inputs(r)))


def results(r: Round) -> tuple[Any, ...]:
    """What the operation gives, when all runs are over."""
    if not r.op.stacks:
        return (*r.carry, *(r.rows[-1] if r.rows else ()))
    rows = list(reversed(r.rows)) if getattr(r.op, "backwards", False) else list(r.rows)
    stacked = []
    for k, t in enumerate(r.op.main[0].out_types[r.op.carry :]):
        whole = r.op.stacked(t)
        empty = np.zeros(data_shape(whole), getattr(t.dtype, "base", t.dtype))
        stacked.append(concrete(whole, np.stack([row[k].value for row in rows]) if rows else empty))
    return (*r.carry, *stacked)
