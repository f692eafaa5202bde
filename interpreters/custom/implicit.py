"""Solvers differentiated by the implicit function theorem: custom_linear_solve and custom_root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...effects.base.errors import (
    CannotCross,
    DTypeMismatch,
    NotDifferentiable,
    ShapeMismatch,
    TreeMismatch,
    need_function,
)
from ...effects.base.stack import perform
from ...effects.base.tracebacks import boundary
from ...effects.control.custom_rules import CustomJvp, LinearSolve
from ...effects.control.recorded_bodies import RecordedBody, body_of
from ...effects.core.arrays import Array, as_array
from ...effects.core.columns import JVP, TRANSPOSE, add_tangents, zeros_like
from ...effects.core.named_axes import is_root
from ...effects.core.operation import effects_text
from ...effects.functions.captured import boxes_in, placeholders_for, replaced
from ...effects.functions.keys import KeyedValue, UserFunction
from ...effects.operations.elementwise.arithmetic import neg
from ...effects.operations.elementwise.conversion import convert
from ...effects.programs.closure_conversion import close, close_all
from ...effects.programs.higher_order import record_body
from ...effects.programs.program import Program, interpret
from ...effects.trees import pytrees
from ...effects.types.array_type import ArrayType
from ...effects.types.dtypes import is_inexact
from ..core.rule_results import checked
from ..differentiation.deferred_rules import describe_function, full
from ..differentiation.jvp import push_forward
from ..differentiation.jvp_rules import DerivativeRule
from ..differentiation.transpose import pull_back
from .custom_call import substitution, with_placeholders


def _function_of(
    where: str, what: str, f: Callable[..., Any], unknowns: Any
) -> tuple[Sequence[Any], Any, Sequence[ArrayType], RecordedBody]:
    """The unknowns as arrays, their structure and types, and the body of ``f``, a function on unknowns.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: it does not return their structure and types.
    """
    leaves, tree = pytrees.flatten(unknowns)
    xs = [as_array(x) for x in leaves]
    types = [x.type for x in xs]
    body = body_of(what, lambda *xs: f(pytrees.unflatten(tree, xs)), types, where)
    if body.structure != tree:
        raise TreeMismatch(f"{where}: {what} must return the structure {tree}, got {body.structure}.")
    for t, other in zip(types, body.program.out_types):
        if t.shape != other.shape:
            raise ShapeMismatch(f"{where}: {what} must return {t}, got {other}.", hint="the system must be square.")
        if t.dtype != other.dtype:
            raise DTypeMismatch(f"{where}: {what} must return {t}, got {other}.", hint="convert with astype.")
    return xs, tree, types, body


@boundary
def custom_linear_solve(
    matvec: Callable[..., Any], b: Any, solve: Callable[..., Any], transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False, has_aux: bool = False,
) -> Any:
    """The solution of a linear system by a given solver, differentiated implicitly.

        x = custom_linear_solve(matvec, b, solve):  matvec(x) == b,  x = solve(matvec, b)
        dx = solve(matvec, db - dmatvec(x)),  and its adjoint by transpose_solve(vecmat, ct)

    Differentiable to any order in ``b`` and in the values that ``matvec`` captured, in both modes; the operations of
    the solver are never differentiated.

    Args:
        transpose_solve: the solver of the transposed system, needed by reverse mode.
        symmetric: the matrix is its own transpose, and ``solve`` serves for both.
        has_aux: solvers return ``(x, aux)``, and so does this; aux has no derivative.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: a function's result has another structure or type than the
    unknowns. NotDifferentiable: reverse mode without ``transpose_solve``.

    >>> from handlax import grad, numpy as hnp
    >>> root = lambda a, b: custom_linear_solve(lambda x: a * x, b, lambda f, b: b / f(1.0), symmetric=True)
    >>> grad(root)(2.0, 3.0)
    Array(-0.75, dtype=float32, weak_type=True)
    """
    return linear_solve_as(
        "custom_linear_solve", matvec, b, solve, transpose_solve, symmetric=symmetric, has_aux=has_aux
    )


def linear_solve_as(
    where: str, matvec: Callable[..., Any], b: Any, solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None, *, symmetric: bool = False, has_aux: bool = False,
) -> Any:
    """``custom_linear_solve`` for the function ``where``, which errors name."""
    for f in (matvec, solve, *([] if transpose_solve is None else [transpose_solve])):
        need_function(where, f)
    bs, tree, types, product = _function_of(where, "matvec", matvec, b)
    count = len(bs)
    transposed = product.program if symmetric else _vecmat(product.program, types)
    reverse = solve if symmetric and transpose_solve is None else transpose_solve
    systems = [(solve, product.program), *([] if reverse is None else [(reverse, transposed)])]
    bodies: list[Program] = []
    structures = []
    for solver, system in systems:
        solution = _solution(where, solver, system, tree, types, has_aux)
        structures.append(solution.structure)
        extra = solution.program.out_types[count:]
        bodies += [solution.program, _padded(system, extra)]
    programs, captured = close_all(bodies)
    op = LinearSolve(programs, len(captured), count)
    results = perform(op, *captured, *bs)
    return pytrees.unflatten(structures[0], results)


def _vecmat(product: Program, types: Sequence[ArrayType]) -> Program:
    """The program of the transposed matrix-vector product, over the captured values of the recorded ``matvec``."""
    closed, captured = close(product)
    linear = [False] * len(captured) + [True] * len(types)
    return record_body(lambda *cts: full(pull_back(closed, linear, captured, cts), types), types, "vecmat")


def _solution(
    where: str, solver: Callable[..., Any], system: Program, tree: Any, types: Sequence[ArrayType], has_aux: bool,
    strong: bool = False,
) -> RecordedBody:
    """The recorded call ``solver(system, b)``; its results are checked against the types of the unknowns.

    ``strong``: a result may have a strong type where the unknown's type is weak.
    """

    def product(x: Any) -> Any:
        values = [checked(where, "an argument", y, t) for y, t in zip(pytrees.flatten_up_to(tree, x, where), types)]
        return pytrees.unflatten(tree, interpret(system, values))

    def solved(*bs: Any) -> Any:
        result = solver(product, pytrees.unflatten(tree, bs))
        if has_aux and (not isinstance(result, (tuple, list)) or len(result) != 2):
            raise TreeMismatch(f"{where}: with has_aux=True a solver returns (x, aux), got {type(result).__name__}.")
        return tuple(result) if has_aux else result

    def typed(*bs: Any) -> Any:
        result = solved(*bs)
        x, aux = result if has_aux else (result, None)
        leaves, treedef = pytrees.flatten(x)
        if treedef != tree:
            raise TreeMismatch(f"{where}: {describe_function(solver)} must return the structure {tree}, got {treedef}.")
        shown = f"{where}, {describe_function(solver)}"
        unknowns = [_unknown(shown, y, t, strong) for y, t in zip(leaves, types)]
        x = pytrees.unflatten(tree, unknowns)
        return (x, aux) if has_aux else x

    return body_of("solve", typed, types, where)


def _unknown(shown: str, y: Any, t: ArrayType, strong: bool) -> Any:
    """An unknown that a solver returned, as an array of type ``t``; with ``strong``, it may have the strong type."""
    x = checked(shown, "unknowns", y, t)
    return y if strong and isinstance(y, Array) and y.type.dtype == t.dtype else x


def _padded(system: Program, extra: Sequence[ArrayType]) -> Program:
    """A recorded product with results of aux's types ``extra``, all zeros, so that it has as many as its solver."""
    return record_body(
        lambda *xs: [*interpret(system, xs), *[zeros_like(t) for t in extra]], system.in_types, system.name
    )


@JVP.rule(LinearSolve)
def _(op, primals, tangents):
    ys = perform(op, *primals)
    shared, count = op.shared, op.carry
    rest = list(tangents[shared:])  # of the right-hand side, db - dA x
    if any([dx is not None for dx in tangents[:shared]]):
        at = (*primals[:shared], *ys[:count])
        _, by_captured = push_forward(op.bodies[1], at, (*tangents[:shared], *[None] * count))
        rest = [add_tangents(db, None if dy is None else neg(dy)) for db, dy in zip(rest, by_captured)]
    daux = [*[None] * (len(ys) - count - op.states), *_state_tangents(op, primals, tangents)]
    if all([db is None for db in rest]):
        return ys, [None] * count + daux
    dxs = perform(op, *primals[:shared], *full(rest, [y.type for y in ys[:count]]))
    return ys, [*[dx if is_inexact(dx.type.dtype) else None for dx in dxs[:count]], *daux]


def _state_tangents(op: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> list[Any]:
    """The tangents of the states after the solver, by its operations.

    Raises: CannotCross: it leaves effects to handlers further out, which it would perform a second time.
    """
    first = len(op.bodies[0].outs) - op.states
    if not any([is_inexact(t.dtype) for t in op.bodies[0].out_types[first:]]):
        return [None] * op.states
    if is_root(op):
        raise CannotCross(
            f"{op.name}: the state of a handler after the solver has a derivative, for which the solver would perform "
            f"{effects_text(op.effects)} a second time.",
            hint="handle these effects inside of the handler with the state.",
        )
    return push_forward(op.bodies[0], primals, tangents)[1][first:]


@TRANSPOSE.rule(LinearSolve)
def _(op, cts, *operands, linear):
    if any(linear[: op.shared]):
        raise NotDifferentiable("linear_solve: the solution is linear in b, not in the values that matvec captured.")
    if len(op.bodies) == 2:
        raise NotDifferentiable(
            "custom_linear_solve: reverse mode needs a solver of the transposed system, got none.",
            hint="pass transpose_solve, or symmetric=True.",
        )
    swapped = op.with_bodies((*op.bodies[2:], *op.bodies[:2]))
    types = op.bodies[0].out_types[: op.carry]
    b_cts = perform(swapped, *operands[: op.shared], *full(cts[: op.carry], types))[: op.carry]
    return [*[None] * op.shared, *[ct if yes else None for ct, yes in zip(b_cts, linear[op.shared :])]]


@boundary
def custom_root(
    f: Callable[..., Any], initial_guess: Any, solve: Callable[..., Any], tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """A root of a function by a given solver, differentiated implicitly.

        x = custom_root(f, guess, solve, tangent_solve):  f(x) == 0,  x = solve(f, guess)
        dx = tangent_solve(v -> f'(x) v, -df(x)),  df by the values that f captured

    Differentiable to any order in the values that ``f`` captured, by the implicit function theorem; the operations of
    the solver are never differentiated, and the derivative by the guess is zero.

    Args:
        tangent_solve: solves ``g(y) == b`` for linear ``g``; reverse mode transposes it.
        has_aux: ``solve`` returns ``(x, aux)``, and so does this; aux has no derivative.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: a function's result has another structure or type
    than the unknowns.

    >>> from handlax import grad, numpy as hnp
    >>> def newton(f, x):
    ...     for _ in range(8): x = x - f(x) / (2.0 * x)
    ...     return x
    >>> sqrt = lambda a: custom_root(lambda x: x * x - a, 1.0, newton, lambda g, b: b / g(1.0))
    >>> grad(sqrt)(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    where = "custom_root"
    for function in (f, solve, tangent_solve):
        need_function(where, function)
    guess, tree, types, equation = _function_of(where, "f", f, initial_guess)
    body = _solution(where, solve, equation.program, tree, types, has_aux, strong=True)
    boxes = boxes_in(tangent_solve)
    (system, solution), captured = close_all([equation.program, body.program])
    first, last = len(captured), len(captured) + len(boxes)
    in_types = [*[x.type for x in (*captured, *boxes)], *types]
    positions = [*range(first), *range(last, len(in_types))]
    placeholders, placeholder_of = placeholders_for(boxes)
    rule = UserRoot(
        with_placeholders(tangent_solve, placeholder_of), tree, system.rewired(in_types, positions),
        solution.rewired(in_types, positions), first, tuple(map(KeyedValue, placeholders)),
    )
    return pytrees.unflatten(body.structure, perform(rule.operation, *captured, *boxes, *guess))


class UserRoot(DerivativeRule):
    """The derivative rule of a root. Operands: the values captured by ``f``, by ``tangent_solve``, then the guess."""

    tangent_solve: UserFunction
    tree: Any
    system: Program
    solution: Program
    first: int
    boxes: tuple[KeyedValue, ...]

    @property
    def defined_by(self) -> Any:
        return self.tangent_solve.value

    @property
    def shown(self) -> str:
        return f"custom_root, {describe_function(self.tangent_solve.value)}"

    @property
    def operation(self) -> CustomJvp:
        return CustomJvp((self.solution,), 0, self)

    def within(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, list[Any]]:
        ys = perform(self.operation, *operands)
        last = self.first + len(self.boxes)
        count = len(operands) - last
        none = [None] * len(ys)
        if all([dx is None for dx in tangents[: self.first]]):
            return ys, none
        unknowns = [convert(y, x.type.dtype, x.type.weak) for y, x in zip(ys, operands[last:])]
        at = (*operands[:last], *unknowns)
        _, dfs = push_forward(self.system, at, (*tangents[: self.first], *[None] * (len(at) - self.first)))
        if all([df is None for df in dfs]):
            return ys, none
        types = [y.type for y in ys[:count]]
        values = substitution(self.boxes, operands[self.first : last])
        right = pytrees.unflatten(self.tree, [neg(df) for df in full(dfs, types)])
        solved = replaced(self.tangent_solve.value, values)(self.linear(at, types, last), right)
        leaves, tree = pytrees.flatten(solved)
        if tree != self.tree:
            raise TreeMismatch(f"{self.shown}: the function must return the structure {self.tree}, got {tree}.")
        dxs = [checked(self.shown, "unknowns", dx, t) for dx, t in zip(leaves, types)]
        return ys, [*dxs, *none[count:]]

    def linear(self, at: Sequence[Any], types: Sequence[ArrayType], last: int) -> Callable[[Any], Any]:
        """The linear map ``v -> f'(x) v`` at the solution, on trees; the first ``last`` of ``at`` are fixed."""

        def g(v: Any) -> Any:
            parts = pytrees.flatten_up_to(self.tree, v, self.shown)
            dxs = [checked(self.shown, "an argument", y, t) for y, t in zip(parts, types)]
            return pytrees.unflatten(self.tree, full(push_forward(self.system, at, [*[None] * last, *dxs])[1], types))

        return g


