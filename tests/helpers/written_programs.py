"""Small programs written equation by equation, and an operation whose only field may have any value."""

from typing import Any

import numpy as np

from handlax.effects.core.operation import operation
from handlax.effects.programs.parse_result import parse_program
from handlax.effects.programs.program import Builder
from handlax.effects.types.array_type import array_type

f32 = np.dtype("float32")
V3 = array_type((3,), f32)


@operation
class Noted:
    note: Any = None
    name = "noted"

    def result_type(op, x):
        return x


def program(*equations, types=(V3,), consts=(), outs=(0,), name="f"):
    """The program of ``(op, operands)`` pairs."""
    builder = Builder()
    for type in types:
        builder.input(type)
    types_by_number = list(types)
    for const in consts:
        builder.const(const)
    for op, args in equations:
        operands = [types_by_number[n] if n >= 0 else consts[-1 - n].type for n in args]
        result = op.result_type(*operands)
        builder.append(op, args, result, (None, 0))
        types_by_number.extend(result if op.multiple_results else (result,))
    return builder.freeze(outs, name)


def again(p):
    """The result of parsing the text of ``p``."""
    return parse_program(str(p), p.constants)
