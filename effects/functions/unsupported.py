"""Checks of parameters that exist for compatibility with JAX and of which only the default is supported."""

from __future__ import annotations

from typing import Any

from ..base.errors import BadArgument
from ..sharding.named_sharding import NamedSharding


def no_sharding(name: str, out_sharding: Any) -> None:
    """Check that no sharding is given but that of a type, ``typeof(x).sharding``, which cuts no dimension over a mesh
    without devices: the compiler chooses how a result is cut.

    Raises: BadArgument: another one is given.
    """
    if out_sharding is not None and (not isinstance(out_sharding, NamedSharding) or out_sharding.spec.axes):
        raise BadArgument(
            f"{name}: the sharding of the result must be None, as the compiler chooses it, got {out_sharding!r}.",
            hint="leave it out; hx.reshard(y, sharding) cuts the result.",
        )


def must_be_empty(name: str, parameter: str, given: Any, hint: str) -> None:
    """Check that a parameter that exists only for compatibility is left out. Raises: BadArgument: it has a value."""
    if given is not None and given != ():
        raise BadArgument(f"{name}: {parameter} must be left out, got {given!r}.", hint=hint)
