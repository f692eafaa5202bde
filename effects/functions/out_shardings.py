"""The parameter ``out_sharding`` of functions: how their results are cut over devices."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any, TypeVar

from ..base.later_layers import LaterLayers
from ..base.wrapping import wraps
from ..sharding.named_sharding import NamedSharding

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def cut(where: str, result: R, out_sharding: Any) -> R:
    """The result of the function ``where``, cut over devices as ``out_sharding`` says.

    Unchanged for None and for the sharding of a type without a mesh, ``typeof(x).sharding``.
    Raises: as ``reshard``.
    """
    if out_sharding is None or (isinstance(out_sharding, NamedSharding) and out_sharding.mesh.empty):
        return result
    resharded: R = LaterLayers.resharded(where, result, out_sharding)
    return resharded


def cuts_result(f: F) -> F:
    """Decorator of a function whose result is cut by its parameter ``out_sharding``, which it does not read itself.

    It is called on hidden arguments, so that the result need not be cut as theirs are.
    """
    code: Any = unwrap(f).__code__
    last = code.co_argcount - 1
    positional = code.co_varnames[last] == "out_sharding"

    @wraps(f)
    def cutting(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if positional and len(args) == last + 1:
            args, out_sharding = args[:last], args[last]
        if out_sharding is None:
            return f(*args, **kwargs)
        args, kwargs = LaterLayers.hidden((args, kwargs))
        return cut(f.__name__, f(*args, **kwargs), out_sharding)

    return cutting
