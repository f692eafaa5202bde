"""Cost: the number of arithmetic operations of equations and programs, by the rule table ``flops``.

A contraction counts two per multiplication, an elementwise operation one per element, data movement none. An operation
with bodies costs its body times the number of iterations, and a cond its most expensive branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.base import config
from ...effects.core.columns import FLOPS
from ...effects.core.operation import Operation
from ...effects.programs.higher_order import HigherOrder
from ...effects.programs.program import Program, derived_once
from ...effects.types.array_type import ArrayType

Types = Sequence[ArrayType]
_UNTIL = 10  # assumed number of iterations of a loop of unknown length


def flops(op: Operation, types: Types, results: Types) -> int:
    """The number of floating-point operations of one equation, from the types of its operands and results."""
    count: int = FLOPS.find(type(op))(op, tuple(types), tuple(results))
    return count


def program_flops(program: Program) -> int:
    """The number of floating-point operations of a program, by the ``flops`` rules in force."""
    return _program_flops(program, config.current().tables)


@derived_once
def _program_flops(program: Program, tables: Any) -> int:
    """``program_flops`` memoised by the program and the rules in force in a scope."""
    return sum(equation_flops(program))


def equation_flops(program: Program) -> list[int]:
    """The number of floating-point operations of each equation of a program."""
    types = program.value_types()
    return [flops(op, [types[n] for n in args], results) for op, args, _, results in program.steps()]


@FLOPS.mode("once")
@FLOPS.mode("one")
def _(op: HigherOrder, operands: Types, results: Types) -> int:
    return max([program_flops(body) for body in op.typical], default=0)


@FLOPS.mode("loop")
@FLOPS.mode("lanes")
@FLOPS.mode("mesh")
def _(op: HigherOrder, operands: Types, results: Types) -> int:
    return op.times(*operands) * program_flops(op.typical[0])


@FLOPS.mode("until")
def _(op: HigherOrder, operands: Types, results: Types) -> int:
    return _UNTIL * sum([program_flops(body) for body in op.typical])
