"""Calls that a user divides over devices: XLA asks, while it compiles, what each device executes in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...effects.base.caches import per_process
from .jaxlib_modules import xc

DIVIDED_CALL = "handlax_divided_call"
"""The target of such calls. In a program's text their configuration is this and an index of the module's calls."""
ANSWERS: dict[bytes, Callable[..., Any]] = {}
"""What answers XLA, by the configurations of the calls in programs that are being compiled."""


@per_process
def answer_xla() -> None:
    """Have XLA on the CPU ask for the parts of divided calls."""
    answer_compiler()


def answer_compiler(api: Any = None) -> None:
    """Have the compiler of jaxlib, or that of a plug-in, ask for the parts of divided calls."""
    # three functions are required; Shardy, which chooses shardings by rules of factors, calls the second alone
    xc.register_custom_call_partitioner(DIVIDED_CALL, _part, _part, _part, c_api=api)


def _part(types: Any, operands: Any, type: Any, result: Any, configuration: bytes) -> Any:
    return ANSWERS[configuration](operands, type, result)
