"""Typecheck: every equation typed again.

    check_program(p) == Success(p)      for every program that a record makes

Checked are operand numbers, the types of results, the effect row, the types of outputs, and the boundary between every
higher-order operation and its sub-programs, which are checked too, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from returns.result import Failure, Result, Success

from ..effects.errors import BadArgument, HandlaxError, TypeCheckError
from ..effects.operations import EMPTY_ROW, Operation
from ..effects.printing import row_text
from ..effects.programs import Program
from ..effects.sources import NOWHERE
from ..effects.types import ArrayType


def check_program(program: Program) -> Result[Program, TypeCheckError]:
    """The program, if every equation has the type that it states.

    Fails with: TypeCheckError: names the equation, what it states and what was found.

    >>> p = Program.parse("program f(a: f32[3]) -> (f32[3]) { b: f32[3] = reduce_sum[axes=(0,)] a\\n return (b) }")
    >>> print(check_program(p).failure().what)
    typecheck: f: equation 0, b: f32[3] = reduce_sum[axes=(0,)] a: states f32[3], its type is f32[].
    """
    if not isinstance(program, Program):
        raise BadArgument(
            f"check_program: a program is needed, got {type(program).__name__}.",
            hint="hx.make_program(f)(*args) records one, hx.parse_program(text) reads one.",
        )
    try:
        return Success(typecheck(program))
    except TypeCheckError as error:
        return Failure(error)


def typecheck(program: Program) -> Program:
    """The program itself. Raises: TypeCheckError: an equation has not the type that it states."""
    _check(program, set())
    return program


def _check(program: Program, done: set[int]) -> None:
    if id(program) in done:
        return
    done.add(id(program))
    types: list[Any] = list(program.in_types)
    constants = [const.type for const in program.consts]
    for i, (op, args, made) in enumerate(zip(program.ops, program.args, program.types)):
        for n in args:
            if not -len(constants) <= n < len(types):
                _fail(program, i, f"operand number {n} is defined nowhere above")
        operands = [types[n] if n >= 0 else constants[-1 - n] for n in args]
        _check_type(program, i, op, operands, made)
        if op.bodied:
            for found in boundary(op, operands):
                _fail(program, i, found)
            for body in op.bodies:  # type: ignore[attr-defined]
                _check(body, done)
        types.extend(made if op.multiple else (made,))
    lengths = {len(program.ops), len(program.args), len(program.types), len(program.sites)}
    if len(lengths) != 1:
        _fail(program, None, "operations, operands, types and lines must be equally many")
    for n in program.outs:
        if not -len(constants) <= n < len(types):
            _fail(program, None, f"the output number {n} is defined nowhere")
    row = EMPTY_ROW.union(*[op.effects for op in program.ops])
    if program.effects != row:
        _fail(program, None, f"states the effect row {row_text(program.effects)}, its row is {row_text(row)}")


def _check_type(program: Program, i: int, op: Any, operands: Sequence[ArrayType], made: Any) -> None:
    if not isinstance(op, Operation):
        _fail(program, None, f"equation {i} performs {op!r}, which is no operation")
    try:
        found = op.result_type(*operands)
    except (HandlaxError, TypeError) as error:
        _fail(program, i, error.what.rstrip(".") if isinstance(error, HandlaxError) else str(error))
    if found != made:
        _fail(program, i, f"states {_shown(made)}, its type is {_shown(found)}")


def _shown(made: Any) -> str:
    return f"({', '.join(map(str, made))})" if isinstance(made, tuple) else str(made)


def _fail(program: Program, index: int | None, what: str) -> NoReturn:
    if index is None:
        raise TypeCheckError(f"typecheck: {program.name}: {what}.")
    site = program.site(index)
    try:
        text = str(program.eqns[index]).partition("\n")[0]
    except (LookupError, TypeError):  # so wrong that it cannot be shown
        text = program.ops[index].name
    hint = f"it was recorded at {site}." if site != NOWHERE else None
    raise TypeCheckError(f"typecheck: {program.name}: equation {index}, {text}: {what}.", hint=hint)


def boundary(op: Any, operands: Sequence[ArrayType]) -> Iterator[str]:
    """What is wrong between a higher-order operation and its sub-programs.

        operands = selects + shared + carry + each,  body : shared + carry + each -> carry + out
    """
    given = operands[op.selects :]
    tests = op.bodies[:1] if op.runs == "until" else ()
    bodies = op.bodies[len(tests) :]
    whole = op.shared + op.carry
    for body in op.bodies:
        if len(body.in_types) != len(given):
            yield f"{body.name} takes {len(body.in_types)} values, it is given {len(given)}"
            return
        for k, (stated, found) in enumerate(zip(body.in_types, given)):
            sliced = op.runs in ("loop", "lanes") and k >= whole
            if not _agrees(stated, found, sliced):
                yield f"{body.name} takes {stated} as input {k}, it is given {found}{' per run' if sliced else ''}"
    for body in bodies:
        if len(body.outs) != len(bodies[0].outs) or body.out_types != bodies[0].out_types:
            yield f"{body.name} gives {_shown(body.out_types)}, {bodies[0].name} gives {_shown(bodies[0].out_types)}"
        if op.runs in ("loop", "until") and op.carry:
            carried, stated = body.out_types[: op.carry], body.in_types[op.shared : whole]
            if carried != stated:
                yield f"{body.name} carries {_shown(stated)} and hands on {_shown(carried)}"
    for test in tests:
        if len(test.outs) != 1 or test.out_types[0].shape or test.out_types[0].dtype.kind != "b":
            yield f"the test {test.name} must give one bool, it gives {_shown(test.out_types)}"


def _agrees(stated: ArrayType, found: ArrayType, sliced: bool) -> bool:
    """Whether a body takes it: weakness is left aside, which says how a value promotes and not what it is."""
    shape = found.shape[1:] if sliced else found.shape
    return stated.dtype == found.dtype and stated.shape == shape and (not sliced or bool(found.shape))
