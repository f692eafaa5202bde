"""``parse_program``: parsing with failures as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from returns.result import Failure, Result, Success

from ..base.errors import ParseError
from .program import Program


def parse_program(text: str, consts: Sequence[Any] = ()) -> Result[Program, ParseError]:
    """The program of a text.

        parse_program(str(p), p.constants) == Success(p)

    Operations, functions and classes are looked up in the modules imported already. ``consts`` are the constants that
    the text names ``@c0``, ``@c1``, ...: those with more than 16 elements.

    Fails with: ParseError, with ``line`` and ``column`` and what was expected there.

    >>> parse_program("program f(a: f32[3]) -> (f32[3]) { b: f32[3] = neg a\\n return (b) }").unwrap().out_avals
    (f32[3],)
    >>> parse_program("program f(a: f32[3]) -> (f32[3]) { return (b) }").failure().column
    44
    """
    try:
        return Success(Program.parse(text, consts))
    except ParseError as error:
        return Failure(error)
