"""Traces: what a function does on arguments of given types, recorded once however it is nested.

A trace is kept under the function (``identity`` says when two are one), the tree and types of the arguments, the
configuration, and the named axes around. One that captured a box of an enclosing run is not kept. One whose effects
have been typed by asking the handlers outside, and say so in a field ``like``, is kept for the run around it alone.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects import config, identity, trees
from ..effects.arrays import Array, Box, lift, type_of
from ..effects.closing import close
from ..effects.errors import BadArgument, Leak, NotAnArray
from ..effects.escape import escaped as escaped
from ..effects.identity import TRACES, fingerprint, own_traces
from ..effects.programs import Program
from ..effects.sources import user_site
from ..effects.stack import BASE, Run, current, installed
from ..effects.treedefs import same_data
from ..effects.types import ArrayType
from ..interpreters.record import Record
from .lazy import runtime

COUNTS: Counter[str] = Counter()
"""How often a function was traced: "trace"."""
_LOCK = threading.Lock()
_MIRRORED: list[bool] = []


class Trace(NamedTuple):
    """A recorded function.

    ``program`` takes the ``captured`` values, then the leaves of the arguments; ``whole`` is as it was recorded.
    """

    whole: Program
    program: Program
    captured: tuple[Array, ...]
    out_tree: Any
    unflatten: Callable[[Sequence[Any]], Any]
    is_leaf: bool


# Trees in C++


class _Data:
    """Static data of a node, compared by type and value as our own structures do."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Data) and same_data(self.value, other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _mirror(cls: type, parts: Callable[[Any], Any], make: Callable[[Any, Any], Any]) -> None:
    if cls is OrderedDict or cls is defaultdict:  # known to the runtime's registry by itself
        return

    def to_iter(x: Any) -> tuple[Any, Any]:
        children, data = parts(x)
        return children, None if data is None else _Data(data)

    runtime.register_node(cls, to_iter, lambda data, children: make(None if data is None else data.value, children))


@functools.cache
def cpp_flatten() -> Callable[[Any], tuple[list[Any], Any]]:
    """Flattening in C++, for the same node types as ours."""
    with _LOCK:  # functools.cache lets two threads in at once, and a type is registered once
        if not _MIRRORED:
            trees.on_register(_mirror)
            _MIRRORED.append(True)
    return runtime.flatten


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Leaves and structure, in C++; what C++ refuses is explained by our own walk."""
    try:
        return cpp_flatten()(tree)
    except (ValueError, TypeError):
        trees.flatten(tree)
        raise


def _unflattening(tree: Any, structure: Any) -> Callable[[Sequence[Any]], Any]:
    """The quickest way to put results of this structure together."""
    if structure is trees.LEAF:
        return lambda leaves: leaves[0]
    if structure == trees.structure((0,) * structure.num_leaves):
        return tuple
    return structure.unflatten if _has_frozen(structure) else tree.unflatten


def _has_frozen(structure: Any) -> bool:
    """Whether a node keeps its own leaves: our own walk then rebuilds it without its insides."""
    return structure.kind is not None and (
        structure.kind.build is not None or any(_has_frozen(child) for child in structure.children())
    )


# Tracing


class Call(NamedTuple):
    """What is to be traced: a function, structure and types of its dynamic arguments, and how the static ones join."""

    fun: Callable[..., Any]
    name: str
    tree: Any
    types: tuple[ArrayType, ...]
    merge: Callable[[Any, Any], tuple[Any, Any]] | None
    key: Any
    label: str = "jit"


def axes() -> tuple[Any, ...]:
    """The named axes around, with their sizes: a function may ask for them while it is traced."""
    found = []
    run = current()
    while run is not BASE:
        name = getattr(run, "axis_name", None)
        if name is not None:
            found.append((name, getattr(run, "size", None)))
        run = run.outer
    return tuple(found)


# the traces of programs with effects, for the runs around them that have not ended
_IN_RUN: list[tuple[Run, dict[Any, Trace]]] = []
_MOST_RUNS = 16


def trace(call: Call, own: dict[Any, Any]) -> Trace:
    """The trace of a call: found, or made and kept. ``own`` is the store of the jitted function itself."""
    key = (call.key, axes())
    found = own.get(key)
    if found is not None:
        return found
    mark = fingerprint(call.fun)
    store = TRACES.entries if mark is not None else own_traces(call.fun, own)
    whole = key if mark is None else (mark, key)
    found = store.get(whole)
    if found is None and current() is not BASE:
        found = next((made.get((call.fun, key)) for run, made in list(_IN_RUN) if run is current()), None)
        if found is not None:
            return found
    if found is None:
        found = record(call)
        if any(x.run is not None for x in found.captured):
            return found
        if any(["like" in getattr(effect, "_names", ()) for effect in found.program.effects]):
            return found if current() is BASE else _in_run(current()).setdefault((call.fun, key), found)
        TRACES.misses += 1
        found = _keep(store, whole, found)
    else:
        TRACES.hits += 1
    return found if store is own else _keep(own, key, found)


def _keep(store: dict[Any, Any], key: Any, made: Trace) -> Trace:
    if len(store) >= TRACES.capacity:
        with _LOCK:
            for old in list(store)[: TRACES.capacity // 2]:
                store.pop(old, None)
    return store.setdefault(key, made)


def _in_run(run: Run) -> dict[Any, Trace]:
    for other, found in list(_IN_RUN):
        if other is run:
            return found
    with _LOCK:
        _IN_RUN[:] = [(other, found) for other, found in _IN_RUN if not other.ended][-_MOST_RUNS:]
        made: dict[Any, Trace] = {}
        _IN_RUN.append((run, made))
        return made


def record(call: Call) -> Trace:
    """Run the function on boxes, once."""
    COUNTS["trace"] += 1
    run = Record(current(), call.label, user_site(2))
    with installed(run):
        args, kwargs = call.tree.unflatten([run.input(t) for t in call.types])
        if call.merge is not None:
            args, kwargs = call.merge(args, kwargs)
        results = call.fun(*args, **kwargs)
        leaves, tree = flatten(results)
        structure = trees.structure(results)
        whole = run.freeze(lift_results(leaves, results, call.name), call.name)
    if config.current().check_leaks:
        del args, kwargs, results, leaves
        check_leaks(run, call.name)
    closed = close(whole)
    unflatten = _unflattening(tree, structure)
    return Trace(whole, closed.program, closed.captured, structure, unflatten, structure is trees.LEAF)


def lift_results(leaves: Sequence[Any], results: Any, name: str) -> list[Array]:
    """The results as arrays. Raises NotAnArray, with its place, for one that is nothing of the kind."""
    lifted = []
    for i, leaf in enumerate(leaves):
        try:
            lifted.append(leaf if isinstance(leaf, Array) else lift(leaf))
        except NotAnArray:
            path = trees.leaves_with_path(results)[i][0]
            where = f" at {trees.keystr(path)}" if path else ""
            raise NotAnArray(
                f"{name}: results must be arrays or numbers, got {type(leaf).__name__}{where}.",
                hint="return arrays, and trees of them; keep other values outside.",
            ) from None
    return lifted


def check_leaks(run: Record, name: str) -> None:
    """Raises Leak where a box of a trace that has ended is still alive."""
    gc.collect()
    for x in gc.get_referrers(run):
        if isinstance(x, Box):
            raise Leak(
                f"{name}: no value of a trace may outlive it, got {x.type}, made at {x.made_at}, still held.",
                hint="return it, instead of keeping it in a variable outside the function.",
            )


def leaf_types(leaves: Sequence[Any], names: Callable[[int], str], name: str) -> tuple[ArrayType, ...]:
    """The types of the leaves of the arguments. Raises NotAnArray, with its name, for one that has none."""
    found = []
    for i, x in enumerate(leaves):
        try:
            found.append(x.type if isinstance(x, Array) or type(getattr(x, "type", None)) is ArrayType else type_of(x))
        except NotAnArray:
            raise NotAnArray(
                f"{name}: arguments must be arrays or numbers, got {type(x).__name__} for {names(i)}.",
                hint="make it static (static_argnums, static_argnames), or keep it outside.",
            ) from None
    return tuple(found)


def leaf_names(argument: Callable[[int], str], args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[[int], str]:
    """How the leaves of the arguments are called: ``x``, ``params['w'][0]``."""

    def name(i: int) -> str:
        path = trees.leaves_with_path((tuple(args), kwargs))[i][0]
        first = argument(path[1].idx) if path[0].idx == 0 else path[1].key
        return f"{first}{trees.keystr(path[2:])}"

    return name


def check_hashable(args: Any, kwargs: Any) -> None:
    """Raises BadStaticArgument where static data in the arguments' structure cannot be hashed."""
    hash(trees.structure((args, kwargs)))
    raise BadArgument("jit: the structure of the arguments must be hashable.")


def forget(fun: Callable[..., Any]) -> None:
    """Drop every trace of one function."""
    mark = fingerprint(fun)
    if mark is None:
        own_traces(fun, {}).clear()
    kept: list[Any] = list(TRACES.entries)
    for key in [key for key in kept if key[0] == mark]:
        TRACES.entries.pop(key, None)


def clear() -> None:
    """Drop every trace."""
    identity.clear()
    _IN_RUN.clear()
