"""What a call must leave as it found it, however it ends: handlers, settings, caches, files, values of programs.

    with whole(): ...           AssertionError: the block left something behind
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as hnp
from ...effects.base import config
from ...effects.base.caches import cached
from ...effects.base.stack import BASE, current
from ...effects.core.arrays import as_array, perform
from ...effects.core.operation import effect
from ...effects.types.array_type import ArrayType, array_type
from ...interpreters.handlers.handle import handle
from ...interpreters.handlers.handler import handler
from ...interpreters.transformations.derivatives import value_and_grad
from ...interpreters.transformations.vmap import vmap
from ...lowering.jit.jit import jit
from .left_behind import IN_FORCE, Before, hidden_files, tracers


@contextmanager
def whole(*folders: str | os.PathLike[str]) -> Iterator[None]:
    """A block that must leave the library whole, whether it returns or raises.

        handlers, settings, threads after == before,    values of a program after == before

    Args:
        folders: in which no hidden file may remain, such as one that is being written.

    Raises: AssertionError: what the block left behind, in words; from the exception that the block raised, if any.

    >>> with whole():
    ...     jit(lambda x: x + 1)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    before = Before(values, hidden_files(*folders), tracers, *IN_FORCE)
    try:
        yield
    except BaseException as error:
        before.check("a block", error)
        raise
    before.check("a block")


def values() -> Iterator[str]:
    """The values of a program with a handled effect, loops, a branch, lanes and a derivative, executed and compiled."""
    expected = _expected(config.current()) if current() is BASE else _computed()
    yield ""
    if (now := _computed()) != expected:
        yield f"a program must have the values {expected}, got {now}."


@effect(vmap="per_lane", diff="stop")
class ProbeTick:
    """Counts."""

    def result_type(op) -> ArrayType:
        return array_type((), np.dtype("int32"))


_TICKING = handler({ProbeTick: lambda n, op: (n + 1, n)})


def _summed(x: Any) -> Any:
    def step(total: Any, y: Any) -> tuple[Any, Any]:
        perform(ProbeTick())
        return lax.cond(y > 0, lambda: total + hnp.sin(y), lambda: total * y), y

    return lax.scan(step, 1.0, x)[0] + lax.while_loop(lambda n: n < 3, lambda n: n + 1, 0)


@cached("expected values", 16)
def _expected(settings: config.Configuration) -> list[Any]:
    """The values under the settings in force, outside of all handlers: they are the same before every block."""
    return _computed()


def _computed() -> list[Any]:
    f = handle(_TICKING, 0)(value_and_grad(_summed))
    lanes = as_array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    return [np.asarray(y).tolist() for g in (vmap(f), jit(vmap(f))) for n, (y, dy) in [g(lanes)] for y in (n, y, dy)]
