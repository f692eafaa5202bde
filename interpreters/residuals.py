"""Residuals: what the reverse mode of a function keeps, as data.

    the residuals of f at x are what the tape of linearize(f, x) captured
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..effects import trees
from ..effects.arrays import lift
from ..effects.errors import need_function
from ..effects.operations import Operation
from ..effects.policies import Offloadable, Policy, Recompute, Saveable, ask, policy_text
from ..effects.programs import Program
from ..effects.rematerialise import Checkpoint
from ..effects.sources import NOWHERE, Site, user_site
from ..effects.stack import STACK, installed
from ..effects.types import ArrayType
from .derivatives import abstract, tangent_type
from .linearize import linearize
from .record import Record
from .simplify import dead_code_elimination, is_root


class Use(NamedTuple):
    """An operation of the reverse mode that takes a residual, and the user's line that it comes from."""

    operation: str
    site: Site

    def __str__(self) -> str:
        return f"{self.operation} at {self.site}"


class Residual(NamedTuple):
    """A value that waits for the reverse mode.

    ``source``: "argument", "constant" or "operation". ``name``: the argument's, or the operation's; ``label``: the name
    that ``checkpoint_name`` gave it. ``policy``: the one that let it be kept, with its ``verdict``; None where none was
    asked. ``uses``: what takes it.
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

    def __str__(self) -> str:
        if self.source == "operation":
            what = f"named {self.label!r}" if self.label is not None else f"output of {self.name}"
            what += f" at {self.site} ({self.site.function})"
        else:
            what = f"the {self.source} {self.name}".rstrip()
        if self.policy is not None:
            word = f"offloadable to {self.verdict.dst}" if isinstance(self.verdict, Offloadable) else "kept"
            what += f", {word} by {policy_text(self.policy)}"
        takers = ", ".join(dict.fromkeys(map(str, self.uses)))
        return f"{self.type} {self.bytes} bytes: {what}" + (f", for {takers}" if takers else "")


class Residuals(tuple[Residual, ...]):
    """The residuals of a function, those of its arguments first."""

    __slots__ = ()

    @property
    def bytes(self) -> int:
        """What they hold together."""
        return sum([residual.bytes for residual in self])

    def __str__(self) -> str:
        return "\n".join(map(str, self))


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Residuals:
    """What the reverse mode of ``f`` keeps at arguments of these types, with where it comes from and who needs it.

        saved_residuals(checkpoint(f), x) holds nothing but arguments

    Nothing is computed. Arguments that are kept have memory anyway; they are listed since the reverse mode takes them.

    Raises: NotDifferentiable: ``f`` performs something that has no derivative.

    >>> from handlax import numpy as hnp
    >>> [r.name for r in saved_residuals(lambda x: hnp.sin(hnp.sin(x)), 1.0)]
    ['cos', 'cos']
    """
    need_function("saved_residuals", f)
    leaves, tree = trees.flatten((args, kwargs))
    types = [abstract(x) for x in leaves]

    def flat(*xs: Any) -> Sequence[Any]:
        given, named = trees.unflatten(tree, xs)
        return [lift(y) for y in trees.leaves(f(*given, **named))]

    run = Record(STACK.get(), "saved_residuals", user_site(2))
    with installed(run):
        boxes = [run.input(t) for t in types]
        linear = linearize(flat, boxes, [tangent_type(t) for t in types], "saved_residuals")
        whole = linear.tape.freeze([n for n in linear.tangents if n is not None])
        rest = dead_code_elimination(whole).program
        forward = run.freeze([x if x.run is run else lift(0) for x in rest.consts])
    names = _argument_names(f, args, kwargs)
    found = [_residual(forward, rest, k, names) for k, x in enumerate(rest.consts) if x.run is run or x.type.shape]
    order = [*names, "", None]
    return Residuals(sorted(found, key=lambda r: order.index(None if r.source == "operation" else r.name)))


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """``print(saved_residuals(f, *args, **kwargs))``: one residual a line."""
    print(saved_residuals(f, *args, **kwargs))  # noqa: T201 what it is for


def _residual(forward: Program, rest: Program, place: int, names: Sequence[str]) -> Residual:
    """The residual that is constant ``place`` of the rest, and result ``place`` of the forward program."""
    const = rest.consts[place]
    uses = tuple(dict.fromkeys(_uses(rest, -1 - place)))
    number = forward.outs[place]
    if const.run is None or number < 0:
        return Residual(const.type, "constant", "", None, NOWHERE, None, None, uses)
    if number < len(forward.in_types):
        return Residual(const.type, "argument", names[number], None, NOWHERE, None, None, uses)
    op, types, site, policy = _origin(forward, number, None)
    verdict = None if policy is None or is_root(op) else _verdict(policy, op, types)
    label = getattr(op, "label", None) if op.name == "name" else None
    policy = policy if verdict is not None else None
    return Residual(const.type, "operation", op.name, label, site, policy, verdict, uses)


def _verdict(policy: Policy, op: Operation, types: Sequence[ArrayType]) -> Saveable | Offloadable | None:
    """What a policy said of a value that is kept; None where it is kept for another reason: as a result, say."""
    if hasattr(policy, "plan"):
        return Saveable()
    answer = ask(policy, op, types)
    return None if isinstance(answer, Recompute) else answer


Origin = tuple[Operation, Sequence[ArrayType], Site, Policy | None]


def _origin(program: Program, number: int, policy: Policy | None) -> Origin:
    """The operation that made a value, sub-programs searched; with the policy in force there."""
    at = len(program.in_types)
    for i, (op, made) in enumerate(zip(program.ops, program.types)):
        count = len(made) if op.multiple else 1
        if number < at + count:
            return _inside(program, i, number - at, policy)
        at += count
    raise AssertionError(f"{program.name} has no value {number}")


def _inside(program: Program, index: int, result: int, policy: Policy | None) -> Origin:
    """Where a result of an equation comes from: out of a body, if it is made there."""
    op = program.ops[index]
    if isinstance(op, Checkpoint) and policy is None:
        policy = op.saves
    if op.bodied and op.runs != "until":  # type: ignore[attr-defined]
        found = []
        for body in op.main:  # type: ignore[attr-defined]
            number = body.outs[result]
            if number >= len(body.in_types):
                found.append(_origin(body, number, policy))
        found.sort(key=lambda origin: origin[0].name == "broadcast_in_dim")  # what fills the place in other branches
        if found:
            return found[0]
    types = [program.type_of(n) for n in program.args[index]]
    return op, types, program.site(index), policy


def _uses(program: Program, number: int) -> Iterator[Use]:
    """The operations that take a value, those in sub-programs themselves."""
    for i, (op, args) in enumerate(zip(program.ops, program.args)):
        for place, n in enumerate(args):
            if n == number:
                yield from _uses_inside(program, i, op, place)


def _uses_inside(program: Program, index: int, op: Any, place: int) -> Iterator[Use]:
    found: list[Use] = []
    if op.bodied and place >= op.selects:
        for body in op.main:
            found += _uses(body, place - op.selects)
    yield from found or [Use(op.name, program.site(index))]


def _argument_names(f: Callable[..., Any], args: Any, kwargs: Any) -> list[str]:
    """How the leaves of the arguments are called: ``x``, ``params['w'][0]``."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    ordered = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    spread = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    names = []
    for path, _ in trees.leaves_with_path((args, kwargs)):
        group, first = path[0].idx, path[1]
        if group == 1:
            head = first.key
        elif first.idx < len(ordered):
            head = ordered[first.idx]
        else:
            head = f"{spread}[{first.idx - len(ordered)}]"
        names.append(f"{head}{trees.keystr(path[2:])}")
    return names
