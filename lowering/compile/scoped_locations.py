"""Locations in StableHLO: the named scopes of each operation, which XLA keeps as ``op_name`` in its metadata.

    %3 = stablehlo.sine %2 : tensor<f32> loc("encoder/attention/sin")

What is in no scope has no location: the text of a program without scopes is as short as it can be. A call has its
scopes alone, and a loop or branch none: where XLA inlines their bodies, it puts their names before those inside, which
are whole in a region and start anew in a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...effects.base.source_locations import Site
from ...effects.programs.program import Program
from ...effects.programs.program_cache import scopes_in
from .attributes import quoted

_HOLDS_REGIONS = ('= "stablehlo.while"(', '= "stablehlo.case"(')
Emitted = tuple[Any, tuple[int, ...], Any]  # operation, operands and type of the result of an equation


class LocatedLine(str):
    """A line that has its location, which is that of the innermost equation: bodies may be emitted inline."""

    __slots__ = ()


def equations_to_emit(emit: Any, program: Program) -> Iterable[Emitted]:
    """The equations of a program, each to be emitted before the next is asked for; its lines get its location then."""
    equations = zip(program.ops, program.args, program.types)
    return _located(emit, program, equations) if emit.scopes or scopes_in(program) else equations


def _located(emit: Any, program: Program, equations: Iterable[Emitted]) -> Iterator[Emitted]:
    """``equations_to_emit`` where there are scopes; ``emit.scopes`` are those around the region that is emitted."""
    lines, around = emit.lines, emit.scopes
    for equation, site in zip(equations, program.sites):
        first = len(lines)
        emit.scopes = around + Site(*site).scopes
        yield equation
        if emit.scopes:
            placed = _placement(equation[0], emit.scopes)
            lines[first:] = [*map(placed, lines[first:])]
    emit.scopes = around


def _placement(op: Any, scopes: tuple[str, ...]) -> Callable[[str], str]:
    """The function that gives a line of an operation in these scopes its location, unless it has or takes none."""
    called = op.bodied and op.runs == "once"
    location = quoted("/".join(scopes if called else (*scopes, op.name)))

    def placed(line: str) -> str:
        none = type(line) is LocatedLine or any([name in line for name in _HOLDS_REGIONS])
        return line if none else LocatedLine(f"{line} loc({location})")

    return placed
