"""Arguments that JAX's functions have and that only one value of has a meaning here: the others are refused."""

from __future__ import annotations

from typing import Any

from .errors import BadArgument


def no_sharding(name: str, out_sharding: Any) -> None:
    """Raises BadArgument where a result is to be spread over devices: an array lies on one."""
    if out_sharding is not None:
        raise BadArgument(
            f"{name}: the sharding of the result must be None, as an array lies on one device, got {out_sharding!r}.",
            hint="leave it out; device_put(y, device) moves the result.",
        )


def must_be_empty(name: str, parameter: str, found: Any, hint: str) -> None:
    """Raises BadArgument where a parameter that stands for compatibility alone was given something."""
    if found is not None and found != ():
        raise BadArgument(f"{name}: {parameter} must be left out, got {found!r}.", hint=hint)
