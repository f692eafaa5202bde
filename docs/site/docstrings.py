"""Sphinx extension: docstrings as this package writes them, in the words of reStructuredText.

    indented paragraph                    code, mostly a law
    Raises: BadShape: it is none.         a field, up to an empty line or the next one
    Args:                                 a section of names, as Google's style has it, which napoleon reads
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

_FIELD = re.compile(r"([A-Z]\w+): (.+)")
_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Params):")
_FIELDS = frozenset((
    "Shapes", "Dtypes", "Units", "Raises", "Returns", "Yields", "Source", "Sources", "Params", "Remedy", "Elsewhere",
))
_LITERAL = re.compile(r"(``.+?``)")


def translated(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring as reStructuredText."""
    kind = "text"
    before = ""
    for line in lines:
        field = _FIELD.fullmatch(line)
        if _SECTION.fullmatch(line):
            kind = "section"
            yield ""
        elif field and field[1] in _FIELDS:
            if kind != "field":
                yield ""
            kind, line = "field", f":{field[1]}: {field[2]}"
        elif line.startswith(">>>") and kind not in ("section", "code"):
            kind = "doctest"
        elif not line:
            kind = "text" if kind in ("field", "doctest") else kind
        elif not line.startswith("    "):
            kind = kind if kind in ("field", "doctest") else "text"
        elif not before and kind == "text":
            kind = "code"
            yield from (".. code-block:: text", "")
        if kind == "field" and not line.startswith(":"):
            line = "    " + line.strip()
        yield line if kind in ("code", "doctest") else prose(line)
        before = line


def prose(line: str) -> str:
    """A line of text: stars and underscores are themselves, and a letter may follow a literal."""
    parts = _LITERAL.split(line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<![`|\\])[*]|(?<=\w)_(?!\w)", r"\\\g<0>", parts[i])
        if i and re.match(r"\w", parts[i]):
            parts[i] = "\\ " + parts[i]
    return "".join(parts)


def process(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    if str(getattr(inspect.unwrap(value) if callable(value) else value, "__module__", "")).startswith("handlax"):
        lines[:] = [*translated(lines), ""]
    else:  # of NumPy or Python: the first sentence, whose words are theirs
        lines[:] = [" ".join("\n".join(lines).split("\n\n")[0].split()).replace("_", "\\_"), ""]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon reads the sections
    return {"parallel_read_safe": True}
