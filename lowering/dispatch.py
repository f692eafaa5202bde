"""Dispatch: from a call of a jitted function to the program that runs it.

A call whose arguments have known types is one look-up and one call of the runtime; those paths are written out in
``entrances``, ``Jitted.mixed``, ``tree`` and ``frozen``. Everything else goes through ``Jitted.slow``.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ..effects import config
from ..effects.arrays import Array, ConcreteArray, concrete, lift
from ..effects.caches import CACHES, CacheInfo
from ..effects.control import Call as CallOp
from ..effects.dtypes import canonical
from ..effects.frozen import Frozen
from ..effects.programs import interpret
from ..effects.stack import BASE, STACK
from ..effects.types import array_type
from . import debug, traces
from .backend import PLACED, common_device, default_device
from .compile import check_donation, compile_program, fail
from .entries import (
    CONCRETE,
    FLAT,
    MOST_ENTRIES,
    NUMPY_TYPES,
    PLAIN,
    Entry,
    Hot,
    concrete_operand,
    frozen_parts,
    gather,
    give_away,
    keys_of,
    signature,
)
from .lazy import runtime
from .staging import STAGED_BYTES, stage
from .statics import Choice, Parts, argument_names, split
from .traces import Call, cpp_flatten, leaf_names, leaf_types


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
        if kwargs or not FLAT(map(type, args)):
            if not kwargs and Frozen in map(type, args):
                return self.frozen(args, entries)
            try:
                leaves, tree = cpp_flatten()((args, kwargs))
            except (ValueError, TypeError):
                return self.slow(args, kwargs)
            if CONCRETE(map(type, leaves)):
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
                give_away(leaves[i])
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
        if not PLAIN(kinds):
            return None
        return (count, kinds, values), tuple([args[i] for i in places[1]])

    def tree(self, x: Frozen, entries: dict[Any, Hot]) -> Any:
        """A call with a frozen tree alone."""
        try:
            signature, buffers = x._dispatch
        except AttributeError:
            signature, buffers = frozen_parts(x)
        hot = entries.get(signature)
        return self.slow((x,), {}) if hot is None else self.launch(hot, (x,), buffers)

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
                    signature, more = frozen_parts(x)
                if signature is None:
                    return self.slow(args, {})
                key.append(signature)
                buffers += more
            else:
                return self.slow(args, {})
        hot = entries.get(tuple(key))
        return self.slow(args, {}) if hot is None else self.launch(hot, args, buffers)

    def launch(self, hot: Hot, leaves: Sequence[Any], buffers: list[Any]) -> Any:
        prepare, kind = hot.prepare, hot.kind
        try:
            made = hot.run(buffers if prepare is None else prepare(buffers)).consume_with_handlers(hot.handlers)
        except Exception as error:
            self.fail(error, leaves)
        return hot.finish(made) if kind is None else concrete(kind, None, made[0])

    def launch_from_host(self, hot: Hot, leaves: Sequence[Any], buffers: list[Any], host: list[int]) -> Any:
        """The same where some of the buffers are NumPy arrays still."""
        prepare, kind, put, stages = hot.prepare, hot.kind, hot.put, hot.stages
        used = []
        for i in host:
            x = buffers[i]
            held = stage(x) if stages and x.nbytes <= STAGED_BYTES else None
            if held is None:
                buffers[i] = put(x)
            else:
                buffers[i] = held.buffer
                used.append(held)
        try:
            made = hot.run(buffers if prepare is None else prepare(buffers)).consume_with_handlers(hot.handlers)
        except Exception as error:
            self.fail(error, leaves)
        for held in used:
            held.give_back(made)
        return hot.finish(made) if kind is None else concrete(kind, None, made[0])

    def fail(self, error: Exception, leaves: Sequence[Any]) -> NoReturn:
        flat = [y for x in leaves for y in (x.leaves if type(x) is Frozen else (x,))]
        fail(error, self.name, flat, argument_names(self.fun))

    def recall(self) -> dict[Any, Hot] | None:
        """Bring back what is known under the settings in force; None where nothing is."""
        settings = config.current()
        known = self.hot.get(settings)
        if known is not None:
            self.state = (settings, known)  # under the very record, so that the next call finds it by identity
        return known

    # the general way

    def take_apart(self, args: Any, kwargs: Any) -> tuple[Call, Sequence[Any], Parts | None]:
        """The call as it is traced, and the leaves of its dynamic arguments."""
        parts = split(self.fun, self.static, args, kwargs) if self.static else None
        if parts is not None:
            args, kwargs = parts.args, parts.kwargs
        leaves, tree = traces.flatten((args, kwargs))
        if CONCRETE(map(type, leaves)):
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
        operands = [x if type(x) is ConcreteArray else concrete_operand(x) for x in leaves]
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
        return trace.unflatten(STACK.get().answer(CallOp((trace.program,), self.name, False), operands))

    def entry(self, call: Call, device: Any, donated: tuple[int, ...]) -> Entry:
        """The compiled trace of a call on a device."""
        key = (call.key, device, donated)
        found = self.table.get(key)
        if found is None:
            trace = traces.trace(call, self.own)
            marks = [i in donated for i in range(len(call.types))]
            compiled = compile_program(
                trace.whole, module_name(self.name), marks if donated else (),
                keep_unused=self.keep_unused, device=device, options=self.options,
            )  # fmt: skip
            if len(self.table) >= MOST_ENTRIES:
                self.table.clear()
            found = self.table.setdefault(key, Entry(trace, compiled, Hot(trace, compiled)))
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
                if len(NUMPY_TYPES) >= MOST_ENTRIES:
                    NUMPY_TYPES.clear()
                NUMPY_TYPES[x.shape, x.dtype] = array_type(x.shape, canonical(x.dtype))
        if not self.plain:
            key = None if parts is None else parts.key
            if parts is not None and not parts.static_kwargs and not kwargs:
                quick = self.quick_parts(whole)
                key = key if quick is None else quick[0]
            entries[(key, call.tree, *call.types)] = hot
        elif not kwargs and FLAT(map(type, args)):
            entries.update(dict.fromkeys(keys_of(call.types), hot))
        else:
            entries[(call.tree, *call.types)] = hot
        if self.plain and not kwargs and Frozen in map(type, args):
            found = [x.type if type(x) is ConcreteArray else signature(x) for x in args]
            if None not in found:
                entries.update(dict.fromkeys(keys_of(found), hot))
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
            fail(error, self.name, operands, names)
        for i in donated:
            give_away(operands[i])
        settings = config.current()
        if settings.debug_nans or settings.debug_infs:
            debug.check(entry.trace, operands, results, self.name, settings)
        return entry.trace.unflatten(results)


def _name(fun: Any) -> str:
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)


def module_name(name: str) -> str:
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
