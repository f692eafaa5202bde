"""The source line of an operation's rule in a column: that of the author's formula, not of a wrapper around it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple


class Cell(NamedTuple):
    """A rule as written, and what identifies the place: its line, its function's name in its module."""

    rule: Any
    places: frozenset[tuple[str, Any]]


def where_written(cell: Any, kind: type[Any] | None = None, column: str = "") -> str:
    """The ``place`` of a rule, followed by its name if it is a module-level function, a ufunc or a StableHLO word.

    A function that the author wrote has its own first line. A StableHLO word, a ufunc, or a function made by a factory
    of another module has the line in the block of operation ``kind``, or that of the call ``@COLUMN.rule(kind)``.
    """
    if isinstance(cell, tuple):  # a term of the derivative for each operand
        return ", ".join(dict.fromkeys([where_written(term, kind, column) for term in cell if term is not None]))
    formula = inspect.unwrap(cell) if callable(cell) else cell
    if not isinstance(formula, FunctionType) or (kind is not None and _made_elsewhere(formula, kind)):
        line = None if kind is None else _line_in_block(kind, column, getattr(formula, "__module__", None))
        if line is not None or not isinstance(formula, FunctionType):
            return shown(formula) if line is None else f"{line}  {shown(formula)}"
    line, name = place(formula.__code__.co_filename, formula.__code__.co_firstlineno), formula.__qualname__
    return line if "." in name or "<" in name else f"{line}  {name}"


def place(file: str | None, line: int) -> str:
    """``file:line``, relative to the working directory for what is below that."""
    path = Path(str(file))
    with suppress(FileNotFoundError, ValueError):  # the directory is removed, or the file is elsewhere
        path = path.relative_to(Path.cwd())
    return f"{path}:{line}"


def _made_elsewhere(formula: FunctionType, kind: type[Any]) -> bool:
    """Whether a factory in another module than that of operation ``kind`` made the function."""
    return formula.__qualname__.rpartition(".")[0].endswith("<locals>") and formula.__module__ != kind.__module__


def shown(formula: Any) -> str:
    """The name of a rule: ``stablehlo.word``, ``module.function``, or ``factory(...)`` for a factory's result."""
    if isinstance(formula, str):
        return formula if "." in formula else f"stablehlo.{formula}"
    if isinstance(formula, partial):
        return f"{shown(formula.func)}(...)"
    name = getattr(formula, "__qualname__", None)
    if name is None:
        return type(formula).__name__ if " at 0x" in repr(formula) else repr(formula)
    factory, _, inner = name.partition(".<locals>.")
    return f"{factory}(...)" if inner else f"{getattr(formula, '__module__', None) or 'numpy'}.{name}"


def _line_in_block(kind: type[Any], column: str, registers: str | None) -> str | None:
    """``file:line`` of the rule in the block of operation ``kind`` or of its base classes, or in module ``registers``.

    Without such a line it is that of the block; None where the source is not available.
    """
    for base in kind.__mro__[:-1]:
        for block in _blocks(base):
            for line, name in _cells(block, sys.modules[base.__module__]):
                if name == column:
                    return place(sys.modules[base.__module__].__file__, line)
    for node in ast.walk(_tree(registers)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{column.upper()}.rule({kind.__name__})":
            return place(sys.modules[str(registers)].__file__, node.lineno)
    return next((place(sys.modules[kind.__module__].__file__, block.lineno) for block in _blocks(kind)), None)


def _cells(block: ast.ClassDef | ast.Call, module: Any) -> Iterator[tuple[int, str]]:
    """Pairs (line, name) of what a block defines: the functions and assignments of a class, or a call's arguments."""
    if isinstance(block, ast.Call):
        factory = getattr(module, ast.unparse(block.func), None)
        names = inspect.signature(factory).parameters if factory is not None else ()
        yield from [(x.lineno, name) for x, name in zip(block.args, names)]
        yield from [(x.value.lineno, x.arg or "") for x in block.keywords]
        return
    for line in block.body:
        if isinstance(line, ast.FunctionDef):
            yield line.lineno, line.name
        elif isinstance(line, ast.Assign):
            yield from [(line.lineno, ast.unparse(target)) for target in line.targets]


def _blocks(kind: type[Any]) -> Iterator[ast.ClassDef | ast.Call]:
    """The syntax nodes that define operation ``kind`` in its module: ``class Name:``, or ``factory("name", ...)``."""
    name = repr(getattr(kind, "name", None))
    for node in ast.walk(_tree(kind.__module__)):
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            yield node
        if isinstance(node, ast.Call) and [ast.unparse(x) for x in node.args[:1]] == [name]:
            yield node


def _tree(module: str | None) -> ast.Module:
    """The syntax tree of a module; an empty tree where its source is not available."""
    try:
        return ast.parse(inspect.getsource(sys.modules[str(module)]))
    except (KeyError, OSError, TypeError):
        return ast.parse("")
