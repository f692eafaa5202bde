"""Equality of Python functions for caches: a function that is defined again finds the traces of an equal one.

Two functions are equal if their code, defaults, closure cells and all globals that they read, nested code included, are
immutable and equal by type and bit pattern; arrays compare by identity, functions with custom rules by their public
attributes. What is read through a module is compared as if it were a global, and a class by its attributes, those of
libraries excepted. A function that reads anything else equals only itself; its traces are dropped when it dies.

``KeyedValue`` and ``static_key`` turn any Python value into part of a cache key.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import sys
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from ..base.caches import Cache, WeakCache
from ..base.deep_calls import on_deep_stack
from ..base.value_identity import ByEquality, ByIdentity, bits
from ..core.arrays import Array, ConcreteArray
from ..core.operation import Operation
from ..sharding.mesh import AbstractMesh, Mesh
from ..sharding.named_sharding import NamedSharding, SingleDeviceSharding
from ..sharding.partition_spec import PartitionSpec
from ..types.array_type import ArrayType
from ..types.extent import unbound
from .captured import jit_info
from .code_reads import (
    NUMPY_DISPATCHER,
    NUMPY_OUTSIDE,
    CodeReads,
    code_reads,
    is_constant_builtin,
    is_constant_class,
    is_constant_module,
    is_of_library,
)

_VALUES = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), np.generic)
_NUMBERS = frozenset((int, float, complex, bool, str, type(None)))  # the commonest values
_CONSTANT = (np.ufunc, np.dtype, ArrayType, ConcreteArray, Operation, NUMPY_DISPATCHER)
_OURS = __name__.split(".")[0] + "."
_BUILTINS = vars(builtins)
# Attributes of a class that its definition makes: descriptors, tables that nobody sets, methods written by a decorator.
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
                types.MethodDescriptorType, types.ClassMethodDescriptorType, types.DynamicClassAttribute,
                type(vars(NamedTuple("Row", [("x", int)]))["x"]))  # fmt: skip
_MADE = frozenset((
    "__new__", "__init__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__setattr__",
    "__delattr__", "__replace__", "__getstate__", "__setstate__",
))  # fmt: skip
_TABLES = frozenset((
    "_field_defaults", "_abc_impl", "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__",
    "__annotations_cache__", "__classcell__", "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__",
    "__firstlineno__", "__hash__", "__match_args__", "__module__", "__non_callable_proto_members__", "__orig_bases__",
    "__parameters__", "__protocol_attrs__", "__qualname__", "__slots__", "__static_attributes__", "__type_params__",
    "__weakref__",
))  # fmt: skip
_HASHED = frozenset((
    range, types.GenericAlias, types.UnionType, Mesh, AbstractMesh, PartitionSpec, NamedSharding, SingleDeviceSharding,
))  # fmt: skip
_BY_IDENTITY = frozenset((type, types.BuiltinFunctionType))  # their own == compares identity, in C
# Builtins that read or do more than their arguments say.
_ESCAPES = frozenset((
    "__import__", "breakpoint", "delattr", "eval", "exec", "globals", "input", "open", "print", "setattr",
))  # fmt: skip
_MAX_FUNCTIONS = 2000  # that one fingerprint may reach
_MAX_DEPTH = 80  # of functions that reach one another: the fingerprints of n nested ones take linear time in all


class MutableFound(Exception):
    """A function reads something mutable, so that it equals only itself."""


class Fingerprint:
    """A value that equal functions share; the hash is stored, since it traverses everything that they read."""

    __slots__ = ("key", "hash")

    def __init__(self, key: Any):
        self.key = key
        self.hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint) and self.hash == other.hash and self.key == other.key

    def __hash__(self) -> int:
        return self.hash


class KeyedValue:
    """A Python value as part of a key: hashable values compare by type and bits, arrays by identity.

    Any other unhashable value is mutable and equals only this very ``KeyedValue``. With ``reads``, a function compares
    by its fingerprint at the first comparison.
    """

    __slots__ = ("value", "reads", "_key")

    def __init__(self, value: Any, reads: bool = False):
        self.value = value
        self.reads = reads

    @property
    def key(self) -> Any:
        try:
            return self._key
        except AttributeError:
            self._key: Any = self.compared()
            return self._key

    def compared(self) -> Any:
        function_key = fingerprint(self.value) if self.reads and callable(self.value) else None
        if function_key is not None:
            return function_key
        try:
            key = bits(self.value)
            hash(key)
        except TypeError:
            return ByIdentity(self.value) if isinstance(self.value, Array) else object()
        return key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyedValue) and type(self.value) is type(other.value) and bool(self.key == other.key)

    def __hash__(self) -> int:
        return hash((type(self.value), self.key))

    def __reduce__(self) -> Any:
        return KeyedValue, (self.value, self.reads)


def static_key(x: Any, depth: int = 8) -> Any:
    """The key of a static argument; containers and dataclasses enter with their present contents."""
    x = unbound(x)
    kind = type(x)
    if isinstance(x, Array):
        return kind, ByIdentity(x)
    if depth:
        if kind is list or isinstance(x, tuple):
            return kind, tuple([static_key(item, depth - 1) for item in x])
        if kind is dict:
            return kind, tuple([(static_key(k, depth - 1), static_key(v, depth - 1)) for k, v in x.items()])
        if kind is set:
            return kind, frozenset([static_key(item, depth - 1) for item in x])
        if kind is np.ndarray and x.dtype.kind != "O":
            return kind, x.dtype, x.shape, x.tobytes()
    try:
        return kind, bits(x)
    except TypeError:
        pass
    if depth and dataclasses.is_dataclass(x):
        return kind, tuple([static_key(getattr(x, field.name), depth - 1) for field in dataclasses.fields(x)])
    return kind, ByEquality(x)


def fingerprint(fun: Callable[..., Any]) -> Fingerprint | None:
    """The fingerprint that equal functions share; None for a function that equals only itself."""
    try:
        return Fingerprint(on_deep_stack(_key, fun, _Reached()))
    except MutableFound:
        return None


class _Reached(dict[int, int]):
    """The numbers of the functions that were entered, by identity; ``depth``: how many of them were not yet left."""

    __slots__ = ("depth",)

    def __init__(self) -> None:
        self.depth = 0


def _key(x: Any, seen: _Reached) -> Any:
    """The key of a value that a function reads.

    Raises: MutableFound.
    """
    kind = type(x)
    if kind is types.FunctionType:
        return _function_key(x, seen)
    if kind in _NUMBERS:
        return kind, bits(x)
    if kind is types.BuiltinFunctionType:
        if not is_constant_builtin(x):
            raise MutableFound
        return x
    if kind is types.ModuleType:
        if not is_constant_module(x):
            raise MutableFound
        return x
    if isinstance(x, type):
        return x if is_constant_class(x) else _class_key(x, seen)
    if kind in _HASHED:
        return kind, x
    if isinstance(x, Enum):
        return kind, x._name_, _beside_value(x, seen)
    if isinstance(x, _VALUES) and kind.__hash__ is not None:
        return kind, bits(x), _beside_value(x, seen)
    if kind is tuple or kind is frozenset:
        parts = [_key(item, seen) for item in x]
        return kind, tuple(parts) if kind is tuple else frozenset(parts)
    if isinstance(x, _CONSTANT):
        return ByIdentity(x)
    if isinstance(x, tuple) and hasattr(kind, "_fields"):
        return _class_key(kind, seen), tuple([_key(item, seen) for item in x])
    if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        fields = tuple([_key(getattr(x, field.name), seen) for field in dataclasses.fields(x)])
        return _class_key(kind, seen), fields
    if kind is functools.partial:
        return kind, _key(x.func, seen), _key(x.args, seen), _key(tuple(sorted(x.keywords.items())), seen)
    if isinstance(getattr(kind, "captures", None), tuple):
        return _ruled_key(x, seen)
    raise MutableFound


def _ruled_key(x: Any, seen: _Reached) -> Any:
    """The key of a function with custom rules: its public attributes, the rules among them, in their present state."""
    number = seen.get(id(x))
    if number is not None:
        return "again", number
    seen[id(x)] = len(seen)
    public = [(name, part) for name, part in sorted(vars(x).items()) if not name.startswith("_")]
    return type(x), tuple([(name, _key(part, seen)) for name, part in public])


def _function_key(f: types.FunctionType, seen: _Reached) -> Any:
    number = seen.get(id(f))
    if number is not None:
        return "again", number
    if len(seen) > _MAX_FUNCTIONS or seen.depth == _MAX_DEPTH:
        raise MutableFound
    seen[id(f)] = len(seen)
    seen.depth += 1
    jitted = jit_info(f)
    if jitted is not None:
        key: Any = "jit", _key(jitted.fun, seen), jitted.options_key
        seen.depth -= 1
        return key
    if not _is_plain(f):
        raise MutableFound
    code = code_reads(f.__code__)
    ours = (f.__module__ or "").startswith(_OURS)
    if code.acts and not ours:
        raise MutableFound
    cells: list[Any] = []
    for cell in f.__closure__ or ():
        try:
            x = cell.cell_contents
        except ValueError:  # an empty cell
            raise MutableFound from None
        if type(x) is types.ModuleType:
            cells.append(_module_key(x, f.__code__.co_freevars[len(cells)], code, seen))
        else:
            cells.append(_key(x, seen))
    defaults, keywords = f.__defaults__, f.__kwdefaults__
    default_keys = defaults and _key(defaults, seen), keywords and _key(tuple(sorted(keywords.items())), seen)
    # the globals of handlax's own functions are the library, which does not change
    key = (code, default_keys, tuple(cells), None if ours else _globals_key(f, code, seen))
    seen.depth -= 1
    return key


def _is_plain(f: types.FunctionType) -> bool:
    """Whether a function has no attributes but those copied from the plain or jitted function that it wraps."""
    names = f.__dict__.keys()
    if not names or (len(names) == 1 and "__wrapped__" in names):
        return True
    inner = f.__dict__.get("__wrapped__")
    copied = all([f.__dict__[name] is getattr(inner, name, None) for name in names - {"__wrapped__"}])
    return copied and isinstance(inner, types.FunctionType) and (jit_info(inner) is not None or _is_plain(inner))


def _globals_key(f: types.FunctionType, code: CodeReads, seen: _Reached) -> Any:
    """Name and key of each global or builtin whose name occurs in the code, be it only as an attribute.

    Raises: MutableFound: among other reasons, the code imports a module that is not constant.
    """
    known = f.__globals__
    keys = []
    for name in code.names:
        if name in known:
            x = known[name]
            keys.append((name, _module_key(x, name, code, seen) if type(x) is types.ModuleType else _key(x, seen)))
        elif name in _BUILTINS:
            if name in _ESCAPES:
                raise MutableFound
            x = _BUILTINS[name]
            keys.append((name, x if type(x) in _BY_IDENTITY else ByIdentity(x)))
    if code.imports:
        for chain in code.chains:
            _, _, name = chain[0].partition(" ")
            if name and not (name in sys.modules and is_constant_module(sys.modules[name])):
                raise MutableFound
    return tuple(keys)


def _module_key(module: types.ModuleType, name: str, code: CodeReads, seen: _Reached) -> Any:
    """The key of a module that a function knows by this name: the keys of what its code reads through it.

    Raises: MutableFound: among other reasons, the code does anything else with the module.
    """
    if not code.reads_outside and is_constant_module(module):
        return module
    keys = []
    for chain in code.chains:
        if chain[0] == name:
            x: Any = module
            for attribute in chain[1:]:
                if type(x) is not types.ModuleType:
                    break
                if x is np and attribute in NUMPY_OUTSIDE:
                    raise MutableFound
                x = getattr(x, attribute, None)
            keys.append((chain, _key(x, seen)))
    return module, tuple(keys)


def _class_key(kind: type, seen: _Reached) -> Any:
    """A class by the attributes of it, its bases and its metaclass, but for those that every definition makes."""
    if is_of_library(kind):  # a file, a clock, a generator of numbers
        raise MutableFound
    number = seen.get(id(kind))
    if number is not None:
        return "again", number
    seen[id(kind)] = len(seen)
    meta: type = type(kind)
    bases = (*kind.__mro__, *meta.__mro__)
    return kind, tuple([(base, _attributes_key(base, seen)) for base in bases if not is_constant_class(base)])


def _attributes_key(kind: type, seen: _Reached) -> Any:
    keys = []
    is_enum = issubclass(kind, Enum)
    for name, x in vars(kind).items():
        if isinstance(x, (staticmethod, classmethod)):
            x = x.__func__
        elif isinstance(x, property):
            x = (x.fget, x.fset)
        if isinstance(x, types.FunctionType):
            made = name == "__repr__" or (name in _MADE and x.__code__.co_filename.startswith("<"))
            made = made and (name != "__init__" or "__dataclass_params__" in vars(kind))
            keys.append((name, ByIdentity(x) if made or is_of_library(x) else _key(x, seen)))
        elif not (name in _TABLES or isinstance(x, (*_DESCRIPTORS, kind)) or (is_enum and _is_private_to_python(name))):
            keys.append((name, _key(x, seen)))
    if is_enum:
        keys += [(name, _fields_key(member, seen)) for name, member in kind.__members__.items()]  # type: ignore[attr-defined]
    return tuple(keys)


def _is_private_to_python(name: str) -> bool:
    """Whether a name is of the form that enumerations use for tables of their own: ``__x__``, ``_x_``."""
    return name.startswith("_") and name.endswith("_")


def _beside_value(x: Any, seen: _Reached) -> Any:
    """The class and the fields of a number, a string or a member; None where its class is a library's."""
    return None if is_constant_class(type(x)) else (_class_key(type(x), seen), _fields_key(x, seen))


def _fields_key(x: Any, seen: _Reached) -> Any:
    """What an instance of a class of the program has beside its value as a number, a string or a member."""
    fields = sorted(getattr(x, "__dict__", {}).items())
    return tuple([(name, _key(value, seen)) for name, value in fields if not _is_private_to_python(name)])


TRACES = Cache("trace")
"""Traces of functions with a fingerprint, by fingerprint and call."""

_OWN = WeakCache("traces of functions that equal themselves alone")


def own_traces(fun: Callable[..., Any], otherwise: dict[Any, Any]) -> dict[Any, Any]:
    """The traces of a function that equals only itself, dropped when it dies.

    ``otherwise`` is returned for a callable that cannot be weakly referenced.
    """
    traces = _OWN.part(fun, id(fun))
    return otherwise if traces is None else traces
