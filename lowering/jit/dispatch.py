"""Dispatch: from a call of a jitted function to the execution of its program.

A call whose argument types are known is one look-up and one call of the runtime. Those fast paths are written out in
``call_fastpath`` and in ``Jitted.mixed``, ``partitioned``, ``one_frozen`` and ``frozen``; all other calls take
``Jitted.slow``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from ...effects.base import config
from ...effects.base.caches import AttachedCache, Owners
from ...effects.base.errors import NotAnArray
from ...effects.base.stack import BASE, STACK
from ...effects.base.watching import COMPILED_ANEW, FunctionLabel, label_of, logger
from ...effects.base.wrapping import name_of, unwound
from ...effects.core.arrays import Array, ConcreteArray, as_array, concrete, type_of
from ...effects.core.named_axes import PROCESSES, Axis
from ...effects.programs.higher_order import Call as CallOp
from ...effects.programs.program import interpret
from ...effects.trees import pytrees
from ...effects.trees.failures import recovered
from ...effects.trees.frozen_tree import Frozen
from ...effects.trees.structure import cpp_pytrees
from ...interpreters.core import trace_cache
from ...interpreters.core.static_arguments import (
    ArgumentChoice,
    PartitionedCall,
    dynamic_positions,
    split,
)
from ...interpreters.core.trace_cache import TraceRequest
from ...interpreters.references.arguments import call_pure, check_usable, positions_of, pure_of
from ...interpreters.references.reference import references_in
from ..arrays import transfer_guards
from ..arrays.call_shardings import (
    NO_SHARDINGS,
    CallShardings,
    constrained,
    shardings_of,
    with_argument_cuts,
    with_result_cuts,
)
from ..compile.compile import check_donation, compile_program, fail
from ..compile.placement import Placement, by_settings, committed, on_device
from ..xla.array_backend import PLACED, note_placement
from ..xla.lazy import runtime
from ..xla.pinned_buffers import STAGED_BYTES, stage
from . import debug_nans
from .call_signature import (
    CONCRETE,
    FLAT,
    MOST_ENTRIES,
    PLAIN,
    CompiledTrace,
    DispatchPlan,
    call_keys,
    concrete_operand,
    donated_buffer,
    frozen_parts,
    gather,
    is_host,
    note_numpy_types,
    signature,
)
from .explain_retrace import last_kind, leaf_names_of


class Jitted:
    """A jitted function: the Python function, the options of ``jit``, and its caches.

    ``compiled`` maps a call's key, placement and donated leaves to its compiled trace, ``traces`` its key to its trace.
    ``plans`` maps settings to the dispatch plans of the fast paths, by argument types; ``active_plans`` is the last
    entry used, as settings and plans. ``positions`` maps a count of positional arguments to static and dynamic
    positions, ``pure`` the leaves that are references to the function of their values. ``kept`` are the dynamic leaves
    that are never donated: the values of references, which live on.
    ``plain``: no argument is static or donated, and no device or sharding was chosen; ``sharded``: a sharding was.
    """

    __slots__ = (
        "fun", "name", "static", "donate", "keep_unused", "device", "inline", "options",
        "plain", "positions", "compiled", "traces", "plans", "active_plans", "pure", "kept", "shardings",
        "sharded", "__weakref__",
    )

    def __init__(
        self,
        fun: Callable[..., Any],
        static: ArgumentChoice,
        donate: ArgumentChoice,
        keep_unused: bool,
        device: Any,
        inline: bool,
        options: Mapping[str, Any] | None,
        kept: tuple[int, ...] = (),
        shardings: CallShardings = NO_SHARDINGS,
    ):
        self.fun = fun
        self.name = name_of(fun)
        self.static = static
        self.donate = donate
        self.keep_unused = keep_unused
        self.device = device
        self.inline = inline
        self.options = dict(options) if options else None
        self.shardings = shardings
        self.sharded = bool(shardings)
        self.plain = not (static or donate or device is not None or self.sharded)
        self.positions: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.compiled: dict[Any, CompiledTrace] = {}
        self.traces = trace_cache.traces_of(fun)
        self.plans: dict[Any, dict[Any, DispatchPlan]] = {}
        self.active_plans: tuple[Any, dict[Any, DispatchPlan]] = (None, {})
        self.pure: dict[tuple[tuple[int, ...], tuple[int, ...]], Jitted] = {}
        self.kept = frozenset(kept)
        _JITTED.add(self)

    def clear(self) -> None:
        """Drop every trace and compiled program of this function."""
        self.compiled.clear()
        self.traces.clear()
        self.pure.clear()
        for part in _PLANS.parts_of(self):
            part.clear()

    def placement(
        self, args: Any, kwargs: Any, leaves: Sequence[Any], where: Placement | None, names: Callable[[int], str]
    ) -> Placement | None:
        """Where a call is executed: as ``jit`` was told, else ``where`` its arguments are, else None."""
        if self.device is not None:
            note_placement(self.device)
            return on_device(self.device)
        if not self.sharded:
            return where
        asked = self.shardings.of_arguments(args, kwargs)
        for i, (sharding, x) in enumerate(zip(asked, leaves)):
            if sharding is not None:
                sharding.check_fit(self.name, partial(names, i), type_of(x).shape)
        return self.shardings.placement(self.name, asked, shardings_of(leaves), where, names)

    # fast paths

    def mixed(self, args: tuple[Any, ...], kwargs: dict[str, Any], plans: dict[Any, DispatchPlan]) -> Any:
        """A call with trees, NumPy arrays or numbers among its arguments."""
        types: list[Any] = []
        leaves: Sequence[Any] = args
        if kwargs or not FLAT(map(type, args)):
            if not kwargs and not PLACED and Frozen in map(type, args):
                return self.frozen(args, plans)
            try:
                leaves, tree = cpp_pytrees.flatten((args, kwargs))
            except BaseException as error:
                return self.not_flat(error, (args, kwargs), args, kwargs)
            if CONCRETE(map(type, leaves)):
                buffers = [x.buffer if x._buffer is None else x._buffer for x in leaves]
                places = map(runtime.place_of, buffers) if PLACED else ()
                plan = plans.get((tree, *[x.type for x in leaves], *places))
                return self.slow(args, kwargs) if plan is None else self.launch(plan, leaves, buffers)
            types.append(tree)
        gathered = gather(leaves, types)
        if gathered is None:
            return self.slow(args, kwargs)
        buffers, host = gathered
        if PLACED:
            types += runtime.places_of(buffers)
            host = []  # ``prepare`` brings NumPy arrays where the program takes them from
        plan = plans.get(tuple(types))
        if plan is None:
            return self.slow(args, kwargs)
        return self.launch_from_host(plan, leaves, buffers, host) if host else self.launch(plan, leaves, buffers)

    def partitioned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with static or donated arguments, or with shardings said of them or of the results."""
        settings, plans = self.active_plans
        if config.CONFIG.get().settings is not settings:
            recalled = self.recall()
            if recalled is None:
                return self.slow(args, kwargs)
            plans = recalled
        dynamic, named = args, kwargs
        types: list[Any] = [None]
        if self.static:
            keyed = self.quick_partition(args) if not kwargs else None
            if keyed is None:
                partition = split(self.fun, self.static, args, kwargs)
                keyed, named = (partition.key, partition.args), partition.kwargs
            types[0], dynamic = keyed
        try:
            leaves, tree = cpp_pytrees.flatten((dynamic, named))
        except BaseException as error:
            return self.not_flat(error, (dynamic, named), args, kwargs)
        types.append(tree)
        gathered = gather(leaves, types)
        if gathered is None:
            return self.slow(args, kwargs)
        buffers, host = gathered
        placed = bool(PLACED)
        if placed:
            types += runtime.places_of(buffers)
        plan = plans.get(tuple(types))
        if plan is None:
            return self.slow(args, kwargs)
        if not plan.donated:
            on_host = host and not placed
            return self.launch_from_host(plan, leaves, buffers, host) if on_host else self.launch(plan, leaves, buffers)
        for i in host:
            buffers[i] = plan.put(buffers[i]) if not placed else buffers[i].copy()
        check_donation(leaves, buffers, plan.donated, self.name, lambda i: self.leaf_names(plan)[i])
        for i in plan.donated:
            if i not in host:
                lent = donated_buffer(as_array(leaves[i]), plan.put)  # type: ignore[arg-type]
                buffers[i] = runtime.copy_to(lent, plan.places[i]) if placed else lent
        results = self.launch(plan, leaves, buffers)
        for i in plan.donated:
            if type(leaves[i]) is ConcreteArray:
                leaves[i].delete()
        return results

    def quick_partition(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
        """Key and dynamic arguments of a call whose static arguments equal by ``==`` and type; None for other calls."""
        count = len(args)
        positions = self.positions.get(count)
        if positions is None:
            fixed = sorted(self.static.at(count))
            dynamic = tuple([i for i in range(count) if i not in fixed])
            positions = _POSITIONS.add(self.positions, count, (tuple(fixed), dynamic))
        values = tuple([args[i] for i in positions[0]])
        kinds = tuple(map(type, values))
        if not PLAIN(kinds):
            return None
        return (count, kinds, values), tuple([args[i] for i in positions[1]])

    def one_frozen(self, x: Frozen, plans: dict[Any, DispatchPlan]) -> Any:
        """A call with one frozen tree as its only argument."""
        try:
            signature, buffers = x._dispatch
        except AttributeError:
            signature, buffers = frozen_parts(x)
        plan = plans.get(signature)
        return self.slow((x,), {}) if plan is None else self.launch(plan, (x,), buffers)

    def frozen(self, args: tuple[Any, ...], plans: dict[Any, DispatchPlan]) -> Any:
        """A call with arrays and frozen trees, whose structure and buffers are cached on the trees."""
        key: list[Any] = []
        buffers: list[Any] = []
        for x in args:
            kind = type(x)
            if kind is ConcreteArray:
                key.append(x.type)
                buffers.append(x.buffer)
            elif kind is Frozen:
                try:
                    signature, more = x._dispatch
                except AttributeError:
                    signature, more = frozen_parts(x)
                if signature is None:
                    return self.slow(args, {})
                key.append(signature)
                buffers += more
            else:
                return self.slow(args, {})
        plan = plans.get(tuple(key))
        return self.slow(args, {}) if plan is None else self.launch(plan, args, buffers)

    def not_flat(self, error: BaseException, tree: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose arguments' ``tree`` was not flattened: again, by the slow path, unless it was interrupted."""
        found = recovered(error, tree)
        if not isinstance(found, Exception):
            raise found
        return self.slow(args, kwargs)

    def launch(self, plan: DispatchPlan, leaves: Sequence[Any], buffers: list[Any]) -> Any:
        """Execute a plan on the buffers of the arguments."""
        prepare, t = plan.prepare, plan.result_type
        try:
            results = plan.execute(buffers if prepare is None else prepare(buffers))
        except Exception as error:
            self.fail(error, leaves, plan)
        return plan.finish(results) if t is None else concrete(t, None, results[0])

    def launch_from_host(self, plan: DispatchPlan, leaves: Sequence[Any], buffers: list[Any], host: list[int]) -> Any:
        """``launch`` where ``buffers`` has NumPy arrays at the indices ``host``."""
        prepare, t, put, use_pinned = plan.prepare, plan.result_type, plan.put, plan.use_pinned
        used = []
        for i in host:
            x = buffers[i]
            pinned = stage(x) if use_pinned and x.nbytes <= STAGED_BYTES else None
            if pinned is None:
                buffers[i] = put(x)
            else:
                buffers[i] = pinned.buffer
                used.append(pinned)
        try:
            results = plan.execute(buffers if prepare is None else prepare(buffers))
        except Exception as error:
            self.fail(error, leaves, plan)
        for pinned in used:
            pinned.release(results)
        return plan.finish(results) if t is None else concrete(t, None, results[0])

    def fail(self, error: Exception, leaves: Sequence[Any], plan: DispatchPlan) -> NoReturn:
        """Raise the error of a failed fast path, with the arguments by name."""
        flat = [y for x in leaves for y in (x.leaves if type(x) is Frozen else (x,))]
        fail(error, self.name, flat, lambda i: self.leaf_names(plan)[i], plan.captured)

    def leaf_names(self, plan: DispatchPlan) -> list[str]:
        """The names, in messages, of the leaves of the dynamic arguments of calls that a plan executes."""
        _, static, tree, _ = plan.key
        return leaf_names_of(self, static, tree)

    def recall(self) -> dict[Any, DispatchPlan] | None:
        """The plans of the settings in force, made the active ones; None where there are none."""
        settings = config.current()
        plans = self.plans.get(settings)
        if plans is not None:
            self.active_plans = (settings, plans)  # this settings object, so that the next call's `is` check hits
        return plans

    # the slow path

    @unwound
    def slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call, under any handlers, without a dispatch plan: traced and compiled unless it was."""
        settings = config.current()
        if settings.disable_jit:
            return self.fun(*args, **kwargs)
        partition = split(self.fun, self.static, args, kwargs) if self.static else None
        all_args, all_kwargs = args, kwargs
        if partition is not None:
            args, kwargs = partition.args, partition.kwargs
        try:
            request, leaves = trace_cache.trace_request(self.fun, self.name, partition, args, kwargs)
        except NotAnArray:
            positions, kept = self.reference_leaves(all_args, all_kwargs)
            if not positions:
                raise
            return self.on_references(all_args, all_kwargs, positions, kept)
        called = request
        if self.sharded:
            request = with_argument_cuts(request, self.shardings.of_arguments(args, kwargs))
        if STACK.get() is not BASE:
            return self.nested(request, leaves, args, kwargs)

        def names(i: int) -> str:
            return trace_cache.leaf_name(self.fun, i, partition, request.tree)

        if settings.guarded:
            transfer_guards.check_call(self.name, leaves, names)
        note_numpy_types(leaves)
        operands = [x if type(x) is ConcreteArray else concrete_operand(x) for x in leaves]
        buffers = [x.buffer for x in operands]
        where = committed(buffers, self.name, names) if PLACED and self.device is None else None
        placement = self.placement(args, kwargs, leaves, where, names)
        is_committed = placement is not None  # to what ``jit`` or the arguments say
        if self.sharded:
            placement = self.shardings.with_layouts(placement, args, request.types, shardings_of(leaves), names)
        entry = self.entry(request, placement, self.donated_leaves(args, kwargs, partition) if self.donate else ())
        if entry is None:
            return self.nested(request, leaves, args, kwargs)
        if settings.guarded:
            transfer_guards.check_moves(self.name, buffers, entry.compiled.places, names)
        elif (self.device is None or PLACED) and not settings.debug_nans and not settings.debug_infs:
            plan, found = entry.plan, None
            if PLACED:
                found = [x if is_host(x) else b for x, b in zip(leaves, buffers)]
                plan = DispatchPlan(entry.trace, entry.compiled, called.key, is_committed, found)
            self.remember(settings, all_args, args, kwargs, partition, called, found, plan)
        results = self.execute(entry, operands, buffers, is_committed, names)
        if settings.debug_nans or settings.debug_infs:
            debug_nans.check(entry.trace, operands, results, self.name, settings)
        return entry.trace.unflatten(results)

    def reference_leaves(self, args: Any, kwargs: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The indices of the dynamic leaves that are references: among the leaves of all arguments, and among them."""
        fixed = self.static.at(len(args))
        positional = [(i not in fixed, x) for i, x in enumerate(args)]
        leaves: list[Any] = []
        dynamic: list[Any] = []
        for yes, x in [*positional, *[(name not in self.static.names, kwargs[name]) for name in sorted(kwargs)]]:
            found = pytrees.leaves(x)
            leaves += found if yes else [None] * len(found)
            dynamic += found if yes else []
        return positions_of(leaves), positions_of(dynamic)

    def on_references(self, args: Any, kwargs: Any, positions: tuple[int, ...], kept: tuple[int, ...]) -> Any:
        """A call with references among its arguments: of the function of their values, which is jitted in its turn."""
        jitted = self.pure.get((positions, kept))
        if jitted is None:
            jitted = Jitted(
                pure_of(self.fun, positions), self.static, self.donate, self.keep_unused, self.device, self.inline,
                self.options, kept, self.shardings,
            )
            jitted = _PURE.add(self.pure, (positions, kept), jitted)
        return call_pure(jitted.call, args, kwargs, positions)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The jitted function as it is called: by the fast path that the options of ``jit`` allow."""
        plans = self.recall() if STACK.get() is BASE else None
        if plans is None:
            return self.slow(args, kwargs)
        return self.mixed(args, kwargs, plans) if self.plain else self.partitioned(args, kwargs)

    def nested(self, request: TraceRequest, leaves: Sequence[Any], args: Any, kwargs: Any) -> Any:
        """A call under handlers: one operation with the trace as body; with ``inline`` those of the trace.

        What ``jit`` was told of shardings are constraints there.
        """
        trace = trace_cache.trace(request, self.traces)
        check_usable(references_in(trace.program.effects))
        if self.sharded:
            leaves = constrained(leaves, self.shardings.of_arguments(args, kwargs))
        operands = (*trace.captured, *[x if isinstance(x, Array) else as_array(x) for x in leaves])
        if self.inline and STACK.get() is not BASE:
            results: Any = interpret(trace.program, operands)
        else:
            results = STACK.get().answer(CallOp((trace.program,), self.name), operands)
        if self.sharded:
            asked = self.shardings.of_results(self.name, trace.out_tree, trace.recorded.out_types)
            results = tuple(constrained(results, asked))
        return trace.unflatten(results)

    def entry(
        self, request: TraceRequest, placement: Placement | None, donated: tuple[int, ...]
    ) -> CompiledTrace | None:
        """The compiled trace of a call at a placement, from the cache or traced and compiled.

        None: the base interpretation executes it, as it uses references of its surroundings, whose values are passed
        to it, or processes meet in it, with values of their own.
        """
        key = (request.key, placement or by_settings(), donated)
        found = self.compiled.get(key)
        if found is None:
            trace = trace_cache.trace(request, self.traces)
            if references_in(trace.program.effects) or Axis(PROCESSES) in trace.program.effects:
                return None
            if self.sharded:
                asked = self.shardings.of_results(self.name, trace.out_tree, trace.recorded.out_types)
                trace = with_result_cuts(trace, asked)
            placement = self.shardings.with_results(self.name, placement, trace.out_tree, trace.recorded.out_types)
            marks = [i in donated for i in range(len(request.types))]
            compiled = compile_program(
                trace.recorded, module_name(self.name), marks if donated else (),
                keep_unused=self.keep_unused, placement=placement, options=self.options, function=self.label(),
            )
            found = CompiledTrace(trace, compiled, DispatchPlan(trace, compiled, request.key))
            found = _COMPILED.add(self.compiled, key, found)
            if config.current().explain_cache_misses:
                logger().warning(COMPILED_ANEW, self.name, last_kind(self), extra={"function": self.label()})
        return found

    def label(self) -> FunctionLabel:
        """The function as events tell of it."""
        return label_of(self.fun, f"jit({self.name})")

    def donated_leaves(self, args: Any, kwargs: Any, partition: PartitionedCall | None) -> tuple[int, ...]:
        """The indices of the donated leaves of the dynamic arguments."""
        positions = dynamic_positions(partition, len(args))
        donated = self.donate.at(len(args) + (0 if partition is None else len(partition.static_args)))
        indices: list[int] = []
        number = 0
        positional = [(i in donated, x) for i, x in zip(positions, args)]
        for yes, x in [*positional, *[(name in self.donate.names, kwargs[name]) for name in sorted(kwargs)]]:
            size = len(pytrees.leaves(x))
            if yes:
                indices.extend(range(number, number + size))
            number += size
        return tuple([i for i in indices if i not in self.kept])

    def remember(
        self,
        settings: Any,
        all_args: Any,
        args: Any,
        kwargs: Any,
        partition: PartitionedCall | None,
        request: TraceRequest,
        found: Sequence[Any] | None,
        plan: DispatchPlan,
    ) -> None:
        """Store the plan of a call, so that the next call of these types takes a fast path.

        ``found``: the buffers of the arguments, and NumPy arrays, where arrays may be on several devices; else None.
        """
        plans = self.plans.get(settings)
        if plans is None:
            plans = _PLANS.add(self.plans, settings, {})
        described = [*request.types, *([] if found is None else runtime.places_of(found))]
        if not self.plain:
            key = None if partition is None else partition.key
            if partition is not None and not partition.static_kwargs and not kwargs:
                keyed = self.quick_partition(all_args)
                key = key if keyed is None else keyed[0]
            keys = [(key, request.tree, *described)]
        elif not kwargs and FLAT(map(type, args)):
            keys = [*call_keys(described)]
        else:
            keys = [(request.tree, *described)]
        if self.plain and found is None and not kwargs and Frozen in map(type, args):
            types = [x.type if type(x) is ConcreteArray else signature(x) for x in args]
            if None not in types:
                keys += call_keys(types)
        for key in keys:
            _PLANS.add(plans, key, plan)
        if plan.place is not None:
            plans[request.types[0]] = plan  # the last one of its type, found without a hash of its place
        self.active_plans = (settings, self.plans.setdefault(settings, plans))  # again, if the cache was cleared above

    def execute(
        self, entry: CompiledTrace, operands: list[Any], buffers: list[Any], committed: bool, names: Any
    ) -> tuple[ConcreteArray, ...]:
        """Execute a compiled trace on the buffers of the arguments, and delete the donated arguments."""
        donated = entry.plan.donated
        if donated:
            check_donation(operands, buffers, donated, self.name, names)
            for i in donated:
                buffers[i] = donated_buffer(operands[i], entry.plan.put)
        if PLACED or self.device is not None:
            buffers = entry.compiled.moved(buffers)
        try:
            results = entry.compiled.execute(buffers, committed)
        except Exception as error:
            fail(error, self.name, operands, names, entry.compiled.captured)
        for i in donated:
            operands[i].delete()
        return results


def module_name(name: str) -> str:
    """The name of a function's StableHLO module, without angle brackets."""
    return f"jit_{name.replace('<', '_').replace('>', '')}"


class _Plans(AttachedCache):
    """The dispatch plans of all jitted functions, by settings. Those of one function and settings are emptied before
    they are dropped: ``active_plans`` holds them.
    """

    @staticmethod
    def parts_of(jitted: Jitted) -> list[dict[Any, Any]]:
        return [*list(jitted.plans.values()), jitted.plans]

    def parts(self) -> list[dict[Any, Any]]:
        return [part for jitted in self.owners.alive() for part in self.parts_of(jitted)]


_JITTED = Owners()
_COMPILED = AttachedCache("compiled traces", "compiled", MOST_ENTRIES, _JITTED)
"""Compiled traces by settings, static values, structure and types; attached to the jitted function."""
_POSITIONS = AttachedCache("positions of static arguments", "positions", MOST_ENTRIES, _JITTED)
"""Positions of the static and other arguments by their number; attached to the jitted function."""
_PURE = AttachedCache("functions of the values of references", "pure", 256, _JITTED)
"""Functions of references' values by the references' positions; attached to the jitted function."""
_PLANS = _Plans("dispatch", "plans", 1 << 14, _JITTED)
"""How a call is executed, by settings and the arguments' types; attached to the jitted function."""
