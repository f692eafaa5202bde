"""memory_plan: what a budget keeps of a function, what that costs, and what the device needs beside it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..effects import dtypes, trees
from ..effects.arrays import lift as as_array
from ..effects.errors import need_function
from ..effects.policies import OutOfBudget
from ..effects.stack import BASE
from ..interpreters.budget import MemoryBudget, memory_budget
from ..interpreters.cross import lift
from ..interpreters.derivatives import abstract, tangent_type, vjp
from ..interpreters.jvp import Jvp
from ..interpreters.residuals import Residuals, saved_residuals
from ..interpreters.staging import ShapeDtypeStruct, make_program
from .jit import jit
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

    @functools.wraps(fun)
    def planned(*args: Any, **kwargs: Any) -> MemoryPlan:
        leaves, tree = trees.flatten((args, kwargs))
        types = [abstract(x) for x in leaves]

        def flat(*xs: Any) -> Sequence[Any]:
            given, named = trees.unflatten(tree, xs)
            ys = [as_array(y) for y in trees.leaves(fun(*given, **named))]
            return [y for y in ys if dtypes.is_inexact(y.dtype)]

        program = make_program(flat)(*types)
        marks = [True if tangent_type(t) is not None else None for t in types]
        lifted = lift(Jvp(BASE, "jvp"), program, marks).program
        unknown = [part for mark in marks for part in ((False,) if mark is None else (False, True))]
        plan = policy.plan(lifted, tuple(unknown))
        if plan.minimum > policy.bytes:
            raise OutOfBudget(getattr(fun, "__name__", "f"), plan.minimum, policy.bytes).error()
        kept = saved_residuals(checkpoint(fun, policy=policy), *args, **kwargs)
        temporary = _temporary_bytes(checkpoint(flat, policy=policy), types, program.out_types)
        return MemoryPlan(policy.bytes, plan.minimum, kept, plan.recomputed, plan.flops, temporary)

    return planned


def _temporary_bytes(f: Callable[..., Any], types: Sequence[Any], results: Sequence[Any]) -> int:
    """What XLA needs for values and cotangents, beside what goes in and out."""

    def both(xs: Any, cts: Any) -> Any:
        ys, pull = vjp(f, *xs)
        return ys, [ct for ct, t in zip(pull(cts), types) if tangent_type(t) is not None]

    xs, cts = ([ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak) for t in some] for some in (types, results))
    return int(jit(both).lower(xs, list(cts)).compile().memory_analysis().temp_size_in_bytes)
