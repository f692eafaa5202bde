"""Compiled programs as XLA prints them: the instructions of each computation of an HLO text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^ *(?:ROOT )?%?([\w.-]+) = (.*?) ([a-z][a-z0-9-]*)\((.*)$")
_SCOPES = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_ARRAY = re.compile(r"\b(pred|[a-z]+(\d+)\w*)\[([\d,<=]*)\]")
_OPERAND = re.compile(r"%([\w.-]+)")
HOLDS_OTHERS = re.compile("while|conditional|call")
"""The operations whose time is that of the instructions that they execute."""


class HloArray(NamedTuple):
    """An array of an instruction's results."""

    shape: tuple[int, ...]
    bits: int

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return -(-self.size * self.bits // 8)


class HloInstruction(NamedTuple):
    """An instruction: its operation, the arrays that it gives, the names of its operands, and its ``attributes``, which
    are text.
    """

    name: str
    opcode: str
    results: tuple[HloArray, ...]
    operands: tuple[str, ...]
    attributes: str

    @property
    def scope(self) -> str:
        """The names of the scopes of the operation that it computes last: ``"encoder/norm"``; ``""`` outside of all."""
        found = _SCOPES.search(self.attributes)
        return _unescaped(found[1]).rpartition("/")[0] if found else ""


class HloProgram(NamedTuple):
    """The instructions of each computation by its name, and the name of that which is executed first."""

    computations: Mapping[str, list[HloInstruction]]
    entry: str


def hlo_program(text: str) -> HloProgram:
    """The program of an HLO text.

    >>> program = hlo_program('ENTRY %main (a: f32[2]) -> f32[2] {\\n  %b = f32[2]{0} sine(%a)\\n}')
    >>> [instruction.opcode for instruction in program.computations[program.entry]]
    ['sine']
    """
    computations: dict[str, list[HloInstruction]] = {}
    entry, here = "", list[HloInstruction]()
    for line in text.splitlines():
        head = _COMPUTATION.match(line)
        if head:
            computations[head[2]] = here = []
            entry = head[2] if head[1] else entry
            continue
        parts = _INSTRUCTION.match(line)
        if parts:
            name, types, opcode, rest = parts.groups()
            operands, _, attributes = rest.partition(")")
            here.append(HloInstruction(name, opcode, _arrays(types), tuple(_OPERAND.findall(operands)), attributes))
    return HloProgram(computations, entry)


def _arrays(types: str) -> tuple[HloArray, ...]:
    """The arrays of a type, which may be a tuple."""
    return tuple([
        HloArray(tuple([int(size) for size in re.findall(r"\d+", sizes)]), int(bits or 8))
        for _, bits, sizes in _ARRAY.findall(types)
    ])


def _unescaped(text: str) -> str:
    """What stands in quotation marks in HLO, where each byte but those of ASCII's letters may be escaped as in C."""
    return text.encode().decode("unicode_escape").encode("latin-1").decode()
