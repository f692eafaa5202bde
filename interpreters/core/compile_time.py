"""Evaluation while tracing: pure operations on concrete values are evaluated at once, under any handlers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...effects.base.source_locations import user_site
from ...effects.base.stack import BASE, STACK, Run, inside, installed
from ...effects.core.operation import Operation


class CompileTime(Run):
    """Evaluates pure operations whose operands are all concrete; forwards all others to the next handler out."""

    __slots__ = ()
    owns_boxes = False

    def answer(self, op: Operation, operands: tuple[Any, ...]) -> Any:
        if op.effects:
            return self.outer.answer(op, operands)
        for x in operands:
            if x.run is not None:
                return self.outer.answer(op, operands)
        with inside(BASE):
            return BASE.answer(op, operands)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Within the block, pure operations on concrete values are evaluated at once, under any transformation.

        with ensure_compile_time_eval(): y = f(3.0)        y is concrete while tracing: Python may branch on it

    Effects: forwards everything.

    >>> from handlax import jit, numpy as hnp
    >>> @jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         positive = hnp.sin(3.0) > 0
    ...     return x if positive else -x
    >>> f(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    with installed(CompileTime(STACK.get(), "ensure_compile_time_eval", user_site(3))):
        yield
