"""The values of dimension variables in calls, from the sizes of the arguments.

    (b, 2*n + b)  and  (3, 11)      b = 3, n = (11 - b) // 2 = 4

Each symbolic size of an argument's type is an equation. One that is linear in its only unknown variable gives the
value of that; all of them are then checked, and that each variable is at least 1, and the constraints of their scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ..base.errors import BadArgument, TracerBoolConversionError
from .array_type import ArrayType
from .extent import Extent, extent, floor_divided, length, positive, remaining
from .extent_factors import PositivePart, Quotient, Symbol


class DimensionEquation(NamedTuple):
    """Size ``axis`` of argument ``argument`` is ``size``."""

    size: Extent
    argument: int
    axis: int


class DimensionSolution(NamedTuple):
    """``symbol == (size of the argument - rest) // factor``; ``rest`` has symbols that are solved before."""

    symbol: Symbol
    equation: DimensionEquation
    factor: int
    rest: Any


class SizeCheck(NamedTuple):
    """What must hold of the solved variables: ``size`` is 0 if ``equal``, else at least 0; ``claim`` is its text.

    ``equation``: of which the actual size is to be subtracted.
    """

    claim: str
    size: Any
    equal: bool
    equation: DimensionEquation | None = None


class DimensionEquations(NamedTuple):
    """The solutions for all variables, in order, and what must hold of them."""

    solutions: tuple[DimensionSolution, ...]
    checks: tuple[SizeCheck, ...]

    def values(self, actual: Callable[[DimensionEquation], Any], divided: Callable[[Any, Any], Any]) -> dict[Any, Any]:
        """The value of each variable, where ``actual`` gives the sizes of arguments."""
        found: dict[Any, Any] = {}
        for symbol, equation, factor, rest in self.solutions:
            left = actual(equation) - substituted(rest, found)
            found[symbol] = left if factor == 1 else divided(left, factor)
        return found


NO_VARIABLES = DimensionEquations((), ())


def solve(types: Sequence[ArrayType], names: Sequence[str], function: str) -> DimensionEquations:
    """The solutions for the variables in the types of arguments.

    Raises: BadArgument: a variable is in no size that is linear in it, given the others; or a constraint compares one
    with a variable of no argument.
    """
    sizes: list[tuple[Any, int, int]] = [(n, i, d) for i, t in enumerate(types) for d, n in enumerate(t.shape)]
    waiting = [DimensionEquation(*each) for each in sizes if type(each[0]) is Extent]
    every = tuple(waiting)
    solutions: dict[Symbol, DimensionSolution] = {}
    while waiting:
        solved = [s for e in waiting if (s := _solution(e, solutions.keys())) is not None]
        if not solved:
            break
        solutions.setdefault(solved[0].symbol, solved[0])
        waiting = [e for e in waiting if not e.size.lengths <= solutions.keys()]
    if waiting:
        shown = ", ".join([f"{e.size} of {names[e.argument]}" for e in waiting])
        raise BadArgument(
            f"{function}: each dimension variable must follow from a size that is linear in it, got {shown}.",
            hint="an argument with the variable itself as a size.",
        )
    constraints = _constraints(solutions, function)
    return DimensionEquations((*solutions.values(),), (*_checks(every, solutions, names), *constraints))


def _solution(equation: DimensionEquation, known: Any) -> DimensionSolution | None:
    """The solution of an equation for its only unknown variable, which occurs in one linear term."""
    unknown = [(m, factor) for m, factor in equation.size.terms if m and not extent([(m, 1)]).lengths <= known]
    match unknown:
        case [((Symbol() as symbol,), factor)] if factor > 0:
            return DimensionSolution(symbol, equation, factor, equation.size - factor * length(symbol))
    return None


def _checks(
    equations: Sequence[DimensionEquation], solutions: Mapping[Symbol, DimensionSolution], names: Sequence[str]
) -> Iterator[SizeCheck]:
    for symbol in solutions:
        yield SizeCheck(f"{symbol} >= 1", length(symbol) - 1, False)
    for equation in equations:
        solution = next((s for s in solutions.values() if s.equation == equation), None)
        if solution is None or solution.factor != 1:  # else it holds by the solution
            where = f"{names[equation.argument]}.shape[{equation.axis}]"
            yield SizeCheck(f"{where} == {equation.size}", equation.size, True, equation)


def _constraints(solutions: Mapping[Symbol, DimensionSolution], function: str) -> Iterator[SizeCheck]:
    """The checks of what the scopes state of the variables. Raises BadArgument: a call cannot check it."""
    for constraint in [each for scope in {symbol.scope for symbol in solutions} for each in scope.constraints]:
        variables = constraint.difference.lengths if type(constraint.difference) is Extent else frozenset()
        unknown = [x for x in variables - solutions.keys() if x.name not in x.scope.replaced]
        if unknown and len(unknown) < len(variables):
            raise BadArgument(
                f"{function}: the variables of a constraint must be those of arguments, got {constraint.text} with "
                f"{', '.join(sorted(map(str, unknown)))}.",
                hint="an argument with this variable as a size, or a scope without the constraint.",
            )
        if variables and variables <= solutions.keys():
            yield SizeCheck(constraint.text, constraint.difference, constraint.equal)


def substituted(size: Any, sizes: Mapping[Any, Any]) -> Any:
    """The size with these sizes, numbers or extents, in place of its variables.

    >>> n = length(0)
    >>> substituted(2 * n + 1, {0: 3}), substituted(2 * n + 1, {0: n - 1})
    (7, 2*n0-1)
    """
    if type(size) is not Extent:
        return size
    return sum([factor * prod([_substituted_factor(x, sizes) for x in monomial]) for monomial, factor in size.terms])


def _substituted_factor(factor: Any, sizes: Mapping[Any, Any]) -> Any:
    if type(factor) in (int, Symbol):
        return sizes[factor]
    parts = [substituted(part, sizes) for part in factor[:2]]
    if type(factor) is PositivePart:
        return positive(*parts)
    return floor_divided(*parts) if type(factor) is Quotient else remaining(*parts)


def holds(check: SizeCheck, values: Mapping[Any, Any], actual: Callable[[DimensionEquation], Any]) -> bool:
    """Whether a check holds for these values; False too where symbolic ones do not decide it."""
    size = substituted(check.size, values)
    if check.equation is not None:
        size = size - actual(check.equation)
    try:
        return bool(size == 0 if check.equal else size >= 0)
    except TracerBoolConversionError:
        return False
