"""checkpoint: reverse mode recomputes values instead of saving them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...effects.base.errors import BadArgument, need_function
from ...effects.base.stack import STACK
from ...effects.base.tracebacks import unnamed_boundary
from ...effects.base.wrapping import name_of, wraps
from ...effects.control.checkpoint import Checkpoint
from ...effects.core.arrays import Array, as_array
from ...effects.core.signatures import P, R
from ...effects.functions.keys import static_key
from ...effects.trees import pytrees
from ..core import trace_cache
from ..core.static_arguments import choose, split


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
) -> Callable[P, R]:
    """``fun``, of which reverse mode saves the arguments and what ``policy`` allows, and recomputes the rest.

        checkpoint(f)(x) == f(x)        grad(checkpoint(f))(x) == grad(f)(x)

    Effects: performed once, in the forward pass; their results are saved whatever the policy.

    Args:
        prevent_cse: whether the compiler is prevented from merging the recomputation with the first computation. Inside
            a ``scan`` it cannot merge them, and False is cheaper. A tree of bools means True if one of them is True.
        policy: which values may be saved (``checkpoint_policies``, ``memory_budget``): called for each equation as
            ``policy(primitive, *operand_types, **params)``, it returns a bool, ``Saveable``, ``Recompute`` or
            ``Offloadable``. None: no value.
        static_argnums, static_argnames: arguments that are Python values; one trace for each value. They need not be
            hashable.

    Raises: TracerBoolConversionError: Python control flow depends on an argument that is not static. NotAnArray: an
    argument or a result that is no array. BadArgument: the policy is no function, or returns anything else.

    Source: Griewank & Walther 2008, Evaluating Derivatives, chapter 12.

    >>> from handlax import grad, numpy as hnp
    >>> grad(checkpoint(lambda x: hnp.sin(hnp.sin(x))))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    need_function("checkpoint", fun)
    if policy is not None and not callable(policy):
        raise BadArgument(
            f"checkpoint: the policy must be a function, got {policy!r}.", hint="use one of hx.checkpoint_policies."
        )
    prevents = _any("prevent_cse", prevent_cse)
    names = tuple([static_argnames] if isinstance(static_argnames, str) else static_argnames)
    numbers = None if isinstance(static_argnums, tuple) and not static_argnums else static_argnums
    static = choose(fun, "static", numbers, names or None)
    name = name_of(fun)
    traces = trace_cache.traces_of(fun)

    @wraps(fun)
    @unnamed_boundary
    def rematerialised(*args: Any, **kwargs: Any) -> Any:
        partition = split(fun, static, args, kwargs, static_key) if static else None
        if partition is not None:
            args, kwargs = partition.args, partition.kwargs
        request, leaves = trace_cache.trace_request(fun, name, partition, args, kwargs, "checkpoint")
        trace = trace_cache.trace(request, traces)
        operands = (*trace.captured, *[x if isinstance(x, Array) else as_array(x) for x in leaves])
        return trace.unflatten(STACK.get().answer(Checkpoint((trace.program,), policy, prevents), operands))

    return rematerialised


def _any(name: str, tree: Any) -> bool:
    """Whether a bool of the tree ``static`` is True. Raises: BadArgument: a leaf is no bool."""
    leaves = pytrees.leaves(tree)
    if not all(isinstance(leaf, bool) for leaf in leaves):
        raise BadArgument(f"checkpoint: {name} must be a bool, or a tree of them, got {tree!r}.")
    return any(leaves)
