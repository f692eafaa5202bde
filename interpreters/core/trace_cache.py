"""Traces: functions recorded on arguments of given types, once for all levels of nesting.

The traces of a function are cached by the tree and types of the arguments, the configuration, and the enclosing named
axes, and are dropped with the function. An equal function defined again is traced again, but not compiled again, since
equal programs share an executable. A trace that captured a box of an enclosing trace is not cached. A trace with
effects whose types were determined by enclosing handlers (``AnswerTyped``) is cached on the run of the innermost
handler alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...effects.base import config
from ...effects.base.caches import AttachedCache, WeakCache
from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadArgument, NotAnArray, TracingRefused
from ...effects.base.monitoring import TRACE_SECONDS
from ...effects.base.source_locations import starts_path, user_site
from ...effects.base.stack import BASE, Run, current, installed
from ...effects.base.watching import finish_step, label_of
from ...effects.core.arrays import Array, ConcreteArray, as_array, type_of
from ...effects.core.escaped_boxes import check_leaks
from ...effects.core.named_axes import named_axes
from ...effects.core.result_trees import AnswerTyped
from ...effects.programs.closure_conversion import close
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...effects.types.dtype_families import float0
from .record import Record
from .static_arguments import PartitionedCall, argument_names, dynamic_positions

if TYPE_CHECKING:
    from ...effects.trees.cpp_pytrees import PyTreeDef

_CONCRETE = frozenset((ConcreteArray,)).issuperset


class Trace(NamedTuple):
    """A function as ``jit`` recorded it for arguments of some types.

    ``program`` is closed: it takes the ``captured`` values, then the leaves of the arguments. ``recorded`` is the
    program before closure conversion. ``unflatten`` rebuilds the result from its leaves. ``is_leaf``: the result is a
    single array.
    """

    recorded: Program
    program: Program
    captured: tuple[Array, ...]
    out_tree: PyTreeDef
    unflatten: Callable[[Sequence[Any]], Any]
    is_leaf: bool


def _unflattening(structure: PyTreeDef, types: Sequence[ArrayType]) -> Callable[[Sequence[Any]], Any]:
    """The function that rebuilds results of this structure from their leaves; ``float0`` leaves are NumPy zeros, but
    those of symbolic shapes.
    """
    rebuild = _fastest(structure)
    empty = {i: np.zeros(t.shape, float0) for i, t in enumerate(types) if t.dtype == float0 and not t.ragged}
    return (lambda leaves: rebuild([empty.get(i, x) for i, x in enumerate(leaves)])) if empty else rebuild


def _fastest(structure: PyTreeDef) -> Callable[[Sequence[Any]], Any]:
    """The fastest function that rebuilds a tree of this structure from its leaves."""
    if pytrees.is_leaf_structure(structure):
        return lambda leaves: leaves[0]
    if structure == pytrees.structure((0,) * structure.num_leaves):
        return tuple
    return structure.unflatten


# Tracing


class TraceRequest(NamedTuple):
    """A function to trace, with the structure and types of its dynamic arguments; ``merge`` adds the static values.

    ``names`` gives the name of each leaf of the dynamic arguments, for messages.
    """

    fun: Callable[..., Any]
    name: str
    tree: PyTreeDef
    types: tuple[ArrayType, ...]
    merge: Callable[[Any, Any], tuple[Any, Any]] | None
    key: Any
    label: str = "jit"
    names: Callable[[int], str] | None = None


_TRACES = WeakCache("trace")
"""Traces by static values, structure, types, named axes and settings; dropped with the function that was traced."""
_ON_INSTALLATIONS = AttachedCache("traces under one run", "traces")
"""Traces with effects whose types the handlers in force determined; dropped with the innermost installation."""


def traces_of(fun: Callable[..., Any]) -> dict[Any, Trace]:
    """The traces of a function, for ``trace``: one dictionary, however often the function is jitted."""
    return _TRACES.part(fun)


def trace(request: TraceRequest, traces: dict[Any, Trace]) -> Trace:
    """The trace of a request: the cached one of ``traces`` or of the innermost run, else recorded now."""
    key = (request.key, tuple(named_axes()))
    cached = traces.get(key)
    under_run = current().traces
    if cached is None and under_run is not None:
        cached = under_run.get((request.fun, key))
    if cached is not None:
        _TRACES.hits += 1
        return cached
    made = record(request)
    if any(x.run is not None for x in made.captured):
        return made
    if any([isinstance(effect, AnswerTyped) for effect in made.program.effects]):
        if current() is BASE:
            return made
        return _ON_INSTALLATIONS.add(_on_installation(current()), (request.fun, key), made)
    return _TRACES.add(traces, key, made)


def _on_installation(run: Run) -> dict[Any, Trace]:
    """The traces that are valid under ``run`` alone, by function and key."""
    if run.traces is None:
        run.traces = {}
        _ON_INSTALLATIONS.owners.add(run)
    return run.traces


@starts_path
def record(request: TraceRequest) -> Trace:
    """Record a function by calling it on boxes. Raises: TracingRefused: under ``no_tracing``."""
    if config.current().no_tracing:
        raise TracingRefused(
            f"{request.name}: no function may be traced under no_tracing, and this one was not for such arguments.",
            hint="call it once before; hx.explain(f) says for which arguments it was traced.",
        )
    start = time.perf_counter()
    run = Record(current(), request.label, user_site(2))
    run.names = request.names
    with installed(run):
        args, kwargs = request.tree.unflatten(run.inputs(request.types))
        if request.merge is not None:
            args, kwargs = request.merge(args, kwargs)
        results = on_deep_stack(request.fun, *args, **kwargs)
        leaves, tree = pytrees.flatten(results)
        recorded = run.freeze(box_results(leaves, results, request.name), request.name)
    if config.current().check_leaks:
        del args, kwargs, results, leaves
        check_leaks(run)
    closed = close(recorded)
    seconds, label = time.perf_counter() - start, label_of(request.fun, f"{request.label}({request.name})")
    finish_step(TRACE_SECONDS, seconds, label, "Finished tracing %s in %.3f ms")
    unflatten = _unflattening(tree, recorded.out_types)
    is_array = pytrees.is_leaf_structure(tree) and recorded.out_types[0].dtype != float0
    return Trace(recorded, closed.program, closed.captured, tree, unflatten, is_array)


def box_results(leaves: Sequence[Any], results: Any, name: str) -> list[Array]:
    """The results as arrays. Raises: NotAnArray: a result is neither an array nor a number; it is named by its path."""
    arrays = []
    for i, leaf in enumerate(leaves):
        try:
            arrays.append(leaf if isinstance(leaf, Array) else as_array(leaf))
        except NotAnArray:
            path = pytrees.leaves_with_path(results)[i][0]
            where = f" at {pytrees.keystr(path)}" if path else ""
            raise NotAnArray(
                f"{name}: results must be arrays or numbers, got {type(leaf).__name__}{where}.",
                hint="return arrays, and trees of them; keep other values outside.",
            ) from None
    return arrays


def leaf_types(leaves: Sequence[Any], names: Callable[[int], str], name: str) -> tuple[ArrayType, ...]:
    """The types of the leaves of the arguments. Raises: NotAnArray: a leaf is neither an array nor a number."""
    types = []
    for i, x in enumerate(leaves):
        try:
            types.append(x.type if isinstance(x, Array) else type_of(x))
        except NotAnArray:
            raise NotAnArray(
                f"{name}: arguments must be arrays or numbers, got {type(x).__name__} for {names(i)}.",
                hint="make it static (static_argnums, static_argnames), or keep it outside.",
            ) from None
    return tuple(types)


def trace_request(
    fun: Callable[..., Any], name: str, partition: PartitionedCall | None, args: Any, kwargs: Any, label: str = "jit"
) -> tuple[TraceRequest, Sequence[Any]]:
    """The request to trace a call, and the leaves of its dynamic arguments ``args`` and ``kwargs``."""
    leaves, tree = pytrees.flatten((args, kwargs))
    if _CONCRETE(map(type, leaves)):
        types = tuple([x.type for x in leaves])
    else:
        types = leaf_types(leaves, lambda i: leaf_name(fun, i, partition, tree), name)
    key = (config.current(), None if partition is None else partition.key, tree, types)
    try:
        hash(key)
    except TypeError:
        check_hashable(args, kwargs)
    names = lambda i: leaf_name(fun, i, partition, tree)
    return TraceRequest(fun, name, tree, types, partition and partition.merge, key, label, names), leaves


def leaf_name(fun: Callable[..., Any], i: int, partition: PartitionedCall | None, tree: PyTreeDef) -> str:
    """The name, in messages, of leaf ``i`` of a call's dynamic arguments: ``x`` or ``params['w'][0]``.

    ``tree``: the structure of ``(args, kwargs)``.
    """
    argument, positions = argument_names(fun), dynamic_positions(partition, len(tree.children()[0].children()))
    return leaf_names(lambda n: argument(positions[n]), tree)[i]


def leaf_names(argument: Callable[[int], str], tree: PyTreeDef) -> list[str]:
    """The names of the leaves of ``(args, kwargs)``, of which ``tree`` is the structure, such as ``params['w'][0]``.

    ``argument`` names the positional arguments.
    """
    paths = [*pytrees.leaf_paths(tree)]
    roots = [argument(path[1].idx) if path[0].idx == 0 else path[1].key for path in paths]
    return [f"{root}{pytrees.keystr(path[2:])}" for root, path in zip(roots, paths)]


def chosen_name(fun: Callable[..., Any], argnums: Any, chosen: Sequence[Any], i: int) -> str:
    """The name of leaf ``i`` of the arguments ``chosen`` by ``argnums``, as ``leaf_names`` gives it."""
    positions = argnums if isinstance(argnums, Sequence) else [argnums]
    argument = argument_names(fun)
    return leaf_names(lambda n: argument(positions[n]), pytrees.structure((tuple(chosen), {})))[i]


def check_hashable(args: Any, kwargs: Any) -> None:
    """Raises: TypeError, BadArgument: data in the structure of the arguments is not hashable."""
    hash(pytrees.structure((args, kwargs)))
    raise BadArgument("jit: the structure of the arguments must be hashable.")
