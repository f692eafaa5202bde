"""The parser of program texts: the inverse of ``printer``.

    program  = "program" name [label] "(" [value ":" type ...] ")" "->" "(" [type ...] ")" ["!" row] "{" lines "}"
    line     = [value ":" type ...] "=" operation operand ...
    operand  = value | numbers ":" type | "@c0" [":" type]

Parsing executes no code of the text's author: names are looked up in this package and in modules that are already
loaded, and the only objects called are operations, named tuples and dataclasses.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import enum
import re
import struct
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from ..base.deep_calls import on_deep_stack
from ..base.errors import HandlaxError, ParseError
from ..base.source_locations import is_ours
from ..core.arrays import Array, as_array, concrete, share
from ..core.operation import LATE_OPERATIONS, OPERATIONS, Operation, result_type
from ..trees.structure import assemble
from ..types import dtypes
from ..types.array_type import ArrayType
from ..types.extent_text import parse_extent
from .lexer import TYPE, Tokens
from .literals import array_of, number_of
from .mesh_texts import MAKERS, NAMED
from .operation_names import find_object, operation_called
from .printer import resolve, row_text, types_text

# the common line, parsed in one step if its operation and type have occurred before: one result, plain fields
LINE = re.compile(rf"([a-z]+_?): ({TYPE}) = ([\w-]+(?:\[[^\[\]{{}}@'\"\#]*\])?)((?: [^\s\#]+)*)[ \t]*\n\s*")


class ProgramParts(NamedTuple):
    """The arguments of ``Program``, as mutable lists that a ``BodyParser`` fills."""

    in_types: list[ArrayType]
    ops: list[Operation]
    args: list[tuple[int, ...]]
    types: list[Any]
    outs: list[int]
    consts: list[Any]
    sites: tuple[()]
    name: str


class ProgramParser(Tokens):
    """Parses one text. ``make`` builds a program from its ``ProgramParts``."""

    def __init__(self, text: str, consts: Sequence[Any], make: Callable[..., Any]):
        super().__init__(text)
        self.consts = consts
        self.make = make
        self.labels: dict[str, Any] = {}
        self.known_ops: dict[str, Operation] = {}
        self.literals: dict[Any, Array] = {}
        self.home = ""  # the module of the operation whose fields are read

    def parse(self) -> Any:
        """The program of the whole text. Raises ParseError: anything follows the program."""
        try:
            self.skip_lines()
            while self.kind == "name" and self.token == "over":
                self.advance()
                self.meshes.append(self.value())
                self.skip_lines()
            program = self.program()
            self.skip_lines()
        except (ParseError, MemoryError):
            raise
        except RecursionError:
            self.fail("a text that is nested less deeply")
        except Exception as error:  # of an operation, a class or a node that the text names
            self.fail("a part of a program", got=f"{self.token[:40]!r}, {reason_of(error)}")
        if self.kind != "end":
            self.fail("the end of the text")
        return program

    def program(self) -> Any:
        self.expect("program")
        name = self.name()
        label = self.token if self.kind == "punctuation" and self.token.startswith("@p") else None
        if label is not None:
            if label in self.labels:
                self.fail("a label that no program above has")
            self.advance()
        parts = ProgramParts([], [], [], [], [], [], (), name)
        body = BodyParser(self, parts)
        self.expect("(")
        self.listed(body.parameter, ")")
        self.expect("->")
        self.expect("(")
        out_types = self.listed(self.type, ")")
        stated = self.row() if self.accept("!") else None
        self.expect("{")
        body.lines()
        types = body.out_types()
        if types != out_types:
            expected = f"results of the types {types_text(out_types)} stated above"
            self.fail(expected, got=types_text(types), at=body.returned)
        self.expect("}")
        program = self.make(*parts)
        if stated is not None:
            text, at = stated
            row = row_text(program.effects)
            if "".join(text.split()) != "".join(row.split()):
                self.fail(f"the effect row of the equations, {row}", got=text, at=at)
        if label is not None:
            self.labels[label] = program
        return program

    def name(self) -> str:
        self.skip_lines()
        if self.kind == "string" and not self.token.startswith("b"):
            return self.string()
        return self.take("name", "a name")

    def row(self) -> tuple[str, int]:
        """The text of an effect row, unparsed, and its position."""
        self.skip_lines()
        start = self.start
        self.expect("{")
        depth = 1
        while depth:
            if self.kind == "end":
                self.fail("'}'")
            if self.kind == "punctuation":
                depth += (self.token in "{([") - (self.token in "})]")
            end = self.end
            self.advance()
        return self.text[start:end], start

    # operations and the values of their fields

    def operation(self) -> Operation:
        """``name`` or ``name[field=value, ...]``."""
        start, name = self.start, self.token
        if self.kind not in ("name", "path"):
            self.fail("an operation")
        kind = operation_called(name)
        if kind is None:
            near = difflib.get_close_matches(name, [*OPERATIONS, *LATE_OPERATIONS], 3)
            hint = f"near are {', '.join(near)}." if near else "import the module that defines it."
            self.fail("a known operation", hint=hint)
        end = self.end
        self.advance()
        fields: dict[str, Any] = {}
        if self.token == "[" and self.start == end:  # after a space it begins an operand
            self.advance()
            outer, self.home = self.home, kind.__module__
            fields = self.fields("]")
            self.home = outer
            end = self.text.rindex("]", start, self.start) + 1
        op = self.build(kind, fields, start)
        if not op.bodied and is_ours(kind.__module__):
            self.known_ops[self.text[start:end]] = op
        return op

    def fields(self, close: str) -> dict[str, Any]:
        """Fields ``name=value`` up to ``close``."""
        fields: dict[str, Any] = {}
        self.listed(lambda: self.field(fields), close)
        return fields

    def field(self, fields: dict[str, Any]) -> None:
        """Parse ``name=value`` into ``fields``. Raises ParseError: they have a field of this name."""
        self.skip_lines()
        start = self.start
        name = self.take("name", "the name of a field")
        if name in fields:
            self.fail(f"one value of the field {name}", got="another", at=start)
        self.expect("=")
        fields[name] = self.value()

    def build(self, kind: Any, fields: dict[str, Any], at: int) -> Any:
        """An instance of an operation or class. Raises ParseError at ``at``: the class refuses the fields."""
        return self.called(kind, f"fields that {kind.__name__} takes", at, **fields)

    def called(self, maker: Callable[..., Any], expected: str, at: int, *values: Any, **named: Any) -> Any:
        """``maker(*values, **named)``. Raises ParseError at ``at`` with the text ``expected``: the call raises."""
        try:
            return maker(*values, **named)
        except (TypeError, ValueError, HandlaxError) as error:
            self.fail(expected, got=reason_of(error), at=at)

    def string(self) -> Any:
        try:
            value = ast.literal_eval(self.token)
        except (ValueError, SyntaxError):
            self.fail("a string")
        self.advance()
        return value

    def value(self) -> Any:
        """The value of a field, however deep in other values."""
        return on_deep_stack(self.next_value)

    def next_value(self) -> Any:
        self.skip_lines()
        kind, token, start = self.kind, self.token, self.start
        if kind == "string":
            return self.string()
        if kind == "number":
            self.advance()
            if re.fullmatch(r"[+-]?\d+", token):
                return int(token)
            return float(number_of(token, dtypes.float64))
        if kind == "type":
            return self.type()
        if kind == "extent":
            self.advance()
            return parse_extent(token)
        if kind == "path":
            return self.reference()
        if kind == "member":
            self.advance()
            return self.of_home(token, start)
        if kind == "punctuation":
            return self.punctuated(token)
        if kind == "name":
            if token == "program":
                return self.program()
            self.advance()
            if token in _CONSTANTS:
                return _CONSTANTS[token]
            if token == "op":
                self.skip_lines()
                return self.operation()
            if token == "class":
                return self.operation_class()
            return self.constructed(token, start)
        return self.fail("a value")

    def punctuated(self, token: str) -> Any:
        """The value of a field whose text begins with punctuation: a tuple, a set, a sub-program's label or ``...``."""
        if token == "?":
            self.advance()
            shown = self.string() if self.kind == "string" else "something"
            self.fail("a value", got=shown, hint="only an object that a module holds under its own name can be parsed.")
        if token.startswith("@p"):
            if token not in self.labels:
                self.fail("the label of a program above")
            self.advance()
            return self.labels[token]
        if token == "...":
            self.advance()
            return ...
        if self.accept("("):
            return tuple(self.listed(self.value, ")"))
        if self.accept("{"):
            return frozenset(self.listed(self.value, "}"))
        return self.fail("a value")

    def operation_class(self) -> type[Operation]:
        """The operation class of this name: a field's value ``class name``."""
        kind = operation_called(self.token)
        if kind is None:
            self.fail("a known operation", hint="import the module that defines it.")
        self.advance()
        return kind

    def constructed(self, token: str, start: int) -> Any:
        """A dtype, a NumPy number such as ``f32(1.5)``, or a value written as a call, such as ``range(0, 3, 1)``."""
        dtype = self.dtype_of(token)
        if dtype is not None:
            if not self.accept("("):
                return dtype
            number = self.take("number" if self.kind == "number" else "name", "a number")
            self.expect(")")
            return self.number(number, dtype, start)[()]
        maker = _CONSTRUCTORS.get(token) or MAKERS.get(token)
        if maker is None:
            return self.of_home(token, start)
        self.expect("(")
        if token == "float":
            number = self.take("number", "the bits of a float")
            self.expect(")")
            return struct.unpack("<d", struct.pack("<Q", int(number, 16)))[0]
        values: list[Any] = []
        named: dict[str, Any] = {}
        self.listed(lambda: self.argument(values, named), ")")
        return self.called(maker, f"arguments that {token} takes", start, *values, **named)

    def of_home(self, token: str, start: int) -> Any:
        """A member of an enumeration, or an instance of a named tuple or dataclass, by the name of its class alone."""
        target = resolve(self.home, token) if is_ours(self.home) else None
        if isinstance(target, enum.Enum):
            return target
        if not _has_fields(target):
            self.fail("a value", got=repr(token), at=start)
        self.expect("(")
        return self.build(target, self.fields(")"), start)

    def argument(self, values: list[Any], named: dict[str, Any]) -> None:
        """Parse the next argument of a call, ``value``, ``name: size`` or ``field=value``, into its arguments."""
        self.skip_lines()
        if self.kind == "name" and self.text.startswith("=", self.end):
            self.field(named)
            return
        value = self.value()
        values.append((value, self.value()) if self.accept(":") else value)

    def dtype_of(self, token: str) -> Any:
        try:
            return dtypes.from_short_name(token)
        except dtypes.DTypeMismatch:
            return None

    def number(self, text: str, dtype: Any, at: int) -> np.ndarray[Any, Any]:
        try:
            return number_of(text, dtype)
        except (ValueError, OverflowError) as error:
            self.fail(f"a number of {dtypes.short_name(dtype)}", got=str(error), at=at)

    def reference(self) -> Any:
        """An object ``module:qualname``, or an instance of a named tuple or dataclass: ``module:Class(field=1)``."""
        start, token = self.start, self.token
        module, _, name = token.partition(":")
        target = find_object(module, name)
        if target is None:
            self.fail("an object of a loaded module", hint=f"import {module} first.")
        self.advance()
        if not self.at("("):
            return target
        if not _has_fields(target):
            self.fail("a named tuple or dataclass", got=token, at=start)
        self.advance()
        return self.build(target, self.fields(")"), start)


def _has_fields(target: Any) -> bool:
    """Whether this is the class of a named tuple, or a dataclass."""
    return isinstance(target, type) and (dataclasses.is_dataclass(target) or hasattr(target, "_fields"))


class BodyParser:
    """Parses the lines of one program into its parts; ``numbers`` maps the name of each value to its number."""

    def __init__(self, reader: ProgramParser, parts: ProgramParts):
        self.reader = reader
        self.parts = parts
        self.numbers: dict[str, int] = {}
        self.value_types: list[ArrayType] = []
        self.const_numbers: dict[int, int] = {}  # identity of a constant -> its number in this program
        self.returned = 0

    def define(self, name: str, type: ArrayType, at: int) -> None:
        """Give the next number to a new name."""
        if name in self.numbers:
            self.reader.fail("a new name", got=repr(name), at=at)
        self.numbers[name] = len(self.value_types)
        self.value_types.append(type)

    def parameter(self) -> None:
        reader = self.reader
        reader.skip_lines()
        at = reader.start
        name = reader.take("name", "the name of a parameter")
        reader.expect(":")
        type = reader.type()
        self.define(name, type, at)
        self.parts.in_types.append(type)

    def lines(self) -> None:
        """All lines up to and including the ``return``."""
        reader = self.reader
        while True:
            reader.skip_lines()
            self.common_lines()
            if reader.kind == "name" and reader.token == "return":
                break
            self.line()
            if reader.kind not in ("line", "name"):  # the name is ``return``
                reader.fail("an operand or the end of the line")
        self.returned = reader.start
        reader.advance()
        reader.expect("(")
        self.parts.outs.extend(reader.listed(self.operand, ")"))

    def common_lines(self) -> None:
        """Fast path: parse lines that match ``LINE`` until one has an unknown operation, type or operand."""
        reader, parts, numbers = self.reader, self.parts, self.numbers
        at = reader.start
        while (match := LINE.match(reader.text, at)) is not None:
            name, type, op, operands = match.groups()
            operation, result_type = reader.known_ops.get(op), reader.known_types.get(type)
            if operation is None or result_type is None or operation.multiple_results or name in numbers:
                break
            try:
                args = tuple([numbers[token] for token in operands.split()])
            except KeyError:
                break
            parts.ops.append(operation)
            parts.args.append(args)
            parts.types.append(result_type)
            numbers[name] = len(self.value_types)
            self.value_types.append(result_type)
            at = match.end()
        if at != reader.start:
            reader.end = at
            reader.advance()

    def line(self) -> None:
        """``results = operation operands``, or ``operation operands`` without results."""
        reader, parts = self.reader, self.parts
        results: list[tuple[str, Any, int]] = []
        first = reader.start
        while reader.kind == "name" and reader.text.startswith(":", reader.end):
            at, name = reader.start, reader.token
            reader.advance()
            reader.advance()
            results.append((name, reader.type(), at))
            if not reader.at(","):
                break
            reader.advance()
        if results:
            reader.expect("=")
        op = reader.operation()
        args = []
        while reader.kind not in ("line", "end") and reader.token not in ("}", "return"):
            args.append(self.operand())
        types = tuple([type for _, type, _ in results])
        if not op.multiple_results and len(types) != 1:
            reader.fail(f"one result of {op.name}", got=f"{len(types)}", at=first)
        if not is_ours(op.__module__):
            self.check_results(op, args, types, first)
        parts.ops.append(op)
        parts.args.append(tuple(args))
        parts.types.append(op.from_results(types))
        for name, type, at in results:
            self.define(name, type, at)

    def check_results(self, op: Operation, args: Sequence[int], types: tuple[ArrayType, ...], at: int) -> None:
        """Check that a user's operation has the result types in the text. Raises ParseError: they differ."""
        try:
            declared = tuple(op.as_results(result_type(op, tuple(map(self.type_of, args)))))
            declared_text = types_text(declared)
        except (TypeError, ValueError, LookupError, AttributeError, HandlaxError) as error:
            declared, declared_text = None, f"none: {error.what if isinstance(error, HandlaxError) else error}"
        if declared != types:
            expected = f"results of {op.name} as its block declares them, {declared_text}"
            hint = "another operation of this name may have been defined since."
            self.reader.fail(expected, got=types_text(types), at=at, hint=hint)

    def type_of(self, n: int) -> ArrayType:
        """The type of value ``n``; of a constant for a negative number."""
        return self.value_types[n] if n >= 0 else self.parts.consts[-1 - n].type

    def operand(self) -> int:
        """The number of the value that is the next operand."""
        reader = self.reader
        if reader.kind == "name":
            number = self.numbers.get(reader.token)
            if number is not None:
                reader.advance()
                return number
            if reader.token not in ("True", "False"):
                near = difflib.get_close_matches(reader.token, self.numbers, 3)
                reader.fail("a value defined above", hint=f"near are {', '.join(near)}." if near else None)
        if reader.kind == "punctuation" and reader.token.startswith("@c"):
            return self.constant()
        return self.literal()

    def constant(self) -> int:
        """The number of the constant written ``@c0``, one of those passed along with the text."""
        reader = self.reader
        at, index = reader.start, int(reader.token[2:])
        if index >= len(reader.consts):
            hint = "pass program.constants with the text."
            reader.fail(f"one of the {len(reader.consts)} constants passed", hint=hint)
        const = reader.consts[index]
        reader.advance()
        if reader.at(":"):
            reader.advance()
            stated = reader.type()
            if const.type is not stated:
                reader.fail(f"a constant of the type {stated}", got=str(const.type), at=at)
        return self.const_number(const)

    def literal(self) -> int:
        """The number of a constant that is written out, such as ``[1.0, 2.0]:f32[2]``."""
        reader = self.reader
        at = reader.start
        items: list[str] = []
        depth = 0
        while True:
            if reader.kind == "number" or (reader.kind == "name" and reader.token in ("True", "False")):
                items.append(reader.token)
            elif reader.kind == "punctuation" and reader.token in "[]":
                depth += 1 if reader.token == "[" else -1
            elif not (depth and reader.at(",")):
                reader.fail("an operand: a value, a number with its type, or @c0")
            reader.advance()
            if not depth:
                break
        reader.expect(":")
        type = reader.type()
        key = (tuple(items), type)
        const = reader.literals.get(key)
        written = reader.text[at : reader.start].rstrip()
        if const is None:
            try:
                data = array_of(items, type)
            except (ValueError, OverflowError) as error:
                reader.fail("a constant", got=str(error), at=at)
            const = reader.literals[key] = share(concrete(type, data))
        number = self.numbers[written] = self.const_number(const)
        return number

    def const_number(self, const: Any) -> int:
        number = self.const_numbers.get(id(const))
        if number is None:
            self.parts.consts.append(const)
            number = self.const_numbers[id(const)] = -len(self.parts.consts)
        return number

    def out_types(self) -> list[Any]:
        return [self.type_of(n) for n in self.parts.outs]


def reason_of(error: Exception) -> str:
    """The text of an error for use within another message: without its place in the source and the final dot."""
    return (error.what if isinstance(error, HandlaxError) else str(error)).rstrip(".")


def _tree(*node: Any) -> Any:
    """The structure of a leaf, or of a node by its type, static data and children."""
    if not node:
        return assemble(None, ())
    cls, data, children = node
    return assemble((NoneType if cls is None else cls, list(data) if cls is dict else data), children)


_CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False, **NAMED}
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "range": range,
    "complex": lambda real, imaginary: complex(real, imaginary),
    "float": float,
    "tree": _tree,
    "frozen": lambda leaves, treedef: treedef.unflatten(leaves),
}


def read(text: str, consts: Sequence[Any], make: Callable[..., Any]) -> Any:
    """The program of a text, built by ``make``. Raises: ParseError, with line and column."""
    if not isinstance(text, str):
        raise ParseError(f"parse: the text must be a string, got {type(text).__name__}.", hint="pass str(program).")
    return ProgramParser(text, _constants(consts), make).parse()


def _constants(consts: Any) -> list[Any]:
    """The constants passed along with a text, as arrays. Raises ParseError: what was passed is none."""
    try:
        return [as_array(const) for const in consts]
    except (TypeError, HandlaxError) as error:
        raise ParseError(
            f"parse: the constants must be arrays, {reason_of(error)}.", hint="pass program.constants."
        ) from error
