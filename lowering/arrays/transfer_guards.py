"""What settings refuse or log in a call of a compiled function: its execution, and implicit transfers of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.config import current
from ...effects.base.errors import ExecutionRefused
from ...effects.core.arrays import Array, type_of
from ...effects.core.jax_contexts import check_transfer
from ..xla.lazy import runtime


def check_call(name: str, leaves: Sequence[Any], names: Callable[[int], str]) -> None:
    """Apply the guards of calls. Raises: ExecutionRefused: ``no_execution`` is set. TransferRefused: an argument is on
    the host.
    """
    if current().no_execution:
        raise ExecutionRefused(
            f"{name}: nothing is executed under no_execution.", hint="f.lower(x).compile() compiles it."
        )
    for i, x in enumerate(leaves):
        if not isinstance(x, Array):
            check_transfer("host_to_device", f"{names(i)} of {name}, {type_of(x)}")


def check_moves(name: str, buffers: Sequence[Any], places: Sequence[Any], names: Callable[[int], str]) -> None:
    """Apply the guards of transfers. Raises: TransferRefused: an argument is on another device than the program's
    input.
    """
    for i, (buffer, where) in enumerate(zip(buffers, places)):
        if where is not None and runtime.mover(buffer, where) is not None:
            check_transfer("device_to_device", f"{names(i)} of {name}, {buffer.aval.dtype}{list(buffer.aval.shape)}")
