"""``handlax.extend.linear_util``: functions together with what is known of them, under JAX's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..effects.base.wrapping import name_of

__all__ = ["WrappedFun", "wrap_init"]


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
