"""Dependence: which results depend on which operands, before anything is split or made.

    dependent(p, marks)[j]  where result j of p depends on a marked input
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..effects.programs import Program
from ..effects.shapes import BroadcastInDim

Marks = tuple[bool, ...]


def dependent(program: Program, marks: Sequence[bool]) -> Marks:
    """Which results depend on a marked input; an effect depends on the one of its kind before it."""
    found = dependent_values(program, marks)
    return tuple([n >= 0 and found[n] for n in program.outs])


def dependent_values(program: Program, marks: Sequence[bool]) -> list[bool]:
    """The same for every value of the program, by its number."""
    key = ("dependent", tuple(marks))
    found = program._cache.get(key)
    if found is None:
        found = program._cache[key] = _values(program, marks)
    return found


def _values(program: Program, marks: Sequence[bool]) -> list[bool]:
    found = list(marks)
    effects: set[type] = set()
    for op, args, made in zip(program.ops, program.args, program.types):
        yes = type(op) in effects or _any(found, args)
        if not op.multiple:
            found.append(yes)
        elif not yes:
            found.extend([False] * len(made))
        elif op.bodied:
            found.extend(dependent_results(op, [n >= 0 and found[n] for n in args]))
        else:
            found.extend([True] * len(made))
        if yes and op.effectful:
            effects.add(type(op))
    return found


def _any(found: Sequence[bool], args: Sequence[int]) -> bool:
    for n in args:
        if n >= 0 and found[n]:
            return True
    return False


def dependent_results(op: Any, marks: Sequence[bool]) -> Marks:
    """Which results of an operation with bodies depend on a marked operand."""
    groups = op.groups(marks)
    if not op.prunes or any(groups.selects) or (op.runs == "until" and dependent_test(op, marks)):
        return (True,) * len(op.main[0].outs)
    inner = dependent_inputs(op, marks)
    found = [any(column) for column in zip(*[dependent(body, inner) for body in op.main])]
    return (*inner[op.shared : op.shared + op.carry], *found[op.carry :]) if op.loops else tuple(found)


def dependent_inputs(op: Any, marks: Sequence[bool]) -> Marks:
    """Which inputs of the bodies depend on a marked operand: what a loop carries does if its next value does."""
    if not op.loops:
        return tuple(marks[op.selects :])
    _, shared, moving, each = op.groups(marks)
    while not all(moving):
        found = [any(column) for column in zip(*[dependent(body, (*shared, *moving, *each)) for body in op.main])]
        grown = [a or b for a, b in zip(moving, found)]
        if grown == moving:
            break
        moving = grown
    return (*shared, *moving, *each)


def dependent_test(op: Any, marks: Sequence[bool]) -> bool:
    """Whether the test of a loop depends on a marked operand."""
    return dependent(op.bodies[0], dependent_inputs(op, marks))[0]


def entirely_dependent(op: Any, marks: Sequence[bool]) -> bool:
    """Whether all that the bodies of an operation compute and give depends on a marked operand.

    What is only broadcast need not: that is cheaper to repeat than to keep.
    """
    inner = dependent_inputs(op, marks)
    return all(inner[op.shared : op.shared + op.carry]) and all([_entirely(body, inner) for body in op.bodies])


def _entirely(program: Program, marks: Marks) -> bool:
    found = dependent_values(program, marks)
    if not all([n >= 0 and found[n] for n in program.outs]):
        return False
    at = len(marks)
    for op, args, made in zip(program.ops, program.args, program.types):
        count = len(made) if op.multiple else 1
        if count and not found[at] and not isinstance(op, BroadcastInDim):
            return False
        if op.bodied and not entirely_dependent(op, [n >= 0 and found[n] for n in args]):
            return False
        at += count
    return True
