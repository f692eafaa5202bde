"""``handlax.extend.linear_util``: functions together with what is known of them, under JAX's names."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from ..effects.base.wrapping import name_of

__all__ = ["WrappedFun", "transformation", "wrap_init"]


class WrappedFun:
    """A function with a description for messages: ``w.call_wrapped(*args) == f(*args)``."""

    def __init__(self, f: Callable[..., Any], debug_info: Any = None):
        self.f = f
        self.debug_info = debug_info
        self.__name__ = name_of(f)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    __call__ = call_wrapped


def wrap_init(f: Callable[..., Any], params: Mapping[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """``f`` with ``params`` as its first keyword arguments, as a ``WrappedFun``.

    >>> wrap_init(lambda x, n: x + n, {"n": 2}).call_wrapped(1)
    3
    """
    return WrappedFun(partial(f, **params) if params else f, debug_info)


def transformation(steps: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., WrappedFun]:
    """A transformation of functions, from a generator that stands around each call.

    The generator yields the arguments of the function, is sent its result, and yields the result of the transformed
    one: ``transformation(steps)(f, *parameters)(*args)`` calls ``steps(*parameters, *args)``.

    >>> @transformation
    ... def offset(by, x):
    ...     y = yield (x - by,), {}
    ...     yield y + by
    >>> offset(wrap_init(lambda x: 2 * x), 1).call_wrapped(3)
    5
    """

    def transformed(f: WrappedFun, *parameters: Any) -> WrappedFun:
        def call(*args: Any, **kwargs: Any) -> Any:
            with closing(steps(*parameters, *args, **kwargs)) as running:
                inner_args, inner_kwargs = next(running)
                return running.send(f.call_wrapped(*inner_args, **inner_kwargs))

        call.__name__ = f.__name__
        return WrappedFun(call, f.debug_info)

    return transformed
