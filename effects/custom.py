"""Operations with rules of the user's, which are bodies recorded late.

A late rule is a value that performs the user's function when somebody asks for it; every handler that lifts the body of
an operation lifts its late rules with it (``late`` names the fields that hold them, ``rule.lifted`` does it).
"""

from __future__ import annotations

from typing import Any

from .control import HigherOrder
from .modes import run
from .operations import Operation, operation
from .programs import Program
from .types import ArrayType


def _evaluated(op: Any, *values: Any) -> Any:
    return run(op.bodies[0], values)


def _emitted(op: Any, emit: Any, *values: Any) -> Any:
    return emit.program(op.bodies[0], values)


# y = body(s, x),  dy = what the rule says of x and dx; the shared values s are those that the function captured
@operation
class CustomJvp(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    rule: Any  # run(operands, tangents) -> (results, tangents)
    carry = 0
    prunes = False
    late = ("rule",)

    evaluate = _evaluated
    lower = _emitted


# y = body(s, x),  <ct, dy> = <bwd(r, ct), dx>  where  y, r = fwd(x)
@operation
class CustomVjp(CustomJvp):
    evaluate = _evaluated
    lower = _emitted


# y = body(s, x),  over lanes: what the rule says of all of them at once
@operation
class CustomVmap(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    rule: Any  # rule(size, mapped, operands) -> (results, mapped), lanes along the first axis
    carry = 0
    prunes = False
    late = ("rule",)
    together = True

    def maps(op, dims):
        return op.rule.speaks([d is not None for d in dims])

    evaluate = _evaluated
    lower = _emitted


# y = A(r) x,  A(r)^T ct = backward(r, ct);  A(r) x = forward(r, x), where it is not given the adjoint of backward
@operation
class Adjoint(Operation):
    backward: Any
    forward: Any
    residuals: int
    types: tuple[ArrayType, ...]  # of y
    runs = "once"
    multiple = True
    late = ("backward", "forward")
    together = True
    exempt = {"text": "a rule is a function of the user's, which a text names and does not hold"}

    def result_type(op, *types):
        return op.types


# x, aux = solve(s, b)  with  matvec(s, x) = b;  bodies: solve, matvec, then the same of the transposed system, if given
@operation
class LinearSolve(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    carry: int
    loops = True  # what comes in as b goes out as x, and goes into matvec
    prunes = False
    together = True
