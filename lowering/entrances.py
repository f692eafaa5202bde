"""Entrances: the functions that calls of jitted functions enter by, with the commonest calls written out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..effects import config
from ..effects.arrays import ConcreteArray, Unsealed
from ..effects.frozen import Frozen
from ..effects.stack import BASE, STACK
from .backend import PLACED
from .dispatch import Jitted


def entrance(jitted: Jitted) -> Callable[..., Any]:
    """The function that a call enters by. It is a plain function, so it binds as a method and pickles by name."""
    if not jitted.plain:
        return _for_parts(jitted)
    return _for_one(jitted, _for_many(jitted)) if takes_one(jitted.fun) else _for_many(jitted)


def _for_many(jitted: Jitted) -> Callable[..., Any]:
    """Any arguments."""
    current, settings_here, process = STACK.get, config.CONFIG.get, config.PROCESS
    base, placed, slow = BASE, PLACED, jitted.slow

    def call(*args: Any, **kwargs: Any) -> Any:
        settings, entries = jitted.state
        if current() is not base or placed:
            return slow(args, kwargs)
        if (settings_here() or process.settings) is not settings:
            known = jitted.recall()
            return slow(args, kwargs) if known is None else jitted.mixed(args, kwargs, known)
        if kwargs or not args or type(args[0]) is not ConcreteArray:
            return jitted.mixed(args, kwargs, entries)
        try:
            hot = entries.get(tuple([x.type for x in args]))
            buffers = [x.buffer if x._buffer is None else x._buffer for x in args]
        except (AttributeError, TypeError):  # not all are arrays of ours
            return jitted.mixed(args, kwargs, entries)
        return slow(args, kwargs) if hot is None else jitted.launch(hot, args, buffers)

    return call


_ABSENT = object()


def _for_one(jitted: Jitted, many: Callable[..., Any]) -> Callable[..., Any]:
    """One argument, by position. With a name of its own it need not be put into a tuple and taken out again."""
    current, settings_here, process = STACK.get, config.CONFIG.get, config.PROCESS
    base, placed, slow, absent = BASE, PLACED, jitted.slow, _ABSENT

    def call(x: Any = absent, /, *more: Any, **kwargs: Any) -> Any:
        if x is absent or more or kwargs or current() is not base or placed:
            return many(*(() if x is absent else (x, *more)), **kwargs)
        settings, entries = jitted.state
        if (settings_here() or process.settings) is not settings:
            return many(x)
        if type(x) is not ConcreteArray:
            return jitted.tree(x, entries) if type(x) is Frozen else many(x)
        hot = entries.get(x.type)
        if hot is None:
            return slow((x,), kwargs)
        prepare = hot.prepare
        buffers = [x.buffer if x._buffer is None else x._buffer]
        try:
            made = hot.run(buffers if prepare is None else prepare(buffers)).consume_with_handlers(hot.handlers)
        except Exception as error:
            jitted.fail(error, (x,))
        kind = hot.kind
        if kind is None:
            return hot.finish(made)
        # ``concrete(kind, None, made[0])`` without a call
        y = Unsealed()
        y.type = kind
        y._value = None
        (y._buffer,) = made
        y.__class__ = ConcreteArray
        return y

    return call


def _for_parts(jitted: Jitted) -> Callable[..., Any]:
    """Arguments some of which are static or donated."""
    current, settings_here, process = STACK.get, config.CONFIG.get, config.PROCESS
    base, placed, slow = BASE, PLACED, jitted.slow

    def call(*args: Any, **kwargs: Any) -> Any:
        if current() is base and not placed:
            settings, entries = jitted.state
            known = entries if (settings_here() or process.settings) is settings else jitted.recall()
            if known is not None:
                return jitted.parted(args, kwargs, known)
        return slow(args, kwargs)

    return call


def takes_one(fun: Any) -> bool:
    """Whether a function is most often called with one argument; a wrapper says what it wraps."""
    try:
        inner = inspect.unwrap(fun)
    except ValueError:  # it wraps itself
        return False
    if not isinstance(inner, FunctionType) or inner.__code__.co_flags & inspect.CO_VARARGS:
        return False
    return inner.__code__.co_argcount - len(inner.__defaults__ or ()) <= 1
