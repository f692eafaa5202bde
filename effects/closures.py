"""Boxes in the closure of a function: found, and replaced by other values in a copy of it.

A rule that is performed later than it was written may be performed by handlers whose boxes are others. What it
captured is then an operand of the operation, and the rule is performed in a copy that captured the operand's value.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any

from . import trees
from .arrays import Box, ConcreteArray
from .types import ArrayType


class Hole(Box):
    """The place of a captured box in a function that is kept for later: it holds nothing of the box's run."""

    __slots__ = ()

    def __init__(self, type: ArrayType):
        self.type = type
        self.run = None  # type: ignore[assignment]


def jit_info(f: Any) -> Any:
    """What ``jit`` knows of a function that it made; None for others, also those that took over its attributes."""
    info = getattr(f, "_jit_info", None)
    return info if info is not None and f.__wrapped__ is info.fun else None


_PLAIN = (int, float, complex, str, bytes, type(None), type, types.ModuleType, types.BuiltinFunctionType, ConcreteArray)


def boxes_in(*values: Any) -> list[Box]:
    """The boxes that functions reach through closures, defaults, partial arguments, methods and trees, each once."""
    found: dict[int, Box] = {}
    seen: dict[int, Any] = {}
    waiting = list(values)
    while waiting:
        x = waiting.pop()
        if isinstance(x, _PLAIN) or id(x) in seen:
            continue
        seen[id(x)] = x
        if isinstance(x, Box):
            found[id(x)] = x
        else:
            waiting.extend(_parts(x))
    return list(found.values())


def _parts(x: Any) -> list[Any]:
    if jit_info(x) is not None:  # jit(f) means f
        return [x.__wrapped__]
    if isinstance(x, types.FunctionType):
        cells = [_content(cell) for cell in x.__closure__ or ()]
        return [*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(), *x.__dict__.values()]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, types.MethodType):
        return [x.__func__, x.__self__]
    names = getattr(type(x), "captures", None)
    if isinstance(names, tuple):
        return [getattr(x, name, None) for name in names]
    if isinstance(x, (list, tuple, dict)) or trees.is_tree_node(type(x)):
        return [leaf for leaf in trees.leaves(x) if leaf is not x]
    return []


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def holes_for(boxes: Sequence[Box]) -> tuple[tuple[Hole, ...], dict[int, Hole]]:
    """A hole for each box, and which it is: ``replaced(f, which)`` is the function to be kept."""
    holes = tuple([Hole(x.type) for x in boxes])
    return holes, {id(x): hole for x, hole in zip(boxes, holes)}


def replaced(x: Any, values: Mapping[int, Any]) -> Any:
    """``x`` with the boxes of these identities replaced, itself where there are none."""
    return _Copy(values).of(x) if values else x


class _Copy:
    """A copy of what reaches boxes; cycles stay cycles."""

    def __init__(self, values: Mapping[int, Any]):
        self.values = values
        self.made: dict[int, Any] = {}
        self.kept: list[Any] = []  # identities stay good as long as these live

    def of(self, x: Any) -> Any:
        if isinstance(x, _PLAIN):
            return x
        if isinstance(x, Box):
            return self.values.get(id(x), x)
        if id(x) not in self.made:
            self.kept.append(x)
            self.made[id(x)] = x  # until there is a copy
            self.made[id(x)] = self.copied(x)
        return self.made[id(x)]

    def copied(self, x: Any) -> Any:
        if not boxes_in(x):
            return x
        if jit_info(x) is not None:
            return self.of(x.__wrapped__)
        if isinstance(x, types.FunctionType):
            return self.function(x)
        if isinstance(x, functools.partial):
            keywords = {name: self.of(value) for name, value in x.keywords.items()}
            return type(x)(self.of(x.func), *map(self.of, x.args), **keywords)
        if isinstance(x, types.MethodType):
            return types.MethodType(self.of(x.__func__), self.of(x.__self__))
        if hasattr(type(x), "captures"):
            copy = self.made[id(x)] = object.__new__(type(x))
            copy.__dict__.update(x.__dict__)
            copy.__dict__.update({name: self.of(getattr(x, name)) for name in type(x).captures if hasattr(x, name)})
            return copy
        return trees.map(self.of, x)

    def function(self, f: types.FunctionType) -> Any:
        """The same code over copied cells; a cell that two functions share is shared by their copies."""
        cells = f.__closure__ or ()
        fresh = [cell for cell in cells if id(cell) not in self.made]
        self.made.update({id(cell): types.CellType() for cell in fresh})
        self.kept.extend(fresh)
        copy = types.FunctionType(f.__code__, f.__globals__, f.__name__, None, tuple([self.made[id(c)] for c in cells]))
        self.made[id(f)] = copy  # known before the cells are filled, which may lead back here
        for cell in fresh:
            with contextlib.suppress(ValueError):  # not filled yet
                self.made[id(cell)].cell_contents = self.of(cell.cell_contents)
        copy.__defaults__ = f.__defaults__ and tuple(map(self.of, f.__defaults__))
        copy.__kwdefaults__ = f.__kwdefaults__ and {k: self.of(v) for k, v in f.__kwdefaults__.items()}
        copy.__dict__.update({k: self.of(v) for k, v in f.__dict__.items()})
        copy.__qualname__, copy.__module__, copy.__doc__ = f.__qualname__, f.__module__, f.__doc__
        return copy
