"""The pages of docs/errors/, one for each class of ``handlax.errors``, made from the docstring of the class.

A docstring has parts, in this order: a sentence; the cause; a program that raises the error, below prompts, or indented
where it needs a process of its own; ``Remedy:`` and a program that does not; and what others do, ``Elsewhere:``.
"""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

from handlax import errors

IMPORTS = {
    "hx": "import handlax as hx", "hnp": "from handlax import numpy as hnp", "lax": "from handlax import lax",
    "np": "import numpy as np",
}
ABSTRACT = frozenset(("HandlaxError", "XlaError"))  # what is raised is a class below them


class ErrorPage(NamedTuple):
    """The parts of a docstring; a program is its paragraphs, with their prompts or their indentation."""

    sentence: str
    cause: list[str]
    program: list[str]
    remedy: list[str]
    corrected: list[str]
    elsewhere: list[str]


def classes() -> dict[str, type[errors.HandlaxError]]:
    """The classes by name; another name of one of them, such as JAX's, is left out."""
    return {name: kind for name in errors.__all__ if (kind := getattr(errors, name)).__name__ == name}


def parts(kind: type[errors.HandlaxError]) -> ErrorPage:
    """The parts of the docstring of a class. Raises: LookupError: one of them is missing."""
    first, *rest = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    found = ErrorPage(first, [], [], [], [], [])
    texts, programs = found.cause, found.program
    for paragraph in rest:
        if paragraph.startswith("Remedy: "):
            texts, programs = found.remedy, found.corrected
        elif paragraph.startswith("Elsewhere: "):
            texts = found.elsewhere
        shown = paragraph.startswith((">>> ", "    "))
        (programs if shown else texts).append(paragraph if shown else re.sub(r"^(Remedy|Elsewhere): ", "", paragraph))
    absent = [field for field in found._fields[:-1] if not getattr(found, field)]
    if absent:
        raise LookupError(f"the docstring of {kind.__name__} has no {', '.join(absent)}")
    return found


def prose(paragraphs: list[str]) -> str:
    """Paragraphs in Markdown, a sentence a line."""
    joined = [" ".join(text.split()).replace("``", "`") for text in paragraphs]
    return "\n\n".join([re.sub(r"(?<=[.?!]) (?=[A-Z`])", "\n", text) for text in joined])


def block(paragraphs: list[str], imports: list[str]) -> str:
    """A program as a block: one with prompts is compared with what it shows, below the imports of the page."""
    if not paragraphs[0].startswith(">>> "):
        return "```text\n" + "\n\n".join([inspect.cleandoc(text) for text in paragraphs]) + "\n```"
    return "```pycon\n" + "\n".join([*[f">>> {line}" for line in imports], *paragraphs]) + "\n```"


def bases(kind: type[errors.HandlaxError]) -> str:
    """The classes of which it is one, with their pages."""
    return ", ".join([
        f"[`{base.__name__}`]({base.__name__}.md)" if base.__module__ == errors.__name__ else f"`{base.__name__}`"
        for base in kind.__bases__
    ])


def page(name: str, kind: type[errors.HandlaxError]) -> str:
    """The page of a class."""
    found = parts(kind)
    code = "\n".join([*found.program, *found.corrected])
    imports = [line for word, line in IMPORTS.items() if re.search(rf"\b{word}\b", code)]
    lines = [
        f"# {name}", f"{prose([found.sentence])}\n`handlax.errors.{name}` is a {bases(kind)}.",
        "## Cause", prose(found.cause), block(found.program, imports),
        "## Remedy", prose(found.remedy), block(found.corrected, []),
    ]
    others = [other for other in errors.__all__ if getattr(errors, other) is kind and other != name]
    if others:
        lines.insert(2, f"Another name of it, JAX's, is {' and '.join([f'`{other}`' for other in others])}.")
    if found.elsewhere:
        lines += ["## Elsewhere", prose(found.elsewhere)]
    return "\n\n".join([*lines, "[All errors](index.md)"]) + "\n"


def index() -> str:
    """The table of all classes."""
    rows = [
        f"| [`{name}`]({name}.md) | {prose([parts(kind).sentence]).replace(chr(10), ' ')} | {bases(kind)} |"
        for name, kind in sorted(classes().items())
    ]
    lines = [
        "# Errors", "",
        "A message has three lines: what must hold and what was found; your line, with the handlers in force; a hint.",
        "The name in front of it, such as `handlax.errors.ShapeMismatch`, is that of a page, which tells the cause, a "
        "small program that makes the mistake, and the same program without it.",
        "`help(hx.errors.ShapeMismatch)` shows the page in Python, `python -m pydoc handlax.errors.ShapeMismatch` in a "
        "terminal.",
        "A class of your own that derives from one of these has its page.", "",
        "Each is a `HandlaxError`, and the fitting class of Python's, by which programs written for NumPy or JAX "
        "catch it.", "",
        "| class | raised for | is a |", "| --- | --- | --- |", *rows, "",
        "Made from the docstrings of the classes by `python tools/reference.py`.",
    ]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name -> text, for all of docs/errors."""
    return {"index.md": index(), **{f"{name}.md": page(name, kind) for name, kind in classes().items()}}
