"""Operations with custom rules: rules that are user functions, recorded only when a transformation needs them.

A deferred rule is a value that wraps the user's function. A handler that transforms the body of an operation transforms
its rule too, by ``rule.transformed``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

from ..base.errors import BadCall
from ..base.wrapping import name_of
from ..core.operation import Operation, operation
from ..programs.higher_order import HigherOrder
from ..programs.program import Program
from ..types.array_type import ArrayType
from .body_rules import evaluate_body


class BodyFunction(NamedTuple):
    """The body of an operation as a function: ``call_wrapped(*args)`` is the list of its results."""

    program: Program

    def call_wrapped(self, *args: Any) -> list[Any]:
        return list(self.program(*args))


class CustomRule(HigherOrder):
    """The family of calls of functions with a custom rule: unless a handler asks for the rule, the body is executed."""

    __slots__ = ()
    carry = 0
    prunes = False
    deferred = True
    body_param = "call_jaxpr"
    param_names = {"shared": "num_consts"}

    @classmethod
    def bind_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        others = {name: value for name, value in params.items() if name != cls.body_param}
        return {"subfuns": (BodyFunction(params[cls.body_param]),), **others}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """The operation of these parameters, among which the body may be the function of ``subfuns``."""
        if "subfuns" in params:
            params = {**params, cls.body_param: _program_of(cls.name, params["subfuns"])}
        return super().from_params({name: value for name, value in params.items() if name != "subfuns"})

    def evaluate(op, *values: Any) -> Any:
        return evaluate_body(op.bodies[0], values)

    def lower(op, emit: Any, *values: Any) -> Any:
        return emit.program(op.bodies[0], values)


def _program_of(name: str, subfuns: Sequence[Any]) -> Program:
    """The body that ``subfuns`` are the functions of. Raises: BadCall: they are others than an equation's."""
    if [*map(type, subfuns)] != [BodyFunction]:
        raise BadCall(
            f"{name}: subfuns must be the body of an equation, got {', '.join(map(name_of, subfuns)) or 'none'}.",
            hint="primitive.bind(*operands, **primitive.get_bind_params(eqn.params)).",
        )
    program: Program = subfuns[0].program
    return program


# y = body(s, x),  y, dy = rule(x, dx); the shared operands s are the values that the function captured
@operation
class CustomJvp(CustomRule):
    bodies: tuple[Program, ...]
    shared: int
    rule: Any  # its ``run(operands, tangents)`` gives (results, tangents); None in a program that is compiled
    derives = True
    primitive_name = "custom_jvp_call"
    param_names = {"shared": "num_consts", "rule": "jvp_jaxpr_fun"}
    fixed_params = {"symbolic_zeros": False}


# y = body(s, x),  <ct, dy> = <bwd(r, ct), dx>  where  y, r = fwd(x)
@operation
class CustomVjp(CustomJvp):
    primitive_name = "custom_vjp_call"
    param_names = {"shared": "num_consts"}


# y = body(s, x);  batched: the rule computes all lanes at once
@operation
class CustomVmap(CustomRule):
    bodies: tuple[Program, ...]
    shared: int
    primitive_name = "custom_vmap_call"
    rule: Any  # rule(size, mapped, operands) -> (results, mapped), lanes along the first axis


# y = A(r) x,  A(r)^T ct = backward(r, ct);  A(r) x = forward(r, x), by default the transpose of backward
@operation
class Adjoint(Operation):
    backward: Callable[..., Any]
    forward: Callable[..., Any] | None
    residuals: tuple[ArrayType, ...]  # types of r
    types: tuple[ArrayType, ...]  # of y
    # as of a higher-order operation: handlers cross the functions backward and forward
    runs: ClassVar[str] = "once"
    lanes_of_all: ClassVar[Any] = ()
    stacks: ClassVar[bool] = False
    multiple_results = True
    deferred = True
    exempt = {"text": "a rule is a user's function, which a text can name but not contain"}

    @property
    def rule(op):
        return op.backward

    @property
    def answers_zero(op):  # type: ignore[override]
        return op.forward is None

    def result_type(op, *types):
        return op.types


# x, aux = solve(s, b)  with  matvec(s, x) = b;  bodies: solve, matvec, then optionally those of the transposed system
@operation
class LinearSolve(HigherOrder):
    bodies: tuple[Program, ...]
    shared: int
    carry: int
    states: int = 0  # the last of aux: states of handlers after the solver, which have derivatives
    loops = True  # the carry is b as operand, x as result, and x is the carry of matvec
    solves = True
    prunes = False
