"""Make a failing nest smaller: without statements, and with parts of expressions instead of the whole.

Source: Zeller & Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28 (2002), section 3
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from .author import INPUTS
from .nests import Nest


def reduced(nest: Nest, fails: Callable[[Nest], bool]) -> Nest:
    """A smaller nest that still ``fails``: no single statement or expression of it can go.

    >>> nest = Nest("def nest(hx, hnp, x, v, w, k, p):\\n    y = hnp.sin(x)\\n    return (hnp.cos(v), y)\\n")
    >>> reduced(nest, lambda nest: "cos" in nest.source)
    Nest('''
    def nest(hx, hnp, x, v, w, k, p):
        return x.cos
    ''')
    """
    while True:
        found = next((smaller for smaller in map(Nest, _smaller(nest.source)) if fails(smaller)), None)
        if found is None:
            return nest
        nest = found


def _smaller(source: str) -> Iterator[str]:
    """Shorter texts, each without one statement, or with something shorter in the place of one expression."""
    tree = ast.parse(source)
    for block in [node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for i in reversed(range(len(block))) if len(block) > 1 else ():
            gone = block.pop(i)
            yield ast.unparse(tree) + "\n"
            block.insert(i, gone)
    length = len(ast.unparse(tree))
    for parent in list(ast.walk(tree)):
        for get, put in _places(parent):
            whole = get()
            for part in [*ast.iter_child_nodes(whole), *[ast.Name(name, ast.Load()) for name, _ in INPUTS]]:
                if isinstance(part, ast.expr):
                    put(part)
                    text = ast.unparse(tree)
                    if len(text) < length:
                        yield text + "\n"
            put(whole)


def _places(parent: ast.AST) -> Iterator[tuple[Callable[[], Any], Callable[[Any], None]]]:
    """For every expression directly below a node, how to get and how to replace it."""
    for name, value in ast.iter_fields(parent):
        if isinstance(value, ast.expr) and name not in ("targets", "target"):
            yield lambda name=name: getattr(parent, name), lambda x, name=name: setattr(parent, name, x)  # type: ignore[misc]
        elif isinstance(value, list) and name in ("elts", "args"):
            for i, item in enumerate(value):
                if isinstance(item, ast.expr):
                    yield lambda i=i, value=value: value[i], lambda x, i=i, value=value: value.__setitem__(i, x)  # type: ignore[misc]
