"""Execute the notebooks of docs/ and write what their cells give into them.

    python tools/notebook_outputs.py            write the outputs
    python tools/notebook_outputs.py --check    fail if a notebook has others, times and the width of columns aside

Cells are executed as plain Python, in the order in which they stand. What a cell prints is an output, and so is the
value of an expression at its end: the HTML that a notebook would show of it, with what ``print`` shows for readers of
text, else its ``repr``.
"""

from __future__ import annotations

import ast
import io
import json
import linecache
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VARYING = re.compile(r" {2,}| ?\b\d+(?:\.\d+)?(?:e[+-]?\d+)? (?:s|ms|us)\b")


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its cells give."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell = {**cell, "execution_count": number, "outputs": outputs("".join(cell["source"]), names, number)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints and the value of the expression at its end, in the form of the files (nbformat 4.5)."""
    place = f"cell {number}"  # which pages of programs show as the place of an equation, with its line
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    tree, value, printed = ast.parse(source), None, io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, place, "exec"), names)  # the cells are ours
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        page = getattr(value, "_repr_html_", None)
        text = repr(value) if page is None else str(value)  # the repr of costs has no order
        data = {"text/plain": lines(text), **({} if page is None else {"text/html": lines(page())})}
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return found


def lines(text: str) -> list[str]:
    return text.splitlines(True)


def file_text(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def first_difference(written: str, found: str) -> str:
    """The first line that differs, in both texts, times and the blanks of columns aside; empty where none does."""
    pairs = zip((*written.splitlines(), "the end"), (*found.splitlines(), "the end"))
    differing = [pair for pair in pairs if VARYING.sub("", pair[0]) != VARYING.sub("", pair[1])]
    return "{:.200}\nis now\n{:.200}".format(*differing[0]) if differing else ""


def main(arguments: list[str]) -> int:
    status = 0
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        written = path.read_text()
        found = file_text(executed(json.loads(written)))
        difference = first_difference(written, found)
        if "--check" not in arguments:
            path.write_text(found)
        elif difference:
            print(f"{path.relative_to(ROOT)}: run python tools/notebook_outputs.py; {difference}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
