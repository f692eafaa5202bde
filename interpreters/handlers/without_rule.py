"""Operations with a rule of their own whose body a clause takes apart: their value is that of the body.

    without_rule(op, xs)  =  a call of the body, and the operands, whose derivative, or lanes, are refused

A clause that ends the program, or takes its rest, turns a body into a part of the program around it. Its rule is about
all of the body, so it cannot go along: whoever asks for it, ``grad`` or ``vmap`` further out, is told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import CannotCross
from ...effects.base.stack import at_site, current
from ...effects.control.custom_rules import CustomJvp, CustomVmap
from ...effects.core.arrays import Array
from ...effects.programs.higher_order import Call, record_body
from ..batching.batching_rules import BatchingRule
from ..differentiation.jvp_rules import DerivativeRule


class RefusedDerivative(DerivativeRule):
    """The derivative rule that raises, for a value whose own rule ``rule`` was lost to a ``clause``."""

    rule: Any
    clause: str

    @property
    def shown(self) -> str:
        return _name_of(self.rule)

    @property
    def by_user(self) -> Any:
        return getattr(self.rule, "by_user", self)

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        raise _refused(self, "derivative")


class RefusedLanes(BatchingRule):
    """The batching rule that raises, for a value whose own rule ``rule`` was lost to a ``clause``."""

    rule: Any
    clause: str
    in_order = False

    @property
    def shown(self) -> str:
        return _name_of(self.rule)

    def __call__(self, size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        raise _refused(self, "rule for lanes")


def _name_of(rule: Any) -> str:
    return rule if isinstance(rule, str) else str(rule.shown)


def _refused(rule: RefusedDerivative | RefusedLanes, what: str) -> CannotCross:
    return CannotCross(
        f"{rule.shown}: its {what} is needed, but {rule.clause} from inside it, which takes away its rule.",
        hint="perform the effect before or after it, or handle it by a plain clause.",
    )


def without_rule(op: Any, xs: Sequence[Any], clause: str, site: Any) -> tuple[Call, tuple[Array, ...]]:
    """A call of the first body of ``op``, and its operands; ``clause``: what a clause does from inside the body.

    ``site``: that of the operation, where the refusal stands.
    """
    rule = op.rule if op.deferred else op.name
    of_lanes = isinstance(rule, BatchingRule)
    refused = (RefusedLanes if of_lanes else RefusedDerivative)(rule, clause)
    identity = record_body(lambda *values: list(values), [x.type for x in xs], op.name)
    guard = (CustomVmap if of_lanes else CustomJvp)((identity,), 0, refused)
    with at_site(site):
        return Call(op.bodies[:1]), tuple(current().answer(guard, tuple(xs)))
