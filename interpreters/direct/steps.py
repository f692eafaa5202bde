"""``steps``: the effects of a program as values, which the caller answers one after the other.

    steps(E)(f)(x)  =  Step(op, operands, resume)   where f performs an operation of E first
                       Done(value)                  where it ends
    step.resume(y)  =  the next Step, or Done

Source: Kammar, Lindley & Oury, "Handlers in Action" (2013), section 2.5, on shallow handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec

from ...effects.base.errors import BadArgument, need_operation_type
from ..handlers.handler import ctl, handler, once
from .install import direct

P = ParamSpec("P")


class Done(NamedTuple):
    """The end of a program under ``steps``, with its result."""

    value: Any


class Step(NamedTuple):
    """An operation that a program under ``steps`` performed; ``resume(y)`` is the next ``Step``, or ``Done``."""

    op: Any
    operands: tuple[Any, ...]
    resume: Callable[..., Step | Done]


def steps(
    *kinds: Any, many: bool = False, replay: bool = False
) -> Callable[[Callable[P, Any]], Callable[P, Step | Done]]:
    """Execute a function up to its first operation of these kinds, and give this as a value, a step; resuming it gives
    the next one.

    Whoever holds the steps of many programs decides how they are answered: all at once by one mapped call, in turn, or
    never. Other operations go to the handlers in force.

    Args:
        kinds: types of operations.
        many: a step can be resumed more than once: the function is then executed again, with the same answers.
        replay: as for ``direct``.

    Raises: BadCall: a step is resumed again without ``many``. BadArgument: no kind, or one that is no operation type.

    >>> import handlax as hx
    >>> @hx.effect
    ... class Ask:
    ...     def result_type(op):
    ...         return hx.ArrayType((), "float32")
    >>> step = hx.steps(Ask)(lambda: hx.perform(Ask()) + hx.perform(Ask()))()
    >>> while isinstance(step, hx.Step):
    ...     step = step.resume(2.0)
    >>> print(step.value)
    4.0
    """
    if not kinds:
        raise BadArgument("steps: at least one operation type is needed.", hint="hx.steps(Sin)(f)(x).")
    for kind in kinds:
        if isinstance(kind, (tuple, list)):
            raise BadArgument(
                f"steps: operation types are given one by one, got {kind!r}.", hint="hx.steps(A, B)(f)(x)."
            )
        need_operation_type("steps", "kinds", kind)
    clause = (ctl if many else once)(lambda resume, op, *xs: Step(op, xs, resume))
    return direct(handler(dict.fromkeys(kinds, clause), returns=Done), replay=replay)
