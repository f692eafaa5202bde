"""Locations in StableHLO: the named scopes of each operation, which XLA keeps as ``op_name`` in its metadata.

    %3 = stablehlo.sine %2 : tensor<f32> loc("encoder/attention/sin")

What is in no scope has no location: the text of a program without scopes is as short as it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...effects.base.source_locations import Site
from ...effects.programs.program import Program
from ...effects.programs.program_cache import scopes_in

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
            op = equation[0]
            once = op.bodied and op.runs == "once"  # a call, whose name XLA puts before those of what it calls
            location = quoted("/".join(emit.scopes if once else (*emit.scopes, op.name)))
            placed = lambda line: line if type(line) is LocatedLine else LocatedLine(f"{line} loc({location})")
            lines[first:] = [*map(placed, lines[first:])]
    emit.scopes = around


def quoted(text: str) -> str:
    r"""A string of MLIR.

    >>> print(quoted('a"b'))
    "a\22b"
    """
    plain = lambda c: c.isascii() and c.isprintable() and c not in '"\\'
    return '"' + "".join([c if plain(c) else "".join([f"\\{b:02X}" for b in c.encode()]) for c in text]) + '"'
