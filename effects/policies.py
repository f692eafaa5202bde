"""Policies: which values reverse mode may keep, and which it has to compute again.

    policy(op, *operand_types, **fields) -> True, False, Saveable, Recompute or Offloadable(src, dst)

A policy is asked about every known equation of a body. It is a hashable value: equal policies share what was made under
them. One that has a method ``plan(program, unknown)`` sees the whole body first, and its plan is asked instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from .errors import BadArgument
from .operations import Operation
from .programs import Program
from .types import ArrayType
from .values import Value

Policy = Callable[..., Any]


class Saveable:
    """A verdict: the rest may take this value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Saveable"


class Recompute:
    """A verdict: the rest computes this value again."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Recompute"


class Offloadable(NamedTuple):
    """A verdict: the rest may take this value, which waits in the memory ``dst`` and comes back to ``src``.

    A device with one kind of memory, such as a CPU, keeps it there; the verdict is recorded all the same.
    """

    src: Hashable
    dst: Hashable


Verdict = Saveable | Recompute | Offloadable
SAVEABLE, RECOMPUTE = Saveable(), Recompute()


def ask(policy: Policy, op: Operation, types: Sequence[ArrayType]) -> Verdict:
    """What a policy says of the results of an equation.

    Raises: BadArgument: it answers something else than a verdict or a bool.
    """
    fields = {name: getattr(op, name) for name in op._names}
    if "label" in fields:  # a field cannot be called "name", which every operation has
        fields["name"] = fields["label"]
    answer = policy(op, *types, **fields)
    if isinstance(answer, (Saveable, Recompute, Offloadable)):
        return answer
    if isinstance(answer, (bool, np.bool_)):
        return SAVEABLE if answer else RECOMPUTE
    if answer is Saveable or answer is Recompute:
        return answer()
    raise BadArgument(
        f"checkpoint: a policy must answer with a bool, Saveable, Recompute or Offloadable, got {answer!r} for "
        f"{op.name}.",
        hint="return op.name in {...}.",
    )


class Plan(Protocol):
    """What a policy says of one program; ``inner`` is the policy for the sub-programs in it."""

    @property
    def inner(self) -> Policy: ...

    def verdict(self, index: int, op: Operation, types: Sequence[ArrayType]) -> Verdict:
        """What may become of the results of equation ``index``."""
        ...


class EachAlone(NamedTuple):
    """The plan of a policy that is asked about every equation by itself."""

    inner: Policy

    def verdict(self, index: int, op: Operation, types: Sequence[ArrayType]) -> Verdict:
        return ask(self.inner, op, types)


def plan_of(policy: Policy, program: Program, unknown: Sequence[bool]) -> Plan:
    """A policy's plan for a program of which these inputs are unknown."""
    whole: Callable[..., Plan] | None = getattr(policy, "plan", None)
    return EachAlone(policy) if whole is None else whole(program, tuple(unknown))


class OutOfBudget(Value):
    """The policy of a rest that takes more than its plan was allowed; whoever puts it on a tape has to refuse."""

    name: str
    minimum: int
    budget: int

    def __call__(self, op: Any, *types: Any, **fields: Any) -> bool:
        return False

    def error(self) -> BadArgument:
        return BadArgument(
            f"memory_budget: the reverse mode of {self.name} must keep at least {self.minimum} bytes, "
            f"got {self.budget}.",
            hint=f"memory_budget({self.minimum}).",
        )


def settled(policy: Policy, program: Program, unknown: Sequence[bool]) -> Policy:
    """The policy of the rest of a program: what a plan has decided is decided."""
    decide: Callable[..., Policy] | None = getattr(policy, "settled", None)
    return policy if decide is None else decide(program, tuple(unknown))


def refusal(op: Any) -> OutOfBudget | None:
    """Where a plan could not be kept, in an operation or in its bodies."""
    if isinstance(op.saves, OutOfBudget):
        return op.saves
    return next(filter(None, map(_refusal, op.bodies)), None)


def _refusal(body: Program) -> OutOfBudget | None:
    known = body._cache
    if "refusal" not in known:
        known["refusal"] = next(filter(None, [refusal(op) for op in body.ops if op.bodied]), None)
    return known["refusal"]


def everything_saveable(op: Any, *types: Any, **fields: Any) -> bool:
    """Keep all, as without ``checkpoint``."""
    return True


def nothing_saveable(op: Any, *types: Any, **fields: Any) -> bool:
    """Keep the arguments alone: what ``checkpoint`` does without a policy."""
    return False


def dots_saveable(op: Any, *types: Any, **fields: Any) -> bool:
    """Keep the results of contractions and convolutions, which are dear to compute."""
    return op.name in ("dot_general", "conv_general_dilated")


def dots_with_no_batch_dims_saveable(op: Any, *types: Any, **fields: Any) -> bool:
    """Keep the results of contractions without batch dimensions: products with weights, not those of attention."""
    return op.name == "dot_general" and not any(fields["dimension_numbers"][1])


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def policy_text(policy: Any) -> str:
    """How messages and reports call a policy."""
    return getattr(policy, "__qualname__", None) or repr(policy)


class _Made(Value):
    """A policy made of parts, and shown by them."""

    word: ClassVar[str]

    def parts(self) -> tuple[Any, ...]:
        return tuple(self.__dict__.values())

    def __repr__(self) -> str:
        return f"{self.word}({', '.join(map(policy_text, self.parts()))})"


class _Names(_Made):
    """A policy by names alone."""

    names: tuple[Hashable, ...]

    def parts(self) -> tuple[Any, ...]:
        return self.names


class AnythingBut(_Names):
    """Keeps all but what has one of these names."""

    word = "save_anything_except_these_names"
    names: tuple[Hashable, ...]

    def __call__(self, op: Any, *types: Any, **fields: Any) -> bool:
        return op.name != "name" or fields["name"] not in self.names


class NamesBut(_Names):
    """Keeps what has a name, but one of these."""

    word = "save_any_names_but_these"
    names: tuple[Hashable, ...]

    def __call__(self, op: Any, *types: Any, **fields: Any) -> bool:
        return op.name == "name" and fields["name"] not in self.names


class OnlyNames(_Names):
    """Keeps what has one of these names."""

    word = "save_only_these_names"
    names: tuple[Hashable, ...]

    def __call__(self, op: Any, *types: Any, **fields: Any) -> bool:
        return op.name == "name" and fields["name"] in self.names


class Either(_Made):
    """Keeps what one of two keeps."""

    word = "save_from_both_policies"
    first: Policy
    second: Policy

    def __call__(self, op: Any, *types: Any, **fields: Any) -> Verdict:
        found = [ask(policy, op, types) for policy in (self.first, self.second)]
        for kind in (Saveable, Offloadable):
            for verdict in found:
                if isinstance(verdict, kind):
                    return verdict
        return RECOMPUTE


class OffloadNames(_Made):
    """Keeps what has one of some names, and offloads what has one of others."""

    word = "save_and_offload_only_these_names"
    saved: tuple[Hashable, ...]
    offloaded: tuple[Hashable, ...]
    src: Hashable
    dst: Hashable

    def __call__(self, op: Any, *types: Any, **fields: Any) -> Verdict:
        if op.name != "name":
            return RECOMPUTE
        name = fields["name"]
        if name in self.saved:
            return SAVEABLE
        return Offloadable(self.src, self.dst) if name in self.offloaded else RECOMPUTE


class OffloadDots(_Made):
    """Offloads products without batch dimensions."""

    word = "offload_dot_with_no_batch_dims"
    src: Hashable
    dst: Hashable

    def __call__(self, op: Any, *types: Any, **fields: Any) -> Verdict:
        kept = dots_with_no_batch_dims_saveable(op, *types, **fields)
        return Offloadable(self.src, self.dst) if kept else RECOMPUTE


def save_anything_except_these_names(*names_not_to_save: Hashable) -> Policy:
    """Keep all but what ``checkpoint_name`` gave one of these names."""
    return AnythingBut(names_not_to_save)


def save_any_names_but_these(*names_not_to_save: Hashable) -> Policy:
    """Keep what ``checkpoint_name`` gave a name, except these."""
    return NamesBut(names_not_to_save)


def save_only_these_names(*names_which_can_be_saved: Hashable) -> Policy:
    """Keep what ``checkpoint_name`` gave one of these names, and nothing else."""
    return OnlyNames(names_which_can_be_saved)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what one of the two keeps; what one keeps and the other offloads is kept."""
    return Either(policy_1, policy_2)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep values of the first names, offload those of the second, and nothing else.

    Raises: BadArgument: a name is in both.
    """
    saved, offloaded = tuple(names_which_can_be_saved), tuple(names_which_can_be_offloaded)
    both = [name for name in saved if name in offloaded]
    if both:
        raise BadArgument(
            f"save_and_offload_only_these_names: a name can be saved or offloaded, got {both[0]!r} in both.",
            hint="leave it out of one.",
        )
    return OffloadNames(saved, offloaded, offload_src, offload_dst)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """``dots_with_no_batch_dims_saveable``, offloading what that keeps."""
    return OffloadDots(offload_src, offload_dst)
