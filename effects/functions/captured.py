"""The boxes that a function captured, and copies of the function with other values in their place.

The body of a custom rule is recorded after the function was defined, possibly under other handlers. The boxes that it
captured become operands of the operation, and a copy that captures the values of these operands is recorded.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.arrays import Box, ConcreteArray
from ..trees import pytrees
from ..types.array_type import ArrayType


class BoxPlaceholder(Box):
    """A stand-in for a captured box in a stored function; it has the box's type and does not keep its run alive."""

    __slots__ = ()

    def __init__(self, type: ArrayType):
        self.type = type
        self.run = None  # type: ignore[assignment]


def jit_info(f: Any) -> Any:
    """The ``_jit_info`` of a result of ``jit``; None for other functions, even with a copy of its attributes."""
    info = getattr(f, "_jit_info", None)
    return info if info is not None and getattr(f, "__wrapped__", None) is info.fun else None


_PLAIN = (int, float, complex, str, bytes, type(None), type, types.ModuleType, types.BuiltinFunctionType, ConcreteArray)


def boxes_in(*values: Any) -> list[Box]:
    """The boxes reachable through closures, defaults, attributes, partial arguments, methods and trees, each once."""
    boxes: dict[int, Box] = {}
    seen: dict[int, Any] = {}
    waiting = list(values)
    while waiting:
        x = waiting.pop()
        if isinstance(x, _PLAIN) or id(x) in seen:
            continue
        seen[id(x)] = x
        if isinstance(x, Box):
            boxes[id(x)] = x
        else:
            waiting.extend(_references(x))
    return list(boxes.values())


def _references(x: Any) -> list[Any]:
    """The objects to which ``x`` refers and in which ``boxes_in`` looks for boxes."""
    if jit_info(x) is not None:  # the function itself, without jit's attributes
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
    if isinstance(x, (list, tuple, dict)) or pytrees.is_tree_node(type(x)):
        return [leaf for leaf in pytrees.leaves(x) if leaf is not x]
    return []


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None


def placeholders_for(boxes: Sequence[Box]) -> tuple[tuple[BoxPlaceholder, ...], dict[int, BoxPlaceholder]]:
    """A placeholder for each box, and the mapping from the boxes' identities for ``replaced``."""
    placeholders = tuple([BoxPlaceholder(x.type) for x in boxes])
    return placeholders, {id(x): placeholder for x, placeholder in zip(boxes, placeholders)}


def replaced(x: Any, values: Mapping[int, Any]) -> Any:
    """A copy of ``x`` with boxes replaced, ``values`` by identity; ``x`` itself if there are none."""
    return _Copy(values).of(x) if values else x


class _Copy:
    """A deep copy of the objects that reach boxes; shared objects stay shared, cycles stay cycles."""

    def __init__(self, values: Mapping[int, Any]):
        self.values = values
        self.copies: dict[int, Any] = {}  # by identity of the original
        self.originals: list[Any] = []  # keeps the identities valid

    def of(self, x: Any) -> Any:
        if isinstance(x, _PLAIN):
            return x
        if isinstance(x, Box):
            return self.values.get(id(x), x)
        if id(x) not in self.copies:
            self.originals.append(x)
            self.copies[id(x)] = x  # for cycles through x, until its copy exists
            self.copies[id(x)] = self.copied(x)
        return self.copies[id(x)]

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
            copy = self.copies[id(x)] = object.__new__(type(x))
            copy.__dict__.update(x.__dict__)
            copy.__dict__.update({name: self.of(getattr(x, name)) for name in type(x).captures if hasattr(x, name)})
            return copy
        return pytrees.map(self.of, x)

    def function(self, f: types.FunctionType) -> Any:
        """A function of the same code with copied cells; functions that share a cell have copies that share one."""
        cells = f.__closure__ or ()
        fresh = [cell for cell in cells if id(cell) not in self.copies]
        self.copies.update({id(cell): types.CellType() for cell in fresh})
        self.originals.extend(fresh)
        closure = tuple([self.copies[id(cell)] for cell in cells])
        copy = types.FunctionType(f.__code__, f.__globals__, f.__name__, None, closure)
        self.copies[id(f)] = copy  # before the cells are filled: their contents may refer to f
        for cell in fresh:
            with contextlib.suppress(ValueError):  # an empty cell
                self.copies[id(cell)].cell_contents = self.of(cell.cell_contents)
        copy.__defaults__ = f.__defaults__ and tuple(map(self.of, f.__defaults__))
        copy.__kwdefaults__ = f.__kwdefaults__ and {k: self.of(v) for k, v in f.__kwdefaults__.items()}
        copy.__dict__.update({k: self.of(v) for k, v in f.__dict__.items()})
        copy.__qualname__, copy.__module__, copy.__doc__ = f.__qualname__, f.__module__, f.__doc__
        return copy
