"""Locations in StableHLO: the named scopes of each operation, which XLA keeps as ``op_name`` in its metadata.

    %3 = stablehlo.sine %2 : tensor<f32> loc("encoder/attention/sin")

What is in no scope has no location: the text of a program without scopes is as short as it can be. A call has its
scopes alone, and a loop or branch none: where XLA inlines their bodies, it puts their names before those inside, which
are whole in a region and start anew in a function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...effects.programs.program import Program
from ...effects.programs.program_cache import scopes_in, scopes_of
from .attributes import quoted

_WHILE, _CASE = '= "stablehlo.while"(', '= "stablehlo.case"('
Emitted = tuple[Any, tuple[int, ...], Any]  # operation, operands and type of the result of an equation


def equations_to_emit(emit: Any, program: Program) -> Iterable[Emitted]:
    """The equations of a program, each to be emitted before the next is asked for; its lines get its location then."""
    equations = zip(program.ops, program.args, program.types)
    return _located(emit, program, equations) if emit.scopes or scopes_in(program) else equations


def _located(emit: Any, program: Program, equations: Iterable[Emitted]) -> Iterator[Emitted]:
    """``equations_to_emit`` where there are scopes; ``emit.scopes`` are those around the region that is emitted."""
    lines, around = emit.lines, emit.scopes
    locations: dict[Any, str] = {}
    for equation, scopes in zip(equations, scopes_of(program)):
        first = len(lines)
        emit.scopes = scopes = around + scopes
        yield equation
        if scopes:
            op = equation[0]
            key = scopes, type(op)
            location = locations.get(key) or locations.setdefault(key, _location(op, scopes))
            lines[first:] = [line if _is_placed(line) else line + location for line in lines[first:]]
    emit.scopes = around


def _location(op: Any, scopes: tuple[str, ...]) -> str:
    """What follows a line of an operation in these scopes."""
    called = op.bodied and op.runs == "once"
    return f" loc({quoted('/'.join(scopes if called else (*scopes, op.name)))})"


def _is_placed(line: str) -> bool:
    """Whether a line takes no location, or has one: that of the innermost equation, where a body is emitted inline."""
    return line.endswith('")') or _WHILE in line or _CASE in line
