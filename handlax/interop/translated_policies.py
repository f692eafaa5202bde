"""Checkpoint policies of one library, asked by the other: each sees its own primitives, types and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..effects.base.errors import NotProvided
from ..effects.base.frozen_values import Value
from ..effects.base.source_locations import is_ours
from ..effects.control.checkpoint_policies import RECOMPUTE, SAVEABLE, Offloadable, WholeBodyPolicy
from ..effects.programs.primitives import primitive_called
from ..effects.programs.program import Program
from .jax_modules import is_of_jax, jax_primitives
from .jax_values import our_type, their_type

_NAMES = {"checkpoint": "remat2"}


class PolicyOfJax(Value):
    """A policy of JAX's, asked about operations of handlax."""

    policy: Callable[..., Any]

    def __call__(self, primitive: Any, *types: Any, **params: Any) -> Any:
        known = jax_primitives().get(_NAMES.get(primitive.name, primitive.name))
        if known is None or not is_ours(primitive.operation.__module__):
            return False
        plain = {name: value for name, value in params.items() if not isinstance(value, Program)}
        answer = self.policy(known, *map(their_type, types), **plain)
        kind = type(answer).__name__
        if kind == "Offloadable":
            return Offloadable(answer.src, answer.dst)
        return SAVEABLE if kind == "SaveableType" else RECOMPUTE if kind == "RecomputeType" else bool(answer)


class PolicyForJax(Value):
    """A policy of handlax, asked about primitives of JAX's."""

    policy: Callable[..., Any]

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> bool:
        names = {theirs: ours for ours, theirs in _NAMES.items()}
        known = primitive_called(names.get(primitive.name, primitive.name)) if is_of_jax(primitive) else None
        return known is not None and bool(self.policy(known, *map(our_type, avals), **params))


def policy_for_jax(policy: Any) -> Any:
    """A policy of handlax as JAX asks it; None stays None.

    Raises: NotProvided: it decides on a body as a whole, or sends residuals to another memory.
    """
    if isinstance(policy, PolicyOfJax):
        return policy.policy
    if isinstance(policy, WholeBodyPolicy):
        raise NotProvided(
            f"to_jax: a policy of JAX's decides equation by equation, got {policy!r}.",
            hint="differentiate in handlax: to_jax(hx.grad(f)).",
        )
    return None if policy is None else PolicyForJax(policy)


def policy_of_jax(policy: Any) -> Any:
    """A policy of JAX's as handlax asks it; None stays None."""
    if isinstance(policy, PolicyForJax):
        return policy.policy
    return None if policy is None else PolicyOfJax(policy)
