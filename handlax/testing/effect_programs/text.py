"""The Python text of programs with effects, which are data: each statement calls a function of ``functions``.

Number k is the variable ``nk``; ``lanes`` are the mapped values of the lanes around a statement.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as numbered
from typing import Any

from .blocks import Block, RandomClause, RandomHandler

# Of each kind of statement: its text, with its fields, of which blocks are functions; and the parameters of these.
# ``{env}``: all numbers so far; ``{n}``: the next one, and ``{m}`` the one after that.
FORMS = {
    "arithmetic": ("arithmetic({0!r}, n{1}, n{2})", ""),
    "perform": ("ask({0}, n{1})", ""),
    "cond": ("lax.cond(apart(n{0}, lanes) > {1}, {2}, {3}, {env})", "{env}"),
    "cond_of_all": ("lax.cond(n0 > 0.5, {0}, {1}, {env})", "{env}"),
    "switch": ("switch(apart(n{0}, lanes), {1}, {env})", "{env}"),
    "scan": ("scan({3}, n{0}, {1}, {2})", "{n}, {m}"),
    "map": ("map_({2}, n{0}, {1})", "{n}"),
    "fori": ("fori({2}, n{0}, {1})", "{n}"),
    "unrolled": ("unrolled({2}, n{0}, {1})", "{n}"),
    "python_cond": ("({2} if n{0} > {1} else {3})()", ""),
    "counted_while": ("counted_while({3}, n{0}, {1}, {2})", "{n}"),
    "tested_while": ("tested_while({3}, {4}, n{0}, lanes, {1}, {2})", "{n}"),
    "jit": ("hx.jit({0})({env})", "{env}"),
    "checkpoint": ("hx.checkpoint({0})({env})", "{env}"),
    "vmap": ("in_lanes({2}, n{0}, {1}, lanes)", "lanes, {n}"),
    "ragged": ("ragged({2}, n{0}, {1}, lanes)", "lanes, {n}, {m}"),
    "eval_shape": ("typed({1}, n{0}, {env})", "{env}"),
    "derivative": ("derivative({2}, n{0}, {1!r})", "{n}"),
    "custom": ("custom({4}, n{0}, {1!r}, {2}, {3})", "n0, n1"),
    "scoped": ("hx.perform(KINDS[{0}](), {1}, {2}, {env})", "{env}"),
    "handle": ("handled({0}, {1}, {env})", "{env}"),
}


def text_of_block(program: Block) -> str:
    """The text of a program on three numbers."""
    return "\n".join(_function("program", "n0, n1, n2, lanes=()", program, 3, numbered(1))) + "\n"


def _function(name: str, parameters: str, block: Block, count: int, fresh: Iterator[int]) -> list[str]:
    """The lines of a function of ``count`` numbers, those around it among them."""
    lines = []
    for kind, *fields in block.statements:
        text, given = FORMS[kind]
        words = {"env": ", ".join([f"n{k}" for k in range(count)]), "n": f"n{count}", "m": f"n{count + 1}"}
        within = 2 if kind == "custom" else count + given.count("{n}") + given.count("{m}")

        def named(field: Any) -> Any:
            """What stands for a field, after the functions that are its blocks."""
            if isinstance(field, tuple) and field and isinstance(field[0], Block):
                return f"[{', '.join(map(named, field))}]"
            if not isinstance(field, Block):
                return _constructed(field) if isinstance(field, RandomHandler) else field
            function = f"b{next(fresh)}"
            lines.extend(_function(function, given.format(**words), field, within, fresh))
            return function

        lines.append(f"n{count} = {text.format(*[named(field) for field in fields], **words)}")
        count += 1
    results = ", ".join([f"n{i}" for i in block.outs])
    return [f"def {name}({parameters}):", *["    " + line for line in [*lines, f"return {results}"]]]


def _constructed(x: Any) -> str:
    """The text that makes a handler or a clause, without what it has by default."""
    if isinstance(x, dict):
        return f"{{{', '.join([f'{key}: {_constructed(value)}' for key, value in x.items()])}}}"
    if not isinstance(x, RandomHandler | RandomClause):
        return repr(x)
    given = {name: value for name, value in x._asdict().items() if value != x._field_defaults.get(name, ...)}
    return f"{type(x).__name__}({', '.join([f'{name}={_constructed(value)}' for name, value in given.items()])})"
