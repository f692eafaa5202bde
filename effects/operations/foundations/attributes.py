"""Attributes: named constants that an operation takes into StableHLO, of a composite and of a foreign function.

They are fields of operations, so that they are hashable: NumPy arrays and dictionaries become values here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base.errors import BadArgument
from ...base.frozen_values import Value
from ...core.arrays import Array


class ArrayAttribute(Value):
    """An array as an attribute: hashable, compared by its type and bytes."""

    dtype: Any
    shape: tuple[int, ...]
    data: bytes

    @property
    def value(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


class NamedAttributes(Value):
    """A dictionary as an attribute: pairs (name, attribute), in alphabetical order."""

    items: tuple[tuple[str, Any], ...]


def attributes(where: str, named: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Pairs (name, attribute), in alphabetical order. ``where`` names the function and its target.

    Raises: BadArgument: StableHLO has no such attribute.
    """
    return tuple([(name, attribute(where, named[name])) for name in sorted(named)])


def attribute(where: str, value: Any) -> Any:
    """``value`` as a field of an operation. Raises: BadArgument: StableHLO has no such attribute."""
    if isinstance(value, np.ndarray):
        return ArrayAttribute(value.dtype, value.shape, value.tobytes())
    if isinstance(value, (tuple, list)):
        return tuple([attribute(where, item) for item in value])
    if isinstance(value, Mapping) and all([isinstance(name, str) for name in value]):
        return NamedAttributes(attributes(where, value))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadArgument(f"{where}: an integer among the attributes must have 64 bits at most, got {value}.")
    if isinstance(value, (bool, int, float, str, bytes, np.generic, np.dtype)):
        return value
    raise BadArgument(
        f"{where}: attributes must be numbers, strings, dtypes, NumPy arrays, or tuples and dictionaries of these, got "
        f"{type(value).__name__}.",
        hint="arrays that are computed are arguments by position." if isinstance(value, Array) else None,
    )
