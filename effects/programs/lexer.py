"""The tokenizer of program texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..base.errors import ParseError, ShapeMismatch
from ..sharding.named_sharding import cut_over
from ..sharding.partition_spec import UNCONSTRAINED
from ..types import dtypes
from ..types.array_type import ArrayType, Space, array_type
from ..types.extent_text import EXTENT, parse_extent

# Quantifiers that give nothing back (``++``, ``*+``) keep a text that is no token from being tried in many ways.
# Digits are those of ASCII: ``\d`` is any digit of Unicode.
_REAL = r"(?:[0-9]++(?:\.[0-9]*+)?(?:e[+-]?[0-9]++)?|inf|nan)"
_AXES = r"@(?:[0-9]+:)?(?:\w+|\?|\(\w+(?:,\w+)+\))"
_SIZE = rf"(?:{EXTENT}|[0-9]+)(?:{_AXES})?"
_ALONG = r"\w+:(?:[0-9]+:)?\w+"  # an axis along which a value varies, a:2, or is a partial sum, U:a
TYPE = rf"[a-z]\w*(?:<\w+>){{0,2}}\[(?:{_SIZE}(?:,{_SIZE})*)?\]~?(?:\{{{_ALONG}(?:,{_ALONG})*\}})?"
BLANK = re.compile(r"(?:[ \t\r]++|\#[^\n]*+)*+")
TOKEN = re.compile(
    rf"{BLANK.pattern}(?:"
    r"(?P<line>\n\s*)"
    rf"|(?P<type>{TYPE})"
    rf"|(?P<extent>{EXTENT}(?![\w.]))"
    rf"|(?P<number>0x[0-9a-f]+|[+-]?{_REAL}(?:[+-]{_REAL}j)?(?![\w.]))"
    rf"|(?P<path>[A-Za-z_][\w.]*:(?!{TYPE})[A-Za-z_<][\w.<>]*)"
    r"|(?P<string>b?'(?:[^'\\\n]|\\.)*+'|b?\"(?:[^\"\\\n]|\\.)*+\")"
    r"|(?P<member>[A-Za-z_]\w*\.[A-Za-z_]\w*)"
    r"|(?P<name>[A-Za-z_]\w*(?:-[A-Za-z]\w*)*(?:<\w+>)?|<\w+>)"
    r"|(?P<punctuation>@[cp][0-9]+|->|\.\.\.|[()\[\]{},:=!?])"
    r"|(?P<end>\Z))"
)


class Tokens:
    """A tokenizer at its current token: ``kind`` and text ``token``, which spans ``start`` to ``end`` of the text."""

    kind: str
    token: str
    start: int

    def __init__(self, text: str):
        self.text = text
        self.known_types: dict[str, ArrayType] = {}
        self.meshes: list[Any] = []  # those over which types state cuts
        self.end = 0
        self.advance()

    def advance(self) -> None:
        """Move to the next token, white space and comments skipped. Raises ParseError where there is none."""
        match = TOKEN.match(self.text, self.end)
        if match is None:
            self.start = BLANK.match(self.text, self.end).end()  # type: ignore[union-attr]
            self.fail("a name, number, string or punctuation", got=repr(self.text[self.start]))
        self.kind = match.lastgroup  # type: ignore[assignment]
        self.start, self.end = match.span(self.kind)
        self.token = self.text[self.start : self.end]

    def fail(
        self, expected: str, *, got: str | None = None, at: int | None = None, hint: str | None = None
    ) -> NoReturn:
        """Raise ParseError for the current token, or for the position ``at``."""
        at = self.start if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        if got is None:
            got = {"line": "the end of the line", "end": "the end of the text"}.get(self.kind, repr(self.token))
        error = ParseError(f"parse: line {line}, column {column}: expected {expected}, got {got}.", hint=hint)
        error.line, error.column = line, column
        raise error

    def skip_lines(self) -> None:
        while self.kind == "line":
            self.advance()

    def take(self, kind: str, expected: str) -> str:
        """The text of the current token, then move on. Raises ParseError: the token is of another kind."""
        self.skip_lines()
        if self.kind != kind:
            self.fail(expected)
        token = self.token
        self.advance()
        return token

    def expect(self, token: str) -> None:
        """Move past this punctuation or keyword. Raises ParseError: the current token is another."""
        self.skip_lines()
        if self.token != token or self.kind not in ("punctuation", "name"):
            self.fail(repr(token))
        self.advance()

    def at(self, token: str) -> bool:
        """Whether the current token is this punctuation; line ends are not skipped."""
        return self.token == token and self.kind == "punctuation"

    def accept(self, token: str) -> bool:
        """Skip line ends; move past this punctuation if it is the current token, and return whether it was."""
        self.skip_lines()
        if self.at(token):
            self.advance()
            return True
        return False

    def listed(self, item: Callable[[], Any], close: str) -> list[Any]:
        """Items separated by commas, up to ``close``; a trailing comma is allowed."""
        items: list[Any] = []
        while not self.accept(close):
            items.append(item())
            if not self.accept(","):
                self.expect(close)
                break
        return items

    def type(self) -> ArrayType:
        self.skip_lines()
        if self.kind != "type":
            self.fail("a type such as f32[3]")
        type = self.type_of(self.token)
        self.advance()
        return type

    def type_of(self, token: str) -> ArrayType:
        type = self.known_types.get(token)
        if type is None:
            plain, _, axes = token.partition("{")
            along = [axis.partition(":") for axis in axes.rstrip("}").split(",") if axis]
            pairs = [(axis, size) for axis, _, size in along if size.isdigit()]
            names = [axis for axis, _ in pairs]
            if len({*names}) < len(names):
                self.fail("a type", got=f"one that varies twice along the same axis, {token}")
            sums = [(kind, axis) for kind, _, axis in along if not axis.isdigit()]
            name, _, rest = plain.partition("[")
            space = Space.Host if name.endswith("<host>") else Space.Device
            sizes = [size.partition("@") for size in re.findall(_SIZE, rest.partition("]")[0])]
            shape = tuple([parse_extent(size) for size, _, _ in sizes])
            varying = frozenset([(axis, int(size)) for axis, size in pairs])
            try:
                cut = self.cut_of([at for _, _, at in sizes], sums)
                dtype = dtypes.from_short_name(name.removesuffix("<host>"))
                type = array_type(shape, dtype, plain.endswith("~"), varying, cut, space)
            except dtypes.DTypeMismatch as error:
                self.fail("a type", hint=error.hint)
            except ShapeMismatch as error:
                self.fail("a type", got=error.what.rstrip("."))
            self.known_types[token] = type
        return type

    def cut_of(self, texts: Sequence[str], sums: Sequence[tuple[str, str]]) -> Any:
        """The cut of a type from the texts of axes in its dimensions, and of unreduced (U) and reduced (R) ones, each
        with the number of its mesh, or of the first.

        Raises ParseError: there is no such mesh, or it has not the axes.
        """
        stated = [*filter(None, texts), *[axis for _, axis in sums]]
        if not stated:
            return None
        numbers = {int(text.rpartition(":")[0] or 0) for text in stated}
        axes = [text.rpartition(":")[2] for text in texts]
        entries = [UNCONSTRAINED if text == "?" else tuple(re.findall(r"\w+", text)) for text in axes]
        unreduced, reduced = ([axis.rpartition(":")[2] for kind, axis in sums if kind == letter] for letter in "UR")
        names = {*unreduced, *reduced, *[axis for entry in entries if isinstance(entry, tuple) for axis in entry]}
        meshes = [mesh for k, mesh in enumerate(self.meshes) if {k} == numbers and names <= {*mesh.explicit_axes}]
        if not meshes:
            self.fail("a mesh with the axes of this type", hint="over AbstractMesh('a': 2) before the program.")
        return cut_over(meshes[0], entries, unreduced, reduced)
