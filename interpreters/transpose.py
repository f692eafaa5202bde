"""Transpose: the adjoint of a linear program, from the last equation to the first.

    <u, J v> = <J^T u, v>

Values that depend on a linear input are linear; all others are residuals, whose values the rules may use.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ..effects import config
from ..effects.caches import Cache
from ..effects.columns import TRANSPOSE, add_tangents
from ..effects.errors import HandlaxError, MissingRule, NotAnArray, NotDifferentiable
from ..effects.programs import Builder, Program, interpret, numbered_types
from ..effects.stack import BASE, Cell, current, inside
from ..effects.types import ArrayType
from .adjoint import transpose_operation
from .dependence import dependent_results
from .formulas import Stretch, is_formula
from .partial_eval import halve
from .record import Record

_PROGRAMS = Cache("transpose_program")


def backward(
    tape: Builder | Program, known: Sequence[Any], outs: Sequence[int], cts: Sequence[Any], consts: Sequence[Any]
) -> list[Any]:
    """The cotangents of the inputs of a tape from those of its outputs; None is zero.

    ``known[i]`` is the value of input ``i``, or None where the tape is linear in it.
    """
    walk = _Backward(tape, known, consts)
    walk.seed(outs, cts)
    outside = walk.cell.site
    taken = tape.taken if isinstance(tape, Builder) and config.current().mark is not None else {}
    i = len(tape.ops)
    try:
        while i:
            i -= 1
            stretch = taken.get(i)
            first = i if stretch is None else i + 1 - len(stretch.program.ops)
            if stretch is not None and walk.stretch(first, stretch):
                i = first
            else:
                walk.equation(i)
    finally:
        walk.cell.site = outside
    return walk.grads[: len(tape.in_types)]


class _Backward:
    """The walk from the last equation to the first: ``grads[n]`` is the cotangent of value ``n`` so far."""

    __slots__ = ("tape", "values", "types", "starts", "grads", "consts", "run", "cell")

    def __init__(self, tape: Builder | Program, known: Sequence[Any], consts: Sequence[Any]):
        self.tape = tape
        self.values, self.types, self.starts = _residuals(tape, known, consts)
        self.grads: list[Any] = [None] * len(self.types)
        self.consts = consts
        self.run = current()
        self.cell = self.run.cell or Cell()

    def seed(self, outs: Sequence[int], cts: Sequence[Any]) -> None:
        for n, ct in zip(outs, cts):
            if ct is not None and self.values[n] is None:
                self.add(n, ct)

    def add(self, n: int, part: Any) -> None:
        grads = self.grads
        grads[n] = part if grads[n] is None else add_tangents(grads[n], part)

    def equation(self, i: int) -> None:
        tape, grads, types = self.tape, self.grads, self.types
        op, args, start = tape.ops[i], tape.args[i], self.starts[i]
        if op.multiple:
            ct = tuple(grads[start : start + len(tape.types[i])])
            if not any([part is not None for part in ct]):
                return
        else:
            ct = grads[start]
            if ct is None:
                return
            grads[start] = None  # nobody asks again, and memory is freed
        self.cell.site = tape.sites[i]
        operands = [*map(self.values.__getitem__, args)]
        linear = [x is None for x in operands]
        operands = [types[n] if x is None else x for n, x in zip(args, operands)]
        for n, part in zip(args, _cotangents(op, ct, operands, linear)):
            if part is not None:
                self.add(n, part)

    def stretch(self, first: int, stretch: Stretch) -> bool:
        """All equations of a formula at once. Whether it has an adjoint."""
        tape, grads, consts, args = self.tape, self.grads, self.consts, self.tape.args
        start = self.starts[first]
        cts = [grads[start + k] for k in stretch.gives]
        given = [ct for ct in cts if ct is not None]
        if not given:
            return True
        types = [None if ct is None else ct.type for ct in cts]
        key = (config.current().mark, *types)
        adjoint = stretch.adjoints.get(key)
        if adjoint is None:
            adjoint = stretch.adjoints[key] = _adjoint(stretch, types)
        if not adjoint:
            return False
        program, residuals, targets = adjoint
        self.cell.site = tape.sites[first]
        for k in stretch.gives:
            grads[start + k] = None
        given = [*[consts[-1 - args[first + i][k]] for i, k in residuals], *given]
        for (i, k), part in zip(targets, self.run.take(program, given)):
            self.add(args[first + i][k], part)
        return True


def _adjoint(stretch: Stretch, types: Sequence[ArrayType | None]) -> Any:
    """The adjoint of a formula, for cotangents of these types; and the places of its residuals and its operands."""
    program, linear, places = stretch.program, stretch.linear, stretch.places
    if any([given is not None and given is not t for given, t in zip(types, program.out_types)]):
        return False  # a cotangent may be weak where the result is not
    marks = [given is not None for given in types]
    try:
        adjoint, found = transpose_program(program, linear, marks)
    except HandlaxError:  # one equation after the other says what is the matter
        return False
    if not is_formula(adjoint):
        return False
    wanted = iter(found)
    residuals = [places[i] for i, yes in enumerate(linear) if not yes]
    return adjoint, residuals, [places[i] for i, yes in enumerate(linear) if yes and next(wanted)]


def _residuals(
    tape: Builder | Program, known: Sequence[Any], consts: Sequence[Any]
) -> tuple[list[Any], list[Any], list[int]]:
    """For every value: its value where it depends on no linear input, else None; its type; and where results begin.

    The values of the constants stand at the end, by their negative numbers.
    """
    types = numbered_types(tape)
    sizes = [len(made) if op.multiple else 1 for op, made in zip(tape.ops, tape.types)]
    starts = list(accumulate(sizes, initial=len(tape.in_types)))
    # a tape holds nothing that depends on no input; a program may: what it computes of constants is known too
    if not isinstance(tape, Program) and not any(value is not None for value in known):
        return [*[None] * len(types), *reversed(consts)], types, starts
    values: list[Any] = list(known)
    answer = current().answer
    for op, args, size in zip(tape.ops, tape.args, sizes):
        operands = [consts[-1 - n] if n < 0 else values[n] for n in args]
        if all(x is not None for x in operands):
            y = answer(op, tuple(operands))
            values.extend(y if op.multiple else (y,))
        elif op.apart:
            given = tuple([x for x in operands if x is not None])
            found = iter(answer(op, given) if given else ())
            values.extend([None if x is None else next(found) for x in operands])
        else:
            values.extend((None,) * size)
    return [*values, *reversed(consts)], types, starts


def _cotangents(op: Any, ct: Any, operands: list[Any], linear: list[bool]) -> list[Any]:
    """The cotangent of each operand, None for those that are not linear."""
    if op.bodied and not TRANSPOSE.has(type(op)):
        return transpose_operation(op, ct, operands, linear, transpose_program)
    try:
        rule = TRANSPOSE.find(type(op))
    except MissingRule as error:
        if TRANSPOSE.has(type(op)):
            raise
        raise NotDifferentiable(
            f"{op.name}: reverse mode met an operation that is not linear, or has no transpose rule.", hint=error.hint
        ) from None
    try:
        if op.together:
            return rule(op, ct, *operands, wrt=tuple(linear))
        return [rule(op, ct, *operands, wrt=i) if yes else None for i, yes in enumerate(linear)]
    except NotAnArray as error:  # the rule asks for the value of an operand that depends on the argument
        raise NotDifferentiable(
            f"{op.name}: the function must be linear, and this operation is not, "
            "in those operands that depend on its argument.",
            hint="linear_transpose takes linear functions only; vjp takes any.",
        ) from error


def transpose_program(
    program: Program, linear: Sequence[bool], nonzero: Sequence[bool]
) -> tuple[Program, tuple[bool, ...]]:
    """The adjoint program: from residual inputs, then cotangents of the outputs marked ``nonzero``, to those of linear
    inputs.

    Gives the program and, for each linear input, whether it has a cotangent at all.
    """
    key = (program, tuple(linear), tuple(nonzero), config.current())
    return _PROGRAMS.get(key, lambda: _transpose_program(program, linear, nonzero))


def _transpose_program(program: Program, linear: Sequence[bool], nonzero: Sequence[bool]) -> Any:
    run = Record(BASE, "")
    known = [None if yes else run.input(t) for yes, t in zip(linear, program.in_types)]
    cts = [run.input(t) if yes else None for yes, t in zip(nonzero, program.out_types)]
    with inside(run):
        if _hides_known(program, linear):
            program, known, cts = _without_known(program, linear, known, cts)
        grads = backward(program, known, program.outs, cts, program.consts)
    made = [grad for grad, value in zip(grads, known) if value is None]
    marks = tuple([grad is not None for grad in made])
    return run.freeze([grad for grad in made if grad is not None], program.name), marks


def _hides_known(program: Program, linear: Sequence[bool]) -> bool:
    """Whether an operation with bodies and linear operands gives something that is not linear, and that is used."""
    if not any(op.bodied for op in program.ops):
        return False
    used = {n for args in program.args for n in args}
    marks = list(linear)
    for op, args, made in zip(program.ops, program.args, program.types):
        mine = [n >= 0 and marks[n] for n in args]
        count = len(made) if op.multiple else 1
        if op.bodied and any(mine) and not TRANSPOSE.has(type(op)):
            found = dependent_results(op, mine)
            if any([not yes and len(marks) + k in used for k, yes in enumerate(found)]):
                return True
            marks += found
        else:
            marks += [any(mine)] * count
    return False


def _without_known(
    program: Program, linear: Sequence[bool], known: Sequence[Any], cts: Sequence[Any]
) -> tuple[Program, list[Any], list[Any]]:
    """The linear part alone, with what it takes from the other, which is performed."""
    half = halve(program, linear, None, None, False)
    given = [x for x, yes in zip(known, linear) if not yes]
    found = interpret(half.known, given)
    residuals = [given[n] if yes else found[n] for yes, n in half.residuals]
    return half.rest, [*residuals, *[None] * sum(linear)], [ct for ct, yes in zip(cts, half.unknown) if yes]
