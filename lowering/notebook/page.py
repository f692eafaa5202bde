"""``Page``: what is shown of a value, as a line of text and elements of HTML, and the elements that all pages have.

Pages have no scripts and refer to no files. Colours are those of the surrounding page, mixed, so that they are readable
on light and on dark ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

from ...interpreters.inspection.html import in_page
from ...interpreters.inspection.outline import escape

TEXT = 4000      # characters of one text
ROWS = 200       # of a table
ELEMENTS = 100   # of a page


class Page(NamedTuple):
    """A value described: a title, which is a line of text, and elements of well-formed HTML, their text escaped."""

    title: str
    elements: Sequence[str]

    @property
    def html(self) -> str:
        """The page as one element, which can stand in any document."""
        return in_page("\n".join(self.elements) + "\n")


def titled(title: str, *elements: str) -> Page:
    """The page that has its title as its heading, of a bounded size."""
    shown = elements if len(elements) <= ELEMENTS else [*elements[:ELEMENTS], note(_more(len(elements) - ELEMENTS))]
    return Page(title, [f"<h2>{_text(title)}</h2>", *shown])


def _text(x: object) -> str:
    """The text of a value, escaped, without its end where it is long."""
    text = str(x)
    return escape(text if len(text) <= TEXT else f"{text[:TEXT]} {_more(len(text) - TEXT, 'characters')}")


def _more(count: int, of_what: str = "") -> str:
    """What is said of that which a page leaves out."""
    return f"... and {count:,} more {of_what}".rstrip()


@singledispatch
def describe(x: Any) -> Page:
    """The page of a value, by its class; modules register functions for the classes that they draw.

    Nothing is traced or handled by it, and of data on devices only a bounded sample is read.
    """
    title, *rest = str(x).splitlines() or [""]
    return titled(title, *[preformatted("\n".join(rest))] * bool(rest))


def note(text: str) -> str:
    """A paragraph of secondary text."""
    return f"<p>{_text(text)}</p>"


def preformatted(text: str) -> str:
    """Text in its own lines."""
    return f"<pre>{_text(text)}</pre>"


def table(align: str, head: Sequence[str], rows: Sequence[Sequence[object]], total: bool = False) -> str:
    """A table whose columns are aligned by the letters l and r; with ``total`` the last row is a sum.

    Of many rows the first ones are shown, and the sum.

    >>> table("lr", ("operation", "flops"), [("sin", 3)])
    '<table><tr><th>operation</th><th class="r">flops</th></tr><tr><td>sin</td><td class="r">3</td></tr></table>'
    """
    if len(rows) > ROWS:
        more = (_more(len(rows) - ROWS), *[""] * (len(head) - 1))
        rows = [*rows[: ROWS - total], more, *rows[len(rows) - total :]]
    lines = [_row("th", align, head), *[_row("td", align, row) for row in rows]]
    if total:
        lines[-1] = lines[-1].replace("<tr>", '<tr class="total">', 1)
    return f"<table>{''.join(lines)}</table>"


def _row(cell: str, align: str, texts: Sequence[object]) -> str:
    kinds = {"l": f"<{cell}>", "r": f'<{cell} class="r">'}
    cells = [f"{kinds[side]}{_text(text)}</{cell}>" for side, text in zip(align, texts, strict=True)]
    return f"<tr>{''.join(cells)}</tr>"
