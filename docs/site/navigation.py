"""Sphinx extension: the navigation of the site is the pages that ``index.md`` and those of the folders list."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_ERROR = re.compile(r"^\| \[`\w+`\]\((\w+)\.md\)", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^\]]*\]\(([\w/.-]+)\.(?:md|ipynb)\)", re.MULTILINE)


def add(app: Sphinx, name: str, source: list[str]) -> None:
    """Add the trees of pages to the pages that list them."""
    if name == "index":
        for title, text in _SECTION.findall(source[0]):
            source[0] += tree([page for page in _PAGE.findall(text) if not page.startswith("..")], title)
    elif name == "reference/index":
        source[0] += tree(_PAGE.findall(source[0]))
    elif name == "errors/index":
        source[0] += tree(_ERROR.findall(source[0]))


def tree(pages: list[str], caption: str = "") -> str:
    """A list of pages that is shown in the navigation alone."""
    options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{options}\n" + "\n".join(pages) + "\n```\n" if pages else ""


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", add)
    return {"parallel_read_safe": True}
