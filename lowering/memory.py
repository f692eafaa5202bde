"""memory_plan: what a budget keeps of a function, what that costs, and what the device needs beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..effects.errors import need_function
from ..effects.policies import OutOfBudget
from ..effects.stack import BASE
from ..effects.wrapping import wraps
from ..interpreters.budget import MemoryBudget, memory_budget
from ..interpreters.cross import lift
from ..interpreters.derivatives import tangent_type
from ..interpreters.jvp import Jvp
from ..interpreters.passes import both_passes, inexact
from ..interpreters.residuals import Residuals, saved_residuals
from ..interpreters.staging import make_program
from .compile import compile_program
from .rematerialise import checkpoint


class MemoryPlan(NamedTuple):
    """What a memory budget comes to.

    ``minimum``: the least budget that is possible. ``residuals``: what is kept, ``residuals.bytes`` at most ``budget``.
    ``recomputed``: the operations that reverse mode repeats, of ``flops`` that the function and its derivative take.
    ``temporary_bytes``: what XLA needs for value and gradient beside arguments and results.
    """

    budget: int
    minimum: int
    residuals: Residuals
    recomputed: int
    flops: int
    temporary_bytes: int

    def __str__(self) -> str:
        head = (
            f"{self.residuals.bytes} of {self.budget} bytes kept (at least {self.minimum}), "
            f"{self.recomputed} of {self.flops} operations repeated, {self.temporary_bytes} temporary bytes"
        )
        return "\n".join([head, *[f"  {residual}" for residual in self.residuals]])


def memory_plan(fun: Callable[..., Any], budget: int | MemoryBudget) -> Callable[..., MemoryPlan]:
    """What ``checkpoint(fun, policy=memory_budget(budget))`` keeps and repeats, at arguments of given types.

        memory_plan(f, n)(x).residuals.bytes <= n

    The plan is that for derivatives by all arguments that have one. It is compiled, to ask XLA for its memory; nothing
    is run.

    Raises: BadArgument: the budget is below the minimum, which the message states.

    >>> from handlax import numpy as hnp
    >>> plan = memory_plan(lambda x: hnp.sum(hnp.sin(hnp.sin(x))), 400)(hnp.ones(100))
    >>> plan.minimum, [residual.name for residual in plan.residuals], plan.recomputed
    (400, ['x'], 300)
    """
    need_function("memory_plan", fun)
    policy = budget if isinstance(budget, MemoryBudget) else memory_budget(budget)

    @wraps(fun)
    def planned(*args: Any, **kwargs: Any) -> MemoryPlan:
        flat, types = inexact(fun, args, kwargs)
        program = make_program(flat)(*types)
        marks = [True if tangent_type(t) is not None else None for t in types]
        lifted = lift(Jvp(BASE, "jvp"), program, marks).program
        unknown = [part for mark in marks for part in ((False,) if mark is None else (False, True))]
        plan = policy.plan(lifted, tuple(unknown))
        if plan.minimum > policy.bytes:
            raise OutOfBudget(getattr(fun, "__name__", "f"), plan.minimum, policy.bytes).error()
        rematerialised = checkpoint(fun, policy=policy)
        kept = saved_residuals(rematerialised, *args, **kwargs)
        memory = compile_program(both_passes(rematerialised, args, kwargs)).executable.memory_analysis()
        temporary = int(memory.temp_size_in_bytes)
        return MemoryPlan(policy.bytes, plan.minimum, kept, plan.recomputed, plan.flops, temporary)

    return planned
