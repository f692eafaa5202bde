"""jit: trace once, compile once, run on the device.

    jit(f)(x) == f(x)

A call whose arguments have known types is one look-up and one call of the runtime; those paths are written out in
``_entrance``, ``Jitted.mixed`` and ``Jitted.frozen``. Everything else goes through ``Jitted.slow``.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..effects import arrays, config
from ..effects.arrays import Array, ConcreteArray, concrete, lift, scalar
from ..effects.caches import CACHES, CacheInfo
from ..effects.control import Call as CallOp
from ..effects.dtypes import canonical
from ..effects.errors import BadArgument
from ..effects.frozen import FROZEN, Frozen, delayed
from ..effects.programs import interpret
from ..effects.stack import BASE, STACK
from ..effects.types import ArrayType, array_type
from . import debug, traces
from .backend import PLACED, common_device, default_device
from .compile import Compiled, check_donation, compile_program, failure
from .lazy import runtime, stages
from .statics import Choice, Parts, argument_names, check_disjoint, choose, split
from .traces import Call, Trace, cpp_flatten, leaf_names, leaf_types

MOST_ENTRIES = 4096
_CONCRETE = frozenset((ConcreteArray,)).issuperset
_NUMBERS = frozenset((bool, int, float, complex))
_FLAT = frozenset(
    (ConcreteArray, np.ndarray, *_NUMBERS, np.bool_, np.float32, np.float64, np.int32, np.int64)
).issuperset
_PLAIN = frozenset((bool, int, str, type(None))).issuperset
_NUMPY_TYPES: dict[tuple[Any, Any], ArrayType] = {}


class Hot(NamedTuple):
    """What a call needs when its types are known: ``kind`` is the type of the only result, where that is an array.

    ``finish`` makes the results of buffers, ``prepare`` chooses the buffers that the device takes, ``put`` brings
    NumPy arrays there, ``stages`` says that small ones may go by way of memory that is used again, ``donated`` are the
    leaves of the arguments whose memory goes to a result.
    """

    run: Callable[..., Any]
    handlers: Any
    kind: ArrayType | None
    finish: Callable[[Sequence[Any]], Any]
    prepare: Callable[[list[Any]], list[Any]] | None
    put: Callable[[Any], Any]
    stages: bool
    donated: tuple[int, ...]


class Entry(NamedTuple):
    """A compiled trace."""

    trace: Trace
    compiled: Compiled
    hot: Hot


class Signature:
    """The structure and types of a frozen tree; equal ones are one object."""

    __slots__ = ("__weakref__",)


_SIGNATURES: weakref.WeakValueDictionary[Any, Signature] = weakref.WeakValueDictionary()


def _signature_of(tree: Any, types: tuple[ArrayType, ...]) -> Signature:
    found = _SIGNATURES.get((tree, types))
    return _SIGNATURES.setdefault((tree, types), Signature()) if found is None else found


def _dispatch(tree: Frozen) -> tuple[Signature | None, list[Any]]:
    """A frozen tree's signature and buffers, kept on it; without a signature where a leaf is no array of ours."""
    leaves = tree.leaves
    if not _CONCRETE(map(type, leaves)):
        return None, []
    found = _signature_of(tree.treedef, tuple([x.type for x in leaves])), [x.buffer for x in leaves]
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
            known = _NUMPY_TYPES.get((x.shape, x.dtype))
            if known is None:
                return None
            types.append(known)
            host.append(len(buffers))
            buffers.append(x)
            continue
        if kind in _NUMBERS:
            x = scalar(x)
        elif kind is not ConcreteArray:
            if not isinstance(x, np.generic):
                return None
            x = lift(x)
        types.append(x.type)
        buffers.append(x.buffer)
    return buffers, host


class Jitted:
    """What a jitted function knows: the function, how its arguments are to be treated, and its compiled traces."""

    __slots__ = (
        "fun", "name", "static", "donate", "keep_unused", "device", "inline", "options", "options_key",
        "plain", "places", "table", "own", "hot", "state", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        fun: Callable[..., Any],
        static: Choice,
        donate: Choice,
        keep_unused: bool,
        device: Any,
        inline: bool,
        options: Mapping[str, Any] | None,
    ):
        self.fun = fun
        self.name = _name(fun)
        self.static = static
        self.donate = donate
        self.keep_unused = keep_unused
        self.device = device
        self.inline = inline
        self.options = dict(options) if options else None
        self.options_key = (static, donate, keep_unused, inline, tuple(sorted((self.options or {}).items())))
        self.plain = not (static or donate or device is not None)
        self.places: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.table: dict[Any, Entry] = {}
        self.own: dict[Any, Any] = {}
        self.hot: dict[Any, dict[Any, Hot]] = {}
        self.state: tuple[Any, dict[Any, Hot]] = (None, {})
        _JITTED.add(self)

    def clear(self) -> None:
        """Forget every trace and compiled program of this function."""
        self.table.clear()
        self.own.clear()
        self.hot.clear()
        self.state = (None, {})

    # the quick ways

    def mixed(self, args: tuple[Any, ...], kwargs: dict[str, Any], entries: dict[Any, Hot]) -> Any:
        """A call with trees, NumPy arrays or numbers among its arguments."""
        types: list[Any] = []
        leaves: Sequence[Any] = args
        if kwargs or not _FLAT(map(type, args)):
            if not kwargs and Frozen in map(type, args):
                return self.frozen(args, entries)
            try:
                leaves, tree = cpp_flatten()((args, kwargs))
            except (ValueError, TypeError):
                return self.slow(args, kwargs)
            if _CONCRETE(map(type, leaves)):
                hot = entries.get((tree, *[x.type for x in leaves]))
                if hot is None:
                    return self.slow(args, kwargs)
                return self.launch(hot, leaves, [x.buffer if x._buffer is None else x._buffer for x in leaves])
            types.append(tree)
        gathered = gather(leaves, types)
        hot = entries.get(tuple(types)) if gathered is not None else None
        if hot is None:
            return self.slow(args, kwargs)
        buffers, host = gathered  # type: ignore[misc]
        return self.launch_from_host(hot, leaves, buffers, host) if host else self.launch(hot, leaves, buffers)

    def parted(self, args: tuple[Any, ...], kwargs: dict[str, Any], entries: dict[Any, Hot]) -> Any:
        """A call with static or donated arguments."""
        dynamic, named = args, kwargs
        types: list[Any] = [None]
        if self.static:
            quick = self.quick_parts(args) if not kwargs else None
            if quick is None:
                parts = split(self.fun, self.static, args, kwargs)
                quick, named = (parts.key, parts.args), parts.kwargs
            types[0], dynamic = quick
        try:
            leaves, tree = cpp_flatten()((dynamic, named))
        except (ValueError, TypeError):
            return self.slow(args, kwargs)
        types.append(tree)
        gathered = gather(leaves, types)
        hot = entries.get(tuple(types)) if gathered is not None else None
        if hot is None:
            return self.slow(args, kwargs)
        buffers, host = gathered  # type: ignore[misc]
        if not hot.donated:
            return self.launch_from_host(hot, leaves, buffers, host) if host else self.launch(hot, leaves, buffers)
        for i in host:
            buffers[i] = hot.put(buffers[i])
        check_donation(buffers, hot.donated, self.name, lambda i: f"leaf {i} of the arguments")
        for i in hot.donated:
            if type(leaves[i]) is not ConcreteArray or leaves[i]._value is not None:
                buffers[i] = hot.put(leaves[i].value if type(leaves[i]) is ConcreteArray else np.asarray(buffers[i]))
        made = self.launch(hot, leaves, buffers)
        for i in hot.donated:
            if type(leaves[i]) is ConcreteArray:
                _give_away(leaves[i])
        return made

    def quick_parts(self, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
        """Key and dynamic arguments of a call whose static arguments are plain values; None for other calls."""
        count = len(args)
        places = self.places.get(count)
        if places is None:
            fixed = sorted(self.static.at(count))
            places = self.places[count] = (tuple(fixed), tuple([i for i in range(count) if i not in fixed]))
        values = tuple([args[i] for i in places[0]])
        kinds = tuple(map(type, values))
        if not _PLAIN(kinds):
            return None
        return (count, kinds, values), tuple([args[i] for i in places[1]])

    def frozen(self, args: tuple[Any, ...], entries: dict[Any, Hot]) -> Any:
        """A call with arrays and frozen trees: these know their structure and their buffers."""
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
                    signature, more = _dispatch(x)
                if signature is None:
                    return self.slow(args, {})
                key.append(signature)
                buffers += more
            else:
                return self.slow(args, {})
        hot = entries.get(tuple(key))
        return self.slow(args, {}) if hot is None else self.launch(hot, args, buffers)

    def launch(self, hot: Hot, leaves: Sequence[Any], buffers: list[Any]) -> Any:
        run, handlers, kind, finish, prepare, _, _, _ = hot
        try:
            made = run(buffers if prepare is None else prepare(buffers)).consume_with_handlers(handlers)
        except Exception as error:
            raise self.failure(error, leaves) from error
        return finish(made) if kind is None else concrete(kind, None, made[0])

    def launch_from_host(self, hot: Hot, leaves: Sequence[Any], buffers: list[Any], host: list[int]) -> Any:
        """The same where some of the buffers are NumPy arrays still."""
        run, handlers, kind, finish, prepare, put, stages, _ = hot
        used = []
        for i in host:
            x = buffers[i]
            stage = runtime.stage(x) if stages and x.nbytes <= runtime.STAGED_BYTES else None
            if stage is None:
                buffers[i] = put(x)
            else:
                buffers[i] = stage.buffer
                used.append(stage)
        try:
            made = run(buffers if prepare is None else prepare(buffers)).consume_with_handlers(handlers)
        except Exception as error:
            raise self.failure(error, leaves) from error
        for stage in used:
            stage.give_back(made)
        return finish(made) if kind is None else concrete(kind, None, made[0])

    def failure(self, error: Exception, leaves: Sequence[Any]) -> Exception:
        flat = [y for x in leaves for y in (x.leaves if type(x) is Frozen else (x,))]
        return failure(error, self.name, flat, argument_names(self.fun))

    def recall(self) -> bool:
        """Bring back what is known under the settings in force; False where nothing is."""
        settings = config.current()
        known = self.hot.get(settings)
        if known is None:
            return False
        # under the very record, so that the next call finds it by identity
        self.state = (settings, known)
        return True

    # the general way

    def take_apart(self, args: Any, kwargs: Any) -> tuple[Call, Sequence[Any], Parts | None]:
        """The call as it is traced, and the leaves of its dynamic arguments."""
        parts = split(self.fun, self.static, args, kwargs) if self.static else None
        if parts is not None:
            args, kwargs = parts.args, parts.kwargs
        leaves, tree = traces.flatten((args, kwargs))
        if _CONCRETE(map(type, leaves)):
            types = tuple([x.type for x in leaves])
        else:
            types = leaf_types(leaves, lambda i: self.leaf_name(i, args, kwargs, parts), self.name)
        key = (config.current(), None if parts is None else parts.key, tree, types)
        try:
            hash(key)
        except TypeError:
            traces.check_hashable(args, kwargs)
        return Call(self.fun, self.name, tree, types, None if parts is None else parts.merge, key), leaves, parts

    def leaf_name(self, i: int, args: Any, kwargs: Any, parts: Parts | None) -> str:
        """How a leaf of the dynamic arguments is called."""
        argument = argument_names(self.fun)
        if parts is None or not parts.static_args:
            return leaf_names(argument, args, kwargs)(i)
        fixed = {n for n, _ in parts.static_args}
        places = [n for n in range(len(args) + len(fixed)) if n not in fixed]
        return leaf_names(lambda n: argument(places[n]), args, kwargs)(i)

    def slow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call, under any handlers."""
        settings = config.current()
        if settings.disable_jit:
            return self.fun(*args, **kwargs)
        call, leaves, parts = self.take_apart(args, kwargs)
        if STACK.get() is not BASE:
            return self.nested(call, leaves)
        whole = args
        if parts is not None:
            args, kwargs = parts.args, parts.kwargs
        operands = [x if type(x) is ConcreteArray else _operand(x) for x in leaves]
        buffers = [x.buffer for x in operands]

        def names(i: int) -> str:
            return self.leaf_name(i, args, kwargs, parts)

        committed = common_device(buffers, self.name, names) if PLACED else None
        device = self.device or committed or default_device()
        entry = self.entry(call, device, self.donated_leaves(args, kwargs, parts) if self.donate else ())
        if self.device is None and not PLACED and not settings.debug_nans and not settings.debug_infs:
            self.remember(settings, whole, args, kwargs, parts, call, leaves, entry.hot)
        return self.execute(entry, operands, buffers, leaves, committed is not None, names)

    def nested(self, call: Call, leaves: Sequence[Any]) -> Any:
        """Under handlers: the trace is performed as one operation."""
        trace = traces.trace(call, self.own)
        operands = (*trace.captured, *[x if isinstance(x, Array) else lift(x) for x in leaves])
        if self.inline:
            return trace.unflatten(interpret(trace.program, operands))
        return trace.unflatten(STACK.get().answer(CallOp((trace.program,), self.name), operands))

    def entry(self, call: Call, device: Any, donated: tuple[int, ...]) -> Entry:
        """The compiled trace of a call on a device."""
        key = (call.key, device, donated)
        found = self.table.get(key)
        if found is None:
            trace = traces.trace(call, self.own)
            marks = [i in donated for i in range(len(call.types))]
            compiled = compile_program(
                trace.whole, _module_name(self.name), marks if donated else (),
                keep_unused=self.keep_unused, device=device, options=self.options,
            )  # fmt: skip
            if len(self.table) >= MOST_ENTRIES:
                self.table.clear()
            found = self.table.setdefault(key, _entry(trace, compiled))
        return found

    def donated_leaves(self, args: Any, kwargs: Any, parts: Parts | None) -> tuple[int, ...]:
        """Which leaves of the dynamic arguments are donated."""
        count = len(args) + (0 if parts is None else len(parts.static_args))
        given = self.donate.at(count)
        fixed = set() if parts is None else {i for i, _ in parts.static_args}
        found: list[int] = []
        number = 0
        positional = [(i in given, x) for i, x in zip([i for i in range(count) if i not in fixed], args)]
        for yes, x in [*positional, *[(name in self.donate.names, kwargs[name]) for name in sorted(kwargs)]]:
            size = len(cpp_flatten()(x)[0])
            if yes:
                found.extend(range(number, number + size))
            number += size
        return tuple(found)

    def remember(
        self, settings: Any, whole: Any, args: Any, kwargs: Any, parts: Parts | None, call: Call, leaves: Any, hot: Hot
    ) -> None:
        """Let the next call of this kind take a quick way."""
        entries = self.hot.get(settings)
        if entries is None or len(entries) >= MOST_ENTRIES:
            if len(self.hot) >= 64:
                self.hot.clear()
            entries = self.hot[settings] = {}
        for x in leaves:
            if type(x) is np.ndarray and x.dtype == canonical(x.dtype) and x.dtype.isnative:
                if len(_NUMPY_TYPES) >= MOST_ENTRIES:
                    _NUMPY_TYPES.clear()
                _NUMPY_TYPES[x.shape, x.dtype] = array_type(x.shape, canonical(x.dtype))
        if not self.plain:
            key = None if parts is None else parts.key
            if parts is not None and not parts.static_kwargs and not kwargs:
                quick = self.quick_parts(whole)
                key = key if quick is None else quick[0]
            entries[(key, call.tree, *call.types)] = hot
        elif not kwargs and _FLAT(map(type, args)):
            entries[call.types] = hot
        else:
            entries[(call.tree, *call.types)] = hot
        if self.plain and not kwargs and Frozen in map(type, args):
            found = [x.type if type(x) is ConcreteArray else _signature(x) for x in args]
            if None not in found:
                entries[tuple(found)] = hot
        self.state = (settings, entries)

    def execute(
        self, entry: Entry, operands: list[Any], buffers: list[Any], leaves: Sequence[Any], committed: bool, names: Any
    ) -> Any:
        donated = entry.hot.donated
        if donated:
            check_donation(buffers, donated, self.name, names)
            for i in donated:
                if operands[i]._value is not None:  # memory that NumPy or others share cannot be given away
                    buffers[i] = runtime.put(operands[i]._value, entry.compiled.loaded.device)
        device = entry.compiled.loaded.device
        if PLACED or self.device is not None:
            buffers = [runtime.copy_to_device(b, device) for b in buffers]
        try:
            results = entry.compiled.on(buffers, committed)
        except Exception as error:
            raise failure(error, self.name, operands, names) from error
        for i in donated:
            _give_away(operands[i])
        settings = config.current()
        if settings.debug_nans or settings.debug_infs:
            debug.check(entry.trace, operands, results, self.name, settings)
        return entry.trace.unflatten(results)


def _entry(trace: Trace, compiled: Compiled) -> Entry:
    loaded = compiled.loaded
    types = loaded.types
    unflatten = trace.unflatten
    count = len(compiled.captured)
    donated = tuple([n - count for n, alias in zip(loaded.kept, loaded.aliases) if alias is not None])

    def finish(made: Sequence[Any]) -> Any:
        return unflatten([concrete(t, None, b) for t, b in zip(types, made)])

    if trace.out_tree.kind is FROZEN:
        finish = _finish_frozen(trace.out_tree, types)
    put = runtime.putter(loaded.device, committed=False)
    kind = types[0] if trace.is_leaf else None
    small = sum([t.nbytes for t in types]) <= runtime.STAGED_BYTES and bool(types)
    stages = small and loaded.device == runtime.stage_device()
    hot = Hot(loaded.run, loaded.handlers, kind, finish, compiled.prepare, put, stages, donated)
    return Entry(trace, compiled, hot)


def _finish_frozen(tree: Any, types: tuple[ArrayType, ...]) -> Callable[[Sequence[Any]], Any]:
    """Results in a frozen tree: it keeps the buffers for the next call, and wraps them when somebody looks."""
    signature = _signature_of(tree, types)

    def finish(made: Sequence[Any]) -> Any:
        return delayed(
            tree, lambda: [concrete(t, None, b) for t, b in zip(types, made)], None if PLACED else (signature, made)
        )

    return finish


def _signature(x: Any) -> Signature | None:
    return _dispatch(x)[0] if type(x) is Frozen else None


def _operand(x: Any) -> ConcreteArray:
    found = lift(x)
    if found.run is not None:
        raise traces.escaped(found)
    return found  # type: ignore[return-value]


def _give_away(x: ConcreteArray) -> None:
    """Mark an array as donated: its data are gone."""
    if x.type.shape == () and any(x is constant for constant in list(arrays._CONSTANTS.values())):
        return  # a number that the whole process shares
    if x._buffer is not None and not runtime.is_deleted(x._buffer):
        runtime.delete(x._buffer)
    arrays._set_value(x, None)


def _name(fun: Any) -> str:
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)


def _module_name(name: str) -> str:
    """The module's name: that of a lambda ends without its bracket, as in other tools."""
    return f"jit_{name.replace('<', '_').replace('>', '')}"


_JITTED: weakref.WeakSet[Jitted] = weakref.WeakSet()


class _Dispatch:
    """The compiled traces of all jitted functions, as one cache beside the others."""

    name = "dispatch"

    def clear(self) -> None:
        traces.clear()
        for jitted in list(_JITTED):
            jitted.clear()

    def info(self) -> CacheInfo:
        return CacheInfo(0, 0, sum([len(jitted.table) for jitted in list(_JITTED)]), MOST_ENTRIES)


CACHES.append(_Dispatch())  # type: ignore[arg-type]


def _entrance(jitted: Jitted) -> Callable[..., Any]:
    """The function that a call enters by. It is a plain function, so it binds as a method and pickles by name."""
    current, settings_here, process = STACK.get, config.CONFIG.get, config.config
    base, concretes, placed, slow = BASE, _CONCRETE, PLACED, jitted.slow

    def call(*args: Any, **kwargs: Any) -> Any:
        if current() is base and not placed:
            settings, entries = jitted.state
            if (settings_here() or process.process) is settings:
                if kwargs:
                    return jitted.mixed(args, kwargs, entries)
                if len(args) == 1:
                    (x,) = args
                    if type(x) is not ConcreteArray:
                        return jitted.mixed(args, kwargs, entries)
                    hot = entries.get((x.type,))
                    buffers = [x.buffer if x._buffer is None else x._buffer]
                elif concretes(map(type, args)):
                    hot = entries.get(tuple([x.type for x in args]))
                    buffers = [x.buffer if x._buffer is None else x._buffer for x in args]
                else:
                    return jitted.mixed(args, kwargs, entries)
                if hot is not None:
                    run, handlers, kind, finish, prepare, _, _, _ = hot
                    try:
                        made = run(buffers if prepare is None else prepare(buffers)).consume_with_handlers(handlers)
                    except Exception as error:
                        raise jitted.failure(error, args) from error
                    return finish(made) if kind is None else concrete(kind, None, made[0])
            elif jitted.recall():
                return call(*args, **kwargs)
        return slow(args, kwargs)

    def call_parted(*args: Any, **kwargs: Any) -> Any:
        known = (settings_here() or process.process) is jitted.state[0] or jitted.recall()
        if known and current() is base and not placed:
            return jitted.parted(args, kwargs, jitted.state[1])
        return slow(args, kwargs)

    return call if jitted.plain else call_parted


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile ``fun`` for the device: traced once for each combination of argument types, then run as one program.

        jit(f)(x) == f(x)

    Under other transformations and inside other traces it is one operation, whose body is traced once all the same.

    Args:
        static_argnums, static_argnames: arguments that are Python values, not arrays: hashable; each value is a trace.
        donate_argnums, donate_argnames: arguments whose memory may be used for results; they are gone after the call.
        keep_unused: pass arguments to the device that the result does not depend on.
        device, backend: where it runs; else where its arguments lie, else on the default device.
        inline: under handlers, perform the body in place instead of as one operation.
        compiler_options: XLA's options by name.

    Raises: BadArgument: positions and names that the function has not. BadStaticArgument: a static argument that cannot
    be hashed. NotAnArray: an argument or a result that is no array. DeviceMismatch: arguments on two devices.
    DeletedArray: an argument was donated before. UnhandledEffect: an effect that nobody handles.

    >>> jit(lambda x: x + 1)(2)
    Array(3, dtype=int32, weak_type=True)
    """
    if fun is None:
        options = dict(
            in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
            static_argnames=static_argnames, donate_argnums=donate_argnums, donate_argnames=donate_argnames,
            keep_unused=keep_unused, device=device, backend=backend, inline=inline, compiler_options=compiler_options,
        )  # fmt: skip
        return lambda f: jit(f, **options)
    if not callable(fun):
        raise BadArgument(f"jit: a function is needed, got {type(fun).__name__}.")
    if in_shardings is not None or out_shardings is not None:
        raise BadArgument("jit: in_shardings and out_shardings must be None here.", hint="put arguments on devices.")
    static = choose(fun, "static", static_argnums, static_argnames)
    donate = choose(fun, "donate", donate_argnums, donate_argnames)
    check_disjoint(fun, static, donate)
    if device is not None and backend is not None:
        raise BadArgument(f"jit: a device or a backend can be given, got {device} and {backend!r}.")
    if backend is not None:
        device = runtime.backend(backend).default_device
    jitted = Jitted(fun, static, donate, keep_unused, device, inline, compiler_options)
    return _dress(_entrance(jitted), jitted)


def _dress(call: Any, jitted: Jitted) -> Any:
    """The function's own name and documentation, and what can be done with a jitted function beside calling it."""
    functools.update_wrapper(call, jitted.fun)
    call._jit_info = jitted
    call._fun = jitted.fun
    call.trace = lambda *args, **kwargs: stages.trace(jitted, args, kwargs)
    call.lower = lambda *args, **kwargs: stages.trace(jitted, args, kwargs).lower()
    call.eval_shape = lambda *args, **kwargs: stages.trace(jitted, args, kwargs).out_info
    call.clear_cache = call._clear_cache = lambda: clear(jitted)
    call._cache_size = lambda: len(jitted.table)
    return call


def clear(jitted: Jitted) -> None:
    """Forget every trace and compiled program of one function."""
    jitted.clear()
    traces.forget(jitted.fun)
