"""Reductions where they have kinks: ties, zeros of both signs, infinities, NaN; long sums. Eager, compiled, exact."""

import itertools

import mpmath
import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

FLOATS = ("float16", "bfloat16", "float32", "float64")
INF = np.inf
CANDIDATES = (0.0, -0.0, 1.0, np.nan, -np.inf)
ROWS = np.array(list(itertools.product(CANDIDATES, repeat=4)))
PARTS = (0.0, 1.0, np.nan)
COMPLEX = np.array([complex(*parts) for parts in itertools.product(PARTS, repeat=2)])


def both(f, *xs):
    """The results of ``f``, eager and compiled."""
    return np.asarray(f(*xs)), np.asarray(hx.jit(f)(*xs))


def same(y, z):
    """Whether arrays are equal, zeros by their sign, NaN to NaN."""
    y, z = np.asarray(y, np.float64), np.asarray(z, np.float64)
    return bool((((y == z) & (np.signbit(y) == np.signbit(z))) | (np.isnan(y) & np.isnan(z))).all())


@pytest.mark.parametrize("f", [lax.argmax, lax.argmin])
def test_lax_counts_the_axis_of_an_index_from_the_front_and_numpy_from_both_ends(f):
    with pytest.raises(ValueError, match="counted from the front, got -1"):
        f(np.ones((2, 3)), -1, "int32")
    named = getattr(hnp, f.__name__)
    assert named(np.eye(3), axis=-1).tolist() == getattr(np, f.__name__)(np.eye(3), -1).tolist()


def larger(x, y):
    """IEEE 754-2019's maximum."""
    if np.isnan(x) or np.isnan(y):
        return np.nan
    return (y if np.signbit(x) else x) if x == y == 0 else max(x, y)


def extreme(sign):
    """max for 1, min for -1, of two numbers."""
    return lambda x, y: sign * larger(sign * x, sign * y)


def folded(choose, rows):
    return np.array([list(itertools.accumulate(row, choose)) for row in rows.tolist()])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "sign"), [("max", 1), ("min", -1)])
def test_extremes_of_zeros_infinities_and_nan(name, sign, dtype):
    rows, choose = ROWS.astype(hnp.dtype(dtype)), extreme(sign)
    exact = folded(choose, ROWS)
    x, y = rows[:, 0], rows[:, 1]
    for got in both(getattr(lax, name), x, y):
        assert same(got, exact[:, 1])
    for got in both(lambda x: getattr(lax, f"reduce_{name}")(x, (1,)), rows):
        assert same(got, exact[:, -1])
    for got in both(lambda x: getattr(lax, f"cum{name}")(x, 1), rows):
        assert same(got, exact)
    for got in both(lambda x: getattr(lax, f"cum{name}")(x, 1, reverse=True), np.ascontiguousarray(rows[:, ::-1])):
        assert same(got, exact[:, ::-1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp_of_zeros_infinities_and_nan(dtype):
    low, x, high = (ROWS[:, i] for i in range(3))
    ordered = ~(low > high)
    exact = [extreme(-1)(extreme(1)(a, b), c) for a, b, c in zip(low, x, high)]
    for got in both(lax.clamp, *[v.astype(hnp.dtype(dtype)) for v in (low, x, high)]):
        assert same(got[ordered], np.array(exact)[ordered])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_complex_numbers_keep_nan(name, dtype):
    x, y = np.repeat(COMPLEX, len(COMPLEX)).astype(dtype), np.tile(COMPLEX, len(COMPLEX)).astype(dtype)
    rows = np.stack([x, y, x], 1)
    exact = (np.maximum if name == "max" else np.minimum).accumulate(rows, 1)
    spoilt = np.isnan(exact)
    for results, wanted in (
        (both(getattr(lax, name), x, y), exact[:, 1]),
        (both(lambda x: getattr(lax, f"reduce_{name}")(x, (1,)), rows), exact[:, 2]),
        (both(lambda x: getattr(lax, f"cum{name}")(x, 1), rows), exact),
    ):
        for got in results:
            spoilt = np.isnan(wanted)
            np.testing.assert_array_equal(np.isnan(got), spoilt)
            np.testing.assert_array_equal(got[~spoilt], wanted[~spoilt])


@pytest.mark.each_choice
@pytest.mark.parametrize("size", [3, 17, 300])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_complex_numbers_are_nan_in_both_parts_in_whatever_order_they_are_compared(name, reverse, size):
    candidates = [*COMPLEX, complex(-INF, -3), complex(-INF, INF), complex(INF, 3), complex(INF, -INF)]
    rows = np.random.default_rng(size).choice(candidates, (6, size))
    rows[::2] = np.where(np.isnan(rows[::2]), complex(INF if name == "min" else -INF, -2), rows[::2])
    ordered = rows[:, ::-1] if reverse else rows
    wanted = (np.maximum if name == "max" else np.minimum).accumulate(ordered, 1)
    wanted = np.where(np.isnan(wanted), complex(np.nan, np.nan), wanted)
    for got in both(lambda x: getattr(lax, f"cum{name}")(x, 1, reverse=reverse), rows):
        np.testing.assert_array_equal(got, wanted[:, ::-1] if reverse else wanted)
    for got in both(lambda x: getattr(lax, f"reduce_{name}")(x, (1,)), rows):
        np.testing.assert_array_equal(got, wanted[:, -1])


def log_of_sums(z):
    """log(e^z[0] + ... + e^z[k]), by mpmath."""
    with mpmath.workdps(40):
        sums = itertools.accumulate(mpmath.exp(mpmath.mpc(complex(w))) for w in z)
        return np.array([complex(mpmath.log(total)) for total in sums])


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("reverse", [False, True])
def test_complex_logarithms_of_running_sums(reverse, size, dtype):
    rng = np.random.default_rng(size)
    z = (20 * rng.normal(size=size) + 3j * rng.normal(size=size)).astype(dtype)
    wanted = log_of_sums(z[::-1])[::-1] if reverse else log_of_sums(z)
    eps = float(np.finfo(dtype).eps)
    for got in both(lambda z: lax.cumlogsumexp(z, reverse=reverse), z):
        assert got.dtype == dtype
        assert np.abs(np.exp(got - wanted) - 1).max() < 64 * eps  # a turn about zero makes no difference
    weight = np.arange(1.0, size + 1)
    slope = hx.grad(lambda z: hnp.sum(lax.cumlogsumexp(z) * weight), holomorphic=True)(z.astype("complex128"))
    direct = hx.grad(lambda z: hnp.sum(hnp.log(hnp.cumsum(hnp.exp(z))) * weight), holomorphic=True)
    np.testing.assert_allclose(slope, direct(z.astype("complex128")), rtol=1e-9)


@pytest.mark.each_choice
@pytest.mark.parametrize("f", [lax.cumsum, hx.jit(lax.cumsum)], ids=["eager", "compiled"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 5e-7), ("complex64", 5e-7), ("float64", 2e-14)])
def test_long_running_sums_lose_nothing(f, dtype, tolerance):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.05, 0.15, 100_000).astype(dtype)
    exact = np.cumsum(x.astype(np.clongdouble if dtype == "complex64" else np.longdouble))
    assert float(np.max(np.abs(np.asarray(f(x)) - exact) / np.abs(exact))) < tolerance


@pytest.mark.parametrize("size", [1, 1024, 1025, 1536, 2000, 5000])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_and_products_in_blocks(size, reverse):
    x = np.random.default_rng(1).uniform(0.9, 1.1, (2, size))
    y = x[:, ::-1] if reverse else x
    for got, wanted in ((lax.cumsum(x, 1, reverse), np.cumsum(y, 1)), (lax.cumprod(x, 1, reverse), np.cumprod(y, 1)),
                        (lax.cumlogsumexp(x, 1, reverse), np.logaddexp.accumulate(y, 1)),
                        (lax.cumsum(x.T, 0, reverse).T, np.cumsum(y, 1))):
        np.testing.assert_allclose(got, wanted[:, ::-1] if reverse else wanted, rtol=1e-12)


@pytest.mark.each_choice
@pytest.mark.parametrize("size", [6, 17, 300])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize("f", [lax.cumsum, lax.cumprod])
def test_running_sums_and_products_overflow_and_round_alike(f, dtype, size):
    rng = np.random.default_rng(size)
    top = np.finfo(dtype).max
    x = rng.uniform(0.7, 1.4, (2, size)).astype(dtype)
    if not (f is lax.cumprod and dtype == "complex64"):  # compiled products of complex infinities vary with the size
        x[0, [0, 1, 2, -3, -2, -1]] = [top, top, -top, -0.0, -top, top]
    for axis, reverse in itertools.product((0, 1), (False, True)):
        eager, compiled = both(lambda x: f(x, axis, reverse), x if axis else x.T)
        for part in ("real", "imag"):
            assert same(getattr(eager, part), getattr(compiled, part))


def test_running_sums_start_at_zero():
    for got in both(lax.cumsum, np.array([-0.0, -0.0, 1, -1])):
        assert same(got, [0.0, 0.0, 1.0, 0.0])


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumlogsumexp", "reduce_sum", "reduce_prod"])
def test_16_bit_floats_round_once(name, dtype):
    dtype = hnp.dtype(dtype)
    rows = np.random.default_rng(2).uniform(0.9, 1.12, (3, 700)).astype(dtype)
    f = getattr(lax, name)
    exact = {"cumsum": np.cumsum, "cumprod": np.cumprod, "reduce_sum": np.sum, "reduce_prod": np.prod}.get(
        name, np.logaddexp.accumulate)(rows.astype(np.float64), axis=1)
    for got in both(lambda x: f(x, 1) if name.startswith("cum") else f(x, (1,)), rows):
        np.testing.assert_allclose(got.astype(np.float64), exact, rtol=1.01 * float(hnp.finfo(dtype).eps) / 2)


def test_a_running_sum_of_16_bits_returns_from_infinity():
    top = float(hnp.finfo("float16").max)
    x = np.array([top, top, -top, -top, 1], "float16")
    for got in both(lax.cumsum, x):
        assert same(got, [top, np.inf, top, 0, 1])


TIES = ([2, 2], [1, 2, 2], [2, 2, 2, 1], [3, 1, 2, 3], [0, -0.0, 0], [1, 1, 1, 1])


def shares(f, x):
    """The gradient of ``f``, eager and compiled, which must be equal."""
    eager, compiled = np.asarray(hx.grad(f)(x)), np.asarray(hx.jit(hx.grad(f))(x))
    np.testing.assert_array_equal(eager, compiled)
    return eager


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", TIES, ids=str)
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_derivative_of_an_extreme_is_shared_equally_by_its_ties(name, row, dtype):
    x = np.array(row, dtype)
    tied = x == getattr(np, name)(x)
    expected = tied / tied.sum()
    np.testing.assert_allclose(shares(lambda x: getattr(lax, f"reduce_{name}")(x, (0,)), x), expected, rtol=1e-6)
    np.testing.assert_allclose(shares(getattr(hnp, name), x), expected, rtol=1e-6)
    pair = shares(lambda x: getattr(lax, name)(x, x[0]).sum(), x)
    chosen = getattr(np, f"{name}imum")(x, x[0])
    by_hand = np.where(x == x[0], 0.5, x == chosen)
    by_hand[0] += np.where(x == x[0], 0.5, x[0] == chosen).sum()
    np.testing.assert_allclose(pair, by_hand)


@pytest.mark.each_choice
@pytest.mark.parametrize("row", TIES, ids=str)
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_derivative_of_a_running_extreme_belongs_to_its_ties(name, row):
    x = np.array(row, "float64")
    for k in range(len(x)):
        tied = (x == getattr(np, name)(x[: k + 1])) & (np.arange(len(x)) <= k)
        share = shares(lambda x: getattr(lax, f"cum{name}")(x)[k], x)
        assert (share[~tied] == 0).all() and (share[tied] > 0).all()
        assert share.sum() == 1


@pytest.mark.parametrize("row", TIES, ids=str)
def test_sorting_moves_tangents_with_elements_and_equal_ones_keep_their_order(row):
    x = np.array(row, "float32")
    order = np.argsort(x, kind="stable")
    for k in range(len(x)):
        np.testing.assert_array_equal(shares(lambda x: lax.sort(x)[k], x), np.arange(len(x)) == order[k])
    best = np.argsort(-x, kind="stable")
    distinct = np.where(x == 0, 0.0, x).astype("float32")  # top_k has -0 below 0
    np.testing.assert_array_equal(shares(lambda x: lax.top_k(x, 2)[0][1], distinct), np.arange(len(x)) == best[1])


@pytest.mark.parametrize("row", TIES, ids=str)
def test_indices_of_extremes_are_those_of_the_first(row):
    x = np.array(row, "float32")
    for got in both(lambda x: lax.argmax(x, 0, "int32"), x):
        assert got == np.argmax(x)
    for got in both(lambda x: lax.argmin(x, 0, "int32"), x):
        assert got == np.argmin(x)


@pytest.mark.parametrize("row", [*TIES, [1, 4, 2, 3, 9]], ids=str)
def test_the_derivative_of_a_median_is_shared_by_the_elements_in_the_middle(row):
    x = np.array(row, "float64")
    order, n = np.argsort(x, kind="stable"), len(row)
    expected = np.zeros(n)
    for k in {(n - 1) // 2, n // 2}:
        expected[order[k]] += 1 / (1 + (n % 2 == 0))
    np.testing.assert_allclose(shares(hnp.median, x), expected)
