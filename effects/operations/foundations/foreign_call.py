"""``ForeignCall``: a call of a function that XLA finds by its name, as StableHLO's ``custom_call`` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ...types.array_type import ArrayType

Layouts = Sequence[Sequence[int] | None] | None
_NONE: Mapping[Any, Any] = MappingProxyType({})
BATCH_PARTITIONABLE: set[str] = set()
"""The targets registered as functions that may be called on a part of the lanes, along leading dimensions."""
PARTITIONED_CALL = "handlax_partitioned_call"
"""The target of calls that a user partitions. Their configuration in a program's text is this and an index
of the module's calls.
"""


class ForeignCall(NamedTuple):
    """The call of the function ``target``, whose results have these ``types``.

    ``attributes``: its named arguments, constants of the program: NumPy scalars, of their dtypes, and what composites
    take. A layout is the order of an array's dimensions in memory, the one whose neighbours are adjacent last; None:
    row-major. ``into[i]``: the result in the memory of operand ``i``. ``batch_dims``: the number of leading dimensions
    along which a program over several devices may be cut. ``side_effect``: it is called also where no result is used.
    ``api_version``: 4, the typed interface; versions before it take the text ``config`` in place of attributes.
    """

    target: str
    types: Sequence[ArrayType]
    attributes: Mapping[str, Any] = _NONE
    operand_layouts: Layouts = None
    result_layouts: Layouts = None
    into: Mapping[int, int] = _NONE
    batch_dims: int = 0
    side_effect: bool = False
    api_version: int = 4
    config: str | None = None
