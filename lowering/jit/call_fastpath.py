"""The functions that replace jitted functions, with the paths of the most frequent calls written out for speed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...effects.base import config
from ...effects.base.stack import BASE, STACK
from ...effects.base.tracebacks import leave, written_boundary
from ...effects.core.arrays import ConcreteArray, UnsealedArray
from ...effects.trees.frozen_tree import Frozen
from ..xla.array_backend import PLACED
from ..xla.lazy import runtime
from .dispatch import Jitted


def fast_path(jitted: Jitted) -> Callable[..., Any]:
    """The function that replaces a jitted one: a plain function, which binds as a method and pickles by name."""
    if not jitted.plain:
        return _partitioned_call(jitted)
    general = _any_arguments(jitted)
    return _single_argument(jitted, general) if takes_one_argument(jitted.fun) else general


def _any_arguments(jitted: Jitted) -> Callable[..., Any]:
    """Calls with any arguments, none of them static or donated."""
    current, scope = STACK.get, config.CONFIG.get
    base, placed, slow = BASE, PLACED, jitted.slow

    @written_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            settings, plans = jitted.active_plans
            if current() is not base:
                return slow(args, kwargs)
            if scope().settings is not settings:
                recalled = jitted.recall()
                return slow(args, kwargs) if recalled is None else jitted.mixed(args, kwargs, recalled)
            if kwargs or not args or type(args[0]) is not ConcreteArray:
                return jitted.mixed(args, kwargs, plans)
            try:
                buffers = [x.buffer if x._buffer is None else x._buffer for x in args]
                places = map(runtime.place_of, buffers) if placed else ()
                plan = plans.get((*[x.type for x in args], *places))
            except (AttributeError, TypeError):  # not all are concrete arrays
                return jitted.mixed(args, kwargs, plans)
            return slow(args, kwargs) if plan is None else jitted.launch(plan, args, buffers)
        except Exception as error:
            leave(error)
            raise

    return call


_ABSENT = object()


def _single_argument(jitted: Jitted, many: Callable[..., Any]) -> Callable[..., Any]:
    """Calls with one positional argument: as a named parameter it needs no argument tuple."""
    current, scope = STACK.get, config.CONFIG.get
    base, placed, slow, absent = BASE, PLACED, jitted.slow, _ABSENT

    @written_boundary
    def call(x: Any = absent, /, *more: Any, **kwargs: Any) -> Any:
        try:
            if x is absent or more or kwargs or current() is not base:
                return many(*(() if x is absent else (x, *more)), **kwargs)
            settings, plans = jitted.active_plans
            if scope().settings is not settings:
                return many(x)
            if type(x) is not ConcreteArray:
                return jitted.one_frozen(x, plans) if type(x) is Frozen and not placed else many(x)
            buffer = x.buffer if x._buffer is None else x._buffer
            buffers = [buffer]
            plan = plans.get(x.type)
            if placed and (plan is None or buffer._sharding is not plan.place):
                plan = plans.get((x.type, runtime.place_of(buffer)))
            if plan is None:
                return slow((x,), kwargs)
            prepare = plan.prepare
            try:
                results = plan.execute(buffers if prepare is None else prepare(buffers))
            except Exception as error:
                jitted.fail(error, (x,), plan)
            t = plan.result_type
            if t is None:
                return plan.finish(results)
            y = UnsealedArray()  # ``concrete(t, None, results[0])``, inlined
            y.type = t
            y._value = None
            (y._buffer,) = results
            y.__class__ = ConcreteArray
            return y
        except Exception as error:
            leave(error)
            raise

    return call


def _partitioned_call(jitted: Jitted) -> Callable[..., Any]:
    """Calls with static or donated arguments."""
    current, base, slow, partitioned = STACK.get, BASE, jitted.slow, jitted.partitioned

    @written_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return partitioned(args, kwargs) if current() is base else slow(args, kwargs)
        except Exception as error:
            leave(error)
            raise

    return call


def takes_one_argument(fun: Any) -> bool:
    """Whether a function has at most one required positional parameter; for a wrapper, the function that it wraps."""
    try:
        inner = inspect.unwrap(fun)
    except ValueError:  # it wraps itself
        return False
    if not isinstance(inner, FunctionType) or inner.__code__.co_flags & inspect.CO_VARARGS:
        return False
    return inner.__code__.co_argcount - len(inner.__defaults__ or ()) <= 1
