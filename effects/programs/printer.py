"""The text of programs, which ``parse_program`` reads back.

    parse_program(str(p), p.constants).unwrap() == p

One equation per line, sub-programs indented, values named a, b, ..., z, aa, ab, ... in order. A sub-program that
occurs several times is written and labelled ``@p0`` the first time; after that only its label is written.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import re
import struct
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any, Protocol

import numpy as np

from ..base.deep_calls import on_deep_stack
from ..base.source_locations import Site, Sites, is_ours
from ..base.value_identity import same_data
from ..core.arrays import ConcreteArray
from ..core.operation import Operation, text_name
from ..trees.frozen_tree import Frozen
from ..trees.structure import cpp_pytrees, node_of
from ..types import dtypes
from ..types.array_type import ArrayType, SymbolicType
from ..types.extent import Extent
from .equations import Steps
from .literals import IN_PLACE, array_text, number_text, real_text

# names with another meaning in program texts: a value that would get one has an underscore appended
RESERVED = frozenset(("inf", "nan", "op", "class", "program", "return", "tree", "frozen", "range", "float"))
PLAIN_NAME = re.compile(r"[A-Za-z_]\w*(?:-[A-Za-z]\w*)*|<\w+>")


class ProgramLike(Protocol):
    """The attributes of ``Program`` that printing and comparing read, as a protocol."""

    in_types: tuple[ArrayType, ...]
    ops: tuple[Operation, ...]
    args: tuple[tuple[int, ...], ...]
    types: tuple[Any, ...]
    outs: tuple[int, ...]
    consts: tuple[Any, ...]
    sites: Sites
    name: str
    effects: frozenset[Any]

    @property
    def count(self) -> int: ...

    @property
    def out_types(self) -> tuple[ArrayType, ...]: ...

    def steps(self) -> Steps: ...

    def starts(self) -> list[int]: ...

    def const_key(self, number: int) -> Hashable: ...


_NESTED = "\0"  # on both sides of the number of a nested program; no text of a value has it, since they are escaped

# class -> the function that writes a field's value of that class; other modules register theirs
WRITERS: dict[type, Callable[[Printer, Any], str]] = {}


def letter(number: int) -> str:
    """The name of the value with this number: a, b, ..., z, aa, ab, ..."""
    name = ""
    rest = number + 1
    while rest:
        rest, digit = divmod(rest - 1, 26)
        name = chr(97 + digit) + name
    return name + "_" if name in RESERVED else name


def program_text(program: ProgramLike, show_source: bool = False) -> str:
    """The text of a program; with ``show_source`` each equation is followed by the user's source line."""
    printer = Printer(show_source)
    printer.count(program)
    return printer.program(program)


def constants_of(program: ProgramLike) -> tuple[Any, ...]:
    """The constants that a program's text names ``@c0``, ``@c1``, ...: its own, then those of its sub-programs."""
    printer = Printer(False)
    printer.count(program)
    return tuple([const for each in printer.base for const in each.consts])


def equation_text(op: Operation, operands: Sequence[Any], results: Sequence[tuple[int, ArrayType]]) -> str:
    """The text of one equation; ``results``: number and type of each result."""
    shown = ", ".join([f"{letter(number)}: {type}" for number, type in results])
    return Printer(False).line(op, shown, map(str, operands))


def constant_text(const: Any, index: int | None = None) -> str:
    """A constant as operand: small arrays are written out, others named by their index."""
    if isinstance(const, ConcreteArray) and const.type.size <= IN_PLACE:
        return f"{array_text(const)}:{const.type}"
    return f"@c{'' if index is None else index}:{const.type}"


def row_text(effects: frozenset[Any]) -> str:
    """The text of an effect row, such as ``{axis i, Tick}``; an operation appears by the name of its class."""
    printer = Printer(False)
    return "{" + ", ".join(sorted(printer.row_element(effect) for effect in effects)) + "}"


def types_text(types: Sequence[Any]) -> str:
    """The types in parentheses, such as ``(f32[3], f32[])``."""
    return f"({', '.join(map(str, types))})"


def programs_in(value: Any) -> Iterator[ProgramLike]:
    """The programs in the value of a field, or in the fields of an operation, without their sub-programs."""
    if isinstance(value, tuple):
        for item in value:
            yield from programs_in(item)
    elif isinstance(value, Operation):
        for name in value._names:
            yield from programs_in(getattr(value, name))
    elif hasattr(type(value), "equations"):
        yield value


class Printer:
    """Writes one program, its sub-programs included; keeps their labels and the indentation.

    In the text of a field, a program within a program stands as its number in ``nested`` until ``whole`` puts it there.
    """

    def __init__(self, show_source: bool):
        self.show_source = show_source
        self.depth = 0
        self.uses: Counter[ProgramLike] = Counter()
        self.labels: dict[ProgramLike, str] = {}
        self.base: dict[ProgramLike, int] = {}  # the index that a program's first constant has in the text
        self.constants = 0
        self.seen: dict[int, str] = {}  # identity of an operation without programs -> its text
        self.types: dict[Any, str] = {}
        self.nested: list[str] = []  # the texts of programs within programs
        self.home = ""  # the module of the operation whose fields are written

    def count(self, program: ProgramLike) -> None:
        """Count the occurrences of each sub-program, and number all constants; must be called before ``program``."""
        self.base[program] = self.constants
        self.constants += len(program.consts)
        for op in {id(op): op for op in program.ops if op._names}.values():
            for inner in programs_in(op):
                self.uses[inner] += 1
                if self.uses[inner] == 1:
                    on_deep_stack(self.count, inner)

    def type(self, type: Any) -> str:
        text = self.types.get(type)
        if text is None:
            text = self.types[type] = type.exact_text
            number = 0 if type.cut is None else self.meshes().index(type.cut.mesh)
            if number:
                text = self.types[type] = re.sub(r"(@|(?<=[{,])[UR]:(?=\D))", rf"\g<1>{number}:", text)
        return text

    def meshes(self) -> list[Any]:
        """The meshes over which the types printed so far are cut, numbered in this order: ``8@1:a`` is a dimension that
        is cut along axis ``a`` of the second, ``8@a`` along one of the first.
        """
        return [*dict.fromkeys([t.cut.mesh for t in self.types if t.cut is not None])]

    def program(self, program: ProgramLike) -> str:
        label = self.labels.get(program)
        if label is not None:
            return label
        name = program.name if PLAIN_NAME.fullmatch(program.name) else repr(program.name)
        if self.uses.get(program, 0) > 1:
            label = self.labels[program] = f"@p{len(self.labels)}"
            name += f" {label}"
        operand, names = self.names(program)
        params = ", ".join([f"{name}: {self.type(t)}" for name, t in zip(names, program.in_types)])
        row = f" ! {row_text(program.effects)}" if program.effects else ""
        lines = [f"program {name}({params}) -> ({', '.join(map(self.type, program.out_types))}){row} {{"]
        self.depth += 1
        on_deep_stack(self.equations, program, operand, names, lines)
        indent = "  " * self.depth
        lines.append(f"{indent}return ({', '.join([operand(n) for n in program.outs])})")
        self.depth -= 1
        lines.append("  " * self.depth + "}")
        text = "\n".join(lines)
        if not self.depth:
            return self.whole("\n".join([*[f"over {self.value(mesh)}" for mesh in self.meshes()], text]))
        self.nested.append(text)
        return f"{_NESTED}{len(self.nested) - 1}{_NESTED}"

    def whole(self, text: str) -> str:
        """The text with the number of each nested program replaced by that program's text, in linear time."""
        pieces = []
        stack = [enumerate(text.split(_NESTED))]
        while stack:
            for i, piece in stack[-1]:
                if i % 2:
                    stack.append(enumerate(self.nested[int(piece)].split(_NESTED)))
                    break
                pieces.append(piece)
            else:
                stack.pop()
        return "".join(pieces)

    def names(self, program: ProgramLike) -> tuple[Callable[[int], str], list[str]]:
        """A function from a value's number to its text as operand, and the names of all but the constants."""
        names = [letter(n) for n in range(program.count)]
        base = self.base.get(program, 0)
        texts = [constant_text(const, base + k) for k, const in enumerate(program.consts)]
        return (lambda n: names[n] if n >= 0 else texts[-1 - n]), names

    def equations(
        self, program: ProgramLike, operand: Callable[[int], str], names: list[str], lines: list[str]
    ) -> None:
        indent = "  " * self.depth
        number = len(program.in_types)
        for op, args, types, site in zip(program.ops, program.args, program.types, program.sites):
            if op.multiple_results:
                results = ", ".join([f"{names[n]}: {self.type(t)}" for n, t in enumerate(types, number)])
                number += len(types)
            else:  # the most frequent case: ``program.steps()`` takes twice the time
                results = f"{names[number]}: {self.type(types)}"
                number += 1
            source = f"  # {Site(*site).full}" if self.show_source and site[0] is not None else ""
            lines.append(f"{indent}{self.line(op, results, map(operand, args))}{source}")

    def line(self, op: Operation, results: str, operands: Iterable[str]) -> str:
        """The text ``results = operation operands``; ``results``: names with types, separated by commas."""
        text = self.seen.get(id(op)) or self.operation(op)
        return " ".join([f"{results} = {text}" if results else text, *operands])

    def operation(self, op: Operation) -> str:
        """The text of an operation: its name, and those fields that differ from their defaults."""
        text = self.operation_as(text_name(type(op)), op)
        if not any(True for _ in programs_in(op)):
            self.seen[id(op)] = text
        return text

    def operation_as(self, name: str, op: Operation) -> str:
        outer, self.home = self.home, type(op).__module__
        shown = [f"{field}={self.value(getattr(op, field))}" for field in shown_fields(op)]
        self.home = outer
        return f"{name}[{', '.join(shown)}]" if shown else name

    def row_element(self, effect: Any) -> str:
        return self.operation_as(type(effect).__name__, effect) if isinstance(effect, Operation) else str(effect)

    def value(self, value: Any) -> str:
        """The text of a field's value; ``?'...'`` for a value without a parsable text, which the parser refuses."""
        kind = type(value)
        writer = WRITERS.get(kind)
        if writer is None:
            writer = next((write for base, write in _BY_BASE if isinstance(value, base)), _unreadable)
        return writer(self, value)

    def path(self, kind: Any) -> str | None:
        """How texts call a class: by its name alone, where the module of an operation of the package has it."""
        if is_ours(self.home) and resolve(self.home, kind.__qualname__) is kind:
            return kind.__qualname__
        return path_of(kind)

    def items(self, values: Any) -> str:
        return ", ".join([self.value(item) for item in values])


def shown_fields(op: Operation) -> Iterator[str]:
    """The names of an operation's fields whose value differs from the default."""
    fields = type(op).__dataclass_fields__ if op._names else {}  # type: ignore[attr-defined]
    for name in op._names:
        default = fields[name].default
        if default is dataclasses.MISSING or not same_data(default, getattr(op, name)):
            yield name


def path_of(value: Any) -> str | None:
    """``module:qualname`` of an object that can be looked up by that name; None for lambdas, closures and others."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or resolve(module, name) is not value:
        return None
    return f"{module}:{name}"


def resolve(module: str, qualname: str) -> Any:
    """The object of this name in a loaded module, or None. Imports nothing: parsing a text executes no code."""
    target: Any = sys.modules.get(module)
    for part in qualname.split("."):
        target = getattr(target, part, None)
    return target


def _unreadable(printer: Printer, value: Any) -> str:
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"?{f'{value.__qualname__} at {Site(code, 0)}'!r}"
    kind = type(value)
    text = str(value) if is_ours(kind.__module__) and "__str__" in vars(kind) else kind.__qualname__
    return f"?{text!r}"


def _reference(printer: Printer, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Operation):
        return f"class {text_name(value)}"
    return path_of(value) or _unreadable(printer, value)


def _float(printer: Printer, value: float) -> str:
    if math.isnan(value) and struct.pack("d", value) != struct.pack("d", math.nan):
        return f"float({int.from_bytes(struct.pack('<d', value), 'little'):#018x})"
    return real_text(value)


def _tuple(printer: Printer, value: tuple[Any, ...]) -> str:
    return f"({printer.items(value)}{',' if len(value) == 1 else ''})"


def _record(printer: Printer, value: Any) -> str:
    """The text of a named tuple or dataclass, as a call with its fields."""
    path = printer.path(type(value))
    if path is None:
        return _unreadable(printer, value)
    if isinstance(value, tuple):
        names: list[str] = list(type(value)._fields)  # type: ignore[attr-defined]
    else:
        names = [field.name for field in dataclasses.fields(value) if field.init]
    return f"{path}({', '.join([f'{name}={printer.value(getattr(value, name))}' for name in names])})"


def _plain_tuple_or_record(printer: Printer, value: Any) -> str:
    return _record(printer, value) if hasattr(type(value), "_fields") else _unreadable(printer, value)


def _member(printer: Printer, value: enum.Enum) -> str:
    path = printer.path(type(value))
    known = path is not None and type(value).__members__.get(value.name or "") is value
    return f"{path}.{value.name}" if known else _unreadable(printer, value)


def _dtype(printer: Printer, value: Any) -> str:
    try:
        return dtypes.short_name(value) if dtypes.from_short_name(dtypes.short_name(value)) == value else "?'dtype'"
    except dtypes.DTypeMismatch:
        return f"?{str(value)!r}"


def _number(printer: Printer, value: Any) -> str:
    return f"{dtypes.short_name(value.dtype)}({number_text(value)})"


def _tree(printer: Printer, value: Any) -> str:
    node = node_of(value)
    if node is None:
        return "tree()"
    path = "None" if node[0] is NoneType else path_of(node[0])
    if path is None:
        return _unreadable(printer, value)
    data = tuple(node[1]) if node[0] is dict else node[1]
    return f"tree({path}, {printer.value(data)}, {_tuple(printer, value.children())})"


def _other(printer: Printer, value: Any) -> str:
    if isinstance(value, cpp_pytrees.PyTreeDef):
        return _tree(printer, value)
    return _record(printer, value) if dataclasses.is_dataclass(value) else _unreadable(printer, value)


def _frozen(printer: Printer, value: Frozen) -> str:
    return f"frozen({_tuple(printer, value.leaves)}, {printer.value(value.treedef)})"


def _set(printer: Printer, value: frozenset[Any]) -> str:
    return "{" + ", ".join(sorted([printer.value(item) for item in value], key=printer.whole)) + "}"


for _kind in (int, bool, str, bytes, type(None)):
    WRITERS[_kind] = lambda printer, value: repr(value)
WRITERS[type(...)] = lambda printer, value: "..."
WRITERS[float] = _float
WRITERS[complex] = lambda printer, z: f"complex({_float(printer, z.real)}, {_float(printer, z.imag)})"
WRITERS[tuple] = _tuple
WRITERS[frozenset] = _set
WRITERS[range] = lambda printer, r: f"range({r.start}, {r.stop}, {r.step})"
WRITERS[Extent] = lambda printer, value: str(value)
WRITERS[ArrayType] = WRITERS[SymbolicType] = lambda printer, value: value.exact_text
WRITERS[Frozen] = _frozen
_BY_BASE: tuple[tuple[Any, Callable[[Printer, Any], str]], ...] = (
    (Operation, lambda printer, value: f"op {printer.operation(value)}"),
    (enum.Enum, _member),
    ((np.dtype, dtypes.ExtendedDType), _dtype),
    (np.generic, _number),
    ((FunctionType, BuiltinFunctionType, type, np.ufunc), _reference),
    (tuple, _plain_tuple_or_record),
    (object, _other),
)
