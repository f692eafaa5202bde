"""Entries: what is known of a call once its types are, and the short ways from arguments to buffers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..effects import arrays
from ..effects.arrays import ConcreteArray, Unsealed, from_buffers, lift, scalar
from ..effects.escape import escaped
from ..effects.frozen import FROZEN, Frozen, delayed
from ..effects.types import ArrayType
from .backend import PLACED
from .compile import Compiled
from .lazy import runtime
from .staging import STAGED_BYTES, stage_device
from .traces import Trace

MOST_ENTRIES = 4096
CONCRETE = frozenset((ConcreteArray,)).issuperset
NUMBERS = frozenset((bool, int, float, complex))
FLAT = frozenset(
    (ConcreteArray, np.ndarray, *NUMBERS, np.bool_, np.float32, np.float64, np.int32, np.int64)
).issuperset
PLAIN = frozenset((bool, int, str, type(None))).issuperset
NUMPY_TYPES: dict[tuple[Any, Any], ArrayType] = {}


class Hot:
    """What a call needs when its types are known: ``kind`` is the type of the only result, where that is an array.

    ``finish`` makes the results of buffers, ``prepare`` chooses the buffers that the device takes, ``put`` brings
    NumPy arrays there, ``stages`` says that small ones may go by way of memory that is used again, ``donated`` are the
    leaves of the arguments whose memory goes to a result.
    """

    __slots__ = ("run", "handlers", "kind", "finish", "prepare", "put", "stages", "donated")

    def __init__(self, trace: Trace, compiled: Compiled):
        loaded = compiled.loaded
        types = loaded.types
        self.run = loaded.run
        self.handlers = loaded.handlers
        self.kind = types[0] if trace.is_leaf else None
        self.finish = _finish(trace, types)
        self.prepare = compiled.prepare
        self.put = runtime.putter(loaded.device, committed=False)
        small = sum([t.nbytes for t in types]) <= STAGED_BYTES and bool(types)
        self.stages = small and loaded.device == stage_device()
        count = len(compiled.captured)
        self.donated = tuple([n - count for n, alias in zip(loaded.kept, loaded.aliases) if alias is not None])


class Entry(NamedTuple):
    """A compiled trace."""

    trace: Trace
    compiled: Compiled
    hot: Hot


class Signature:
    """The structure and types of a frozen tree; equal ones are one object."""

    __slots__ = ("__weakref__",)


_SIGNATURES: weakref.WeakValueDictionary[Any, Signature] = weakref.WeakValueDictionary()


def signature_of(tree: Any, types: tuple[ArrayType, ...]) -> Signature:
    found = _SIGNATURES.get((tree, types))
    return _SIGNATURES.setdefault((tree, types), Signature()) if found is None else found


def frozen_parts(tree: Frozen) -> tuple[Signature | None, list[Any]]:
    """A frozen tree's signature and buffers, kept on it; without a signature where a leaf is no array of ours."""
    leaves = tree.leaves
    if not CONCRETE(map(type, leaves)):
        return None, []
    found = signature_of(tree.treedef, tuple([x.type for x in leaves])), [x.buffer for x in leaves]
    if not PLACED:
        object.__setattr__(tree, "_dispatch", found)
    return found


def gather(leaves: Sequence[Any], types: list[Any]) -> tuple[list[Any], list[int]] | None:
    """Append the types of the leaves; give their buffers, and the places where there is a NumPy array instead.

    None where a leaf has to be looked at more closely.
    """
    buffers: list[Any] = []
    host: list[int] = []
    for x in leaves:
        kind = type(x)
        if kind is np.ndarray:
            known = NUMPY_TYPES.get((x.shape, x.dtype))
            if known is None:
                return None
            types.append(known)
            host.append(len(buffers))
            buffers.append(x)
            continue
        if kind in NUMBERS:
            x = scalar(x)
        elif kind is not ConcreteArray:
            if not isinstance(x, np.generic):
                return None
            x = lift(x)
        types.append(x.type)
        buffers.append(x.buffer)
    return buffers, host


def _finish(trace: Trace, types: tuple[ArrayType, ...]) -> Callable[[list[Any]], Any]:
    """From buffers to results. A frozen tree keeps them for the next call, and wraps them when somebody looks."""
    unflatten, tree = trace.unflatten, trace.out_tree
    if tree.kind is not FROZEN:
        return _wrapped(types, unflatten)
    signature = signature_of(tree, types)
    return lambda made: delayed(tree, lambda: from_buffers(types, made), None if PLACED else (signature, made))


def _wrapped(types: tuple[ArrayType, ...], unflatten: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """``unflatten(from_buffers(types, made))``; each array takes the place of its buffer, without a second list."""
    numbered = tuple(enumerate(types))

    def finish(made: list[Any]) -> Any:
        blank, sealed = Unsealed, ConcreteArray
        for i, type in numbered:
            new = blank()
            new.type = type
            new._value = None
            new._buffer = made[i]
            new.__class__ = sealed
            made[i] = new
        return unflatten(made)

    return finish


def keys_of(kinds: Sequence[Any]) -> tuple[Any, ...]:
    """Under what a call is known whose arguments are of these kinds; one alone also without a tuple around it."""
    return (tuple(kinds), kinds[0]) if len(kinds) == 1 else (tuple(kinds),)


def signature(x: Any) -> Signature | None:
    return frozen_parts(x)[0] if type(x) is Frozen else None


def concrete_operand(x: Any) -> ConcreteArray:
    found = lift(x)
    if found.run is not None:
        raise escaped(found)
    return found  # type: ignore[return-value]


def give_away(x: ConcreteArray) -> None:
    """Mark an array as donated: its data are gone."""
    if x.type.shape == () and any(x is constant for constant in list(arrays._CONSTANTS.values())):
        return  # a number that the whole process shares
    if x._buffer is not None and not runtime.is_deleted(x._buffer):
        runtime.delete(x._buffer)
    arrays._set_value(x, None)
