"""Outlines: what there is to see of a program, as data. Drawings and the stepper only lay it out.

A sub-program has an outline of its own, made once however often it occurs.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..effects.operations import Operation, text_name
from ..effects.printing import Printer, constant_text, letter, programs_in, row_text, shown_fields
from ..effects.programs import Program
from ..effects.sources import Site
from .liveness import Liveness, liveness


class Operand(NamedTuple):
    """An operand: how it is written, and its number, negative for a constant."""

    text: str
    number: int


class Inner(NamedTuple):
    """A sub-program of an equation: what it is there for, and the number of its outline."""

    role: str
    place: int
    first: bool  # whether it occurs here for the first time


class Line(NamedTuple):
    """One equation, ready to be written."""

    results: tuple[Operand, ...]
    types: tuple[str, ...]
    name: str
    fields: str
    operands: tuple[Operand, ...]
    effects: str
    site: Site
    inner: tuple[Inner, ...]

    @property
    def text(self) -> str:
        """``c: f32[3] = mul a b``, sub-programs left out."""
        results = ", ".join([f"{made.text}: {t}" for made, t in zip(self.results, self.types)])
        return f"{results}{' = ' if results else ''}{self.operation}{''.join([' ' + x.text for x in self.operands])}"

    @property
    def operation(self) -> str:
        return f"{self.name}[{self.fields}]" if self.fields else self.name


class Outline(NamedTuple):
    """A program: its lines, what it takes and gives, its effects and its memory."""

    program: Program
    inputs: tuple[Operand, ...]
    lines: tuple[Line, ...]
    outs: tuple[Operand, ...]
    effects: str
    memory: Liveness

    @property
    def length(self) -> str:
        """``1 equation``, ``12 equations``."""
        return f"{len(self.lines)} equation{'' if len(self.lines) == 1 else 's'}"

    @property
    def signature(self) -> str:
        """``f(a: f32[3]) -> (f32[]) ! {Tick}``."""
        program = self.program
        given = ", ".join([f"{x.text}: {t}" for x, t in zip(self.inputs, program.in_types)])
        row = f" ! {self.effects}" if self.effects else ""
        return f"{program.name}({given}) -> ({', '.join(map(str, program.out_types))}){row}"

    def columns(self) -> list[int]:
        """For every value the column where it stands from where it is made to its last use; as few as can be."""
        free: list[int] = []
        ends: dict[int, list[int]] = {}
        width = 0
        columns: list[int] = []
        made = [-1] * len(self.inputs)
        for i, line in enumerate(self.lines):
            made.extend([i] * len(line.results))
        at = -2
        for n, row in enumerate(made):
            while at < row - 1:  # a column is free again in the row after the last use
                at += 1
                free.extend(ends.pop(at, ()))
            free.sort(reverse=True)
            if free:
                columns.append(free.pop())
            else:
                columns.append(width)
                width += 1
            ends.setdefault(max(self.memory.last[n], row), []).append(columns[n])
        return columns


def outlines(program: Program) -> tuple[Outline, ...]:
    """The outline of a program, and of every sub-program where it occurs first."""
    found: list[Any] = []
    _outline(program, found, {})
    return tuple(found)


def _outline(program: Program, found: list[Any], places: dict[Program, int]) -> int:
    place = places[program] = len(found)
    found.append(None)
    texts = [constant_text(const, k) for k, const in enumerate(program.consts)]

    def operand(n: int) -> Operand:
        return Operand(letter(n) if n >= 0 else texts[-1 - n], n)

    inputs = tuple([operand(n) for n in range(len(program.in_types))])
    lines, number = [], len(inputs)
    for op, args, made, site in zip(program.ops, program.args, program.types, program.sites):
        types = tuple(map(str, made if op.multiple else (made,)))
        results = tuple([operand(number + k) for k in range(len(types))])
        number += len(types)
        inner = []
        for role, body in sub_programs(op):
            first = body not in places
            inner.append(Inner(role, _outline(body, found, places) if first else places[body], first))
        row = row_text(op.effects) if op.effects else ""
        operands = tuple(map(operand, args))
        lines.append(
            Line(results, types, text_name(type(op)), fields_text(op), operands, row, Site(*site), tuple(inner))
        )
    outs = tuple(map(operand, program.outs))
    row = row_text(program.effects) if program.effects else ""
    found[place] = Outline(program, inputs, tuple(lines), outs, row, liveness(program))
    return place


def sub_programs(op: Operation) -> Iterator[tuple[str, Program]]:
    """The programs in an operation's fields, and what each is there for."""
    if not op._names:
        return
    for name in op._names:
        programs = list(programs_in(getattr(op, name)))
        roles: Sequence[str] = [name] if len(programs) == 1 else [f"{name}[{k}]" for k in range(len(programs))]
        if name == "bodies" and op.bodied:
            roles = body_roles(op, len(programs))
        yield from zip(roles, programs)


def body_roles(op: Any, count: int) -> list[str]:
    """What the bodies of a higher-order operation are for, by how it runs them."""
    if op.runs == "until":
        return ["test", "body"]
    if op.runs == "one":
        return [f"branch {k}" for k in range(count)]
    if op.runs in ("loop", "lanes"):
        return [f"body, {op.length} {'times' if op.runs == 'loop' else 'lanes'}"]
    return ["body"] if count == 1 else [f"body {k}" for k in range(count)]


def fields_text(op: Operation) -> str:
    """The fields of an operation, without those that hold programs or have their default."""
    printer = Printer(False)
    shown = []
    for name in shown_fields(op):
        value = getattr(op, name)
        if not any(True for _ in programs_in(value)):
            shown.append(f"{name}={printer.value(value)}")
    return ", ".join(shown)


def source_line(site: Site) -> str:
    """The text of the user's line; empty where there is none to be found."""
    return linecache.getline(site.file, site.line).strip() if site.code is not None else ""


def bytes_text(count: int) -> str:
    """``512 B``, ``4.0 KiB``, ``1.5 GiB``."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_UNSAFE = re.compile("[&<>\"'\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape(text: str) -> str:
    """Text as it stands in XML and HTML, in attributes too; what neither can hold becomes the replacement mark."""
    return _UNSAFE.sub(lambda found: _ESCAPES.get(found[0], "\ufffd"), text)
