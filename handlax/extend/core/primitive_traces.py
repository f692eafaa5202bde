"""Interpreters under JAX's names: a trace is a handler, and the trace in force is the innermost run.

    with take_current_trace() as parent:
        with set_current_trace(MyTrace(parent)): ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...effects.base.errors import MissingRule
from ...effects.base.source_locations import user_site
from ...effects.base.stack import Run, at_site, current, inside, runs
from ...effects.core.arrays import Box, as_array
from ...effects.core.operation import Operation
from ...effects.programs.primitives import Primitive, primitive_of
from ...interpreters.core.compile_time import ensure_compile_time_eval
from ...interpreters.handlers.handle import innermost_transformation

__all__ = ["PrimitiveTrace", "TraceTag", "find_top_trace", "set_current_trace", "take_current_trace"]


class TraceTag:
    """A mark of which no other one is the same: by it a trace tells values of its own interpreter from all others."""


class PrimitiveTrace(Run):
    """A handler of every operation by one method in JAX's form, which a subclass defines.

        results = trace.process_primitive(primitive, tracers, params)

    Values of its own are ``Tracer``s of it; all others come as they are. An operation with bodies comes whole, with its
    programs among the parameters. What the method performs goes to the handlers that were in force where the trace was
    made; ``primitive.bind_with_trace(trace, ...)`` performs an operation on a particular one.
    """

    def __init__(self) -> None:
        super().__init__(current(), type(self).__name__, user_site(2))

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Any], params: dict[str, Any], /) -> Any:
        """The result of an operation, or the list of its results. Raises: MissingRule: a subclass must define it."""
        raise MissingRule(f"{self.label}: there is no process_primitive, by which a trace answers {primitive}.")

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        tracers = [*op.primitive_operands(operands)]
        with at_site(self.cell.site or self.labelled_site(), self.cell), inside(self.outer):
            results = self.process_primitive(primitive_of(type(op)), tracers, op.as_params())
            return tuple(map(as_array, results)) if op.multiple_results else as_array(results)


@contextmanager
def take_current_trace() -> Iterator[Run]:
    """Within the block, the trace that was in force; operations on concrete values are evaluated at once."""
    trace = current()
    with ensure_compile_time_eval():
        yield trace


def set_current_trace(trace: Run, check_leaks: bool = False) -> inside:
    """``with set_current_trace(trace):`` it is in force, with the handlers outside of it.

    ``check_leaks`` changes nothing: values that have escaped are refused where they are used.
    """
    return inside(trace)


def find_top_trace(xs: Sequence[Any]) -> Run:
    """The innermost run in force that one of these values belongs to, else the innermost transformation."""
    owners = {x.run for x in xs if isinstance(x, Box)}
    return next((run for run in runs() if run in owners), innermost_transformation())
