"""Programs without users' derivative and batching rules and policies, which evaluation does not need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base import config
from ...effects.base.stack import Binding, current, inside
from ...effects.control.custom_rules import CustomJvp
from ...effects.core.named_axes import in_bodies_of
from ...effects.core.operation import Operation
from ...effects.programs.program import Program, derived_once, holds_rules
from ...effects.types.array_type import ArrayType
from ..analysis.simplify import dead_code_elimination
from .derivative_rules import forward_program


def without_rules(program: Program) -> Program:
    """The program with its linear maps recorded, and no other rules: equal for functions that are made again.

    without_rules(p)(*xs) == p(*xs)
    """
    return _without_rules(program, current().scope, config.current()) if holds_rules(program) else program


@derived_once
def _without_rules(program: Program, scope: Sequence[Binding], settings: Any) -> Program:
    live = dead_code_elimination(program, instantiate=True).program  # a rule that is not needed may be unfit to record
    ops = [_without_rule(op, [live.type_of(n) for n in args]) for op, args in zip(live.ops, live.args)]
    return Program(live.in_types, ops, live.args, live.types, live.outs, live.consts, live.sites, live.name)


def _without_rule(op: Any, types: Sequence[ArrayType]) -> Operation:
    if not op.bodied:
        return CustomJvp((without_rules(forward_program(op, types)),), 0, None) if op.deferred else op
    with inside(in_bodies_of(op)):
        return op.map_bodies(without_rules).without_own_rule()
