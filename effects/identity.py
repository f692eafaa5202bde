"""When two functions are one: a function that is made again finds the traces of its twin.

Two functions are one where their code, defaults, closure cells and every global that they read, nested code included,
are equal by type and bit pattern and immutable; arrays count by identity. Anything else makes a function its own: its
traces are kept as long as it lives, and no longer.
"""

from __future__ import annotations

import builtins
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import ConcreteArray
from .caches import Cache
from .closures import jit_info
from .operations import Operation, bits
from .types import ArrayType

_VALUES = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), np.generic)
_CONSTANT = (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc, np.dtype, ArrayType, ConcreteArray, Operation)
# NumPy's functions in Python are wrapped by one type in C, which shows neither code nor closure.
_DISPATCHER = type(np.sum)
_OURS = __name__.split(".")[0] + "."
_BUILTINS = vars(builtins)
_MOST = 2000


class Mutable(Exception):
    """Something that may change was met, so that the function is nobody's twin."""


class _Same:
    """Compared by identity, and kept alive as long as somebody compares with it."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def fingerprint(fun: Callable[..., Any]) -> Any:
    """A hashable value that equal functions share; None for a function that equals itself alone."""
    try:
        return _key(fun, {})
    except Mutable:
        return None


def _key(x: Any, seen: dict[int, int]) -> Any:
    kind = type(x)
    if isinstance(x, _VALUES) and kind.__hash__ is not None:
        return kind, bits(x)
    if kind is tuple or kind is frozenset:
        parts = [_key(item, seen) for item in x]
        return kind, tuple(parts) if kind is tuple else frozenset(parts)
    if isinstance(x, _CONSTANT) or kind is _DISPATCHER:
        return _Same(x)
    if kind is types.FunctionType:
        return _function_key(x, seen)
    if kind is functools.partial:
        return kind, _key(x.func, seen), _key(x.args, seen), _key(tuple(sorted(x.keywords.items())), seen)
    raise Mutable


def _function_key(f: types.FunctionType, seen: dict[int, int]) -> Any:
    number = seen.get(id(f))
    if number is not None:
        return "again", number
    if len(seen) > _MOST:
        raise Mutable
    seen[id(f)] = len(seen)
    jitted = jit_info(f)
    if jitted is not None:
        return "jit", _key(jitted.fun, seen), jitted.options_key
    if not _is_plain(f):
        raise Mutable
    cells = []
    for cell in f.__closure__ or ():
        try:
            cells.append(_key(cell.cell_contents, seen))
        except ValueError:  # not filled yet
            raise Mutable from None
    keywords = tuple(sorted((f.__kwdefaults__ or {}).items()))
    whole = (f.__code__, _key(f.__defaults__, seen), _key(keywords, seen), tuple(cells))
    # what handlax's own functions read is the library, which does not change
    return whole if (f.__module__ or "").startswith(_OURS) else (*whole, _globals_key(f, seen))


def _is_plain(f: types.FunctionType) -> bool:
    """Whether a function has no attributes, or wraps one of ours and took them over from it."""
    inner = f.__dict__.get("__wrapped__")
    names = f.__dict__.keys() - {"__wrapped__"}
    if not names:
        return True
    taken = all([f.__dict__[name] is getattr(inner, name, None) for name in names])
    return taken and isinstance(inner, types.FunctionType) and (jit_info(inner) is not None or _is_plain(inner))


def _globals_key(f: types.FunctionType, seen: dict[int, int]) -> Any:
    """The globals that the code may read: every name in it that is one, attributes of that name included."""
    found = []
    for name in sorted(_names(f.__code__)):
        if name in f.__globals__:
            found.append((name, _key(f.__globals__[name], seen)))
        elif name in _BUILTINS:
            found.append((name, _Same(_BUILTINS[name])))
    return tuple(found)


@functools.lru_cache(4096)
def _names(code: types.CodeType) -> frozenset[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return frozenset(names)


TRACES = Cache("trace")
"""Traces of functions that have twins, by fingerprint and call."""

_OWN: dict[Any, tuple[Any, dict[Any, Any]]] = {}


def own_traces(fun: Callable[..., Any], otherwise: dict[Any, Any]) -> dict[Any, Any]:
    """The traces of a function that equals itself alone; forgotten when it dies.

    ``otherwise`` serves for what Python cannot watch die.
    """
    anchor: Any = fun
    key: Any = id(fun)
    if isinstance(fun, types.MethodType):  # made afresh whenever it is looked up
        anchor, key = fun.__self__, (id(fun.__self__), fun.__func__)
    found = _OWN.get(key)
    if found is not None and found[0]() is anchor:
        return found[1]
    try:
        watch = weakref.ref(anchor, lambda _: _OWN.pop(key, None))
    except TypeError:
        return otherwise
    made: dict[Any, Any] = {}
    _OWN[key] = (watch, made)
    return made


def own_count() -> int:
    """How many functions are watched."""
    return len(_OWN)


def clear() -> None:
    """Forget every trace."""
    TRACES.clear()
    for _, traces in list(_OWN.values()):
        traces.clear()
