"""Dimension variables from the sizes of arguments."""

import pytest

from handlax.effects.types.array_type import array_type
from handlax.effects.types.dimension_equations import holds, solve
from handlax.effects.types.extent import floor_divided
from handlax.effects.types.symbolic_shapes import SymbolicScope, symbolic_shape
from handlax.errors import BadArgument


def values_of(shapes, actual, constraints=()):
    """The values of the variables by name, and the claims that do not hold."""
    scope = SymbolicScope(constraints)
    types = [array_type(symbolic_shape(shape, scope=scope), "float32") for shape in shapes]
    equations = solve(types, [f"x{i}" for i in range(len(types))], "f")
    size = lambda equation: actual[equation.argument][equation.axis]
    values = equations.values(size, floor_divided)
    return {x.name: n for x, n in values.items()}, [c.claim for c in equations.checks if not holds(c, values, size)]


@pytest.mark.parametrize(("shapes", "actual", "values", "broken"), [
    (["b, 4"], [(3, 4)], {"b": 3}, []),
    (["2*n + b, b"], [(11, 3)], {"b": 3, "n": 4}, []),
    (["a + 2*b, a, a + b + c"], [(8, 2, 9)], {"a": 2, "b": 3, "c": 4}, []),
    (["floordiv(b, 2), b"], [(3, 7)], {"b": 7}, []),
    (["b, b"], [(3, 4)], {"b": 3}, ["x0.shape[1] == b"]),
    (["2*b"], [(5,)], {"b": 2}, ["x0.shape[0] == 2*b"]),
    (["b + 2"], [(2,)], {"b": 0}, ["b >= 1"]),
])
def test_the_variables_of_shapes(shapes, actual, values, broken):
    assert values_of(shapes, actual) == (values, broken)


def test_constraints_are_checked():
    assert values_of(["a, b"], [(4, 3)], ["a >= b", "a + b >= 9"]) == ({"a": 4, "b": 3}, ["a + b >= 9"])


def test_symbolic_values_that_decide_nothing_do_not_fit():
    (b,) = symbolic_shape("b")
    assert values_of(["a + 1"], [(b,)])[1] == ["a >= 1"]
    assert values_of(["a"], [(b + 1,)])[1] == []


@pytest.mark.parametrize("shapes", [["c*c"], ["a + b"], ["floordiv(b, 2)"], ["a*b, a"], ["3 - b"]])
def test_variables_that_cannot_be_solved_are_refused(shapes):
    with pytest.raises(BadArgument, match="must follow from a size that is linear in it"):
        values_of(shapes, None)


def test_constraints_are_about_variables_of_arguments():
    with pytest.raises(BadArgument, match="must be those of arguments, got a >= m with m"):
        values_of(["a"], [(3,)], ["a >= m"])
    for constraint in ("m >= 2", "m == 2*a"):  # of no size that there is, and what the variable is
        assert values_of(["a"], [(3,)], [constraint]) == ({"a": 3}, [])
