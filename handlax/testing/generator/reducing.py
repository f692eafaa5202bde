"""Values that fail are made small by removing parts; of programs, statements are removed, and expressions replaced by
subexpressions or arguments. What Hypothesis draws, as for ``compare``, is shrunk by Hypothesis instead.

Source: Zeller & Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28 (2002), section 3
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar

T = TypeVar("T")


class OutOfTime(Exception):
    """Raised by what says whether a value fails, where the time to reduce it is over."""


def reduced(
    value: T, fails: Callable[[T], bool], smaller: Callable[[T], Iterable[T]] = methodcaller("smaller")
) -> T:
    """A smaller value that still ``fails``, and is minimal: none that is ``smaller`` by one step does.

    If ``fails`` raises ``OutOfTime``, it is the smallest that was found until then.

    Args:
        smaller: the values of its kind with a part less, by default those of its method ``smaller``.

    >>> from handlax.testing import Nest
    >>> nest = Nest("def program(x, v, w, k, p):\\n    y = hnp.sin(x)\\n    return (hnp.cos(v), y)\\n")
    >>> reduced(nest, lambda nest: "cos" in nest.source)
    Nest('''
    def program(x, v, w, k, p):
        return x.cos
    ''')
    """
    tried, position = {repr(value)}, 0
    with suppress(OutOfTime):
        while True:  # it goes on where the last part went, and once more from the start
            for i, other in enumerate(smaller(value)):
                if i >= position and repr(other) not in tried:
                    tried.add(repr(other))
                    if fails(other):
                        value, position = other, i
                        break
            else:
                if position == 0:
                    break
                position = 0
    return value


def smaller_texts(source: str) -> Iterator[str]:
    """Shorter texts: without dead code, of one result, without a statement or an option, with an expression for a
    variable, with a part for an expression.
    """
    tree = ast.parse(source)
    nodes = [*ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    if len(live := living(source)) < len(ast.unparse(tree)):
        yield live
    if isinstance(returned := functions[0].body[-1], ast.Return) and isinstance(results := returned.value, ast.Tuple):
        for result in results.elts if len(results.elts) > 1 else ():
            returned.value = ast.Tuple([result], ast.Load())
            yield ast.unparse(tree) + "\n"
        returned.value = results
    arguments = [ast.Name(arg.arg, ast.Load()) for arg in functions[0].args.args]
    blocks: list[list[Any]] = [function.body for function in functions if len(function.body) > 1]
    options: list[list[Any]] = [node.keywords for node in nodes if isinstance(node, ast.Call)]
    for parts in [*blocks, *options]:
        for i in reversed(range(len(parts))):
            part = parts.pop(i)
            yield ast.unparse(tree) + "\n"
            parts.insert(i, part)
    length = len(ast.unparse(tree))
    for names in [_assigned(node) for node in nodes if isinstance(node, ast.Assign)]:
        text = ast.unparse(_Inlining(names).visit(ast.parse(source)))
        if len(text) < length:
            yield text + "\n"
    for parent in nodes:
        for get, put in _child_expressions(parent):
            expression = get()
            called = isinstance(parent, ast.Call) and parent.func is expression
            indexed = isinstance(parent, ast.Subscript) and parent.value is expression
            kind = NAMED if called else INDEXED if indexed else ast.expr
            for part in [*ast.iter_child_nodes(expression), *arguments]:
                if isinstance(part, kind) and not isinstance(part, ast.Starred | ast.Slice):
                    put(part)
                    text = ast.unparse(tree)
                    if len(text) < length:
                        yield text + "\n"
            put(expression)


class _Inlining(ast.NodeTransformer):
    """Replaces variables by what is assigned to them, alone or in tuples, and removes the assignments."""

    def __init__(self, names: set[str]):
        self.names, self.values = names, dict[str, ast.expr]()

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        assigned, value = _assigned(node), self.visit(node.value)
        if assigned <= self.names:
            self.values |= _unpacked(node.targets[0], value)
            return None
        node.value = value
        self.values = {name: other for name, other in self.values.items() if name not in assigned}
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)


def _unpacked(target: ast.expr, value: ast.expr) -> dict[str, ast.expr]:
    """The expressions of the variables of a target, a name or a tuple of targets, to which a value is assigned."""
    if not isinstance(target, ast.Tuple):
        return {ast.unparse(target): value}
    parts: list[ast.expr] = [ast.Subscript(value, ast.Constant(i), ast.Load()) for i in range(len(target.elts))]
    if isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
        parts = value.elts
    return {name: part for pair in zip(target.elts, parts) for name, part in _unpacked(*pair).items()}


# what may be called, and what may be indexed: of other expressions Python warns that they are not
NAMED = ast.Name | ast.Attribute
INDEXED = NAMED | ast.Call | ast.Subscript | ast.Tuple | ast.BinOp | ast.UnaryOp


def _child_expressions(parent: ast.AST) -> Iterator[tuple[Callable[[], Any], Callable[[Any], None]]]:
    """A getter and a setter of every expression that is a direct child of a node: no target, and no constant."""
    for name, value in ast.iter_fields(parent) if not isinstance(getattr(parent, "ctx", None), ast.Store) else ():
        if isinstance(value, ast.expr) and not isinstance(value, ast.Constant):
            yield partial(getattr, parent, name), partial(setattr, parent, name)
        elif isinstance(value, list) and name in ("elts", "args"):
            for i, item in enumerate(value):
                if isinstance(item, ast.expr) and not isinstance(item, ast.Constant):
                    yield partial(value.__getitem__, i), partial(value.__setitem__, i)


def living(source: str, effects: Iterable[str] = ()) -> str:
    """The text of a program without the statements that neither its results nor its effects depend on.

    ``effects``: the names of functions that perform some.
    """
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    performing = {*effects}
    for function in sorted(functions, key=lambda node: node.lineno):  # before what mentions it
        if _mentioned(function) & performing:
            performing.add(function.name)
    for function in reversed(functions):  # inner ones first
        needed: set[str] = set()
        for statement in function.body[::-1]:
            live = isinstance(statement, ast.Return) or _assigned(statement) & needed
            if live or (not isinstance(statement, ast.FunctionDef) and _mentioned(statement) & performing):
                needed |= _mentioned(statement)
            else:
                function.body.remove(statement)
    return ast.unparse(tree) + "\n"


def _mentioned(part: ast.AST) -> set[str]:
    """The names, and the names of attributes, in a part of a program."""
    nodes = [*ast.walk(part)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _assigned(statement: ast.stmt) -> set[str]:
    """The variables that a statement gives a value, or, as a call of a method does, changes."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {ast.unparse(statement).partition(".")[0]}
