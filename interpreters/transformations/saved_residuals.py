"""The residuals of a function's reverse mode, as data: types, origins, uses, and the policies that saved them.

    residuals of f at x = the values that the tape of linearize(f, x) captured
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...effects.base.errors import need_function
from ...effects.base.later_layers import displayed
from ...effects.base.source_locations import NOWHERE, Site, user_site
from ...effects.base.stack import STACK, installed
from ...effects.base.tracebacks import boundary
from ...effects.control.checkpoint import Checkpoint
from ...effects.control.checkpoint_policies import (
    Offloadable,
    Policy,
    Recompute,
    Saveable,
    WholeBodyPolicy,
    policy_text,
    verdict_of,
)
from ...effects.core.arrays import as_array
from ...effects.core.named_axes import is_root
from ...effects.core.operation import Operation
from ...effects.programs.program import Program
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ..analysis.simplify import dead_code_elimination
from ..core.record import Record
from ..core.static_arguments import argument_names
from ..core.trace_cache import leaf_names
from ..differentiation.linearize import linearize
from .derivatives import abstract, tangent_type


class Use(NamedTuple):
    """An operation of the reverse mode with a residual as operand, and the user's line that it comes from."""

    operation: str
    site: Site

    def __str__(self) -> str:
        return f"{self.operation} at {self.site}"


@displayed
@dataclasses.dataclass(frozen=True, repr=False)
class Residual:
    """A primal value that the reverse mode of a function stores; as a pair, its type and where it comes from.

        type, where = residual

    ``source``: "argument", "constant" or "operation". ``name``: of the argument or operation. ``label``: the name given
    by ``checkpoint_name``. ``policy``: the checkpoint policy that saved it, with its ``verdict``; None where none
    applied. ``uses``: the operations of the reverse mode that it is an operand of.
    """

    type: ArrayType
    source: str
    name: str
    label: str | None
    site: Site
    policy: Policy | None
    verdict: Saveable | Offloadable | None
    uses: tuple[Use, ...]

    @property
    def bytes(self) -> int:
        return self.type.nbytes

    @property
    def where(self) -> str:
        """The origin of the residual, in words."""
        if self.source == "operation":
            what = f"named {self.label!r}" if self.label is not None else f"output of {self.name}"
            return f"{what} at {self.site} ({self.site.function})"
        return f"the {self.source} {self.name}".rstrip()

    def __iter__(self) -> Iterator[Any]:
        return iter((self.type, self.where))

    def __getitem__(self, index: int) -> Any:
        return (self.type, self.where)[index]

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"({self.type}, {self.where!r})"

    @property
    def origin(self) -> str:
        """Where it comes from, and by which policy it is saved, in words."""
        if self.policy is None:
            return self.where
        how = f"offloadable to {self.verdict.dst}" if isinstance(self.verdict, Offloadable) else "kept"
        return f"{self.where}, {how} by {policy_text(self.policy)}"

    @property
    def users(self) -> str:
        """The operations of the reverse mode that it is an operand of, in words, each once."""
        return ", ".join(dict.fromkeys(map(str, self.uses)))

    def __str__(self) -> str:
        return f"{self.type} {self.bytes} bytes: {self.origin}" + (f", for {self.users}" if self.users else "")


@displayed
class Residuals(tuple[Residual, ...]):
    """The residuals of a function: first its arguments in order, then constants and results of operations."""

    __slots__ = ()

    @property
    def bytes(self) -> int:
        """The sum of the sizes of all residuals."""
        return sum([residual.bytes for residual in self])

    def __str__(self) -> str:
        return "\n".join(map(str, self))


@boundary
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Residuals:
    """The residuals of ``f`` at arguments of these types: what reverse mode stores, its origins and uses.

        every r in saved_residuals(checkpoint(f), x) has r.source == "argument"

    Only the types of arguments are used; nothing is evaluated. Arguments are listed too.

    Raises: NotDifferentiable: ``f`` performs something that has no derivative.

    >>> from handlax import numpy as hnp
    >>> [r.name for r in saved_residuals(lambda x: hnp.sin(hnp.sin(x)), 1.0)]
    ['cos', 'cos']
    """
    need_function("saved_residuals", f)
    leaves, tree = pytrees.flatten((args, kwargs))
    types = [abstract(x) for x in leaves]

    def flat(*xs: Any) -> Sequence[Any]:
        positional, named = pytrees.unflatten(tree, xs)
        return [as_array(y) for y in pytrees.leaves(f(*positional, **named))]

    run = Record(STACK.get(), "saved_residuals", user_site(2))
    with installed(run):
        boxes = run.inputs(types)
        linear = linearize(flat, boxes, [tangent_type(t) for t in types], "saved_residuals").derivative
        backward = dead_code_elimination(linear.program()).program
        forward = run.freeze([x if x.run is run else as_array(0) for x in backward.consts])
    names = leaf_names(argument_names(f), tree)
    residuals = [
        _residual(forward, backward, k, names)
        for k, x in enumerate(backward.consts)
        if x.run is run or x.type.shape
    ]
    order = [*names, "", None]
    return Residuals(sorted(residuals, key=lambda r: order.index(None if r.source == "operation" else r.name)))


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """``print(saved_residuals(f, *args, **kwargs))``: one residual a line."""
    print(saved_residuals(f, *args, **kwargs))  # noqa: T201 to print is its purpose


def _residual(forward: Program, linear: Program, index: int, names: Sequence[str]) -> Residual:
    """The residual that is constant ``index`` of the linear program and result ``index`` of the forward program."""
    const = linear.consts[index]
    uses = tuple(dict.fromkeys(_uses(linear, -1 - index)))
    number = forward.outs[index]
    if const.run is None or number < 0:
        return Residual(const.type, "constant", "", None, NOWHERE, None, None, uses)
    if number < len(forward.in_types):
        return Residual(const.type, "argument", names[number], None, NOWHERE, None, None, uses)
    op, types, site, policy = _origin(forward, number, None)
    verdict = None if policy is None or is_root(op) else _verdict(policy, op, types)
    policy = policy if verdict is not None else None
    return Residual(const.type, "operation", op.name, op.checkpoint_name, site, policy, verdict, uses)


def _verdict(policy: Policy, op: Operation, types: Sequence[ArrayType]) -> Saveable | Offloadable | None:
    """The verdict of the policy on a saved value; None if that is to recompute, so that another reason saved it."""
    if isinstance(policy, WholeBodyPolicy):
        return Saveable()
    answer = verdict_of(policy, op, types)
    return None if isinstance(answer, Recompute) else answer


Origin = tuple[Operation, Sequence[ArrayType], Site, Policy | None]


def _origin(program: Program, number: int, policy: Policy | None) -> Origin:
    """The operation whose result value ``number`` is; its operand types, its site, and the checkpoint policy around it.

    A result of a higher-order operation is followed into its bodies, except for those of a while loop, and a computed
    value that was moved to another memory to where it was computed.
    """
    index, result = program.definition(number)  # type: ignore[misc]  # it is no input
    op, args = program.ops[index], program.args[index]
    if _moves(program, index) and args[0] >= len(program.in_types):
        return _origin(program, args[0], policy)
    if isinstance(op, Checkpoint) and policy is None:
        policy = op.saves
    if op.bodied and op.runs != "until" and not op.own_results:  # type: ignore[attr-defined]
        origins = []
        for body in op.main:  # type: ignore[attr-defined]
            number = body.outs[result]
            if number >= len(body.in_types):
                origins.append(_origin(body, number, policy))
        origins.sort(key=lambda origin: origin[0].cheap_to_recompute)  # last: fillers from the branches without it
        if origins:
            return origins[0]
    types = [program.type_of(n) for n in args]
    return op, types, program.site(index), policy


def _uses(program: Program, number: int) -> Iterator[Use]:
    """The operations with value ``number`` as operand; for higher-order ones, the operations in their bodies, and for a
    move to another memory, those of what was moved.
    """
    for i, (op, args) in enumerate(zip(program.ops, program.args)):
        for position, n in enumerate(args):
            if n == number:
                yield from _uses_inside(program, i, op, position)


def _uses_inside(program: Program, index: int, op: Any, position: int) -> Iterator[Use]:
    uses: list[Use] = []
    if op.bodied and position >= op.selects:
        for body in op.main:
            uses += _uses(body, position - op.selects)
    if _moves(program, index):
        uses += _uses(program, program.starts()[index])
    yield from uses or [Use(op.name, program.site(index))]


def _moves(program: Program, index: int) -> bool:
    """Whether an equation's result is its operand in another memory."""
    op, args, made = program.ops[index], program.args[index], program.types[index]
    if op.multiple_results or not op.keeps_memory:
        return False
    return program.type_of(args[0]).memory_space is not made.memory_space
