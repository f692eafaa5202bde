"""Dispatch plans, the keys that calls find them by, and the extraction of buffers from arguments."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...effects.base.caches import Cache
from ...effects.core import arrays
from ...effects.core.arrays import PYTHON_NUMBERS, ConcreteArray, UnsealedArray, as_array, from_buffers, scalar
from ...effects.core.escaped_boxes import escaped_box_error
from ...effects.trees.frozen_tree import Frozen, deferred_tree
from ...effects.types.array_type import ArrayType, array_type
from ...effects.types.dtypes import canonicalize_dtype
from ...effects.types.widths import NARROWER
from ...interpreters.core.trace_cache import Trace
from ..compile.compile import LoadedProgram
from ..xla.array_backend import PLACED
from ..xla.lazy import runtime
from ..xla.pinned_buffers import STAGED_BYTES, stage_device

MOST_ENTRIES = 4096
CONCRETE = frozenset((ConcreteArray,)).issuperset
FLAT = frozenset(
    (ConcreteArray, np.ndarray, *PYTHON_NUMBERS, np.bool_, np.float32, np.float64, np.int32, np.int64)
).issuperset
PLAIN = frozenset((bool, int, str, type(None))).issuperset
# Each maps types of arguments to whether they are: concrete arrays; array-like leaves; static values equal by ``==``.
NUMPY_TYPES = Cache("types of NumPy arrays", MOST_ENTRIES)
"""The type of a NumPy array, by dtype and shape."""
_NUMPY_TYPES: dict[tuple[Any, Any], ArrayType] = NUMPY_TYPES.entries


class DispatchPlan:
    """What a call with known argument types executes.

    ``execute`` maps argument buffers to result buffers. ``prepare`` selects the buffers that it takes; None: all.
    ``result_type`` is the type of the result where that is one array, else None; ``finish`` then makes the results of
    their buffers. ``put`` transfers NumPy arrays; ``use_pinned``: small ones may be copied to pinned buffers instead.
    ``donated`` are the indices of the donated leaves of the arguments, ``captured`` the arrays that the function took
    from its surroundings, ``key`` is that of its trace. ``places`` has where the program takes each argument from;
    ``prepare`` first brings there those of the buffers ``found``, and NumPy arrays, of a call that are elsewhere.
    ``place``: that of the one argument of a call; None: there are more, or all arrays are alike.
    """

    __slots__ = (
        "execute", "result_type", "finish", "prepare", "put", "use_pinned", "donated", "captured", "key", "places",
        "place",
    )

    def __init__(
        self, trace: Trace, compiled: LoadedProgram, key: Any = None, committed: bool = False, found: Sequence[Any] = ()
    ):
        loaded = compiled.loaded
        self.key = key
        types = tuple(compiled.types)
        self.execute = loaded.execute_committed if committed else loaded.execute
        self.places = compiled.places
        self.place: Any = runtime.places_of(found)[0] if len(found) == 1 else None
        self.result_type = types[0] if trace.is_leaf else None
        self.finish = _finish(trace, types)
        movers = [(i, runtime.mover(x, where)) for i, (x, where) in enumerate(zip(found, self.places)) if where]
        self.prepare = _moving([(i, move) for i, move in movers if move is not None], compiled.prepare)
        self.put = runtime.putter(loaded.device, committed=False)
        small = sum([t.nbytes for t in types]) <= STAGED_BYTES and bool(types)
        self.use_pinned = small and loaded.device == stage_device()
        self.captured = compiled.captured
        count = len(compiled.captured)
        self.donated = tuple([n - count for n, alias in zip(loaded.used_inputs, loaded.aliases) if alias is not None])


def _moving(moves: Sequence[tuple[int, Any]], prepare: Callable[[list[Any]], list[Any]] | None) -> Any:
    """``prepare`` applied to the buffers after ``moves``: pairs of a buffer's index and the function that moves it."""
    if not moves:
        return prepare

    def moved(buffers: list[Any]) -> list[Any]:
        for i, move in moves:
            buffers[i] = move(buffers[i])
        return buffers if prepare is None else prepare(buffers)

    return moved


class CompiledTrace(NamedTuple):
    """A trace, its compiled program, and the plan by which calls execute it."""

    trace: Trace
    compiled: LoadedProgram
    plan: DispatchPlan


class FrozenSignature:
    """The structure and types of a frozen tree; equal ones are one object."""

    __slots__ = ("__weakref__",)


_SIGNATURES: weakref.WeakValueDictionary[Any, FrozenSignature] = weakref.WeakValueDictionary()


def frozen_signature(tree: Any, types: tuple[ArrayType, ...]) -> FrozenSignature:
    """The signature of a structure and the types of its leaves."""
    found = _SIGNATURES.get((tree, types))
    return _SIGNATURES.setdefault((tree, types), FrozenSignature()) if found is None else found


def frozen_parts(tree: Frozen) -> tuple[FrozenSignature | None, list[Any]]:
    """A frozen tree's signature and buffers, cached on the tree; None and [] if a leaf is not a concrete array."""
    leaves = tree.leaves
    if not CONCRETE(map(type, leaves)):
        return None, []
    found = frozen_signature(tree.treedef, tuple([x.type for x in leaves])), [x.buffer for x in leaves]
    if not PLACED:
        object.__setattr__(tree, "_dispatch", found)
    return found


def note_numpy_types(leaves: Sequence[Any]) -> None:
    """Register the types of NumPy arrays among the leaves that a device takes as they are, so that ``gather`` finds
    them.
    """
    for x in leaves:
        if type(x) is np.ndarray and x.dtype == canonicalize_dtype(x.dtype) and x.dtype.isnative and x.dtype.itemsize:
            NUMPY_TYPES.add((x.shape, x.dtype), array_type(x.shape, canonicalize_dtype(x.dtype)))


def is_host(x: Any) -> bool:
    """Whether ``gather`` leaves a leaf the NumPy array that it is."""
    return type(x) is np.ndarray and (x.shape, x.dtype) in _NUMPY_TYPES


def gather(leaves: Sequence[Any], types: list[Any]) -> tuple[list[Any], list[int]] | None:
    """Append the types of the leaves to ``types``; their buffers, and the indices of NumPy arrays among those.

    None where the type of a leaf is not found quickly: the call then takes the slow path.
    """
    buffers: list[Any] = []
    host: list[int] = []
    for x in leaves:
        kind = type(x)
        if kind is np.ndarray:
            t = _NUMPY_TYPES.get((x.shape, x.dtype))
            if t is not None:
                types.append(t)
                host.append(len(buffers))
                buffers.append(x)
                continue
            if x.dtype not in NARROWER:
                return None
            x = as_array(x)
        elif kind in PYTHON_NUMBERS:
            x = scalar(x)
        elif kind is not ConcreteArray:
            if not isinstance(x, np.generic):
                return None
            x = as_array(x)
        types.append(x.type)
        buffers.append(x.buffer)
    return buffers, host


def _finish(trace: Trace, types: tuple[ArrayType, ...]) -> Callable[[list[Any]], Any]:
    """The map from buffers to results. A frozen tree keeps the buffers for the next call and makes arrays lazily."""
    unflatten, tree = trace.unflatten, trace.out_tree
    if tree.node_data() != (Frozen, None):
        return _finish_arrays(types, unflatten)
    signature = frozen_signature(tree, types)
    return lambda buffers: deferred_tree(
        tree, lambda: from_buffers(types, buffers), None if PLACED else (signature, buffers)
    )


def _finish_arrays(types: tuple[ArrayType, ...], unflatten: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """``unflatten(from_buffers(types, buffers))``; each array replaces its buffer in the list, which is faster."""
    numbered = tuple(enumerate(types))

    def finish(results: list[Any]) -> Any:
        unsealed, sealed = UnsealedArray, ConcreteArray
        for i, type in numbered:
            new = unsealed()
            new.type = type
            new._value = None
            new._buffer = results[i]
            new.__class__ = sealed
            results[i] = new
        return unflatten(results)

    return finish


def call_keys(kinds: Sequence[Any]) -> tuple[Any, ...]:
    """The keys of a call with arguments of these types or signatures; a single one is also a key without a tuple."""
    return (tuple(kinds), kinds[0]) if len(kinds) == 1 else (tuple(kinds),)


def signature(x: Any) -> FrozenSignature | None:
    """The signature of a frozen tree; None for other values, and where a leaf is not a concrete array."""
    return frozen_parts(x)[0] if type(x) is Frozen else None


def concrete_operand(x: Any) -> ConcreteArray:
    """An argument as a concrete array. Raises: EscapedBox: it is a box."""
    array = as_array(x)
    if array.run is not None:
        raise escaped_box_error(array)
    return array  # type: ignore[return-value]


def donated_buffer(x: ConcreteArray, put: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    """The buffer of a donated array that a program may overwrite: a copy where NumPy or the package share its data."""
    return x.buffer if x._value is None and not arrays.is_shared(x) else put(x.value)
