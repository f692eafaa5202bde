"""Distributions and statistics against SciPy."""

from __future__ import annotations

import importlib
import inspect
import pickle

import numpy as np
import pytest
import scipy.stats

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.scipy import special, stats

RNG = np.random.default_rng(3)
SIZE = 60
DENSITY, CUMULATIVE = "logpdf pdf", "cdf logcdf sf logsf"
MASS = "logpmf pmf"


def between(low, high):
    return RNG.uniform(low, high, SIZE)


def whole(low, high):
    return RNG.integers(low, high, SIZE).astype("float64")


def counts(low, high):
    """Whole numbers, and some between them, which have no probability."""
    return whole(low, high) + np.where(np.arange(SIZE) % 5, 0.0, 0.5)


# name -> (functions of a value, quantile functions, values, shape parameters, whether there are loc and scale)
CASES = {
    "bernoulli": (MASS, "", counts(-2, 4), [between(0, 1)], "loc"),
    "beta": (f"{DENSITY} {CUMULATIVE}", "", between(-0.5, 1.5), [between(0.5, 4), between(0.5, 4)], "loc scale"),
    "betabinom": (MASS, "", counts(-2, 12), [whole(3, 9), between(0.5, 4), between(0.5, 4)], "loc"),
    "binom": (MASS, "", counts(-2, 12), [whole(3, 9), between(0, 1)], "loc"),
    "cauchy": (f"{DENSITY} {CUMULATIVE}", "ppf isf", between(-50, 50), [], "loc scale"),
    "chi2": (f"{DENSITY} {CUMULATIVE}", "", between(-1, 9), [between(0.5, 9)], "loc scale"),
    "expon": (f"{DENSITY} {CUMULATIVE}", "ppf", between(-1, 9), [], "loc scale"),
    "gamma": (f"{DENSITY} {CUMULATIVE}", "", between(-1, 9), [between(0.5, 9)], "loc scale"),
    "gennorm": (f"{DENSITY} cdf", "", between(-3, 3), [between(0.5, 4)], ""),
    "geom": (MASS, "", counts(-2, 12), [between(0.05, 1)], "loc"),
    "gumbel_l": (f"{DENSITY} {CUMULATIVE}", "ppf", between(-9, 3), [], "loc scale"),
    "gumbel_r": (f"{DENSITY} {CUMULATIVE}", "ppf", between(-3, 9), [], "loc scale"),
    "laplace": (f"{DENSITY} cdf", "", between(-9, 9), [], "loc scale"),
    "logistic": (f"{DENSITY} cdf sf", "ppf isf", between(-40, 40), [], "loc scale"),
    "nbinom": (MASS, "", counts(-2, 12), [between(0.5, 9), between(0.05, 1)], "loc"),
    "norm": (f"{DENSITY} {CUMULATIVE}", "ppf isf", between(-12, 12), [], "loc scale"),
    "pareto": (f"{DENSITY} {CUMULATIVE}", "ppf", between(0.5, 9), [between(0.5, 4)], "loc scale"),
    "poisson": (f"{MASS} cdf", "", counts(-2, 12), [between(0.1, 20)], "loc"),
    "t": (DENSITY, "", between(-9, 9), [between(0.5, 9)], "loc scale"),
    "truncnorm": (f"{DENSITY} {CUMULATIVE}", "", between(-6, 6), [between(-5, -2), between(-1, 5)], "loc scale"),
    "uniform": (f"{DENSITY} cdf", "ppf", between(-0.5, 1.5), [], "loc scale"),
    "vonmises": (DENSITY, "", between(-3, 3), [between(0.1, 9)], ""),
    "wrapcauchy": (DENSITY, "", between(-0.5, 6.5), [between(0.1, 0.9)], ""),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_a_distribution(name):
    of_values, of_probabilities, z, shapes, moved = CASES[name]
    module, reference = getattr(stats, name), getattr(scipy.stats, name)
    loc = [np.full(SIZE, 2.0)] if "loc" in moved else []
    scale = [between(0.5, 2)] if "scale" in moved else []
    x = z * (scale[0] if scale else 1) + (loc[0] if loc else 0)
    q = np.append(between(-0.1, 1.1)[3:], [0.0, 0.5, 1.0])
    for kind in of_values.split() + of_probabilities.split():
        first = x if kind in of_values.split() else q
        with np.errstate(all="ignore"):
            expected = getattr(reference, kind)(first, *shapes, *loc, *scale)
        found = getattr(module, kind)(first, *shapes, *loc, *scale)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300 if "log" in kind else 1e-15, err_msg=kind)
        words = [*dict.fromkeys(inspect.signature(getattr(module, kind)).parameters)]
        by_name = getattr(module, kind)(first, **dict(zip(words[1:], [*shapes, *loc, *scale])))
        np.testing.assert_array_equal(by_name, found)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_finite_outside_of_the_support_and_those_of_scipy_s_logarithms_inside(name):
    kinds, _, x, shapes, _ = CASES[name]
    module, reference = getattr(stats, name), getattr(scipy.stats, name)
    kind = kinds.split()[0]
    places = range(len(shapes) + (kind == "logpdf"))
    arguments = [x, *shapes] if kind == "logpdf" else [*shapes]
    call = (lambda f, xs: f(*xs)) if kind == "logpdf" else (lambda f, xs: f(x, *xs))
    if name in ("binom", "betabinom"):  # n is a number of trials
        places = range(1, len(shapes))
    for place in places:
        y, slope = hx.jvp(lambda v: call(getattr(module, kind), [*arguments[:place], v, *arguments[place + 1 :]]),
                          (arguments[place],), (np.ones(SIZE),))
        assert np.isfinite(slope).all()
        step = 1e-6
        ends = [call(getattr(reference, kind), [*arguments[:place], arguments[place] + h, *arguments[place + 1 :]])
                for h in (-step, step)]
        inside = np.isfinite(y) & np.isfinite(ends[0]) & np.isfinite(ends[1])
        quotient = (ends[1][inside] - ends[0][inside]) / (2 * step)
        np.testing.assert_allclose(np.asarray(slope)[inside], quotient, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("name", [name for name, (_, kinds, *_) in CASES.items() if kinds])
def test_the_slope_of_a_quantile_is_nan_where_there_is_none(name):
    for kind in CASES[name][1].split():
        f = getattr(getattr(stats, name), kind)
        shapes = [3.0] * len(CASES[name][3])
        for slope in (hx.grad(f), hx.jit(hx.grad(f)), lambda q, *s: hx.jvp(lambda q: f(q, *s), (q,), (1.0,))[1]):
            assert np.isnan([slope(q, *shapes) for q in (-0.3, 1.3)]).all(), kind
            assert np.isfinite(slope(0.4, *shapes)), kind


def test_a_distribution_is_a_module():
    assert importlib.import_module("handlax.scipy.stats.norm") is stats.norm and inspect.ismodule(stats.norm)
    assert importlib.util.find_spec("handlax.scipy.stats.norm").name == "handlax.scipy.stats.norm"
    assert pickle.loads(pickle.dumps(stats.norm.logpdf)) is stats.norm.logpdf
    assert str(inspect.signature(stats.beta.logpdf)) == "(x, a, b, loc=0, scale=1)"
    assert str(inspect.signature(stats.bernoulli.cdf)) == "(k, p)"
    with pytest.raises(TypeError):
        stats.norm.logpdf(1.0, mean=0.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_dtypes_of_densities(dtype):
    x = hnp.arange(4).astype(dtype)
    assert stats.norm.logpdf(x).dtype == (dtype if "float" in dtype else "float32")
    assert stats.norm.logpdf(x, hnp.float32(0)).dtype == hnp.promote_types(dtype, "float32")
    assert stats.gamma.sf(x, 2.0).dtype == (dtype if "float" in dtype else "float32")


def test_bernoulli_and_poisson():
    k, p, q = np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), np.array([0.3, 0.0, 1.0]), np.linspace(-0.5, 1.5, 9)
    np.testing.assert_allclose(stats.bernoulli.cdf(k[:, None], p), scipy.stats.bernoulli.cdf(k[:, None], p))
    assert np.isnan(stats.bernoulli.cdf(1.0, 2.0))
    np.testing.assert_array_equal(stats.bernoulli.ppf(q[:, None], 0.3)[3:6], [[0], [0], [1]])
    assert np.isnan(stats.bernoulli.ppf(q[[0, -1]], 0.3)).all()
    mu, k = np.array([0.01, 0.5, 2, 9, 50, 99, 101, 500]), np.arange(1500)
    logs = scipy.stats.poisson.logpmf(k[:, None], mu)
    np.testing.assert_allclose(stats.poisson.entropy(mu), -(logs * np.exp(logs)).sum(0), rtol=1e-8)
    found = stats.poisson.entropy(mu.astype("float32"))
    np.testing.assert_allclose(found, stats.poisson.entropy(mu), rtol=1e-4)  # no difference of large sums
    assert np.isnan(stats.poisson.entropy(-1.0)) and stats.poisson.entropy(0.0) == 0
    np.testing.assert_allclose(stats.poisson.entropy(mu=2.0, loc=3), scipy.stats.poisson.entropy(2.0), rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if name != "uniform"])
def test_parameters_outside_of_their_domain_give_nan(name):
    kinds, more, x, shapes, moved = CASES[name]
    wrong = [-np.ones(SIZE) for _ in shapes]
    if name == "truncnorm":
        wrong = [np.ones(SIZE), -np.ones(SIZE)]
    scale = ["scale"] if "scale" in moved else []
    for kind in [*kinds.split(), *more.split()]:
        f = getattr(getattr(stats, name), kind)
        first = between(0.1, 0.9) if kind in more.split() else x
        if shapes:
            assert np.isnan(f(first, *wrong)).all(), kind
        for word in scale:
            assert np.isnan(f(first, *shapes, **{word: -1.0})).all(), kind


def test_strict_promotion_is_for_arguments_not_for_formulas():
    x, n, z = hnp.asarray([0.5, 1.5], "float32"), hnp.asarray([1, 1]), hnp.asarray([0.5, 1.5j], "complex64")
    with hx.numpy_dtype_promotion("strict"):
        found = [stats.beta.logpdf(x, x, x), stats.norm.cdf(x), stats.sem(n), stats.multinomial.logpmf(n, 2, x / 2)]
        found += [f(z) for f in (special.wofz, special.gamma)] + [f(x, x) for f in (special.betaln, special.poch)]
        found += [special.comb(x, x), hx.grad(special.erfcx)(x[0])]
        assert not any(np.isnan(y).any() for y in found)
        with pytest.raises(errors.DTypeMismatch):
            stats.norm.cdf(x, hnp.asarray(0.0, "float64"))


def test_dirichlet():
    alpha = between(0.5, 3)[:4]
    x = RNG.dirichlet(alpha, 5).T
    expected = [scipy.stats.dirichlet.logpdf(column, alpha) for column in x.T]
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), expected, rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:-1], alpha), expected, rtol=1e-11)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:, 0], alpha), np.exp(expected[0]), rtol=1e-12)
    assert stats.dirichlet.logpdf(x * 1.1, alpha)[0] == -np.inf
    with pytest.raises(errors.ShapeMismatch, match="x must have 4 rows"):
        stats.dirichlet.logpdf(x[:2], alpha)


def test_multinomial():
    n, p = 9, RNG.dirichlet(np.ones(4))
    x = RNG.multinomial(n, p, 5)
    np.testing.assert_allclose(stats.multinomial.logpmf(x, n, p), scipy.stats.multinomial.logpmf(x, n, p), rtol=1e-12)
    np.testing.assert_allclose(stats.multinomial.pmf(x[0], n, p), scipy.stats.multinomial.pmf(x[0], n, p), rtol=1e-12)
    assert stats.multinomial.pmf(x[0], n + 1, p) == 0


@pytest.mark.parametrize("batch", [(), (5,), (2, 5)])
def test_multivariate_normal(batch):
    root = RNG.normal(size=(3, 3))
    x, mean, cov = RNG.normal(size=(*batch, 3)), RNG.normal(size=3), root @ root.T + np.eye(3)
    expected = scipy.stats.multivariate_normal(mean, cov).logpdf(x)
    f = stats.multivariate_normal.logpdf
    np.testing.assert_allclose(f(x, mean, cov), expected, rtol=1e-12)
    np.testing.assert_allclose(f(x, mean, np.broadcast_to(cov, (*batch, 3, 3))), expected, rtol=1e-12)
    np.testing.assert_allclose(stats.multivariate_normal.pdf(x, mean, cov), np.exp(expected), rtol=1e-12)
    same = scipy.stats.multivariate_normal(mean, 2 * np.eye(3)).logpdf(x)
    np.testing.assert_allclose(f(x, mean, 2.0), same, rtol=1e-6)
    np.testing.assert_allclose(f(x, 0.5, 2.0), scipy.stats.norm.logpdf(x, 0.5, np.sqrt(2)), rtol=1e-12)
    with pytest.raises(errors.ShapeMismatch, match="cov must be 3 by 3"):
        f(x, mean, cov[:2])


@pytest.mark.parametrize("shape", [(40,), (3, 40)])
@pytest.mark.parametrize("method", [None, "silverman", 0.5, lambda kde: kde.neff ** -0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_density_estimates(shape, method, weighted):
    data, points = RNG.normal(size=shape), RNG.normal(size=(*shape[:-1], 7))
    weights = between(0.5, 2)[:40] if weighted else None
    ours, theirs = (module.gaussian_kde(data, method, weights) for module in (stats, scipy.stats))
    np.testing.assert_allclose(ours(points), theirs(points), rtol=1e-10)
    np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-10)
    np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs), rtol=1e-10)
    mean, cov = np.ones(ours.d), 2 * np.eye(ours.d)
    np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), rtol=1e-10)
    if ours.d == 1:
        box = ours.integrate_box_1d(-0.5, np.inf)
        np.testing.assert_allclose(box, theirs.integrate_box_1d(-0.5, np.inf), rtol=1e-10)


def test_kernel_density_estimates_are_trees_and_samples_follow_them():
    data = RNG.normal(size=(2, 30))
    kde = stats.gaussian_kde(data)
    leaves, structure = hx.tree.flatten(kde)
    again = hx.tree.unflatten(structure, leaves)
    point = np.zeros((2, 1))
    np.testing.assert_allclose(hx.jit(lambda kde: kde.pdf(point))(again), kde.pdf(point), rtol=1e-12)
    samples = kde.resample(hx.random.key(0), (20_000,))
    assert samples.shape == (2, 20_000) and kde.resample(hx.random.key(0)).shape == (2,)
    np.testing.assert_allclose(hnp.cov(samples), np.cov(data, bias=True) + kde.covariance, rtol=0.1, atol=0.05)
    for mistake in (lambda: stats.gaussian_kde([1.0]), lambda: kde(np.zeros((3, 4))), lambda: kde.set_bandwidth(),
                    lambda: stats.gaussian_kde(data, "other"), lambda: kde.integrate_box_1d(0, 1)):
        with pytest.raises(errors.HandlaxError):
            mistake()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_statistics_of_samples(axis, dtype):
    x = RNG.integers(0, 4, (5, 6)).astype(dtype)
    if dtype == "float32":
        x[1, 2] = np.nan
    for keepdims in (False, True):
        found, expected = (module.mode(x, axis, keepdims=keepdims) for module in (stats, scipy.stats))
        np.testing.assert_array_equal(found.mode, expected.mode)
        np.testing.assert_array_equal(found.count, expected.count)
    for method in ("average", "min", "max", "dense", "ordinal"):
        found = stats.rankdata(x, method, axis=axis)
        np.testing.assert_array_equal(found, scipy.stats.rankdata(x, method, axis=axis))
    for policy in ("propagate", "omit"):
        for ddof in (0, 1):
            found = stats.sem(x, axis, ddof, policy)
            np.testing.assert_allclose(found, scipy.stats.sem(x, axis, ddof, policy), rtol=1e-5)
    assert stats.sem(x, 0, keepdims=True).shape == (1, 6)


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_ranks_are_floats_and_counts_are_integers_of_the_default_size(dtype, bits):
    x = np.array([3, 1, 3, 2], dtype)
    with hx.enable_x64(bits):
        for method in ("average", "min", "max", "dense", "ordinal"):
            assert stats.rankdata(x, method).dtype == ("float64" if bits else "float32")
        assert stats.mode(x).count.dtype == ("int64" if bits else "int32")


@pytest.mark.parametrize(("name", "kinds", "parameters"), [
    ("bernoulli", "pmf logpmf cdf", (0.3,)), ("geom", "pmf logpmf", (0.3,)), ("nbinom", "pmf logpmf", (4, 0.3)),
    ("poisson", "cdf", (2.0,)), ("betabinom", "pmf", (4, 1.0, 2.0)), ("beta", "pdf cdf", (2.0, 3.0)),
])
def test_arrays_of_integers_among_python_numbers_give_strong_types(name, kinds, parameters):
    for kind in kinds.split():
        f = getattr(getattr(stats, name), kind)
        assert not f(np.array([0, 1]), *parameters).weak_type and f(1, *parameters).weak_type


def test_statistics_of_nothing_and_of_other_policies():
    assert np.isnan(stats.mode(np.zeros((0, 2))).mode).all() and stats.mode(np.zeros((0, 2))).count.tolist() == [0, 0]
    assert stats.rankdata(np.zeros(0)).shape == (0,)
    for f in (stats.mode, stats.rankdata, stats.sem):
        with pytest.raises(errors.BadArgument, match="nan_policy must be"):
            f([1.0, 2.0], nan_policy="raise")


def test_a_normal_variable_between_infinities_is_not_truncated():
    z = np.array([-np.inf, -1e300, -1.0, 0.0, 1e300, np.inf])
    for name in ("cdf", "sf", "logcdf", "logsf"):
        found = getattr(stats.truncnorm, name)(z, -np.inf, np.inf)
        np.testing.assert_allclose(found, getattr(scipy.stats.truncnorm, name)(z, -np.inf, np.inf), rtol=1e-12)
        for a, b in ((5.0, 6.0), (-np.inf, 0.0), (-6.0, -5.0), (-1.0, 2.0)):
            assert np.isnan(getattr(stats.truncnorm, name)(np.nan, a, b)), name


@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_the_error_of_the_mean_keeps_all_axes(policy):
    x = np.arange(12.0).reshape(3, 4) ** 2
    found = stats.sem(x, axis=None, nan_policy=policy, keepdims=True)
    np.testing.assert_allclose(found, scipy.stats.sem(x, axis=None, keepdims=True))


@pytest.mark.each_choice
@pytest.mark.parametrize(("name", "x", "a", "b"), [
    ("logcdf", 5.5, 0.0, np.inf), ("logcdf", 10.1, -3.0, 40.0), ("logsf", -10.5, -np.inf, 0.0),
    ("logsf", -39.5, -40.0, -39.0), ("logcdf", 0.1, -1.0, 1.0), ("logsf", 5.0, 5.0, 6.0), ("logsf", 6.0, 5.0, 6.0),
])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_truncated_tail_next_to_certainty_is_not_lost(name, x, a, b, dtype):
    f = getattr(stats.truncnorm, name)
    x, a, b = (np.asarray(number, dtype) for number in (x, a, b))
    expected = getattr(scipy.stats.truncnorm, name)(*[y.astype(float) for y in (x, a, b)])
    np.testing.assert_allclose(f(x, a, b), expected, rtol=1e-4 if dtype == "float32" else 1e-12)
    assert np.isfinite(hx.grad(hx.grad(f))(x, a, b))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if hasattr(getattr(scipy.stats, name), "pdf")])
def test_far_tails_and_values_that_are_no_numbers(name):
    names, _, _, parameters, _ = CASES[name]
    shapes = [np.float32(p[0]) for p in parameters]
    for x in np.asarray([1e20, -1e20, 1e30, np.inf, -np.inf, np.nan], np.float32):
        for kind in names.split():
            with np.errstate(all="ignore"):
                want = getattr(getattr(scipy.stats, name), kind)(float(x), *[float(p) for p in shapes])
                want = np.float32(want)
            got = float(getattr(getattr(stats, name), kind)(x, *shapes))
            if kind.startswith("log") and want == -np.inf and np.isfinite(x):
                assert got < -1e18  # SciPy takes the logarithm of what is rounded to 0
                continue
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-30, err_msg=f"{kind}({x})")


def test_bernoulli_of_no_number_is_none():
    assert np.isnan(stats.bernoulli.cdf(np.nan, 0.5)) and stats.bernoulli.cdf(0, 0.25) == 0.75
    assert stats.bernoulli.cdf(np.inf, 0.25) == 1 and stats.bernoulli.cdf(-np.inf, 0.25) == 0


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_tails_of_gumbel_s_distribution_and_the_end_of_a_concentration(way):
    z = np.array([-104.0, -100.0, -88.0, 3.0, 90.0], "float32")
    for f in (stats.gumbel_l.logcdf, lambda z: stats.gumbel_r.logsf(-z)):
        expected = scipy.stats.gumbel_l.logcdf(z.astype("float64"))
        np.testing.assert_allclose(way(f)(z), expected, rtol=1e-6)
        np.testing.assert_allclose(way(hx.vmap(hx.grad(f)))(z)[np.array([0, 1, 2, 4])], [1, 1, 1, 0], rtol=1e-6)
    slope = hx.grad(stats.vonmises.logpdf, 1)
    np.testing.assert_allclose(way(slope)(1.0, 0.0), np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(way(hx.grad(slope, 1))(1.0, 0.0), -0.5, rtol=1e-6)  # -Var(cos x), x uniform
    assert [way(hx.grad(stats.cauchy.ppf))(q) for q in (0.0, 1e-20, 1.0)] == [np.inf] * 3
