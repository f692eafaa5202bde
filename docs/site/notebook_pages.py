"""Sphinx extension: notebooks as pages, from the outputs that are stored in them; nothing is executed.

A cell of Markdown is Markdown of the page, a cell of code a block of code. Below it stand its outputs: HTML as it is,
text as it was printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

FENCE = "`" * 6  # longer than any that a cell has


class NotebookParser(MystParser):
    """Parses a notebook (nbformat 4.5) by way of the Markdown that shows it."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        super().parse("\n\n".join(blocks(json.loads(inputstring))), document)


def blocks(notebook: dict[str, Any]) -> Iterator[str]:
    """The cells and outputs of a notebook as blocks of Markdown."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
        else:
            yield fenced("python", source)
            yield from map(shown, cell["outputs"])


def shown(output: dict[str, Any]) -> str:
    """An output as a block: its HTML if it has one, else its text."""
    data = output.get("data", {"text/plain": output.get("text")})
    html = data.get("text/html")
    return fenced("text", "".join(data["text/plain"])) if html is None else fenced("{raw} html", "".join(html))


def fenced(word: str, text: str) -> str:
    return f"{FENCE}{word}\n{text}\n{FENCE}"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
