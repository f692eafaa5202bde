"""Reduction of a failing nest: statements are removed, and expressions replaced by subexpressions or inputs.

Source: Zeller & Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28 (2002), section 3
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .author import INPUTS
from .nests import Nest


def reduced(nest: Nest, fails: Callable[[Nest], bool]) -> Nest:
    """A smaller nest that still ``fails``; it is minimal: no single statement or expression can be removed or replaced.

    >>> nest = Nest("def nest(hx, hnp, x, v, w, k, p):\\n    y = hnp.sin(x)\\n    return (hnp.cos(v), y)\\n")
    >>> reduced(nest, lambda nest: "cos" in nest.source)
    Nest('''
    def nest(hx, hnp, x, v, w, k, p):
        return x.cos
    ''')
    """
    while True:
        smaller = next((other for other in map(Nest, _smaller(nest.source)) if fails(other)), None)
        if smaller is None:
            return nest
        nest = smaller


def _smaller(source: str) -> Iterator[str]:
    """Shorter texts, each without one statement, or with one expression replaced by a shorter one."""
    tree = ast.parse(source)
    for block in [node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for i in reversed(range(len(block))) if len(block) > 1 else ():
            statement = block.pop(i)
            yield ast.unparse(tree) + "\n"
            block.insert(i, statement)
    length = len(ast.unparse(tree))
    for parent in list(ast.walk(tree)):
        for get, put in _child_expressions(parent):
            expression = get()
            for part in [*ast.iter_child_nodes(expression), *[ast.Name(name, ast.Load()) for name, _ in INPUTS]]:
                if isinstance(part, ast.expr):
                    put(part)
                    text = ast.unparse(tree)
                    if len(text) < length:
                        yield text + "\n"
            put(expression)


def _child_expressions(parent: ast.AST) -> Iterator[tuple[Callable[[], Any], Callable[[Any], None]]]:
    """A getter and a setter of every expression that is a direct child of a node."""
    for name, value in ast.iter_fields(parent):
        if isinstance(value, ast.expr) and name not in ("targets", "target"):
            yield partial(getattr, parent, name), partial(setattr, parent, name)
        elif isinstance(value, list) and name in ("elts", "args"):
            for i, item in enumerate(value):
                if isinstance(item, ast.expr):
                    yield partial(value.__getitem__, i), partial(value.__setitem__, i)
