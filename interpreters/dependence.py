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
        found = program._cache[key] = _values(program, list(marks))
    return found


def _values(program: Program, found: list[bool]) -> list[bool]:
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
    if not op.prunes or any(marks[: op.selects]) or (op.runs == "until" and dependent_test(op, marks)):
        return (True,) * len(op.main[0].outs)
    return results_by_inputs(op, dependent_inputs(op, marks))


def results_by_inputs(op: Any, inner: Marks) -> Marks:
    """The same by which inputs of the bodies depend on one."""
    found = [dependent(body, inner) for body in op.main]
    either = found[0] if len(found) == 1 else tuple([any(column) for column in zip(*found)])
    return (*inner[op.shared : op.shared + op.carry], *either[op.carry :]) if op.loops else either


def dependent_inputs(op: Any, marks: Sequence[bool]) -> Marks:
    """Which inputs of the bodies depend on a marked operand: what a loop carries does if its next value does."""
    inner = tuple(marks[op.selects :])
    if not op.loops:
        return inner
    first, last = op.shared, op.shared + op.carry
    while not all(inner[first:last]):
        found = [dependent(body, inner)[: op.carry] for body in op.main]
        grown = tuple([any(column) for column in zip(inner[first:last], *found)])
        if grown == inner[first:last]:
            break
        inner = (*inner[:first], *grown, *inner[last:])
    return inner


def dependent_test(op: Any, marks: Sequence[bool]) -> bool:
    """Whether the test of a loop depends on a marked operand."""
    return dependent(op.bodies[0], dependent_inputs(op, marks))[0]


def entirely_dependent(op: Any, inner: Marks) -> bool:
    """Whether all that the bodies of an operation compute and give depends on a marked input of theirs.

    What is only broadcast need not: that is cheaper to repeat than to keep.
    """
    return all(inner[op.shared : op.shared + op.carry]) and all([_entirely(body, inner) for body in op.bodies])


def _entirely(program: Program, marks: Marks) -> bool:
    if not all(dependent(program, marks)):
        return False
    found, at = dependent_values(program, marks), len(marks)
    for op, args, made in zip(program.ops, program.args, program.types):
        count = len(made) if op.multiple else 1
        if count and not found[at] and not isinstance(op, BroadcastInDim):
            return False
        if op.bodied:
            inner = dependent_inputs(op, [n >= 0 and found[n] for n in args])
            if not entirely_dependent(op, inner):
                return False
        at += count
    return True
