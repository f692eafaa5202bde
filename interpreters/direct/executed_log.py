"""What a function under a handler in direct style was answered, so that another execution is answered alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...effects.base.config import SettingScope
from ...effects.base.errors import BadCall
from ...effects.base.stack import BASE, Run
from ...effects.core.operation import Operation
from ..references.reference import Ref, RefSet

# Values of these types in the fields of an operation are compared; others may be made anew, such as functions.
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Surroundings(NamedTuple):
    """The handlers and the settings around what is executed."""

    outer: Run
    settings: SettingScope


# An operation with its results, the values after it of the references that the function made and it wrote, and, if the
# function was resumed after it, what the function went on under.
Answered = tuple[Any, Any, Sequence[Any], Surroundings | None]


class Iteration(NamedTuple):
    """In place of what a loop logged so far: it has reached iteration ``i`` with these values, under this."""

    i: int
    carry: Any
    under: Surroundings


def is_same(op: Operation, before: Operation) -> bool:
    """Whether an operation may be the one that was performed ``before``: of its type, with equal plain fields."""
    if type(op) is not type(before):
        return False
    pairs = [(getattr(op, name), getattr(before, name)) for name in op._names]
    return all([x is y or type(x) not in _PLAIN or type(y) not in _PLAIN or x == y or x != x for x, y in pairs])


def other_performed(now: str, before: Any) -> BadCall:
    """The error for an execution that does something else than ``before``, an operation or an entry of the log."""
    if type(before) is tuple:
        before = before[0]
    was = "was in a loop" if type(before) is Iteration else f"performed {before.name}"
    return BadCall(
        f"{now}, where it {was} when it was executed before.",
        hint="a function that is resumed again is executed again, and must perform the same: it depends on its "
        "arguments and on answers alone, not on what it changed.",
    )


def own_references(op: Any, first: int) -> Sequence[Ref]:
    """The references that ``op`` writes and that were made, at the base, from number ``first`` on."""
    if not (op.bodied or type(op) is RefSet):
        return ()
    refs = {effect.ref for effect in op.effects if type(effect) is RefSet}
    return sorted([ref for ref in refs if ref.level is BASE and ref.number >= first], key=lambda ref: ref.number)
