"""The pages of docs/errors/, one for each public class of errors, made from the docstring of the class.

A docstring has parts, in this order: a sentence; the cause; a program that raises the error, below prompts, or indented
where it needs a process of its own; ``Remedy:`` and a program that does not; and what others do, ``Elsewhere:``.
"""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import NamedTuple

from handlax import errors

IMPORTS = {
    "np": "import numpy as np", "hx": "import handlax as hx", "lax": "from handlax import lax",
    "hnp": "from handlax import numpy as hnp",
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


def classes(namespaces: dict[str, ModuleType]) -> dict[type[BaseException], str]:
    """The public errors of handlax, each with its namespace: ``handlax.errors``, or else the last one that has it.

    No warnings, and no other names of a class, as JAX's are.
    """
    found = {}
    for namespace, module in [*namespaces.items(), (errors.__name__, errors)]:
        for name in dir(module):  # names that are loaded when they are asked for are among them
            kind = getattr(module, name)
            raised = isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, Warning)
            if raised and kind.__name__ == name and kind.__module__.partition(".")[0] == "handlax":
                found[kind] = namespace
    return found


def parts(kind: type[BaseException]) -> ErrorPage:
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
    joined = [text[:1].upper() + text[1:] for text in joined]
    return "\n\n".join([re.sub(r"(?<=[.?!]) (?=[A-Z`])", "\n", text) for text in joined])


def block(paragraphs: list[str], imports: list[str]) -> str:
    """A program as a block: one with prompts is compared with what it shows, below the imports of the page."""
    if not paragraphs[0].startswith(">>> "):
        return "```text\n" + "\n\n".join([inspect.cleandoc(text) for text in paragraphs]) + "\n```"
    return "```pycon\n" + "\n".join([*[f">>> {line}" for line in imports], *paragraphs]) + "\n```"


def bases(kind: type[BaseException]) -> str:
    """The classes of which it is one, with their pages."""
    names = [
        f"[`{base.__name__}`]({base.__name__}.md)" if base.__module__ == errors.__name__ else f"`{base.__name__}`"
        for base in kind.__bases__
    ]
    return " and ".join([*[", ".join(names[:-1])] * (len(names) > 1), names[-1]])


def article(kind: type[BaseException]) -> str:
    """The article before the first of its bases."""
    return "an" if kind.__bases__[0].__name__[0] in "AEIOU" else "a"


def page(kind: type[BaseException], namespace: str) -> str:
    """The page of a class."""
    found = parts(kind)
    code = "\n".join([*found.program, *found.corrected])
    imports = [line for word, line in IMPORTS.items() if re.search(rf"\b{word}\b", code)]
    lines = [
        f"# {kind.__name__}",
        f"{prose([found.sentence])}\n`{namespace}.{kind.__name__}` is {article(kind)} {bases(kind)}.",
        "## Cause", prose(found.cause), block(found.program, imports),
        "## Remedy", prose(found.remedy), block(found.corrected, []),
    ]
    if found.elsewhere:
        lines += ["## Elsewhere", prose(found.elsewhere)]
    return "\n\n".join([*lines, "[All errors](index.md)"]) + "\n"


def index(kinds: dict[type[BaseException], str]) -> str:
    """The table of all classes; one that is not of ``handlax.errors`` has its namespace beside its name."""
    rows = [
        f"| [`{kind.__name__}`]({kind.__name__}.md){'' if namespace == errors.__name__ else f', of `{namespace}`'} "
        f"| {prose([parts(kind).sentence]).replace(chr(10), ' ')} | {bases(kind)} |"
        for kind, namespace in sorted(kinds.items(), key=lambda item: item[0].__name__)
    ]
    others = [
        f"`{name}` is [`{kind.__name__}`]({kind.__name__}.md)" for name in errors.__all__
        if (kind := getattr(errors, name)).__name__ != name
    ]
    lines = [
        "# Errors", "",
        "A message has three lines: what must hold and what was found; your line, with the handlers in force; a hint.",
        "The name in front of it, such as `handlax.errors.ShapeMismatch`, is that of a page, which tells the cause, a "
        "small program that makes the mistake, and the same program without it.",
        "`help(hx.errors.ShapeMismatch)` shows the page in Python, `python -m pydoc handlax.errors.ShapeMismatch` in a "
        "terminal.",
        "A class of your own that derives from one of these has its page.", "",
        "Each of `handlax.errors` is a `HandlaxError`, and the fitting class of Python's, by which programs that were "
        "written for NumPy or JAX catch it.",
        "A class of another module, which stands beside its name, is what the last column says.", "",
        "| class | raised for | is a |", "| --- | --- | --- |", *rows, "",
        f"Names of JAX's: {', '.join(others)}.", "",
        "Made from the docstrings of the classes by `python tools/reference.py`.",
    ]
    return "\n".join(lines) + "\n"


def pages(namespaces: dict[str, ModuleType]) -> dict[str, str]:
    """File name -> text, for all of docs/errors."""
    kinds = classes(namespaces)
    texts = {f"{kind.__name__}.md": page(kind, namespace) for kind, namespace in kinds.items()}
    return {"index.md": index(kinds), **texts}
