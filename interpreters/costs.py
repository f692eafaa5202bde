"""Costs: how many floating-point operations an equation takes, as a table.

Contractions count two per multiplication, what goes over elements one per element, what only moves them none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ..effects.operations import Operation
from ..effects.programs import Program
from ..effects.types import ArrayType

Types = Sequence[ArrayType]
_UNTIL = 10  # how often a loop of unknown length is taken to run


def _contraction(op: Any, types: Types, made: Types) -> int:
    (contracted, _), _ = op.dimension_numbers
    return 2 * made[0].size * prod([types[0].shape[d] for d in contracted])


def _operand(op: Any, types: Types, made: Types) -> int:
    return types[0].size


def _cubic(op: Any, types: Types, made: Types) -> int:
    """Factorisations and triangular solves: one multiplication for each element and row."""
    return made[0].size * types[0].shape[-1]


def _sorting(op: Any, types: Types, made: Types) -> int:
    return types[0].size * max(types[0].size.bit_length(), 1)


_MOVES = (
    "bitcast_convert_type", "broadcast_in_dim", "concatenate", "convert_element_type", "dynamic_slice", "gather",
    "dynamic_update_slice", "imag", "iota", "name", "optimization_barrier", "pad", "real", "reshape", "rev", "slice",
    "split", "stop_gradient", "transpose",
)  # fmt: skip
_FOLDS = (
    "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce", "reduce_and", "reduce_max",
    "reduce_min", "reduce_or", "reduce_prod", "reduce_sum", "reduce_xor",
)  # fmt: skip
COSTS: dict[str, Callable[[Any, Types, Types], int]] = {
    "dot_general": _contraction,
    "cholesky": _cubic,
    "triangular_solve": _cubic,
    "sort": _sorting,
    "top_k": _sorting,
    **dict.fromkeys(_MOVES, lambda op, types, made: 0),
    **dict.fromkeys(_FOLDS, _operand),
}


def flops(op: Operation, types: Types, made: Types) -> int:
    """The operations that one equation takes, from the types of its operands and results."""
    if op.bodied:
        return _bodies(op)
    rule = COSTS.get(op.name)
    return sum([t.size for t in made]) if rule is None else rule(op, types, made)


def program_flops(program: Program) -> int:
    """The operations that a program takes; remembered by it."""
    found = program._cache.get("flops")
    if found is None:
        found = program._cache["flops"] = sum(equation_flops(program))
    return found


def equation_flops(program: Program) -> list[int]:
    """The operations that each equation of a program takes."""
    types = program.value_types()
    made = [t if op.multiple else (t,) for op, t in zip(program.ops, program.types)]
    return [flops(op, [types[n] for n in args], t) for op, args, t in zip(program.ops, program.args, made)]


def _bodies(op: Any) -> int:
    each = [program_flops(body) for body in op.bodies]
    if op.runs == "until":
        return _UNTIL * sum(each)
    most = max(each, default=0)
    return most * op.length if op.stacks else most
