"""Solutions of equations: differentiated by what they solve, not by how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..effects import trees
from ..effects.arithmetic import neg
from ..effects.arrays import Array, lift
from ..effects.bodies import Body, body_of
from ..effects.closing import close, close_all
from ..effects.closures import boxes_in, holes_for, replaced
from ..effects.columns import JVP, TRANSPOSE, add_tangents, zeros_like
from ..effects.control import record_body
from ..effects.conversion import convert
from ..effects.custom import CustomJvp, LinearSolve
from ..effects.dtypes import is_inexact
from ..effects.errors import NotDifferentiable, ShapeMismatch, TreeMismatch, need_function
from ..effects.programs import Program, interpret
from ..effects.stack import perform
from ..effects.types import ArrayType
from .custom_rules import by_program, kept, substitution
from .jvp import jvp_program
from .late import Held, LiftedJvp, Rule, checked, full, lifted_jvp, place_of
from .transpose import transpose_program


def _same(where: str, what: str, structure: Any, types: Sequence[ArrayType], body: Body, count: int) -> None:
    """Raises TreeMismatch, ShapeMismatch where a function does not give what the unknowns are."""
    found = body.program.out_types[:count]
    if body.structure != structure:
        raise TreeMismatch(f"{where}: {what} must give the structure {structure}, got {body.structure}.")
    for t, other in zip(types, found):
        if t.shape != other.shape or t.dtype != other.dtype:
            raise ShapeMismatch(f"{where}: {what} must give {t}, got {other}.", hint="the system must be square.")


def custom_linear_solve(
    matvec: Callable[..., Any], b: Any, solve: Callable[..., Any], transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False, has_aux: bool = False,
) -> Any:  # fmt: skip
    """The solution of a linear system by a solver of the user's.

        x = custom_linear_solve(matvec, b, solve):  matvec(x) == b,  x = solve(matvec, b)
        dx = solve(matvec, db - dmatvec(x)),  and its adjoint by transpose_solve(vecmat, ct)

    Differentiable to any order in ``b`` and in what ``matvec`` captured, in both modes, whatever the solver does.

    Args:
        transpose_solve: the solver of the transposed system, needed by reverse mode.
        symmetric: the matrix is its own transpose, and ``solve`` serves for both.
        has_aux: solvers give ``(x, aux)``, and so does this; aux has no derivative.

    Raises: TreeMismatch, ShapeMismatch: the functions do not give what the unknowns are. NotDifferentiable: reverse
    mode without ``transpose_solve``.

    >>> from handlax import grad, numpy as hnp
    >>> root = lambda a, b: custom_linear_solve(lambda x: a * x, b, lambda f, b: b / f(1.0), symmetric=True)
    >>> grad(root)(2.0, 3.0)
    Array(-0.75, dtype=float32, weak_type=True)
    """
    where = "custom_linear_solve"
    for f in (matvec, solve, *([] if transpose_solve is None else [transpose_solve])):
        need_function(where, f)
    leaves, tree = trees.flatten(b)
    bs = [lift(x) for x in leaves]
    types = [x.type for x in bs]
    count = len(bs)
    product = body_of("matvec", lambda *xs: matvec(trees.unflatten(tree, xs)), types)
    _same(where, "matvec", tree, types, product, count)
    transposed = product.program if symmetric else _vecmat(product.program, types)
    reverse = solve if symmetric and transpose_solve is None else transpose_solve
    systems = [(solve, product.program), *([] if reverse is None else [(reverse, transposed)])]
    bodies: list[Program] = []
    structures = []
    for solver, system in systems:
        made = _solution(where, solver, system, tree, types, has_aux)
        structures.append(made.structure)
        extra = made.program.out_types[count:]
        bodies += [made.program, _padded(system, extra)]
    programs, captured = close_all(bodies)
    op = LinearSolve(programs, len(captured), count)
    results = perform(op, *captured, *bs)
    return trees.unflatten(structures[0], results)


def _vecmat(product: Program, types: Sequence[ArrayType]) -> Program:
    """The transposed product, over the same captured values."""
    closed, captured = close(product)
    linear = [False] * len(captured) + [True] * len(types)
    adjoint, marks = transpose_program(closed, linear, [True] * len(types))

    def vecmat(*cts: Any) -> list[Any]:
        found = iter(interpret(adjoint, [*captured, *cts]))
        return full([next(found) if yes else None for yes in marks], types)

    return record_body(vecmat, types, "vecmat")


def _solution(
    where: str, solver: Callable[..., Any], system: Program, tree: Any, types: Sequence[ArrayType], has_aux: bool,
    strong: bool = False,
) -> Body:  # fmt: skip
    """The body of a solver; ``strong``: it may find strong numbers where it is given weak ones."""

    def product(x: Any) -> Any:
        values = [checked(where, "an argument", y, t) for y, t in zip(tree.flatten_up_to(x), types)]
        return trees.unflatten(tree, interpret(system, values))

    def solved(*bs: Any) -> Any:
        made = solver(product, trees.unflatten(tree, bs))
        if has_aux and (not isinstance(made, (tuple, list)) or len(made) != 2):
            raise TreeMismatch(f"{where}: with has_aux=True a solver gives (x, aux), got {type(made).__name__}.")
        return tuple(made) if has_aux else made

    def typed(*bs: Any) -> Any:
        made = solved(*bs)
        x, aux = made if has_aux else (made, None)
        leaves, found = trees.flatten(x)
        if found != tree:
            raise TreeMismatch(f"{where}: {place_of(solver)} must give the structure {tree}, got {found}.")
        shown = f"{where}, {place_of(solver)}"
        unknowns = [_unknown(shown, y, t, strong) for y, t in zip(leaves, types)]
        x = trees.unflatten(tree, unknowns)
        return (x, aux) if has_aux else x

    return body_of("solve", typed, types)


def _unknown(shown: str, y: Any, t: ArrayType, strong: bool) -> Any:
    x = checked(shown, "unknowns", y, t)
    return y if strong and isinstance(y, Array) and y.type.dtype == t.dtype else x


def _padded(system: Program, extra: Sequence[ArrayType]) -> Program:
    """A product with the signature of a solver: zeros in place of what solvers give besides."""
    if not extra:
        return record_body(lambda *xs: list(interpret(system, xs)), system.in_types, system.name)
    return record_body(
        lambda *xs: [*interpret(system, xs), *[zeros_like(t) for t in extra]], system.in_types, system.name
    )


@JVP.rule(LinearSolve)
def _(op, primals, tangents):
    ys = perform(op, *primals)
    shared, count = op.shared, op.carry
    rest = list(tangents[shared:])
    if any([dx is not None for dx in tangents[:shared]]):
        at = (*primals[:shared], *ys[:count])
        _, moved = by_program(op.bodies[1], at, (*tangents[:shared], *[None] * count))
        rest = [add_tangents(db, None if dy is None else neg(dy)) for db, dy in zip(rest, moved)]
    none = [None] * (len(ys) - count)
    if all([db is None for db in rest]):
        return ys, [None] * count + none
    dxs = perform(op, *primals[:shared], *full(rest, [y.type for y in ys[:count]]))
    return ys, [*[dx if is_inexact(dx.type.dtype) else None for dx in dxs[:count]], *none]


@TRANSPOSE.rule(LinearSolve)
def _(op, cts, *operands, wrt):
    if any(wrt[: op.shared]):
        raise NotDifferentiable("linear_solve: the solution is linear in b alone, not in what matvec captured.")
    if len(op.bodies) == 2:
        raise NotDifferentiable(
            "custom_linear_solve: reverse mode solves the transposed system, and there is no solver for it.",
            hint="give transpose_solve, or symmetric=True.",
        )
    swapped = op.with_bodies((*op.bodies[2:], *op.bodies[:2]))
    types = op.bodies[0].out_types[: op.carry]
    found = perform(swapped, *operands[: op.shared], *full(cts[: op.carry], types))[: op.carry]
    return [*[None] * op.shared, *[ct if yes else None for ct, yes in zip(found, wrt[op.shared :])]]


def custom_root(
    f: Callable[..., Any], initial_guess: Any, solve: Callable[..., Any], tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """A root of a function by a solver of the user's.

        x = custom_root(f, guess, solve, tangent_solve):  f(x) == 0,  x = solve(f, guess)
        dx = tangent_solve(v -> f'(x) v, -df(x)),  df by what f captured

    Differentiable to any order in what ``f`` captured, by the implicit function theorem, whatever the solver does; the
    derivative by the guess is zero.

    Args:
        tangent_solve: solves ``g(y) == b`` for linear ``g``; reverse mode transposes it.
        has_aux: ``solve`` gives ``(x, aux)``, and so does this; aux has no derivative.

    Raises: TreeMismatch, ShapeMismatch, DTypeMismatch: the functions do not give what the unknowns are.

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
    leaves, tree = trees.flatten(initial_guess)
    guess = [lift(x) for x in leaves]
    types = [x.type for x in guess]
    count = len(guess)
    equation = body_of("f", lambda *xs: f(trees.unflatten(tree, xs)), types)
    _same(where, "f", tree, types, equation, count)
    body = _solution(where, solve, equation.program, tree, types, has_aux, strong=True)
    boxes = boxes_in(tangent_solve)
    (system, solution), captured = close_all([equation.program, body.program])
    first, last = len(captured), len(captured) + len(boxes)
    in_types = [*[x.type for x in (*captured, *boxes)], *types]
    places = [*range(first), *range(last, len(in_types))]
    holes, which = holes_for(boxes)
    made = UserRoot(
        kept(tangent_solve, which), tree, system.rewired(in_types, places), solution.rewired(in_types, places), first,
        tuple(map(Held, holes)),
    )  # fmt: skip
    return trees.unflatten(body.structure, perform(made.operation, *captured, *boxes, *guess))


class UserRoot(Rule):
    """The derivative of a root; operands are what ``f`` captured, what ``tangent_solve`` captured, and the guess."""

    tangent_solve: Held
    tree: Any
    system: Program
    solution: Program
    first: int
    boxes: tuple[Held, ...]

    @property
    def shown(self) -> str:
        return f"custom_root, {place_of(self.tangent_solve.value)}"

    @property
    def operation(self) -> CustomJvp:
        return CustomJvp((self.solution,), 0, self)

    def run(self, operands: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, list[Any]]:
        ys = perform(self.operation, *operands)
        last = self.first + len(self.boxes)
        count = len(operands) - last
        none = [None] * len(ys)
        if all([dx is None for dx in tangents[: self.first]]):
            return ys, none
        unknowns = [convert(y, x.type.dtype, x.type.weak) for y, x in zip(ys, operands[last:])]
        at = (*operands[:last], *unknowns)
        _, moved = by_program(self.system, at, (*tangents[: self.first], *[None] * (len(at) - self.first)))
        if all([dy is None for dy in moved]):
            return ys, none
        types = [y.type for y in ys[:count]]
        values = substitution(self.boxes, operands[self.first : last])
        right = trees.unflatten(self.tree, [neg(dy) for dy in full(moved, types)])
        made = replaced(self.tangent_solve.value, values)(self.linear(at, types, last), right)
        leaves, tree = trees.flatten(made)
        if tree != self.tree:
            raise TreeMismatch(f"{self.shown}: the function must give the structure {self.tree}, got {tree}.")
        dxs = [checked(self.shown, "unknowns", dx, t) for dx, t in zip(leaves, types)]
        return ys, [*dxs, *none[count:]]

    def linear(self, at: Sequence[Any], types: Sequence[ArrayType], last: int) -> Callable[[Any], Any]:
        """The derivative of the system by the unknowns, where it is solved."""
        derived, marks = jvp_program(self.system, [False] * last + [True] * len(types))

        def g(v: Any) -> Any:
            dxs = [checked(self.shown, "an argument", y, t) for y, t in zip(self.tree.flatten_up_to(v), types)]
            found = iter(interpret(derived, [*at, *dxs])[len(marks) :])
            return trees.unflatten(self.tree, full([next(found) if yes else None for yes in marks], types))

        return g

    def lifted(self, lift: Any) -> LiftedJvp:
        return lifted_jvp(self, lift)


