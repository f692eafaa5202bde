"""Transpose: the adjoint of a linear program, from the last equation to the first.

    <u, J v> = <J^T u, v>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.columns import TRANSPOSE, add_tangents
from ..effects.programs import Builder, Program
from ..effects.stack import Cell, current


def backward(tape: Builder | Program, outs: Sequence[int], cts: Sequence[Any], consts: Sequence[Any]) -> list[Any]:
    """The cotangents of the inputs of a tape, given those of its outputs; None is zero.

    Every value of a tape is linear in its inputs, except the constants, which are its residuals.
    """
    in_types = tape.in_types
    count = len(in_types)
    types: list[Any] = list(in_types)
    starts = []
    for op, made in zip(tape.ops, tape.types):
        starts.append(count)
        if op.multiple:
            types.extend(made)
            count += len(made)
        else:
            types.append(made)
            count += 1
    grads: list[Any] = [None] * count
    for number, ct in zip(outs, cts):
        if number >= 0 and ct is not None:
            grads[number] = add_tangents(grads[number], ct)
    find = TRANSPOSE.find
    cell = current().cell or Cell()
    outside = cell.site
    for i in range(len(tape.ops) - 1, -1, -1):
        op, args, start = tape.ops[i], tape.args[i], starts[i]
        if op.multiple:
            ct = tuple(grads[start : start + len(tape.types[i])])
            if all(part is None for part in ct):
                continue
        else:
            ct = grads[start]
            if ct is None:
                continue
            grads[start] = None
        cell.site = tape.sites[i]
        rule = find(type(op))
        operands = [types[n] if n >= 0 else consts[-1 - n] for n in args]
        for wrt, n in enumerate(args):
            if n >= 0:
                part = rule(op, ct, *operands, wrt=wrt)
                if part is not None:
                    known = grads[n]
                    grads[n] = part if known is None else add_tangents(known, part)
    cell.site = outside
    return grads[: len(in_types)]
