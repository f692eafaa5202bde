"""Symbolic shapes as text, and their scopes."""

import itertools
import pickle

import pytest

from handlax.effects.types.dimension_equations import substituted
from handlax.effects.types.symbolic_shapes import SymbolicScope, degree, is_symbolic_dim, parse_size, symbolic_shape
from handlax.errors import BadArgument, BadShape, ShapeMismatch, TracerBoolConversionError

SIZES = [
    "a", "3", "a + b", "2*a - 1", "a*b + a^2", "floordiv(a + 3, 2)", "mod(a, 4)", "max(a - 2, 0)", "min(a, b)",
    "max(a, 3)", "floordiv(a + 5, b)", "mod(a + 5, b)", "-(a - b) + 7", "non_negative(a - 3)", "(a + b) * (a - b)",
    "floordiv((a + 1) * (b + 2), b + 2)", "floordiv(max(a - 1, 0) + b, 3) * b",
]
MEANINGS = {
    "floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y, "max": max, "min": min,
    "non_negative": lambda x: max(x, 0),
}


@pytest.mark.parametrize("text", SIZES)
def test_sizes_have_the_values_that_their_texts_have_in_python(text):
    scope = SymbolicScope()
    size, (a, b) = parse_size(text, scope), symbolic_shape("a, b", scope=scope)
    again = parse_size(str(size), scope)
    (a,), (b,) = a.lengths, b.lengths
    for x, y in itertools.product(range(1, 7), range(1, 5)):
        expected = eval(text.replace("^", "**"), MEANINGS, {"a": x, "b": y})
        assert substituted(size, {a: x, b: y}) == expected
        assert substituted(again, {a: x, b: y}) == expected  # what it prints has the same meaning
        assert size == expected if isinstance(size, int) else size.at({a: x, b: y}) == expected
        assert isinstance(size, int) or size.least <= expected <= -(-size).least


def test_equal_polynomials_are_one_object_of_a_scope():
    scope = SymbolicScope()
    a, b = symbolic_shape("a, b", scope=scope)
    assert (a + b) * (a - b) is a * a - b * b and (a * a - b * b) // (a + b) is a - b
    assert symbolic_shape("a", scope=scope)[0] is a and symbolic_shape("a")[0] is not a
    with pytest.raises(ShapeMismatch, match="must be of one scope"):
        a + symbolic_shape("c")[0]


@pytest.mark.parametrize("text", ["a^1000000000", "2^1000000000", "(a*b + 1)^33", "((a^60)^60)^60"])
def test_a_power_that_is_no_size_is_refused(text):
    with pytest.raises(BadShape, match="powers up to 64"):
        symbolic_shape(text)
    assert degree(symbolic_shape("a^64")[0]) == 64


def test_what_bounds_and_constraints_decide():
    a, b, c = symbolic_shape("a, b, c", constraints=["a >= b + 2", "c <= 10", "2*b >= c"])
    assert a >= 1 and a >= 3 and a > b and c < 11 and a + b >= 2 and 2 * a >= c + 4 and not c > 2 * b
    for undecided in (lambda: a >= 4, lambda: b >= c, lambda: c >= 2):
        with pytest.raises(TracerBoolConversionError, match="must follow from the scope of the sizes, got Symb"):
            undecided()
    assert (a == b) is False and (a == 3) is False and (a != a) is False


PERIODIC = [
    "mod(a, 3) == 0", "mod(a, 4) == 1", "mod(a, 3) >= 0", "3*floordiv(a, 3) == a", "a == 3*floordiv(a, 3)",
    "floordiv(a, 3) == 2", "max(a, 3) == a", "mod(a + b, 2) == 0", "mod(a, b) == 0", "mod(a, 3) == mod(b, 3)",
    "2*floordiv(a, 3) + b >= a", "floordiv(a - 1, 2) == floordiv(b, 2)", "min(a, b) == 2", "mod(-a, 3) == 1",
]


@pytest.mark.parametrize("constraint", PERIODIC)
def test_sizes_have_their_values_and_bounds_wherever_the_constraint_holds(constraint):
    holding = [xy for xy in itertools.product(range(1, 9), range(1, 5))
               if eval(constraint, MEANINGS, dict(zip("ab", xy)))]
    for text in SIZES + ["mod(a, 3)", "3*floordiv(a, 3)", "a - floordiv(a, 3)"]:
        scope = SymbolicScope([constraint])
        size, (a, b) = parse_size(text, scope), symbolic_shape("a, b", scope=scope)
        (a,), (b,) = a.lengths, b.lengths
        low, high = (size, size) if isinstance(size, int) else (size.least, -(-size).least)
        for x, y in holding:
            expected = eval(text.replace("^", "**"), MEANINGS, {"a": x, "b": y})
            assert substituted(size, {a: x, b: y}) == expected and low <= expected <= high, text


def test_constraints_with_quotients_and_remainders_decide():
    (n,) = symbolic_shape("n", constraints=["mod(n, 3) == 0"])
    assert n >= 1 and n % 3 == 0 and n // 3 * 3 is n and n // 3 >= 1 and str(n // 3) == "floordiv(n,3)"
    (n,) = symbolic_shape("n", constraints=["mod(n, 4) == 1"])
    assert n % 4 == 1 and 4 * (n // 4) is n - 1 and n // 4 >= 0
    (n,) = symbolic_shape("n", constraints=["n >= 5"])
    assert n - 5 >= 0 and (n - 5) // 2 >= 0
    (n,) = symbolic_shape("n", constraints=["max(n, 3) == n"])
    assert n >= 3
    (n,) = symbolic_shape("n", constraints=["floordiv(n, 3) == 2"])
    assert n // 3 == 2 and n >= 6 and n <= 8


@pytest.mark.parametrize(("text", "like", "shape"), [
    ("b, 4", None, "(b, 4)"), ("(b, 4)", None, "(b, 4)"), ("b,", None, "(b,)"), ("b", None, "(b,)"), ("", None, "()"),
    ("_, b", (2, 3), "(2, b)"), ("b, ...", (2, 3, 4), "(b, 3, 4)"), (None, (2, 3), "(2, 3)"), ("...", (), "()"),
    ("..., b", (2, None), "(2, b)"),
])
def test_shapes(text, like, shape):
    assert str(symbolic_shape(text, like=like)) == shape


@pytest.mark.parametrize(("text", "like"), [
    ("b +", None), ("_", None), ("...", None), ("b, 4", (2, 3)), ("b", (2, 3)), ("b.c", None), ("2.5", None),
    ("f(b)", None), ("..., ...", (2, 3)), ("a, b, c, ...", (1, 2)), ("max(b)", None), ("True", None),
    ("b^-1", None), ("b^c", None), ("b^True", None), ("b // 0", None), ("b % -2", None), ("mod(b, 0)", None),
    ("floordiv(b, c - 1)", None), ("floordiv(b)", None), ("mod(b, 3, 4)", None), ("min(b, c, d)", None),
    ("non_negative(b, c)", None), ("non_negative(x=b)", None), ("max(b, c, key=b)", None), ("b @ c", None),
    ("+b", None), ("f(b, c)", None), ("f.max(b, c)", None),
])
def test_texts_that_denote_no_shape_are_refused(text, like):
    with pytest.raises(BadShape):
        symbolic_shape(text, like=like)


@pytest.mark.parametrize("text", ["a", "a > b", "1 >= 2", "a >= b >= c", "a == a + 1", "1 == 2", "3 <= 2"])
def test_texts_that_are_no_constraints_are_refused(text):
    with pytest.raises(BadArgument):
        SymbolicScope([text])


@pytest.mark.parametrize("constraint", ["2 >= 1", "1 == 1", "a >= a", "a == a"])
def test_constraints_that_always_hold_say_nothing(constraint):
    assert str(symbolic_shape("a, a - 1", constraints=[constraint])) == "(a, a-1)"
    assert SymbolicScope(constraint).facts == ()


def test_constraints_are_those_of_one_scope():
    with pytest.raises(BadArgument, match="constraints are those of a scope"):
        symbolic_shape("b", constraints=["b >= 2"], scope=SymbolicScope())
    with pytest.raises(BadArgument, match="written as text"):
        symbolic_shape(3)


def test_shapes_and_their_scope_pickle():
    a, b = pickle.loads(pickle.dumps(symbolic_shape("a, floordiv(b, a)", constraints=["a >= b + 2"])))
    (divided,) = [x for monomial, _ in b.terms for x in monomial]
    assert str((a, b)) == "(a, floordiv(b,a))" and a > divided.of and a.scope is b.scope


def test_which_sizes_are_symbolic():
    assert [is_symbolic_dim(size) for size in symbolic_shape("b, 4")] == [True, False]
