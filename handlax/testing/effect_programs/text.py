"""The Python text of programs with effects, which are data: each statement calls a function of ``functions``.

Number k is the variable ``nk``; ``lanes`` are the mapped values of the lanes around a statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count as numbered
from typing import Any

from .blocks import Block, RandomHandler
from .handler_text import EFFECT_NAMES, text_of_installed, text_of_result
from .structures import STRUCTURES, Structure

ARITHMETIC = {
    "add": "0.6 * n{1} + 0.5 * n{2}", "mul": "hnp.sin(n{1}) * n{2}", "sin": "hnp.sin(n{1} + 0.3 * n{2})",
    "cos": "hnp.cos(n{1} * n{2})",
}
PERFORM = "ask({0}, n{1})"


def text_of_block(program: Block) -> str:
    """The text of a program on three numbers."""
    return "\n".join(_function("program", "n0, n1, n2, lanes=()", program, 3, numbered(1))) + "\n"


def _function(name: str, parameters: str, block: Block, count: int, fresh: Iterator[int]) -> list[str]:
    """The lines of a function of ``count`` numbers, those around it among them."""
    lines = []
    for kind, *fields in block.statements:
        words = {"env": ", ".join([f"n{k}" for k in range(count)]), "n": f"n{count}", "m": f"n{count + 1}"}
        form = STRUCTURES.get(kind) or Structure(0, PERFORM if kind == "perform" else ARITHMETIC[fields[0]], "", ())

        def named(field: Any) -> Any:
            """What stands for a field, after the functions that are its blocks."""
            if isinstance(field, tuple) and field and isinstance(field[0], Block):
                return f"[{', '.join(map(named, field))}]"
            if isinstance(field, RandomHandler):
                return text_of_installed(field)
            if not isinstance(field, Block):
                return field
            function = f"b{next(fresh)}"
            lines.extend(_function(function, form.parameters.format(**words), field, form.within(count), fresh))
            return function

        if kind in ("perform", "scoped"):
            fields[0] = EFFECT_NAMES[fields[0]]
        text = form.text.format(*[named(field) for field in fields], **words)
        lines += "\n".join(_assigned(f"n{count}", text, kind, fields)).splitlines()
        count += 1
    results = ", ".join([f"n{i}" for i in block.outs])
    return [f"def {name}({parameters}):", *["    " + line for line in [*lines, f"return {results}"]]]


def _assigned(n: str, text: str, kind: str, fields: Sequence[Any]) -> list[str]:
    """The lines that give a variable the number of a statement, that of a handled function from what is left, too."""
    if kind != "handle" or fields[0].makes_result:
        return [f"{n} = {text}"]
    state = f"s{n[1:]}"
    result = text_of_result(fields[0], state, n)
    return [f"{f'{state}, ' * (fields[0].moves is not None)}{n} = {text}", *[f"{n} = {result}"] * (result != n)]
