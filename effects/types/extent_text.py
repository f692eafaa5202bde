"""Symbolic dimensions in the text of programs: ``f32[max(n0-1,0),3]``."""

from __future__ import annotations

import re
from typing import Any

from .extent import floor_divided, length, positive

_INNER = r"[^()\s]*"
for _depth in range(6):
    _INNER = rf"[^()\s]*(?:\({_INNER}\)[^()\s]*)*"
FACTOR = rf"(?:n[0-9]+|max\({_INNER},0\)|floordiv\({_INNER},[0-9]+\))"
TERM = rf"(?:[0-9]+\*)?{FACTOR}(?:\*{FACTOR})*|[0-9]+"
EXTENT = rf"-?(?:[0-9]+\*)?{FACTOR}(?:\*{FACTOR})*(?:[+-](?:{TERM}))*"


def parse_extent(text: str) -> Any:
    """The extent or integer that this text denotes, the inverse of ``str``.

    >>> parse_extent("2*n0+1"), parse_extent("max(n0-1,0)"), parse_extent("3")
    (2*n0+1, max(n0-1,0), 3)
    """
    total: Any = 0
    for sign, term in re.findall(rf"([+-]?)({TERM})", text):
        value: Any = -1 if sign == "-" else 1
        for factor in re.findall(rf"{FACTOR}|[0-9]+", term):
            value = value * _parsed_factor(factor)
        total = total + value
    return total


def _parsed_factor(text: str) -> Any:
    name, _, inner = text.partition("(")
    if not inner:
        return length(int(text[1:])) if text[0] == "n" else int(text)
    of, _, number = inner[:-1].rpartition(",")
    return positive(parse_extent(of)) if name == "max" else floor_divided(parse_extent(of), int(number))
