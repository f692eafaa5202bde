"""When two functions are one: a function that is made again finds the traces of its twin.

Two functions are one where their code, defaults, closure cells and every global that they read, nested code included,
are equal by type and bit pattern and immutable; arrays count by identity, functions with rules of their own by what
they consist of. Anything else makes a function its own: its traces are kept as long as it lives, and no longer.
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
_LONE = frozenset((type, types.ModuleType, types.BuiltinFunctionType))  # each equals itself alone, and says so in C
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


class Fingerprint:
    """What equal functions share, and its hash, which takes a walk through all that they read."""

    __slots__ = ("key", "hash")

    def __init__(self, key: Any):
        self.key = key
        self.hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint) and self.hash == other.hash and self.key == other.key

    def __hash__(self) -> int:
        return self.hash


class _Code:
    """A code object with what is asked of it each time: its hash, which reads it whole, and the names in it."""

    __slots__ = ("code", "hash", "names")

    def __init__(self, code: types.CodeType):
        self.code = code
        self.hash = hash(code)
        self.names = tuple(sorted(_names(code)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and self.code == other.code

    def __hash__(self) -> int:
        return self.hash


_CODES: dict[int, _Code] = {}  # by identity: a code object that is known here stays alive


def _code(code: types.CodeType) -> _Code:
    found = _CODES.get(id(code))
    if found is None:
        if len(_CODES) >= 4096:
            _CODES.clear()
        found = _CODES[id(code)] = _Code(code)
    return found


def fingerprint(fun: Callable[..., Any]) -> Fingerprint | None:
    """A hashable value that equal functions share; None for a function that equals itself alone."""
    try:
        return Fingerprint(_key(fun, {}))
    except Mutable:
        return None


def _key(x: Any, seen: dict[int, int]) -> Any:
    kind = type(x)
    if kind is types.FunctionType:
        return _function_key(x, seen)
    if kind in _LONE:
        return x
    if isinstance(x, _VALUES) and kind.__hash__ is not None:
        return kind, bits(x)
    if kind is tuple or kind is frozenset:
        parts = [_key(item, seen) for item in x]
        return kind, tuple(parts) if kind is tuple else frozenset(parts)
    if isinstance(x, _CONSTANT) or kind is _DISPATCHER:
        return _Same(x)
    if kind is functools.partial:
        return kind, _key(x.func, seen), _key(x.args, seen), _key(tuple(sorted(x.keywords.items())), seen)
    if isinstance(getattr(kind, "captures", None), tuple):
        return _ruled_key(x, seen)
    raise Mutable


def _ruled_key(x: Any, seen: dict[int, int]) -> Any:
    """A function with rules of its own: what it is made of now, its rules among it, which may lead back to it."""
    number = seen.get(id(x))
    if number is not None:
        return "again", number
    seen[id(x)] = len(seen)
    public = [(name, part) for name, part in sorted(vars(x).items()) if not name.startswith("_")]
    return type(x), tuple([(name, _key(part, seen)) for name, part in public])


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
    defaults, keywords = f.__defaults__, f.__kwdefaults__
    given = defaults and _key(defaults, seen), keywords and _key(tuple(sorted(keywords.items())), seen)
    code = _code(f.__code__)
    whole = (code, given, tuple(cells))
    # what handlax's own functions read is the library, which does not change
    return whole if (f.__module__ or "").startswith(_OURS) else (*whole, _globals_key(f, code.names, seen))


def _is_plain(f: types.FunctionType) -> bool:
    """Whether a function has no attributes, or wraps one of ours and took them over from it."""
    names = f.__dict__.keys()
    if not names or (len(names) == 1 and "__wrapped__" in names):
        return True
    inner = f.__dict__.get("__wrapped__")
    taken = all([f.__dict__[name] is getattr(inner, name, None) for name in names - {"__wrapped__"}])
    return taken and isinstance(inner, types.FunctionType) and (jit_info(inner) is not None or _is_plain(inner))


def _globals_key(f: types.FunctionType, names: tuple[str, ...], seen: dict[int, int]) -> Any:
    """The globals that the code may read: every name in it that is one, attributes of that name included."""
    known = f.__globals__
    found = []
    for name in names:
        if name in known:
            found.append((name, _key(known[name], seen)))
        elif name in _BUILTINS:
            x = _BUILTINS[name]
            found.append((name, x if type(x) in _LONE else _Same(x)))
    return tuple(found)


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
