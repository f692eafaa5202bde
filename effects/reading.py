"""The reader of program texts: the inverse of ``printing``.

    program  = "program" name [label] "(" [value ":" type ...] ")" "->" "(" [type ...] ")" ["!" row] "{" lines "}"
    line     = [value ":" type ...] "=" operation operand ...
    operand  = value | numbers ":" type | "@c0" [":" type]

To read a text runs nobody's code: names are looked up in this package and in modules that are loaded already, and the
only things called are operations, named tuples and dataclasses.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import dtypes
from .arrays import Array, concrete, lift
from .errors import HandlaxError, ParseError
from .literals import array_of, number_of
from .naming import held, operation_called
from .operations import OPERATIONS, Operation
from .printing import row_text, types_text
from .tokens import TYPE, Tokens
from .treedefs import LEAF, TreeDef, assemble, kind_of
from .types import ArrayType

# the common line, read at once where all its parts have been met before: one result, fields without brackets in them
LINE = re.compile(rf"([a-z]+_?): ({TYPE}) = ([\w-]+(?:\[[^\[\]{{}}@'\"\#]*\])?)((?: [^\s\#]+)*)[ \t]*\n\s*")


class Parts(NamedTuple):
    """What a program is made of, in the order in which its class takes it."""

    in_types: list[ArrayType]
    ops: list[Operation]
    args: list[tuple[int, ...]]
    types: list[Any]
    outs: list[int]
    consts: list[Any]
    sites: tuple[()]
    name: str


class Reader(Tokens):
    """Reads one text. ``make`` builds a program of its parts."""

    def __init__(self, text: str, consts: Sequence[Any], make: Callable[..., Any]):
        super().__init__(text)
        self.consts = [lift(const) for const in consts]
        self.make = make
        self.labels: dict[str, Any] = {}
        self.known_ops: dict[str, Operation] = {}
        self.literals: dict[Any, Array] = {}
    def whole(self) -> Any:
        """The program that is the whole text."""
        self.skip_lines()
        program = self.program()
        self.skip_lines()
        if self.kind != "end":
            self.fail("the end of the text")
        return program

    def program(self) -> Any:
        self.expect("program")
        name = self.name()
        label = self.word if self.kind == "mark" and self.word.startswith("@p") else None
        if label is not None:
            self.advance()
        parts = Parts([], [], [], [], [], [], (), name)
        body = Body(self, parts)
        self.expect("(")
        self.listed(body.parameter, ")")
        self.expect("->")
        self.expect("(")
        out_types = self.listed(self.type, ")")
        stated = self.row() if self.accept("!") else None
        self.expect("{")
        body.lines()
        found = body.out_types()
        if found != out_types:
            wanted = f"results of the types {types_text(out_types)} stated above"
            self.fail(wanted, got=types_text(found), at=body.returned)
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
        if self.kind == "string":
            return self.string()
        return self.take("name", "a name")

    def row(self) -> tuple[str, int]:
        """The text of an effect row; it follows from the equations, so it is compared and not built."""
        self.skip_lines()
        start = self.start
        self.expect("{")
        depth = 1
        while depth:
            if self.kind == "end":
                self.fail("'}'")
            if self.kind == "mark":
                depth += (self.word in "{([") - (self.word in "})]")
            end = self.end
            self.advance()
        return self.text[start:end], start

    # operations and the values of their fields

    def operation(self) -> Operation:
        start, name = self.start, self.word
        if self.kind not in ("name", "path"):
            self.fail("an operation")
        kind = operation_called(name)
        if kind is None:
            near = difflib.get_close_matches(name, OPERATIONS, 3)
            hint = f"near are {', '.join(near)}." if near else "import the module that defines it."
            self.fail("a known operation", hint=hint)
        end = self.end
        self.advance()
        fields: dict[str, Any] = {}
        if self.word == "[" and self.start == end:  # behind a space it is an operand
            self.advance()
            fields = dict(self.listed(self.field, "]"))
            end = self.text.rindex("]", start, self.start) + 1
        op = self.build(kind, fields, start)
        if not op.bodied:
            self.known_ops[self.text[start:end]] = op
        return op

    def field(self) -> tuple[str, Any]:
        name = self.take("name", "the name of a field")
        self.expect("=")
        return name, self.value()

    def build(self, kind: Any, fields: dict[str, Any], at: int) -> Any:
        try:
            return kind(**fields)
        except (TypeError, ValueError, HandlaxError) as error:
            what = error.what if isinstance(error, HandlaxError) else str(error)
            self.fail(f"fields that {kind.__name__} takes", got=what.rstrip("."), at=at)

    def string(self) -> Any:
        try:
            value = ast.literal_eval(self.word)
        except (ValueError, SyntaxError):
            self.fail("a string")
        self.advance()
        return value

    def value(self) -> Any:
        """The value of a field."""
        self.skip_lines()
        kind, word, start = self.kind, self.word, self.start
        if kind == "string":
            return self.string()
        if kind == "number":
            self.advance()
            if re.fullmatch(r"[+-]?\d+", word):
                return int(word)
            return float(number_of(word, dtypes.float64))
        if kind == "type":
            return self.type()
        if kind == "path":
            return self.reference()
        if kind == "mark":
            return self.marked(word)
        if kind == "name":
            if word == "program":
                return self.program()
            self.advance()
            if word in _WORDS:
                return _WORDS[word]
            if word == "op":
                self.skip_lines()
                return self.operation()
            if word == "class":
                return self.operation_class()
            return self.made(word, start)
        return self.fail("a value")

    def marked(self, word: str) -> Any:
        if word == "?":
            self.advance()
            what = self.string() if self.kind == "string" else "something"
            self.fail("a value", got=what, hint="only what a module holds under its own name can be read back.")
        if word.startswith("@p"):
            if word not in self.labels:
                self.fail("the label of a program above")
            self.advance()
            return self.labels[word]
        if word == "...":
            self.advance()
            return ...
        if self.accept("("):
            return tuple(self.listed(self.value, ")"))
        if self.accept("{"):
            return frozenset(self.listed(self.value, "}"))
        return self.fail("a value")

    def operation_class(self) -> type[Operation]:
        kind = operation_called(self.word)
        if kind is None:
            self.fail("a known operation", hint="import the module that defines it.")
        self.advance()
        return kind

    def made(self, word: str, start: int) -> Any:
        """A dtype, or what a word makes of the values behind it: ``range(0, 3, 1)``, ``f32(1.5)``."""
        dtype = self.dtype_of(word)
        if dtype is not None:
            if not self.accept("("):
                return dtype
            number = self.take("number" if self.kind == "number" else "name", "a number")
            self.expect(")")
            return self.number(number, dtype, start)[()]
        if word not in _MAKERS:
            self.fail("a value", got=repr(word), at=start)
        self.expect("(")
        if word == "float":
            number = self.take("number", "the bits of a float")
            self.expect(")")
            return struct.unpack("<d", struct.pack("<Q", int(number, 16)))[0]
        values = self.listed(self.value, ")")
        try:
            return _MAKERS[word](*values)
        except (TypeError, ValueError, HandlaxError) as error:
            self.fail(f"what {word} is made of", got=str(error), at=start)

    def dtype_of(self, word: str) -> Any:
        try:
            return dtypes.from_short_name(word)
        except dtypes.DTypeMismatch:
            return None

    def number(self, text: str, dtype: Any, at: int) -> np.ndarray[Any, Any]:
        try:
            return number_of(text, dtype)
        except (ValueError, OverflowError) as error:
            self.fail(f"a number of {dtypes.short_name(dtype)}", got=str(error), at=at)

    def reference(self) -> Any:
        """What a loaded module holds under a name; a named tuple or dataclass is made of the fields behind it."""
        start, word = self.start, self.word
        module, _, name = word.partition(":")
        found = held(module, name)
        if found is None:
            self.fail("what a loaded module holds", hint=f"import {module} first.")
        self.advance()
        if self.kind != "mark" or self.word != "(":
            return found
        if not (isinstance(found, type) and (dataclasses.is_dataclass(found) or hasattr(found, "_fields"))):
            self.fail("a named tuple or dataclass", got=word, at=start)
        self.advance()
        return self.build(found, dict(self.listed(self.field, ")")), start)


class Body:
    """The lines of one program: which name has which number."""

    def __init__(self, reader: Reader, parts: Parts):
        self.reader = reader
        self.parts = parts
        self.numbers: dict[str, int] = {}
        self.value_types: list[ArrayType] = []
        self.places: dict[int, int] = {}  # constants of the reader, by identity -> number here
        self.returned = 0

    def define(self, name: str, type: ArrayType, at: int) -> None:
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
        """All lines up to the ``return``, and that."""
        reader = self.reader
        while True:
            reader.skip_lines()
            self.common_lines()
            if reader.kind == "name" and reader.word == "return":
                break
            self.line()
            if reader.kind != "line" and not (reader.kind == "name" and reader.word == "return"):
                reader.fail("an operand or the end of the line")
        self.returned = reader.start
        reader.advance()
        reader.expect("(")
        self.parts.outs.extend(reader.listed(self.operand, ")"))

    def common_lines(self) -> None:
        """As many lines as are of the common form, with everything in them met before."""
        reader, parts, numbers = self.reader, self.parts, self.numbers
        at = reader.start
        while (found := LINE.match(reader.text, at)) is not None:
            name, type, op, operands = found.groups()
            kind, made = reader.known_ops.get(op), reader.known_types.get(type)
            if kind is None or made is None or kind.multiple or name in numbers:
                break
            try:
                args = tuple([numbers[word] for word in operands.split()])
            except KeyError:
                break
            parts.ops.append(kind)
            parts.args.append(args)
            parts.types.append(made)
            numbers[name] = len(self.value_types)
            self.value_types.append(made)
            at = found.end()
        if at != reader.start:
            reader.end = at
            reader.advance()

    def line(self) -> None:
        """``results = operation operands``; without results the operation alone."""
        reader, parts = self.reader, self.parts
        results: list[tuple[str, Any, int]] = []
        first = reader.start
        while reader.kind == "name" and self.colon_follows():
            at, name = reader.start, reader.word
            reader.advance()
            reader.advance()
            results.append((name, reader.type(), at))
            if not (reader.kind == "mark" and reader.word == ","):
                break
            reader.advance()
        if results:
            reader.expect("=")
        op = reader.operation()
        args = []
        while reader.kind not in ("line", "end") and reader.word not in ("}", "return"):
            args.append(self.operand())
        types = tuple([type for _, type, _ in results])
        if not op.multiple and len(types) != 1:
            reader.fail(f"one result of {op.name}", got=f"{len(types)}", at=first)
        parts.ops.append(op)
        parts.args.append(tuple(args))
        parts.types.append(types if op.multiple else types[0])
        for name, type, at in results:
            self.define(name, type, at)

    def colon_follows(self) -> bool:
        reader = self.reader
        return reader.text.startswith(":", reader.end)

    def operand(self) -> int:
        """The number of an operand."""
        reader = self.reader
        if reader.kind == "name":
            number = self.numbers.get(reader.word)
            if number is not None:
                reader.advance()
                return number
            if reader.word not in ("True", "False"):
                near = difflib.get_close_matches(reader.word, self.numbers, 3)
                reader.fail("a value defined above", hint=f"near are {', '.join(near)}." if near else None)
        if reader.kind == "mark" and reader.word.startswith("@c"):
            return self.constant()
        return self.literal()

    def constant(self) -> int:
        """``@c0``: one of the constants given beside the text."""
        reader = self.reader
        at, index = reader.start, int(reader.word[2:])
        if index >= len(reader.consts):
            hint = "give program.constants beside the text."
            reader.fail(f"one of the {len(reader.consts)} constants given", hint=hint)
        const = reader.consts[index]
        reader.advance()
        if reader.kind == "mark" and reader.word == ":":
            reader.advance()
            stated = reader.type()
            if const.type is not stated:
                reader.fail(f"a constant of the type {stated}", got=str(const.type), at=at)
        return self.place(const)

    def literal(self) -> int:
        """``[1.0, 2.0]:f32[2]``: a constant in place."""
        reader = self.reader
        at = reader.start
        items: list[str] = []
        depth = 0
        while True:
            if reader.kind == "number" or (reader.kind == "name" and reader.word in ("True", "False")):
                items.append(reader.word)
            elif reader.kind == "mark" and reader.word in "[]":
                depth += 1 if reader.word == "[" else -1
            elif not (depth and reader.kind == "mark" and reader.word == ","):
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
            const = reader.literals[key] = concrete(type, data)
        number = self.numbers[written] = self.place(const)
        return number

    def place(self, const: Any) -> int:
        number = self.places.get(id(const))
        if number is None:
            self.parts.consts.append(const)
            number = self.places[id(const)] = -len(self.parts.consts)
        return number

    def out_types(self) -> list[Any]:
        consts = self.parts.consts
        return [self.value_types[n] if n >= 0 else consts[-1 - n].type for n in self.parts.outs]


def _tree(cls: Any = LEAF, data: Any = None, children: tuple[TreeDef, ...] = ()) -> TreeDef:
    if cls is LEAF:
        return LEAF
    kind = kind_of(type(None) if cls is None else cls)
    if kind is None:
        raise ValueError(f"{cls.__qualname__}, which is not registered as a node")
    return assemble(kind, data, children)


_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}
_MAKERS: dict[str, Callable[..., Any]] = {
    "range": range,
    "complex": lambda real, imaginary: complex(real, imaginary),
    "float": float,
    "tree": _tree,
    "frozen": lambda leaves, treedef: treedef.unflatten(leaves),
}


def read(text: str, consts: Sequence[Any], make: Callable[..., Any]) -> Any:
    """The program that ``text`` says, built by ``make``. Raises ParseError with line and column."""
    if not isinstance(text, str):
        raise ParseError(f"parse: a text is needed, got {type(text).__name__}.", hint="give str(program).")
    return Reader(text, consts, make).whole()
