"""Elementwise operations of one number against mpmath: values and two derivatives, eager and compiled, in every float.

The bounds are those of docs/explanation/accuracy.md. Subnormal numbers are zeros to compiled programs.
"""

import itertools
import pathlib
import re

import mpmath as mp
import numpy as np
import pytest
from helpers.exact_functions import EXACT, exact

import handlax as hx
from handlax import lax

pytestmark = pytest.mark.optimised

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "explanation" / "accuracy.md"
COLUMNS = ("eager", "compiled", "first", "second")
INF = float("inf")


def bounds():
    """By operation and column, how many ulps of the larger of the result and a number."""
    table = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) + 1 and cells[0] in EXACT:
            parsed = [re.fullmatch(r"(\d+)(?: of (\S+))?", cell) for cell in cells[1:]]
            table[cells[0]] = {c: (float(m[1]), float(m[2] or 0)) for c, m in zip(COLUMNS, parsed)}
    return table


BOUNDS = bounds()
QUICK = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-5, -1e-30, 19.0, -19.0, 0.999, 1.001, 88.5, 1e30, INF, -INF, float("nan"))
# ends of domains, poles, zeros, and where formulas change
SWITCHES = (0.5, 1.0, 1.4616321, 1.5, 2.0, 2.5, 8.0, 40.0, 88.72, 709.78, 0.625, 3.0, 5.0, -0.5, -1.0, -2.0, -2.4570247)
NEAR = (1.0, 1 - 1e-16, 1 + 3e-16, 1 - 1e-7, 1 + 1.2e-7, 0.999, 1.001, 1.1)


def points(dtype):
    """Special values, the neighbours of switches, and numbers of every size."""
    rng = np.random.default_rng(10)
    info = hx.dtypes.finfo(dtype)
    size = np.exp(rng.uniform(np.log(float(info.tiny)), np.log(float(info.max)), 60))
    usual = np.exp(rng.uniform(np.log(1e-3), np.log(50.0), 150))
    near = [s * f for s in SWITCHES for f in NEAR]
    values = [*QUICK, *near, *size, *-size, *usual, *-usual, info.tiny, info.max, 100.0]
    with np.errstate(over="ignore"):
        x = np.unique(np.array(values, np.float64).astype(hx.dtypes.canonical(dtype)))
    return np.concatenate([x, np.array([0.0, -0.0], x.dtype)])


def derivatives(f, order):
    if order == 0:
        return f
    before = derivatives(f, order - 1)
    return lambda x: hx.jvp(before, (x,), (lax.full_like(x, 1),))[1]


def ulps(y, wanted, info, floor, order):
    """The error in units in the last place of the larger of what is wanted and ``floor``.

    Derivatives may overflow on the way to the last two powers of 2.
    """
    y, largest, tiny, eps = float(y), mp.mpf(float(info.max)), mp.mpf(float(info.tiny)), mp.mpf(float(info.eps))
    if mp.isnan(wanted) or np.isnan(y):
        return 0.0 if mp.isnan(wanted) and np.isnan(y) else INF
    if np.isinf(y) or abs(wanted) > largest:  # next to the end of the range, the largest number and infinity are near
        if np.sign(y) != mp.sign(wanted):
            return INF
        if order and np.isinf(y) and abs(wanted) > largest / 4:
            return 0.0
        ends = [min(abs(v), largest) for v in (mp.mpf(y), wanted)]
        return float(abs(ends[0] - ends[1]) / (largest * eps / 2))
    size = max(abs(wanted), mp.mpf(floor), tiny)
    unit = mp.mpf(2) ** mp.floor(mp.log(size, 2)) * eps
    return max(0.0, float((abs(mp.mpf(y) - wanted) - (8 * tiny if abs(wanted) < 8 * tiny else 0)) / unit))


def worst(name, order, dtype, x, ways):
    """Of eager and compiled results, the largest error in ulps and where it is."""
    info = hx.dtypes.finfo(dtype)
    f = derivatives(getattr(lax, name), order)
    wanted = [exact(name, order, float(v)) for v in x]
    results = []
    for way in ways:
        g = hx.jit(f) if way == "compiled" else f
        y = np.concatenate([np.asarray(g(part)) for part in np.array_split(x, -(-len(x) // 300))])
        column = way if order == 0 else COLUMNS[order + 1]
        floor = BOUNDS[name][column][1]
        errors = [(ulps(b, t, info, floor, order), float(a), float(b), t) for a, b, t in zip(x, y, wanted)
                  if t is not None and not (way == "compiled" and 0 < abs(float(a)) < float(info.tiny))]
        results.append((column, way, max(errors, key=lambda row: row[0])))
    return results


def assert_bounds(name, dtype, x, compiled=range(3)):
    """The bounds of the values and both derivatives, eager ones and, of these orders, compiled ones."""
    for order in range(3):
        ways = ("eager", "compiled") if order in compiled else ("eager",)
        for column, way, (error, at, got, wanted) in worst(name, order, dtype, x, ways):
            bound = BOUNDS[name][column][0] if order or hx.dtypes.finfo(dtype).bits > 16 else 1.0
            what = f"{name} {dtype} {way}, derivative {order} at {at!r}: {got!r}, not {mp.nstr(wanted, 17)}"
            assert error <= bound, f"{what}: {error} ulps"


def test_the_page_has_a_bound_for_every_operation():
    assert set(BOUNDS) == set(EXACT)


@pytest.mark.parametrize("name", EXACT)
def test_operations_keep_their_bounds_at_special_values(name):
    assert_bounds(name, "float32", np.array(QUICK, np.float32), compiled=[0])


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_operations_keep_their_bounds_everywhere(name, dtype):
    assert_bounds(name, dtype, points(dtype))


SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, -7.0, 100.0, 6e4, 1e-30, -1e30, 3e38, INF, -INF, float("nan"))
# by how many ulps of float64's results, rounded; 0: these have the signs of zeros too
BINARY = {
    "add": (np.add, 0), "sub": (np.subtract, 0), "mul": (np.multiply, 0), "div": (np.divide, 0), "rem": (np.fmod, 0),
    "max": (np.maximum, 0), "min": (np.minimum, 0), "atan2": (np.arctan2, 2), "pow": (np.power, 2),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_operations_of_all_pairs_of_special_values_are_those_of_numpy(name, dtype):
    oracle, bound = BINARY[name]
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(hx.dtypes.canonical(dtype))
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    info = hx.dtypes.finfo(dtype)
    tiny, eps = float(info.tiny), float(info.eps)
    with np.errstate(all="ignore"):
        wanted = oracle(x.astype(float), y.astype(float)).astype(x.dtype).astype(float)
        for f in (getattr(lax, name), hx.jit(getattr(lax, name))):
            z = np.asarray(f(x, y)).astype(float)
            same = (z == wanted) & ((np.signbit(z) == np.signbit(wanted)) | (bound > 0))
            flushed = (np.abs(wanted) <= tiny) & (np.abs(z) <= tiny)
            close = np.abs(z - wanted) <= bound * eps * np.abs(wanted)
            right = same | flushed | close | (np.isnan(z) & np.isnan(wanted))
            assert right.all(), [(a, b, c, d) for a, b, c, d in zip(x[~right], y[~right], z[~right], wanted[~right])]


@pytest.mark.each_choice
@pytest.mark.parametrize(("name", "signs"), [("asin", (1, -1)), ("acos", (-1, 1)), ("atanh", (1, -1))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_at_the_ends_of_a_domain_are_infinite_both_ways(name, signs, dtype):
    f, one = getattr(lax, name), np.ones((), dtype)
    forwards = lambda f: lambda x: hx.jvp(f, (x,), (one,))[1]
    for outer, inner in itertools.product((forwards, hx.grad), repeat=2):
        for way in (lambda g: g, hx.jit):
            assert [float(way(outer(inner(f)))(x)) for x in (one, -one)] == [sign * np.inf for sign in signs]
