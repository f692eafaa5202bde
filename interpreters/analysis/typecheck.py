"""The type checker of programs.

    check_program(p) == Success(p)      for every program that a record creates

Checked are that variables are defined before use, that the fields of operations have the types that their blocks
declare, that each equation states the types that its operation computes, the effect row, the outputs, and that the
sub-programs of each higher-order operation agree with its operands and each other. Sub-programs are checked too, each
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from returns.result import Failure, Result, Success

from ...effects.base.deep_calls import on_deep_stack
from ...effects.base.errors import BadArgument, HandlaxError, TypeCheckError
from ...effects.base.source_locations import NOWHERE
from ...effects.core.operation import EMPTY_ROW, Operation, result_type
from ...effects.programs.printer import row_text
from ...effects.programs.program import Program
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import int32
from .declared_fields import wrong_fields


def check_program(program: Program) -> Result[Program, TypeCheckError]:
    """``Success(program)`` if every equation has the type that it states, else a failure.

    Fails with: TypeCheckError: names the equation, the type it states and the type it has.

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
    """The program itself. Raises: TypeCheckError: an equation does not have the type that it states."""
    _check(program, set())
    return program


def _check(program: Program, done: set[int]) -> None:
    """Check a program whose id is not in ``done``, and its sub-programs."""
    if id(program) in done:
        return
    done.add(id(program))
    types: list[Any] = list(program.in_types)
    constants = [const.type for const in program.consts]
    for i, (op, args, stated) in enumerate(zip(program.ops, program.args, program.types)):
        for n in args:
            if not -len(constants) <= n < len(types):
                _fail(program, i, f"operand number {n} is defined nowhere above")
        operands = [types[n] if n >= 0 else constants[-1 - n] for n in args]
        _check_type(program, i, op, operands, stated)
        if op.bodied:
            for mismatch in boundary(op, operands):
                _fail(program, i, mismatch)
            for body in op.bodies:  # type: ignore[attr-defined]
                on_deep_stack(_check, body, done)
        types.extend(op.as_results(stated))
    lengths = {len(program.ops), len(program.args), len(program.types), len(program.sites)}
    if len(lengths) != 1:
        _fail(program, None, "operations, operands, types and sites must be equally many")
    for n in program.outs:
        if not -len(constants) <= n < len(types):
            _fail(program, None, f"the output number {n} is defined nowhere")
    row = EMPTY_ROW.union(*[op.effects for op in program.ops])
    if program.effects != row:
        _fail(program, None, f"states the effect row {row_text(program.effects)}, its row is {row_text(row)}")


def _check_type(program: Program, i: int, op: Any, operands: Sequence[ArrayType], stated: Any) -> None:
    """Check that equation ``i`` states the type that its operation computes."""
    if not isinstance(op, Operation):
        _fail(program, None, f"equation {i} performs {op!r}, which is no operation")
    for wrong in wrong_fields(op):
        _fail(program, i, wrong)
    try:
        computed = result_type(op, tuple(operands))
    except Exception as error:  # of a rule that meets fields or operands for which it is not made
        reason = error.what if isinstance(error, HandlaxError) else f"{type(error).__name__}: {error}"
        _fail(program, i, reason.rstrip(".: "))
    if computed != stated:
        _fail(program, i, f"states {_shown(stated)}, its type is {_shown(computed)}")


def _shown(types: Any) -> str:
    return f"({', '.join(map(str, types))})" if isinstance(types, tuple) else str(types)


def _fail(program: Program, index: int | None, what: str) -> NoReturn:
    """Raise a ``TypeCheckError`` that names the equation, if one is meant, and the line where it was recorded."""
    if index is None:
        raise TypeCheckError(f"typecheck: {program.name}: {what}.")
    site = program.site(index)
    try:
        text = str(program.eqns[index]).partition("\n")[0]
    except (LookupError, TypeError):  # the equation cannot be printed
        text = program.ops[index].name
    hint = f"it was recorded at {site}." if site != NOWHERE else None
    raise TypeCheckError(f"typecheck: {program.name}: equation {index}, {text}: {what}.", hint=hint)


def boundary(op: Any, operands: Sequence[ArrayType]) -> Iterator[str]:
    """Each mismatch between a higher-order operation, its operands and its sub-programs, as a message.

        operands = selects + shared + carry + each,  body : shared + carry + each -> carry + out
    """
    inner = operands[op.selects :]
    first_each = op.shared + op.carry
    if not (type(first_each) is int and op.shared >= 0 and op.carry >= 0 and first_each <= len(inner)):
        yield f"{op.shared} shared and {op.carry} carried values must be among the {len(inner)} that it is given"
        return
    if op.runs == "until" and first_each < len(inner):
        yield f"all {len(inner)} values must be shared or carried, {op.shared} and {op.carry} are"
        return
    if op.runs == "one" and (operands[0].dtype, operands[0].shape) != (int32, ()):
        yield f"the index of the branch must be i32[], it is given {operands[0]}"
    tests = op.bodies[:1] if op.runs == "until" else ()
    bodies = op.bodies[len(tests) :]
    for body in op.bodies:
        if len(body.in_types) != len(inner):
            yield f"{body.name} takes {len(body.in_types)} values, it is given {len(inner)}"
            return
        for k, (stated, given) in enumerate(zip(body.in_types, inner)):
            whole = op.stacked(stated) if k >= first_each else stated
            if (whole.dtype, whole.shape) != (given.dtype, given.shape):  # whether they are weak concerns promotion
                each = f" per iteration, of {whole}" if whole is not stated else ""
                yield f"{body.name} takes {stated} as input {k}{each}, it is given {given}"
    for body in bodies:
        if body.out_types != bodies[0].out_types:
            yield f"{body.name} gives {_shown(body.out_types)}, {bodies[0].name} gives {_shown(bodies[0].out_types)}"
        if op.runs in ("loop", "until") and op.carry:
            carried, stated = body.out_types[: op.carry], body.in_types[op.shared : first_each]
            if carried != stated or (op.runs == "until" and len(body.outs) != op.carry):
                yield f"{body.name} carries {_shown(stated)} and hands on {_shown(carried)}"
    for test in tests:
        if len(test.outs) != 1 or test.out_types[0].shape or test.out_types[0].dtype.kind != "b":
            yield f"the test {test.name} must give one bool, it gives {_shown(test.out_types)}"
