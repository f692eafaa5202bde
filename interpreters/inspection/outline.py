"""Outlines: a program's text, effects and memory, part by part, as data that drawings and the stepper lay out.

Each sub-program has one outline, however often it occurs; equations refer to it by number.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...effects.base.source_locations import ScopeName, Site
from ...effects.core.operation import Operation, text_name
from ...effects.programs.printer import Printer, constant_text, letter, programs_in, row_text, shown_fields
from ...effects.programs.program import Program
from ..analysis.liveness import Liveness, liveness
from ..analysis.repeats import repeats


class OutlineOperand(NamedTuple):
    """A variable or constant as text, and its number in the program; a constant's is negative."""

    text: str
    number: int


class InnerOutline(NamedTuple):
    """A sub-program of an equation: its role, such as ``branch 0``, and the number of its outline."""

    role: str
    number: int
    first: bool  # whether this is the first equation with this sub-program


class OutlineLine(NamedTuple):
    """One equation as text, part by part."""

    results: tuple[OutlineOperand, ...]
    types: tuple[str, ...]
    name: str
    fields: str
    operands: tuple[OutlineOperand, ...]
    effects: str
    site: Site
    inner: tuple[InnerOutline, ...]

    @property
    def text(self) -> str:
        """The equation as text, ``c: f32[3] = mul a b``, without sub-programs."""
        results = ", ".join([f"{y.text}: {t}" for y, t in zip(self.results, self.types)])
        return f"{results}{' = ' if results else ''}{self.operation}{''.join([' ' + x.text for x in self.operands])}"

    @property
    def operation(self) -> str:
        """The operation with its fields as text: ``reduce_sum[axes=(0,)]``."""
        return f"{self.name}[{self.fields}]" if self.fields else self.name


class Outline(NamedTuple):
    """A program: its inputs, lines and results, its effects and its memory."""

    program: Program
    inputs: tuple[OutlineOperand, ...]
    lines: tuple[OutlineLine, ...]
    outs: tuple[OutlineOperand, ...]
    effects: str
    memory: Liveness

    @property
    def length(self) -> str:
        """The number of equations as text: ``1 equation``, ``12 equations``."""
        return f"{len(self.lines)} equation{'' if len(self.lines) == 1 else 's'}"

    @property
    def signature(self) -> str:
        """The signature as text: ``f(a: f32[3]) -> (f32[]) ! {Tick}``."""
        program = self.program
        inputs = ", ".join([f"{x.text}: {t}" for x, t in zip(self.inputs, program.in_types)])
        row = f" ! {self.effects}" if self.effects else ""
        return f"{program.name}({inputs}) -> ({', '.join(map(str, program.out_types))}){row}"

    @property
    def runs(self) -> dict[int, str]:
        """The runs of the program's repeats as text, ``run 2 of 24, 10 equations``, by their first equations."""
        return {
            repeat.start + k * repeat.period: f"run {k + 1} of {repeat.times}, {repeat.period} equations"
            for repeat in repeats(self.program)
            for k in range(repeat.times)
        }

    def columns(self) -> list[int]:
        """For every value the column of its lifetime line, from its definition to its last use.

        Lifetimes in one column do not overlap, and the number of columns is the least possible.
        """
        free: list[int] = []
        ends: dict[int, list[int]] = {}
        width = 0
        columns: list[int] = []
        defined = [-1] * len(self.inputs)
        for i, line in enumerate(self.lines):
            defined.extend([i] * len(line.results))
        at = -2
        for n, row in enumerate(defined):
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
    """The outline of a program, followed by those of its sub-programs in the order of their first occurrence."""
    all_outlines: list[Any] = []
    _outline(program, all_outlines, {})
    return tuple(all_outlines)


def _outline(program: Program, all_outlines: list[Any], indices: dict[Program, int]) -> int:
    """Append the outline of a program and of its new sub-programs; its index."""
    index = indices[program] = len(all_outlines)
    all_outlines.append(None)
    texts = [constant_text(const, k) for k, const in enumerate(program.consts)]

    def operand(n: int) -> OutlineOperand:
        return OutlineOperand(letter(n) if n >= 0 else texts[-1 - n], n)

    inputs = tuple([operand(n) for n in range(len(program.in_types))])
    lines = []
    for (op, args, numbers, types), site in zip(program.steps(), program.sites):
        inner = []
        for role, body in sub_programs(op):
            first = body not in indices
            number = _outline(body, all_outlines, indices) if first else indices[body]
            inner.append(InnerOutline(role, number, first))
        row = row_text(op.effects) if op.effects else ""
        results, operands = tuple(map(operand, numbers)), tuple(map(operand, args))
        shown, name = tuple(map(str, types)), text_name(type(op))
        lines.append(OutlineLine(results, shown, name, fields_text(op), operands, row, Site(*site), tuple(inner)))
    outs = tuple(map(operand, program.outs))
    row = row_text(program.effects) if program.effects else ""
    all_outlines[index] = Outline(program, inputs, tuple(lines), outs, row, liveness(program))
    return index


def handler_lines(outlines: Sequence[Outline]) -> list[str]:
    """The handlers and transformations that equations passed through, outermost first, each with the operations that
    were recorded through it: ``handler(Sin): mul, sin``.
    """
    recorded: dict[tuple[str, int], dict[str, None]] = {}  # by label, and how many equal ones are around it
    order: list[tuple[str, int]] = []
    for line in [line for outline in outlines for line in outline.lines]:
        labels = [label for label in reversed(line.site.under) if type(label) is not ScopeName]
        at = 0
        for i, label in enumerate(labels):
            handler = label, labels[:i].count(label)
            if handler not in recorded:
                order.insert(at, handler)
            recorded.setdefault(handler, {})[line.name] = None
            at = order.index(handler) + 1
    return [f"{handler[0]}: {', '.join(recorded[handler])}" for handler in order]


def sub_programs(op: Operation) -> Iterator[tuple[str, Program]]:
    """The programs in an operation's fields, each with its role."""
    if not op._names:
        return
    for name in op._names:
        programs = list(programs_in(getattr(op, name)))
        roles: Sequence[str] = [name] if len(programs) == 1 else [f"{name}[{k}]" for k in range(len(programs))]
        if name == "bodies" and op.bodied:
            roles = body_roles(op, len(programs))
        yield from zip(roles, programs)


def body_roles(op: Any, count: int) -> list[str]:
    """The roles of the bodies of a higher-order operation, by its declared ``runs``."""
    if op.runs == "until":
        return ["test", "body"]
    if op.runs == "one":
        return [f"branch {k}" for k in range(count)]
    if op.runs in ("loop", "lanes"):
        return [f"body, {op.length} {'times' if op.runs == 'loop' else 'lanes'}"]
    return ["body"] if count == 1 else [f"body {k}" for k in range(count)]


def fields_text(op: Operation) -> str:
    """The fields of an operation as text, without programs and fields that have their default."""
    printer = Printer(False)
    shown = []
    for name in shown_fields(op):
        value = getattr(op, name)
        if not any(True for _ in programs_in(value)):
            shown.append(f"{name}={printer.value(value)}")
    return ", ".join(shown)


def source_line(site: Site) -> str:
    """The text of the user's line; empty if the source is not found."""
    return linecache.getline(site.file, site.line).strip() if site.code is not None else ""


def bytes_text(count: int) -> str:
    """A number of bytes as text: ``512 B``, ``4.0 KiB``, ``1.5 GiB``."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_UNSAFE = re.compile("[&<>\"'\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape(text: str) -> str:
    """Text escaped for XML and HTML, attributes included; characters not allowed there become U+FFFD."""
    return _UNSAFE.sub(lambda match: _ESCAPES.get(match[0], "\ufffd"), text)
