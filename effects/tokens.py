"""The words of a program's text, one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from . import dtypes
from .errors import ParseError
from .types import ArrayType, array_type

_REAL = r"(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"
TYPE = r"[a-z]\w*(?:<\w+>)?\[[\d,]*\]~?"
TOKEN = re.compile(
    r"(?:[ \t\r]+|\#[^\n]*)*(?:"
    r"(?P<line>\n\s*)"
    rf"|(?P<type>{TYPE})"
    rf"|(?P<number>0x[0-9a-f]+|[+-]?{_REAL}(?:[+-]{_REAL}j)?(?![\w.]))"
    rf"|(?P<path>[A-Za-z_][\w.]*:(?!{TYPE})[A-Za-z_<][\w.<>]*)"
    r"|(?P<string>b?'(?:[^'\\\n]|\\.)*'|b?\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<name>[A-Za-z_]\w*(?:-[A-Za-z]\w*)*(?:<\w+>)?|<\w+>)"
    r"|(?P<mark>@[cp]\d+|->|\.\.\.|[()\[\]{},:=!?])"
    r"|(?P<end>\Z))"
)


class Tokens:
    """What stands next in a text: its kind, its word, where it starts and ends; and the ways to take it."""

    kind: str
    word: str
    start: int

    def __init__(self, text: str):
        self.text = text
        self.known_types: dict[str, ArrayType] = {}
        self.end = 0
        self.advance()

    def advance(self) -> None:
        found = TOKEN.match(self.text, self.end)
        if found is None:
            self.start = self.end + len(re.match(r"\s*", self.text[self.end :]).group())  # type: ignore[union-attr]
            self.fail("a name, number, string or mark", got=self.text[self.start : self.start + 1])
        self.kind = found.lastgroup  # type: ignore[assignment]
        self.start, self.end = found.span(self.kind)
        self.word = self.text[self.start : self.end]

    def fail(
        self, expected: str, *, got: str | None = None, at: int | None = None, hint: str | None = None
    ) -> NoReturn:
        """Raise the error of this place, or of the one at ``at``."""
        at = self.start if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        if got is None:
            got = {"line": "the end of the line", "end": "the end of the text"}.get(self.kind, repr(self.word))
        error = ParseError(f"parse: line {line}, column {column}: expected {expected}, got {got}.", hint=hint)
        error.line, error.column = line, column
        raise error

    def skip_lines(self) -> None:
        while self.kind == "line":
            self.advance()

    def take(self, kind: str, expected: str) -> str:
        self.skip_lines()
        if self.kind != kind:
            self.fail(expected)
        word = self.word
        self.advance()
        return word

    def expect(self, mark: str) -> None:
        self.skip_lines()
        if self.word != mark or self.kind not in ("mark", "name"):
            self.fail(repr(mark))
        self.advance()

    def accept(self, mark: str) -> bool:
        self.skip_lines()
        if self.word == mark and self.kind == "mark":
            self.advance()
            return True
        return False

    def listed(self, item: Callable[[], Any], close: str) -> list[Any]:
        """Items with commas between them, up to ``close``; a comma may stand behind the last."""
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
        found = self.type_of(self.word)
        self.advance()
        return found

    def type_of(self, word: str) -> ArrayType:
        found = self.known_types.get(word)
        if found is None:
            name, _, rest = word.partition("[")
            shape = tuple([int(size) for size in rest.rstrip("~").rstrip("]").split(",") if size])
            try:
                dtype = dtypes.from_short_name(name)
            except dtypes.DTypeMismatch as error:
                self.fail("a type", hint=error.hint)
            found = self.known_types[word] = array_type(shape, dtype, word.endswith("~"))
        return found
