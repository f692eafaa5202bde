"""The incomplete gamma functions, zeta and polygamma against mpmath and SciPy, eager and compiled; second derivatives
at ties.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.conversion import convert
from handlax.effects.operations.special import incomplete_beta, incomplete_gamma
from handlax.effects.operations.special.special_functions import IN_NUMPY

pytestmark = pytest.mark.optimised

SHAPES = (0.01, 0.3, 1.0, 5.0, 9.9, 10.0, 50.0, 99.0, 101.0, 1e3, 3e5, 1e7)
RATIOS = (0.0, 0.5, 0.9, 1.0, 1.001, 1.1, 1.29, 1.31, 2.0, 30.0)
TINY = (1e-30, 1e-20, 1e-10, 1e-4, 0.01, 0.3, 0.5, 0.99)  # shape parameters
WAYS = {"eager": lambda f: f, "compiled": hx.jit}


def pairs(shapes, ratios, dtype):
    """Shape parameters and samples, these also within a few standard deviations of their mean."""
    points = [(a, a * r) for a in shapes for r in ratios]
    points += [(a, max(0.0, a + k * np.sqrt(a))) for a in shapes for k in (-4, -1, 1, 4)]
    return np.array(points, dtype).T


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("float64", 1e-12)])
def test_incomplete_gamma_functions_of_every_shape_parameter(dtype, rtol, way):
    a, x = pairs(SHAPES, RATIOS, dtype)
    sensitivity = 1 + np.abs(x.astype(float) - a)  # by how many ulps one ulp of x changes the result
    for f, oracle in ((lax.igamma, scipy.special.gammainc), (lax.igammac, scipy.special.gammaincc)):
        wanted = oracle(a.astype(float), x.astype(float))
        error = np.abs(np.asarray(WAYS[way](f)(a, x)) - wanted)
        bound = rtol * wanted + sensitivity * np.finfo(dtype).eps * wanted + 20 * np.finfo(dtype).eps * (wanted > 1e-3)
        assert (error <= bound + 1e-30).all(), [*zip(a[error > bound], x[error > bound], error[error > bound])][:5]


def slopes_by_shape(a, x):
    """dP/da, by a difference of 20 digits of the smaller one of P and Q, and dx/da at constant P."""
    with mp.workdps(50):
        a, x = mp.mpf(float(a)), mp.mpf(float(x))
        h = a * mp.mpf(10) ** -20

        def part(t):
            return mp.gammainc(t, 0, x, regularized=True) if x < a else -mp.gammainc(t, x, regularized=True)

        slope = (part(a + h) - part(a - h)) / (2 * h)
        return slope, -slope / mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def assert_slopes(shapes, ratios, dtype, way):
    a, x = pairs(shapes, ratios, dtype)
    a, x = a[x > 0], x[x > 0]
    wanted, wanted_sample = (np.array(row, float) for row in zip(*map(slopes_by_shape, a, x)))
    large, slopes = np.abs(wanted) > 1e-6, lambda a, x: (lax.igamma_grad_a(a, x), lax.random_gamma_grad(a, x))
    grad, sample = map(np.asarray, WAYS[way](slopes)(a, x))
    np.testing.assert_allclose(grad[large], wanted[large], rtol=RTOL[dtype])
    np.testing.assert_allclose(sample[large], wanted_sample[large], rtol=RTOL[dtype])


RTOL = {"float32": 5e-4, "float64": 5e-12}


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", RTOL)
def test_derivatives_by_the_shape_parameter(dtype, way):
    assert_slopes((0.3, 9.9, 150.0), (0.5, 1.1), dtype, way)


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", RTOL)
def test_derivatives_by_every_shape_parameter(dtype, way):
    assert_slopes(SHAPES[:10], RATIOS[1:], dtype, way)


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-5), ("float64", 1e-12), ("float16", 1e-3)])
def test_upper_part_is_exact_where_the_shape_parameter_is_next_to_zero(dtype, rtol, way):
    a, x = (v.ravel().astype(dtype) for v in np.meshgrid(TINY, [1e-30, 1e-3, 0.3, 1.0, 1.01, 1.5, 2.0, 5.0, 30.0]))
    with mp.workdps(40):
        wanted = [float(mp.gammainc(mp.mpf(float(s)), mp.mpf(float(y)), regularized=True)) for s, y in zip(a, x)]
    np.testing.assert_allclose(np.asarray(WAYS[way](lax.igammac)(a, x)), wanted, rtol=rtol, atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("way", WAYS)
def test_incomplete_gamma_functions_at_the_ends_of_their_domains(way):
    inf, nan = np.inf, np.nan
    a = np.array([1.0, 1.0, 0.0, 0.0, -1.0, 2.0, inf, inf, nan, 1.0, 1e30, 1e-30])
    x = np.array([0.0, inf, 1.0, 0.0, 1.0, -1.0, 1.0, inf, 1.0, nan, 1e-30, 1e30])
    wanted = [0.0, 1.0, 1.0, nan, nan, nan, 0.0, nan, nan, nan, 0.0, 1.0]
    lower, upper = (np.asarray(WAYS[way](f)(a, x)) for f in (lax.igamma, lax.igammac))
    np.testing.assert_array_equal(lower, wanted)
    np.testing.assert_array_equal(upper, 1 - np.array(wanted))


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 80), ("float64", 130)])
def test_expansions_end_after_few_terms(dtype, limit):
    a, x = pairs(SHAPES, (*RATIOS, 1e-3, 1e3), dtype)
    for expansion in (incomplete_gamma.VALUES, incomplete_gamma.SLOPES):
        assert expansion.last_state(IN_NUMPY, a, x)[0].max() < limit
    b, p = a[::-1].copy(), np.linspace(0, 1, len(a)).astype(dtype)
    assert incomplete_beta.FRACTION.last_state(IN_NUMPY, np.minimum(a, 1e3), np.minimum(b, 1e3), p)[0].max() < limit


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-5), ("float64", 1e-11)])
def test_incomplete_beta_function(dtype, rtol, way):
    shapes, p = (0.01, 0.5, 1.0, 3.0, 40.0, 500.0), (0.0, 1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0)
    a, b, x = np.array([(a, b, x) for a in shapes for b in shapes for x in p], dtype).T
    wanted = scipy.special.betainc(a.astype(float), b.astype(float), x.astype(float))
    got = np.asarray(WAYS[way](lax.betainc)(a, b, x))
    assert (np.abs(got - wanted) <= rtol * wanted + 30 * np.finfo(dtype).eps).all()


def assert_beta(shapes, p, dtype, way):
    a, b, x = np.array([(a, b, x) for a in shapes for b in shapes for x in p], dtype).T
    with mp.workdps(40):
        wanted = np.array([
            float(mp.betainc(*[mp.mpf(float(v)) for v in (s, t)], 0, mp.mpf(float(y)), regularized=True))
            for s, t, y in zip(a, b, x)
        ])
    slope = hx.vmap(hx.grad(lax.betainc, 2))
    got, slopes = map(np.asarray, WAYS[way](lambda *xs: (lax.betainc(*xs), slope(*xs)))(a, b, x))
    assert ((got >= 0) & (got <= 1)).all()
    assert (np.abs(got - wanted) <= 30 * np.finfo(dtype).eps).all()
    if way == "eager":
        large = wanted > np.finfo(dtype).tiny
        np.testing.assert_allclose(got[large], wanted[large], rtol=max(np.finfo(dtype).eps, 1e-12))
    assert np.isfinite(slopes).all()


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_incomplete_beta_function_of_tiny_and_large_parameters(dtype, way):
    assert_beta((1e-20, 1e-3, 0.01, 1.0, 100.0), (1e-10, 0.3, 0.7, 0.999), dtype, way)


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_incomplete_beta_function_of_all_sizes_of_parameters(dtype, way):
    shapes = (1e-30, 1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.5, 9.9, 10.0, 100.0, 1e3)
    assert_beta(shapes, (1e-30, 1e-10, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1 - 2**-20), dtype, way)


@pytest.mark.parametrize("way", WAYS)
def test_zeta_of_a_large_array(way):
    q = np.linspace(0.1, 30.0, 10_001)
    for x in (q, np.where(q == q[7], -1.5, q)):
        got = np.asarray(WAYS[way](lax.zeta)(np.full_like(x, 3.0), x))
        wanted = scipy.special.zeta(3.0, np.where(x < 0, 0.5, x)) + np.where(x < 0, -(1.5**-3) - 0.5**-3, 0.0)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_zeta_at_its_pole_is_infinite(way):
    q = np.float32([-1.5, 0.0, 2.0, np.inf, np.nan])
    assert WAYS[way](lax.zeta)(np.ones_like(q), q).tolist() == [np.inf] * 5


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_polygamma_of_negative_numbers_by_the_sum_over_natural_numbers(m, dtype, rtol, way):
    x = np.array([-0.3, -1.7, -9.52, -20.25, -250.375, -1e4 - 0.125], dtype)
    terms = (np.longdouble(x.astype(float))[:, None] + np.arange(20_500)) ** -(m + 1.0)
    tail = scipy.special.polygamma(m, x.astype(float) + 20_500)
    factorial = (-1) ** (m + 1) * scipy.special.factorial(m)
    wanted = (factorial * terms.sum(1)).astype(float) + tail
    got = np.asarray(WAYS[way](lax.polygamma)(np.full_like(x, m), x))
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)
    zeta = np.asarray(WAYS[way](lax.zeta)(np.full_like(x, m + 1), x))
    np.testing.assert_allclose(zeta * factorial, wanted, rtol=rtol, atol=rtol)


def exact_polygamma(m, x):
    """The sum over n of (x + n)^-(m + 1), with Euler's and Maclaurin's rest; mpmath's zeta has 10 digits near 300."""
    s, x = m + 1, mp.mpf(float(x))
    first = int(max(0, -2 * mp.floor(x))) + 40
    a, total = x + first, mp.fsum((x + n) ** -s for n in range(first))
    rest, factor = 1 / mp.mpf(s - 1) + 1 / (2 * a), s / a**2
    for j in range(1, 40):
        rest += mp.bernoulli(2 * j) / mp.factorial(2 * j) * factor
        factor *= (s + 2 * j - 1) * (s + 2 * j) / a**2
    return (-1) ** s * mp.factorial(m) * (total + a ** (1 - s) * rest)


def assert_polygamma(orders, points, dtype, way):
    info = np.finfo(dtype)
    m, x = (v.ravel().astype(dtype) for v in np.meshgrid(orders, points))
    for k, v, y in zip(m, x, np.asarray(WAYS[way](lax.polygamma)(m, x)).astype(float)):
        with mp.workdps(200):  # even orders cancel next to half-integers
            wanted = exact_polygamma(int(k), v)
            if abs(wanted) > float(info.max):
                assert y == float(mp.sign(wanted) * mp.inf), (k, v)
            else:
                error = abs(mp.mpf(y) - wanted) - 2 * float(info.tiny)
                assert error <= 8 * float(info.eps) * abs(wanted), (k, v, y, mp.nstr(wanted, 20))


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma_in_range_though_factorial_and_zeta_are_not(dtype, way):
    assert_polygamma((10, 30, 100, 1000), (0.9, 20.0, 37.5, 368.0, 1e4, -1.7), dtype, way)
    shapes, wanted = ((), (1,), (2, 3)), float(exact_polygamma(100, 1e4))
    operands = [[np.full(shape, v, dtype) for shape in shapes] for v in (100.0, 1e4)]
    for shape, y in zip(shapes, WAYS[way](lambda ms, xs: list(map(lax.polygamma, ms, xs)))(*operands), strict=True):
        assert y.shape == shape
        np.testing.assert_allclose(y, np.full(shape, wanted, dtype), rtol=1e-6)


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma_of_all_orders(dtype, way):
    positive = (1e-30, 1e-3, 0.3, 0.5, 1.0, 1.5, 3.0, 9.0, 40.0, 75.0, 150.0, 3e3, 1e6, 1e30)
    orders = (1, 2, 3, 5, 8, 9, 10, 19, 33, 34, 35, 60, 99, 170, 171, 400, 3001)
    assert_polygamma(orders, (*positive, -0.4375, -1e-9, -9.52, -150.25), dtype, way)


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma_of_even_order_at_half_integers_keeps_what_remains_of_two_equal_sums(dtype, way):
    assert_polygamma((2, 4, 19, 20, 22, 40, 50, 80), (-0.5, -1.5, -2.5, -10.5, -100.5), dtype, way)


LARGE = (170.0, 3e4, 2.0**24, 1e8, 1e10, 1e13, 1e16, 1e20, 1e30, 1e38)


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma_of_large_orders_is_zero_or_infinite_with_its_sign(dtype, way):
    """But for a narrow band, where ``b`` is near ``s / e``, as by the logarithm of the first term, s! b^-s."""
    points = np.array([1e-37, 1e-30, 0.3, 0.5, 3.0, 1e3, 1e5, 1e9, 1e20, 1e38, -0.5, -1.25, -10.5], dtype)
    m, x = (v.ravel() for v in np.meshgrid(np.array(LARGE, dtype), points))
    for n, v, y in zip(m, x, np.asarray(WAYS[way](lax.polygamma)(m, x)).astype(float)):
        b = 1 - v if v in (-0.5, -10.5) else 0.25 if v < 0 else v
        size = mp.loggamma(mp.mpf(float(n)) + 1) - (mp.mpf(float(n)) + 1) * mp.log(float(b))
        assert np.signbit(y) == (v != -1.25), (n, v, y)
        if abs(size) > 1000:
            assert abs(y) == (np.inf if size > 0 else 0), (n, v, y)
        else:
            assert not np.isnan(y), (n, v)


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma_where_the_powers_balance(dtype, way):
    """At ``b`` next to ``s / e`` for any order; one ulp of ``b`` there is ``s`` ulps of the result."""
    for n in LARGE[1:-1]:
        b = np.array(n, dtype) / np.array(np.e, dtype) * (1 + np.arange(-3, 4) * np.finfo(dtype).eps).astype(dtype)
        y = np.asarray(WAYS[way](lax.polygamma)(np.full_like(b, n), b)).astype(float)
        for v, found in zip(b, y):
            with mp.workdps(60):
                s = mp.mpf(float(np.array(n, dtype))) + 1
                size = mp.loggamma(s) - s * mp.log(float(v)) - mp.log(1 - mp.exp(-s / float(v)))
                wanted = -mp.exp(size)
            assert found == pytest.approx(float(wanted), rel=1e-3, abs=1e-37), (n, v)


@pytest.mark.parametrize("way", WAYS)
def test_polygamma_at_poles_and_infinities(way):
    x = np.array([0.0, -0.0, -1.0, -1e30, np.inf, -np.inf, np.nan])
    inf, nan = np.inf, np.nan
    rows = {0: [-inf, -inf, nan, nan, inf, nan, nan], 1: [inf, inf, inf, inf, 0.0, nan, nan],
            2: [nan, nan, nan, nan, -0.0, nan, nan], 3: [inf, inf, inf, inf, 0.0, nan, nan]}
    for m, wanted in rows.items():
        y = np.asarray(WAYS[way](lax.polygamma)(np.full_like(x, m), x))
        np.testing.assert_array_equal(y, wanted)
        assert np.signbit(y[4]) == np.signbit(wanted[4])
    assert np.isnan(WAYS[way](lax.polygamma)(np.array([-1.0, 0.5]), np.array([1.0, 1.0]))).all()


@pytest.mark.parametrize("way", WAYS)
def test_zeros_keep_their_sign(way):
    x = np.array([0.0, -0.0], np.float32)
    for f in (lax.bessel_i1e, lax.erf_inv, lax.sinh, lax.asinh, lax.expm1):
        np.testing.assert_array_equal(np.signbit(WAYS[way](f)(x)), [False, True])


@pytest.mark.parametrize("way", WAYS)
def test_cumlogsumexp_has_the_second_derivative_of_logsumexp_at_ties(way):
    def last(x):
        return lax.cumlogsumexp(x)[-1]

    for x in (np.zeros(2), np.array([1.0, 1.0, 0.5, 1.0])):
        share = np.exp(x) / np.exp(x).sum()
        wanted = np.diag(share) - np.outer(share, share)
        np.testing.assert_allclose(WAYS[way](hx.hessian(last))(x), wanted, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_betainc_of_nan_and_infinities(way):
    """A NaN is never swallowed; with one parameter infinite, or 0, all of the mass is at an end."""
    nan, inf = np.nan, np.inf
    a = np.array([nan, 1.0, nan, 0.5, inf, 0.5, inf, 0.0])
    b = np.array([1.0, nan, 1.0, 0.5, 0.5, inf, inf, 1.0])
    x = np.array([0.0, 1.0, 0.5, nan, 0.5, 0.5, 0.5, 0.5])
    expected = [nan, nan, nan, nan, 0.0, 1.0, nan, 1.0]
    np.testing.assert_array_equal(WAYS[way](lax.betainc)(a, b, x), expected)


SHAPE_PAIRS = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 3.0), (3.0, 3.0), (0.5, 2.0), (1.5, 1.5), (1.0, 600.0)]


def slopes_of_density(a, b, end):
    """The density of the beta distribution at 0 or 1, and its derivative there."""
    p, q = (a - 1, b - 1) if end == 0 else (b - 1, a - 1)  # x^p (1 - x)^q / B from this end
    scale = 1 / scipy.special.beta(a, b)

    def term(coefficient, power):
        return 0.0 if coefficient == 0 else coefficient * (np.inf if power < 0 else float(power == 0))

    first = term(scale, p)
    second = term(p * scale, p - 1) - (term(q * scale, p) if p >= 0 else 0.0)
    return first, second if end == 0 else -second


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_betainc_at_the_ends(dtype, way):
    first = hx.grad(lax.betainc, 2)
    slopes = WAYS[way](lambda *xs: (first(*xs), hx.grad(first, 2)(*xs)))
    for (a, b), end in itertools.product(SHAPE_PAIRS, (0, 1)):
        found = slopes(*[hnp.asarray(v, dtype) for v in (a, b, end)])
        np.testing.assert_allclose(found, slopes_of_density(a, b, end), rtol=1e-3, err_msg=f"{a, b} at {end}")


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_second_derivatives_of_sinc(dtype, way):
    x = np.array([0.0, 0.25, 0.5, 1.0, 2.5, 10.0, 10.25, 100.0]).astype(hx.numpy.dtype(dtype))
    slope = lambda f: lambda x: hx.jvp(f, (x,), (hx.numpy.ones_like(x),))[1]
    eps = float(hx.numpy.finfo(dtype).eps)
    series = lambda v: mp.sin(mp.pi * v) / (mp.pi * v) if v else mp.mpf(1)
    with mp.workdps(40):
        wanted = [float(mp.diff(series, mp.mpf(float(v)), 2)) if v else -np.pi**2 / 3 for v in x]
    got = np.asarray(WAYS[way](slope(slope(hx.numpy.sinc)))(x)).astype(float)
    np.testing.assert_allclose(got, wanted, rtol=8 * eps, atol=8 * eps)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeta_of_large_exponents_is_its_first_term(dtype, way):
    exponents, bases = (1025.0, 1e4, 1e10, 1e30, np.inf), (0.5, 1.0, 1.001, 1.5, 3.0)
    s, q = (v.ravel().astype(dtype) for v in np.meshgrid(exponents, bases))
    with np.errstate(over="ignore", under="ignore"):
        wanted = (q.astype(np.longdouble) ** -s.astype(np.longdouble)).astype(dtype)
    got = np.asarray(WAYS[way](lax.zeta)(s, q))
    rtol = 4e3 * np.finfo(dtype).eps  # of a power with such exponents
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=np.finfo(dtype).tiny)


@pytest.mark.each_choice
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_of_zeta_by_the_exponent(dtype, way):
    exponents, bases = (1.0 + 2.0**-20, 1.25, 2.5, 7.0, 40.0), (2.0**-6, 0.5, 1.0, 2.5, 30.0, 2.0**15)
    s, q = (v.ravel().astype(dtype) for v in np.meshgrid(exponents, bases))
    slope = WAYS[way](hx.vmap(hx.grad(lax.zeta)))
    with mp.workdps(40), np.errstate(over="ignore", under="ignore"):
        wanted = np.array([float(mp.zeta(mp.mpf(float(a)), mp.mpf(float(b)), 1)) for a, b in zip(s, q)]).astype(dtype)
    np.testing.assert_allclose(slope(s, q), wanted, rtol=20 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)
    ends = np.array([[1, 2], [np.inf, 1], [np.inf, 0.5], [2, np.inf], [1e4, 2], [0.5, 1], [2, -1.5], [2, 0]], dtype)
    expected = [-np.inf, 0, np.inf, 0, 0, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(slope(*ends.T), np.array(expected, dtype))


def test_second_derivatives_of_zeta_by_the_exponent():
    s, q = np.array(2.5), np.array(1.5)
    with mp.workdps(30):
        twice, mixed = mp.zeta(2.5, 1.5, 2), -mp.zeta(3.5, 1.5) - mp.mpf(2.5) * mp.zeta(3.5, 1.5, 1)
    np.testing.assert_allclose(hx.grad(hx.grad(lax.zeta))(s, q), float(twice), rtol=1e-14)
    for first, second in ((0, 1), (1, 0)):
        np.testing.assert_allclose(hx.grad(hx.grad(lax.zeta, first), second)(s, q), float(mixed), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_weak_numbers_of_any_width_are_compiled_whatever_the_defaults_are(dtype):
    x = convert(0.3, np.dtype(dtype), True)
    functions = (lax.lgamma, lax.digamma, lax.erf_inv, lambda x: lax.zeta(1 + x, x))
    with hx.enable_x64(True):
        eager = [f(x) for f in functions]
        for y, z in zip(hx.jit(lambda x: [f(x) for f in functions])(x), eager, strict=True):
            assert y.weak_type and y.dtype == dtype
            np.testing.assert_allclose(y, z, rtol=4 * float(hnp.finfo(dtype).eps))
