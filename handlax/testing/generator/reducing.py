"""Smaller programs: statements are removed, and expressions replaced by subexpressions or arguments.

Source: Zeller & Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28 (2002), section 3
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, Self, TypeVar


class Reducible(Protocol):
    """What has ``smaller()``: values of its kind, each with a part less."""

    def smaller(self) -> Iterator[Self]: ...


P = TypeVar("P", bound=Reducible)


def reduced(program: P, fails: Callable[[P], bool]) -> P:
    """A smaller program that still ``fails``, and is minimal: no single statement or expression of it can go.

    >>> from handlax.testing import Nest
    >>> nest = Nest("def program(x, v, w, k, p):\\n    y = hnp.sin(x)\\n    return (hnp.cos(v), y)\\n")
    >>> reduced(nest, lambda nest: "cos" in nest.source)
    Nest('''
    def program(x, v, w, k, p):
        return x.cos
    ''')
    """
    while True:
        smaller = next((other for other in program.smaller() if fails(other)), None)
        if smaller is None:
            return program
        program = smaller


def reduced_example(example: tuple[Any, ...], fails: Callable[[tuple[Any, ...]], bool]) -> tuple[Any, ...]:
    """An example of a law with its program reduced: that part of it which has smaller ones."""
    place = next(i for i, part in enumerate(example) if hasattr(part, "smaller"))
    with_program = lambda program: (*example[:place], program, *example[place + 1 :])
    return with_program(reduced(example[place], lambda program: fails(with_program(program))))


def smaller_texts(source: str) -> Iterator[str]:
    """Shorter texts, each without one statement, or with one expression replaced by a shorter one."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    arguments = [ast.Name(arg.arg, ast.Load()) for arg in functions[0].args.args]
    for block in [function.body for function in functions]:
        for i in reversed(range(len(block))) if len(block) > 1 else ():
            statement = block.pop(i)
            yield ast.unparse(tree) + "\n"
            block.insert(i, statement)
    length = len(ast.unparse(tree))
    for parent in list(ast.walk(tree)):
        for get, put in _child_expressions(parent):
            expression = get()
            for part in [*ast.iter_child_nodes(expression), *arguments]:
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


def living(source: str) -> str:
    """The text of a program without the statements on whose variables its result does not depend."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in reversed(functions):  # inner ones first
        needed: set[str] = set()
        for statement in function.body[::-1]:
            if isinstance(statement, ast.Return) or _assigned(statement) & needed:
                needed |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            else:
                function.body.remove(statement)
    return ast.unparse(tree) + "\n"


def _assigned(statement: ast.stmt) -> set[str]:
    """The variables that a statement gives a value, or, as a call of a method does, changes."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {ast.unparse(statement).partition(".")[0]}
