"""memory_plan: the residuals, the recomputation and the device memory of a function under a memory budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...effects.base.errors import need_function
from ...effects.base.later_layers import displayed
from ...effects.base.stack import BASE
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.checkpoint_policies import OutOfBudget
from ...interpreters.core.body_transform import transform_body
from ...interpreters.differentiation.jvp import Jvp
from ...interpreters.differentiation.memory_budget import MemoryBudget, memory_budget
from ...interpreters.inspection.forward_backward import both_passes, inexact
from ...interpreters.transformations.checkpoint import checkpoint
from ...interpreters.transformations.derivatives import tangent_type
from ...interpreters.transformations.make_program import trace
from ...interpreters.transformations.saved_residuals import Residuals, saved_residuals
from ..compile.compile import compile_program


@displayed
class MemoryPlan(NamedTuple):
    """The consequences of a memory budget, in bytes and floating-point operations.

    ``minimum``: the least possible budget. ``residuals``: the values saved, of ``residuals.bytes <= budget``.
    ``recomputed``: the operations that reverse mode repeats; ``flops``: those of the function and its derivative.
    ``temporary_bytes``: the memory that XLA needs for value and gradient beside arguments and results.
    """

    budget: int
    minimum: int
    residuals: Residuals
    recomputed: int
    flops: int
    temporary_bytes: int

    def __str__(self) -> str:
        head = (
            f"{self.residuals.bytes} of {self.budget} bytes saved (at least {self.minimum}), "
            f"{self.recomputed} of {self.flops} operations repeated, {self.temporary_bytes} temporary bytes"
        )
        return "\n".join([head, *[f"  {residual}" for residual in self.residuals]])


def memory_plan(fun: Callable[..., Any], budget: int | MemoryBudget) -> Callable[..., MemoryPlan]:
    """The values that ``checkpoint(fun, policy=memory_budget(budget))`` saves and the operations that it repeats.

        memory_plan(f, n)(x).residuals.bytes <= n

    The plan is for the derivative by all differentiable arguments. Value and gradient are compiled, for XLA's figure of
    memory; nothing is executed.

    Raises: BadArgument: the budget is below the minimum, which the message states.

    >>> from handlax import numpy as hnp
    >>> plan = memory_plan(lambda x: hnp.sum(hnp.sin(hnp.sin(x))), 400)(hnp.ones(100))
    >>> plan.minimum, [residual.name for residual in plan.residuals], plan.recomputed
    (400, ['x'], 300)
    """
    need_function("memory_plan", fun)
    policy = budget if isinstance(budget, MemoryBudget) else memory_budget(budget)

    @wraps(fun)
    @unnamed_boundary
    def planned(*args: Any, **kwargs: Any) -> MemoryPlan:
        flat, types = inexact(fun, args, kwargs)
        program = trace(flat, tuple(types), {}, label="memory_plan").program
        marks = [True if tangent_type(t) is not None else None for t in types]
        tangent_program = transform_body(Jvp(BASE, "jvp"), program, marks).program
        unknown = [part for mark in marks for part in ((False,) if mark is None else (False, True))]
        plan = policy.plan(tangent_program, tuple(unknown))
        if plan.minimum > policy.bytes:
            raise OutOfBudget(name_of(fun), plan.minimum, policy.bytes).error()
        rematerialised = checkpoint(fun, policy=policy)
        saved = saved_residuals(rematerialised, *args, **kwargs)
        memory = compile_program(both_passes(rematerialised, args, kwargs)).loaded.executable.memory_analysis()
        temporary = int(memory.temp_size_in_bytes)
        return MemoryPlan(policy.bytes, plan.minimum, saved, plan.recomputed, plan.flops, temporary)

    return planned
