"""Extents: arithmetic, comparison, printing, and what is refused outside of a lane."""

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax.effects.operations.foundations.shapes import BroadcastInDim
from handlax.effects.programs.program import Program
from handlax.effects.types.array_type import array_type
from handlax.effects.types.extent import (
    Extent,
    fits,
    floor_divided,
    length,
    most,
    positive,
    remaining,
    single,
)
from handlax.effects.types.extent_text import parse_extent
from handlax.effects.types.sized import extents_in, with_sizes

n, m = length(0), length(1)


@pytest.mark.parametrize(("size", "text"), [
    (n, "n0"), (n + 1, "n0+1"), (1 + n, "n0+1"), (2 * n, "2*n0"), (n + m, "n0+n1"), (n * m, "n0*n1"), (n - 1, "n0-1"),
    (n * (n + 1), "n0*n0+n0"), (np.int64(3) * n, "3*n0"), (1 - n, "-n0+1"),
])
def test_arithmetic_gives_the_polynomial_which_prints_and_parses(size, text):
    assert str(size) == text
    assert parse_extent(text) is size or text.startswith("-")
    for value in (0, 1, 5):
        assert size.at({0: value, 1: 7}) == eval(text, {"n0": value, "n1": 7})


@pytest.mark.parametrize(("quotient", "wanted"), [
    (4 * n // 2, 2 * n), (4 * n // n, 4), (n * m // m, n), ((2 * n + 4) // 2, n + 2), (n - n, 0),
])
def test_exact_quotients_and_differences(quotient, wanted):
    assert quotient is wanted or quotient == wanted


def test_quotients_have_a_normal_form():
    assert (n + 5) // 2 is (n + 1) // 2 + 2
    assert (n // 2 + 1) // 3 is (n + 2) // 6
    assert (4 * n + 2) // 6 is (2 * n + 1) // 3
    assert n % 2 is n - 2 * (n // 2)


def test_a_remainder_is_zero_where_the_quotient_is_exact():
    assert [remaining(2 * n * m, n), remaining(n * m, m), remaining(n, n)] == [0, 0, 0]
    others = [remaining(n, m), remaining(n, n * m), remaining(7, n)]
    assert [*map(str, others)] == ["mod(n0,n1)", "mod(n0,n0*n1)", "mod(7,n0)"]


def random_size(rng, depth, lengths, quotients):
    """An extent, and the function of the lengths that it is."""
    kind = rng.integers(5 if quotients else 4) if depth else 0
    if kind == 0:
        number = int(rng.integers(lengths))
        return length(number), lambda *sizes: sizes[number]
    size, f = random_size(rng, depth - 1, lengths, quotients)
    c = int(rng.integers(-4, 5))
    if kind == 1:
        return size + c, lambda *sizes: f(*sizes) + c
    if kind == 2:
        return positive(size), lambda *sizes: max(f(*sizes), 0)
    if kind == 4:
        return floor_divided(size, abs(c) + 1), lambda *sizes: f(*sizes) // (abs(c) + 1)
    other, g = random_size(rng, depth - 1, lengths, quotients)
    return size + c * other, lambda *sizes: f(*sizes) + c * g(*sizes)


def test_extents_of_one_length_that_are_equal_for_all_its_values_are_one_object():
    rng = np.random.default_rng(0)
    found = {}
    for _ in range(1500):
        size, f = random_size(rng, 4, 1, False)
        values = tuple(f(k) for k in range(60))
        assert found.setdefault(values, size) is size or found[values] == size
        assert values == (tuple(size.at({0: k}) for k in range(60)) if type(size) is Extent else (size,) * 60)
    assert len(found) > 300


def test_values_bounds_and_texts_of_extents():
    rng = np.random.default_rng(1)
    room = {0: 3, 1: 5}
    lanes = [{0: 2, 1: 5}, {0: 0, 1: 1}, {0: 3, 1: 0}]
    for _ in range(500):
        size, f = random_size(rng, 4, 2, True)
        if type(size) is not Extent:
            continue
        assert parse_extent(str(size)) is size and pickle.loads(pickle.dumps(size)) is size
        values = [f(a, b) for a in range(4) for b in range(6)]
        assert values == [size.at({0: a, 1: b}) for a in range(4) for b in range(6)]
        assert size.least <= min(values) and max(values) <= most(size, lambda monomial: room[monomial[0]])
        total = sum(f(lane[0], lane[1]) for lane in lanes)
        assert total <= most(size, lambda monomial: sum(lane[monomial[0]] for lane in lanes), len(lanes))


def test_equal_extents_are_one_object():
    assert n + 1 is 1 + n
    assert pickle.loads(pickle.dumps(n + m)) is n + m
    assert array_type((n, 3), "float32") is array_type((length(0), 3), "float32")


@pytest.mark.parametrize("answer", [n >= 0, n + 1 > 0, n <= n + 1, not n < 0, 2 * n >= n, bool(n + 1)])
def test_what_holds_of_all_lengths_is_known(answer):
    assert answer is True


def test_a_type_prints_parses_and_has_no_known_size():
    t = array_type((n + 1, 3), "float32")
    assert str(t) == "f32[n0+1,3]"
    assert t.size is 3 * n + 3


@pytest.mark.parametrize("use", [
    lambda: range(n), lambda: np.zeros(n), lambda: int(n), lambda: float(n), lambda: [0][n],
])
def test_python_needs_an_integer(use):
    with pytest.raises((hx.errors.TracerIntegerConversionError, TypeError)):
        use()


@pytest.mark.parametrize("use", [lambda: n == 3, lambda: n > 2, lambda: 1 / n, lambda: 5 // n, lambda: bool(n)])
def test_the_value_of_a_length_is_that_of_a_lane(use):
    with pytest.raises(hx.errors.EscapedBox, match="a vmap that has ended"):
        use()


def test_extents_in_fields():
    assert extents_in(((n, 3), (m,), 4)) == [n, m]
    assert with_sizes(((n, 3), m), lambda size: size.at({0: 5, 1: 6})) == ((5, 3), 6)


def test_extents_in_types_and_programs():
    rows = array_type((n, 3), "float32")
    body = Program((rows,), [BroadcastInDim((m, n, 3), (1, 2))], [(0,)], [rows.update(shape=(m, n, 3))], [1])
    assert extents_in((rows, (m,))) == [n, m] and {*extents_in(body)} == {n, m}
    sized = with_sizes((rows, body, "x"), lambda size: size.at({0: 5, 1: 6}))
    assert sized[0] == array_type((5, 3), "float32") and sized[2] == "x"
    assert sized[1].in_types == (sized[0],) and sized[1].out_types == (array_type((6, 5, 3), "float32"),)


def test_windows():
    assert [single(size) for size in (0, 1, 5, n)] == [0, 1, 1, 1]
    assert [fits(3, 4), fits(5, 4), fits(5, n)] == [True, False, True]
