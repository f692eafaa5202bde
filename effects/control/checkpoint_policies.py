"""Checkpoint policies: which residuals reverse mode may save, and which it recomputes.

    policy(primitive, *operand_types, **params) -> True, False, Saveable, Recompute or Offloadable(src, dst)

A policy is called for every known equation of a body, with its primitive and parameters as the equation shows them;
``primitive.operation`` is the class of the operation. It is hashable: equal policies share cached programs. A
``WholeBodyPolicy`` makes a plan of the whole body first, and the plan decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..base.errors import BadArgument
from ..base.frozen_values import Value
from ..base.lazy_module import LazyModule
from ..core.operation import Operation
from ..programs.program import Program, derived_once
from ..types.array_type import ArrayType

if TYPE_CHECKING:
    from ..programs import primitives
    from ..programs.primitives import Primitive
else:
    primitives = LazyModule("handlax.effects.programs.primitives")

Policy = Callable[..., Any]


class Saveable:
    """The verdict that a value may be saved as a residual."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Saveable"


class Recompute:
    """The verdict that a value must be recomputed."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Recompute"


class Offloadable(NamedTuple):
    """The verdict that a value may be saved in the memory ``dst``, from which it is copied back to ``src``.

    They are kinds of memory, "device" and "pinned_host".
    """

    src: str
    dst: str


Verdict = Saveable | Recompute | Offloadable
SAVEABLE, RECOMPUTE = Saveable(), Recompute()


def verdict_of(policy: Policy, op: Operation, types: Sequence[ArrayType]) -> Verdict:
    """The verdict of a policy on the results of an equation.

    Raises: BadArgument: the policy returns neither a verdict nor a bool.
    """
    return _answered(policy, primitives.primitive_of(type(op)), types, op.as_params())


def _answered(policy: Policy, primitive: Primitive, types: Sequence[ArrayType], params: Mapping[str, Any]) -> Verdict:
    answer = policy(primitive, *types, **params)
    if isinstance(answer, (Saveable, Recompute, Offloadable)):
        return answer
    if isinstance(answer, (bool, np.bool_)):
        return SAVEABLE if answer else RECOMPUTE
    if answer is Saveable or answer is Recompute:
        return answer()
    raise BadArgument(
        f"checkpoint: a policy must return a bool, Saveable, Recompute or Offloadable, got {answer!r} for "
        f"{primitive}.",
        hint="return primitive.name in {...}.",
    )


class PolicyPlan(Protocol):
    """The verdicts of a policy on the equations of one program; ``inner`` is the policy for its sub-programs."""

    @property
    def inner(self) -> Policy: ...

    def verdict(self, index: int, op: Operation, types: Sequence[ArrayType]) -> Verdict:
        """The verdict on the results of equation ``index``."""
        ...


class WholeBodyPolicy:
    """A policy that decides on a body as a whole, through its ``plan``; by itself it saves nothing."""

    def __call__(self, primitive: Primitive, *types: ArrayType, **params: Any) -> bool:
        return False  # a single equation does not determine a plan

    def plan(self, program: Program, unknown: tuple[bool, ...]) -> PolicyPlan:
        """The plan for a program of which these inputs are unknown."""
        return PerEquationPlan(self)

    def resolved(self, program: Program, unknown: tuple[bool, ...]) -> Policy:
        """The policy with which the unknown part of a program is recorded, after the plan partitioned it."""
        return self


class PerEquationPlan(NamedTuple):
    """The plan of a policy that decides on every equation by itself."""

    inner: Policy

    def verdict(self, index: int, op: Operation, types: Sequence[ArrayType]) -> Verdict:
        return verdict_of(self.inner, op, types)


def plan_of(policy: Policy, program: Program, unknown: Sequence[bool]) -> PolicyPlan:
    """The plan of any policy for a program of which these inputs are unknown."""
    return policy.plan(program, tuple(unknown)) if isinstance(policy, WholeBodyPolicy) else PerEquationPlan(policy)


class OutOfBudget(Value):
    """The policy of an unknown part whose residuals exceed the budget; recording it must raise ``error()``."""

    name: str
    minimum: int
    budget: int

    def __call__(self, primitive: Any, *types: Any, **params: Any) -> bool:
        return False

    def error(self) -> BadArgument:
        return BadArgument(
            f"memory_budget: the reverse mode of {self.name} must keep at least {self.minimum} bytes, "
            f"got {self.budget}.",
            hint=f"memory_budget({self.minimum}).",
        )


def resolved_policy(policy: Policy, program: Program, unknown: Sequence[bool]) -> Policy:
    """The policy with which the unknown part of a partitioned program is recorded; see ``WholeBodyPolicy.resolved``."""
    return policy.resolved(program, tuple(unknown)) if isinstance(policy, WholeBodyPolicy) else policy


def exceeded_budget(op: Any) -> OutOfBudget | None:
    """The ``OutOfBudget`` of an operation or of an operation in its bodies; None if there is none."""
    if isinstance(op.saves, OutOfBudget):
        return op.saves
    return next(filter(None, map(_exceeded_budget, op.bodies)), None)


@derived_once
def _exceeded_budget(body: Program) -> OutOfBudget | None:
    return next(filter(None, [exceeded_budget(op) for op in body.ops if op.bodied]), None)


def everything_saveable(primitive: Any, *types: Any, **params: Any) -> bool:
    """Save all residuals, as without ``checkpoint``."""
    return True


def nothing_saveable(primitive: Any, *types: Any, **params: Any) -> bool:
    """Save only the arguments: the policy of ``checkpoint`` by default."""
    return False


def dots_saveable(primitive: Any, *types: Any, **params: Any) -> bool:
    """Save the results of contractions and convolutions, which are expensive to recompute."""
    return primitive.operation.contracts


def dots_with_no_batch_dims_saveable(primitive: Any, *types: Any, **params: Any) -> bool:
    """Save the results of contractions without batch dimensions: products with weights, not those of attention."""
    return primitive.operation.contracts and not any(params.get("dimension_numbers", ((), ()))[1])


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def policy_text(policy: Any) -> str:
    """The name of a policy in messages and reports."""
    return getattr(policy, "__qualname__", None) or repr(policy)


class MadePolicy(Value):
    """A policy made by the public function ``made_by`` from ``arguments``: its repr is that call.

    The policy's answer is ``decide(arguments, primitive, types, params)``.
    """

    made_by: str
    decide: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self, primitive: Any, *types: Any, **params: Any) -> Any:
        return self.decide(self.arguments, primitive, types, params)

    def __repr__(self) -> str:
        return f"{self.made_by}({', '.join(map(policy_text, self.arguments))})"


def _label(primitive: Any, params: Any) -> str | None:
    """The label of a result by ``checkpoint_name``, if it has one."""
    kind = primitive.operation
    return None if kind.checkpoint_name is None else kind.from_params(params).checkpoint_name


def _is_not_named(names: Any, primitive: Any, types: Any, params: Any) -> bool:
    """Whether the result has no label by ``checkpoint_name``, or one that is not in ``names``."""
    label = _label(primitive, params)
    return label is None or label not in names


def _has_another_name(names: Any, primitive: Any, types: Any, params: Any) -> bool:
    """Whether ``checkpoint_name`` gave the result a label, and it is none of ``names``."""
    label = _label(primitive, params)
    return label is not None and label not in names


def _is_named(names: Any, primitive: Any, types: Any, params: Any) -> bool:
    """Whether the label that ``checkpoint_name`` gave the result is one of ``names``."""
    label = _label(primitive, params)
    return label is not None and label in names


def _either(policies: Any, primitive: Any, types: Any, params: Any) -> Verdict:
    """The verdict ``Saveable`` if a policy gives it, else the first ``Offloadable``, else ``Recompute``."""
    verdicts = [_answered(policy, primitive, types, params) for policy in policies]
    return next((v for kind in (Saveable, Offloadable) for v in verdicts if isinstance(v, kind)), RECOMPUTE)


def _saved_or_offloaded(arguments: Any, primitive: Any, types: Any, params: Any) -> Verdict:
    """The verdict on a result by its label, for the names to save, the names to offload, and the two memories."""
    saved, offloaded, src, dst = arguments
    if _is_named(saved, primitive, types, params):
        return SAVEABLE
    return Offloadable(src, dst) if _is_named(offloaded, primitive, types, params) else RECOMPUTE


def _offloaded_dot(memories: Any, primitive: Any, types: Any, params: Any) -> Verdict:
    """The verdict ``Offloadable(*memories)`` on contractions without batch dimensions, else ``Recompute``."""
    return Offloadable(*memories) if dots_with_no_batch_dims_saveable(primitive, *types, **params) else RECOMPUTE


def save_anything_except_these_names(*names_not_to_save: Hashable) -> Policy:
    """Save all residuals but those that ``checkpoint_name`` labelled with one of these names."""
    return MadePolicy("save_anything_except_these_names", _is_not_named, names_not_to_save)


def save_any_names_but_these(*names_not_to_save: Hashable) -> Policy:
    """Save the residuals that ``checkpoint_name`` labelled, except with these names."""
    return MadePolicy("save_any_names_but_these", _has_another_name, names_not_to_save)


def save_only_these_names(*names_which_can_be_saved: Hashable) -> Policy:
    """Save only the residuals that ``checkpoint_name`` labelled with one of these names."""
    return MadePolicy("save_only_these_names", _is_named, names_which_can_be_saved)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save what one of the two saves; what one saves and the other offloads is saved."""
    return MadePolicy("save_from_both_policies", _either, (policy_1, policy_2))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save residuals labelled with the first names, offload those with the second, recompute all others.

    Raises: BadArgument: a name is in both.
    """
    saved, offloaded = tuple(names_which_can_be_saved), tuple(names_which_can_be_offloaded)
    both = [name for name in saved if name in offloaded]
    if both:
        raise BadArgument(
            f"save_and_offload_only_these_names: a name can be saved or offloaded, got {both[0]!r} in both.",
            hint="leave it out of one.",
        )
    arguments = saved, offloaded, offload_src, offload_dst
    return MadePolicy("save_and_offload_only_these_names", _saved_or_offloaded, arguments)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Offload the residuals that ``dots_with_no_batch_dims_saveable`` saves."""
    return MadePolicy("offload_dot_with_no_batch_dims", _offloaded_dot, (offload_src, offload_dst))
