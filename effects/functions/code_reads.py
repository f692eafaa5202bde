"""What the code of a function reads: names, and attributes through modules; and which modules and classes are constant.

A constant module is one whose names nobody sets: those of handlax and NumPy, and modules of functions in the standard
library. All others, modules of programs and of other packages, may be changed: what is read through them is a value
like a global.
"""

from __future__ import annotations

import dis
import os
import pathlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..base.caches import Cache, cached
from ..core.operation import Operation

_ROOTS = (__name__.split(".")[0], "numpy", "jaxlib", "ml_dtypes")
_PACKAGES = tuple([root + "." for root in _ROOTS])
_PURE = frozenset((
    "abc", "bisect", "_bisect", "builtins", "cmath", "collections", "collections.abc", "_collections", "copy",
    "dataclasses", "enum", "fractions", "functools", "_functools", "heapq", "_heapq", "itertools", "math",
    "numbers", "operator", "_operator", "re", "string", "types", "typing",
))  # fmt: skip
_STANDARD = sys.stdlib_module_names | {"builtins"}
_FOLDER = pathlib.Path(os.__file__).parent
_CONSTANT = _PURE.union(_ROOTS)
# NumPy's functions in Python are wrapped by one type in C, which shows neither code nor closure.
NUMPY_DISPATCHER = type(np.sum)
_NAME = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_CLASSDEREF"))
_ATTRIBUTE = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_IMPORT = dis.opmap["IMPORT_NAME"]
# NumPy's functions that are no functions of their arguments.
NUMPY_OUTSIDE = frozenset(("random", "load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap"))
_SETS = frozenset(dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"))
_SETS_DEREF = dis.opmap["STORE_DEREF"]
_IGNORED = frozenset(("PUSH_NULL", "CACHE", "PRECALL", "NOP", "RESUME", "COPY_FREE_VARS"))


class CodeReads:
    """A code object with its hash, which is linear in its size; and what is in it, nested code included.

    Attributes:
        names: of globals, builtins and attributes.
        imports: whether there is an import statement.
        reads_outside: whether a name of NumPy's that draws numbers or reads files is among the names.
        acts: whether it sets a global, an attribute, or a variable of an enclosing function: tracing it has an effect.
    """

    __slots__ = ("code", "hash", "names", "imports", "reads_outside", "acts", "_chains")
    _chains: tuple[tuple[str, ...], ...]

    def __init__(self, code: types.CodeType):
        self.code = code
        self.hash = hash(code)
        every = list(_nested(code))
        self.names = tuple(sorted({name for one in every for name in one.co_names}))
        operations = [frozenset(one.co_code[::2]) for one in every]
        self.imports = any([_IMPORT in own for own in operations])
        self.reads_outside = not NUMPY_OUTSIDE.isdisjoint(self.names)
        self.acts = any([_acts(one, own, code.co_freevars) for one, own in zip(every, operations)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodeReads) and self.code == other.code

    def __hash__(self) -> int:
        return self.hash

    @property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """``("cfg", "a", "b")`` for each place that reads ``cfg.a.b``; ``("import cfg",)`` for an import statement.

        They are read off the bytecode, which takes as long as a small trace: ask only for functions that need it.
        """
        try:
            return self._chains
        except AttributeError:
            self._chains = tuple(sorted({chain for one in _nested(self.code) for chain in _chains(one)}))
            return self._chains


_CODES = Cache("code objects")  # by identity: an entry keeps its code object alive


def code_reads(code: types.CodeType) -> CodeReads:
    found: CodeReads | None = _CODES.entries.get(id(code))
    return _CODES.add(id(code), CodeReads(code)) if found is None else found


def _acts(code: types.CodeType, operations: frozenset[int], enclosing: tuple[str, ...]) -> bool:
    if not _SETS.isdisjoint(operations):
        return True
    if not enclosing or _SETS_DEREF not in operations:
        return False
    return any([i.opname == "STORE_DEREF" and i.argval in enclosing for i in dis.get_instructions(code)])


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


def _chains(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    chain: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if chain and instruction.opname in _ATTRIBUTE:
            chain = (*chain, instruction.argval)
        elif instruction.opname not in _IGNORED:
            if chain:
                yield chain
            chain = (instruction.argval,) if instruction.opname in _NAME else ()
            if instruction.opname == "IMPORT_NAME":
                yield (f"import {instruction.argval}",)
    if chain:
        yield chain


def is_constant_module(module: types.ModuleType) -> bool:
    """Whether no program sets names in a module, and its functions give equal results for equal arguments.

    ``numpy.random`` and such modules as ``time`` are none.
    """
    return _is_constant_name(module.__name__)


def _is_constant_name(name: str) -> bool:
    return name in _CONSTANT or (name.startswith(_PACKAGES) and not name.startswith("numpy.random"))


def is_constant_builtin(x: Any) -> bool:
    """Whether a function in C gives equal results for equal arguments: neither ``time.time`` nor ``[].append``."""
    owner = getattr(x, "__self__", None)
    if isinstance(owner, types.ModuleType):
        return is_constant_module(owner)
    module = getattr(x, "__module__", None)
    return owner is None and module is not None and _is_constant_name(module)


def is_constant_class(kind: type) -> bool:
    """Whether a class does not change and reads nothing outside: operations, and classes of some libraries."""
    return _is_constant_name(kind.__module__) or issubclass(kind, Operation)


def is_of_library(x: Any) -> bool:
    """Whether a class or function is of the standard library, NumPy, jaxlib or handlax."""
    root = (x.__module__ or "").partition(".")[0]
    return root in _ROOTS or (root in _STANDARD and _is_standard(root))


@cached("modules of the standard library", 512)
def _is_standard(name: str) -> bool:
    """Whether the module of this name is Python's own: a program may have a ``profile`` or a ``code`` too."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    origin = pathlib.Path(getattr(spec, "origin", None) or "built-in")
    own = origin.is_relative_to(_FOLDER) and "site-packages" not in origin.parts
    return spec is not None and (own or str(origin) in ("built-in", "frozen"))
