"""The parameter ``out_sharding`` of functions: how their results are cut over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..base.later_layers import LaterLayers
from ..base.wrapping import wraps
from ..sharding.named_sharding import NamedSharding

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def cut(where: str, result: R, out_sharding: Any) -> R:
    """The result of the function ``where``, cut over devices as ``out_sharding`` says.

    Unchanged for None and for the sharding of a type, ``typeof(x).sharding``, which is over no devices.
    Raises: as ``with_sharding_constraint``.
    """
    if out_sharding is None or (isinstance(out_sharding, NamedSharding) and out_sharding.of_a_type):
        return result
    constrained: R = LaterLayers.constrained(where, result, out_sharding)
    return constrained


def cuts_result(f: F) -> F:
    """Decorator of a function whose result is cut by its parameter ``out_sharding``, which it does not read itself."""

    @wraps(f)
    def cutting(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        result = f(*args, **kwargs)
        return result if out_sharding is None else cut(f.__name__, result, out_sharding)

    return cutting
