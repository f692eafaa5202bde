"""Reductions, statistics and differences give NumPy's values over all axes."""

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax.errors import DTypeMismatch

AXES = [None, 0, 1, -1, (0, 2), (0, 1, 2), ()]
FOLDS = ["sum", "prod", "mean", "max", "min", "any", "all", "var", "std"]


def close(found, wanted, rtol=1e-12):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=1e-12)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_folds_are_those_of_numpy(name, axis, keepdims, rng):
    x = rng.normal(size=(4, 5, 3))
    found = getattr(hnp, name)(x, axis=axis, keepdims=keepdims)
    wanted = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    close(found, wanted)
    assert found.shape == np.shape(wanted)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "any"])
def test_elements_that_take_no_part_leave_no_trace(name, rng):
    x, mask = rng.normal(size=(4, 5)), rng.random((4, 5)) > 0.3
    extra = {"initial": 0.5} if name in ("max", "min", "sum", "prod") else {}
    close(getattr(hnp, name)(x, axis=1, where=mask, **extra), getattr(np, name)(x, axis=1, where=mask, **extra))


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("bool", "int32"), ("int8", "int32"), ("uint16", "uint32"), ("int64", "int64"), ("float16", "float16")],
)
def test_sums_of_narrow_integers_are_wider(dtype, wanted):
    assert hnp.sum(np.ones(3, dtype)).dtype == wanted
    assert hnp.prod(np.ones(3, dtype)).dtype == wanted
    assert hnp.max(np.ones(3, dtype)).dtype == dtype


def test_half_precision_is_summed_in_single():
    x = np.full(4096, 1.0, "float16")
    assert float(hnp.sum(x)) == 4096.0


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_of_nothing_there_is_no_extreme(name):
    with pytest.raises(hx.errors.BadArgument, match="of no elements"):
        getattr(hnp, name)(np.zeros((0, 3)), axis=0)


@pytest.mark.each_choice
@pytest.mark.parametrize("q", [0.3, np.array([0.1, 0.5, 1.0])])
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "inverted_cdf"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_quantiles_are_those_of_numpy_known_or_traced(q, method, axis, rng):
    x = rng.normal(size=(4, 5, 3))
    wanted = np.quantile(x, q, axis, method=method)
    close(hnp.quantile(x, q, axis, method=method), wanted)
    if axis == -1:
        part = np.asarray(q, "float64")
        close(hx.jit(lambda x, q: hnp.quantile(x, q, axis, method=method))(x, part), wanted)
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    holes[0, 0] = x[0, 0]
    if not np.isnan(holes).all(axis).any():
        close(hnp.nanquantile(holes, q, axis, method=method), np.nanquantile(holes, q, axis, method=method))
    assert np.isnan(np.asarray(hnp.quantile(np.array([1.0, np.nan]), q, method=method))).all()


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", ["median", "quantile", "percentile", "nanmedian", "nanquantile", "nanpercentile"])
def test_order_statistics_of_nothing_are_nan(name, way):
    q = () if name.endswith("median") else (np.array([0.25, 0.5]),)
    for shape, axis, left in (((0,), None, ()), ((0, 3), 0, (3,)), ((3, 0), 0, (0,)), ((3, 0), (0, 1), ())):
        y = np.asarray(way(lambda x: getattr(hnp, name)(x, *q, axis=axis))(np.zeros(shape, "float32")))
        assert y.shape == ((2,) if q else ()) + left and np.isnan(y).all() and y.dtype == "float32"


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_at_infinite_elements_are_those_elements(method):
    x = np.array([-np.inf, 1.0, 2.0, 3.0, np.inf])
    for f in (hnp.quantile, hnp.nanquantile, hx.jit(hnp.quantile, static_argnames="method")):
        close([f(x, q, method=method) for q in (0.0, 0.25, 0.5, 0.75, 1.0)], x)


@pytest.mark.parametrize(
    "name",
    [
        "nansum",
        "nanprod",
        "nanmean",
        "nanmax",
        "nanmin",
        "nanvar",
        "nanstd",
        "nanmedian",
        "nanargmax",
        "nanargmin",
        "nancumsum",
    ],
)
def test_what_is_not_nan_is_folded_as_in_numpy(name, rng):
    x = np.where(rng.random((4, 6)) < 0.3, np.nan, rng.normal(size=(4, 6)))
    x[:, 0] = 1.0
    close(getattr(hnp, name)(x, axis=1), getattr(np, name)(x, axis=1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_positions_of_quantiles_are_not_rounded_to_the_dtype(dtype):
    x = np.arange(3001) / 3000
    for f in (hnp.quantile, hnp.nanquantile):
        for q in (0.25, 0.5, 0.8):
            found = hx.jit(f)(hnp.asarray(x, dtype), hnp.asarray(q, "float32"))
            assert found.dtype == dtype and abs(float(found) - q) < 0.004


def test_covariances_are_no_integers():
    with pytest.raises(hx.errors.DTypeMismatch, match="floats or complex"):
        hnp.cov(np.ones((2, 3)), dtype=int)


def test_covariances_weigh_observations(rng):
    x = rng.normal(size=(3, 6))
    counts, weights = rng.integers(1, 4, 6), rng.random(6)
    close(hnp.cov(x), np.cov(x))
    close(hnp.cov(x, x**2, rowvar=False), np.cov(x, x**2, rowvar=False))
    close(hnp.cov(x, fweights=counts, aweights=weights), np.cov(x, fweights=counts, aweights=weights))
    close(hnp.corrcoef(x), np.corrcoef(x))
    close(hnp.average(x, 1, weights), np.average(x, 1, weights))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 2), (2, 5), (6, 6), (7, 3)])
def test_convolutions_are_those_of_numpy(mode, n, m, rng):
    a, b = rng.normal(size=n), rng.normal(size=m)
    close(hnp.convolve(a, b, mode), np.convolve(a, b, mode))
    close(hnp.correlate(a, b, mode), np.correlate(a, b, mode))


def test_differences_of_neighbours(rng):
    f, at = rng.normal(size=(4, 5)), np.cumsum(rng.random(5) + 0.1)
    for ours, theirs in zip(hnp.gradient(f, 0.5), np.gradient(f, 0.5), strict=True):
        close(ours, theirs)
    close(hnp.gradient(f, at, axis=1), np.gradient(f, at, axis=1))
    close(hnp.trapezoid(f, at), np.trapezoid(f, at))
    close(hnp.unwrap(9 * f), np.unwrap(9 * f))
    close(hnp.diff(f, 2, 0, prepend=1.0), np.diff(f, 2, 0, prepend=1.0))
    close(hnp.ediff1d(f, 1.0, 2.0), np.ediff1d(f, 1.0, 2.0))


@pytest.mark.parametrize("options", [{}, {"left": -1.0, "right": 9.0}, {"period": 4}])
def test_interpolation_between_points(options, rng):
    xp, fp = np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.0, 5.0])
    x = rng.uniform(-2, 6, size=(3, 4))
    close(hnp.interp(x, xp, fp, **options), np.interp(x, xp, fp, **options))


@pytest.mark.parametrize(
    "options", [{}, {"density": True}, {"bins": 7}, {"bins": np.linspace(-1, 1, 5)}, {"range": (-1.0, 2.0)}]
)
def test_histograms_count_as_numpy_does(options, rng):
    x, y = rng.normal(size=(2, 50))
    for ours, theirs in zip(hnp.histogram(x, **options), np.histogram(x, **options), strict=True):
        close(ours, theirs)
    pair = {k: (v, v) if k == "range" else v for k, v in options.items()}
    for ours, theirs in zip(hnp.histogram2d(x, y, **pair), np.histogram2d(x, y, **pair), strict=True):
        close(ours, theirs)


def test_counting_needs_a_length_where_values_are_not_known(rng):
    x = rng.integers(0, 9, 40)
    np.testing.assert_array_equal(np.asarray(hnp.bincount(x)), np.bincount(x))
    np.testing.assert_array_equal(np.asarray(hx.jit(lambda x: hnp.bincount(x, length=5))(x)), np.bincount(x)[:5])
    with pytest.raises(hx.errors.ConcretizationError, match="length=n"):
        hx.jit(hnp.bincount)(x)


def test_polynomials(rng):
    a, b = rng.normal(size=5), rng.normal(size=3)
    for name in ("polyadd", "polysub", "polymul", "polyval"):
        close(getattr(hnp, name)(a, b), getattr(np, name)(a, b))
    quotient, rest = hnp.polydiv(a, b)
    close(hnp.polyadd(hnp.polymul(quotient, b), rest), a)
    close(hnp.polyder(a, 2), np.polyder(a, 2))
    close(hnp.polyint(a, 2), np.polyint(a, 2))
    close(hnp.poly(b), np.poly(b))
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    close(hnp.poly(matrix), np.poly(matrix))
    for zeros in ([1.0, np.inf], [-np.inf, 0.5, 2.0]):
        for poly in (hnp.poly, hx.jit(hnp.poly)):
            np.testing.assert_array_equal(poly(np.array(zeros)), np.poly(zeros))
    close(hnp.polyval(np.zeros(0), b), np.polyval(np.zeros(0), b))


@pytest.mark.parametrize("f", [hnp.cumsum, hnp.cumprod, lambda x, axis: hnp.repeat(x, 1, axis=axis)])
@pytest.mark.parametrize("axis", [0, -1])
def test_a_number_is_a_row_of_one_element(f, axis):
    assert f(5, axis=axis).tolist() == [5]


def test_running_sums_and_products_of_narrow_integers_have_the_default_width():
    assert hnp.cumulative_prod(np.array([2, 3], "int16")).dtype == "int32"
    assert hnp.cumulative_sum(np.array([2, 3], "int16")).dtype == "int32"


def test_counts_of_points_are_integers():
    assert hnp.histogramdd(np.ones((3, 2), "float32"))[0].dtype == "int32"
    assert hnp.histogramdd(np.ones((3, 2), "float32"), density=True)[0].dtype == "float32"


WITH_MASK = [*FOLDS, "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"]


@pytest.mark.parametrize("name", WITH_MASK)
def test_what_says_which_elements_count_is_a_mask_that_fits(name, rng):
    x, mask = rng.normal(size=(4, 3)), np.array([True, False, True])
    extra = {"initial": -9.0} if name.endswith(("max", "min")) else {}
    with hx.configure(numpy_rank_promotion="raise"):  # the mask of a row is no operand whose rank is promoted
        close(getattr(hnp, name)(x, where=mask, **extra), getattr(np, name)(x, where=mask, **extra))
    with pytest.raises(hx.errors.BadArgument, match="where must be boolean"):
        getattr(hnp, name)(x, where=mask.astype(int), **extra)
    with pytest.raises(hx.errors.ShapeMismatch, match="where must broadcast"):
        getattr(hnp, name)(x, where=np.ones((2, 4, 3), bool), **extra)


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_booleans_are_folded_to_booleans_where_that_is_asked_for(name):
    x = np.array([[1.0, 0.0, 2.0], [0.5, -1.0, 3.0]])
    found, wanted = [getattr(m, name)(x, axis=1, dtype=bool) for m in (hnp, np)]
    assert found.dtype == bool and found.tolist() == wanted.tolist()
    assert hnp.sum(x[0] > 9, dtype=bool, initial=True).tolist() is True


@pytest.mark.parametrize("axis", [(0, 2), (2, 0), (2, 1, 0), (-1, 0), 1, (1,), [2, 1]])
def test_weights_belong_to_the_axes_in_the_order_in_which_they_are_named(axis, rng):
    x = rng.normal(size=(3, 3, 3))
    named = axis if isinstance(axis, (tuple, list)) else (axis,)
    weights = rng.random((3,) * len(named))
    along = tuple(axis) if isinstance(axis, list) else axis
    for found, wanted in zip(
        hnp.average(x, axis, weights, returned=True), np.average(x, along, weights, returned=True), strict=True
    ):
        close(found, wanted)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("dtype", [None, "complex128"])
@pytest.mark.parametrize("kind", [float, complex])
def test_the_variance_is_real_unless_a_complex_dtype_is_asked_for(name, dtype, kind, rng):
    x = rng.normal(size=(4, 5)).astype(kind) * (1 + (1j if kind is complex else 0))
    found = getattr(hnp, name)(x, axis=0, dtype=dtype)
    assert found.dtype == (dtype or "float64")
    close(found, getattr(np, name)(x, axis=0))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions_of_integers_are_floats_unless_integers_are_asked_for(name, mode):
    x, y = np.array([1, 2, 3, 4], "int16"), np.array([1, -1, 2], "int16")
    found = getattr(hnp, name)(x, y, mode=mode)
    assert found.dtype == "float32"
    close(found, getattr(np, name)(x, y, mode=mode))
    assert getattr(hnp, name)(x, y, mode=mode, preferred_element_type="int16").dtype == "int16"


@pytest.mark.parametrize("dtype", ["int8", "int32", "float64"])
@pytest.mark.parametrize("period", [4, 5])
@pytest.mark.parametrize("discont", [None, 3])
def test_integers_are_unwrapped_as_integers(dtype, period, discont):
    x = np.array([0, 1, 5, 6, 3, 7, 5], dtype)
    found = hnp.unwrap(x, discont, period=period)
    assert found.dtype == dtype
    close(found, np.unwrap(x, discont, period=period).astype(dtype))


@pytest.mark.parametrize("f", [hnp.nanvar, hnp.nanstd, hx.jit(hnp.nanvar), hx.jit(hnp.nanstd)])
def test_the_variance_of_both_infinities_is_nan(f):
    assert np.isnan(f(np.array([np.inf, -np.inf, 1.0, np.nan])))
    assert np.isnan(f(np.array([np.nan, np.nan])))
    assert f(np.array([2.0, np.nan])) == 0


@pytest.mark.parametrize("options", [
    {}, {"axis": 0}, {"axis": (0, 2), "keepdims": True}, {"initial": 3}, {"initial": (-3, 9), "axis": 1},
    {"where": np.arange(3) > 0, "initial": (50, -50), "axis": -1},
])
def test_minmax_is_the_pair_of_both(options):
    x = np.random.default_rng(1).integers(-20, 20, (2, 4, 3)).astype("int32")
    both = options.pop("initial", None)
    starts = both if isinstance(both, tuple) else (both, both)
    given = [{} if start is None else {"initial": start} for start in starts]
    low, high = hnp.minmax(x, **options, **({} if both is None else {"initial": both}))
    np.testing.assert_array_equal(np.asarray(low), np.min(x, **options, **given[0]))
    np.testing.assert_array_equal(np.asarray(high), np.max(x, **options, **given[1]))


def test_integers_beside_16_bit_floats_are_of_16_bits():
    whole, half = hnp.arange(1, 5, dtype="int32"), hnp.array([1.0, 2.0, 4.0, 5.0], "float16")
    expected = np.gradient(np.arange(1.0, 5.0), np.array([1.0, 2.0, 4.0, 5.0]))
    found = hnp.gradient(whole, half)
    assert found.dtype == "float16" and np.allclose(found, expected, rtol=1e-3)
    assert hnp.gradient(whole, half[1]).tolist() == [0.5] * 4 and hnp.gradient(whole, half[0]).dtype == "float16"
    assert hnp.gradient(whole, 2.5).dtype == "float32" and hnp.logspace(whole, half, 3).dtype == "float16"
    assert hnp.trapezoid(whole, half).dtype == "float16" and hnp.trapezoid(whole, half).tolist() == 10.0


def test_set_differences_and_partitions_keep_their_dtypes():
    assert hnp.setdiff1d(np.array([1, 2], "int8"), np.array([1.0, 2.5])).dtype == "int8"
    assert hnp.setdiff1d(2, np.array([1.0, 2.5])).tolist() == [2] and hnp.setdiff1d(2, np.ones(2)).dtype == "int32"
    with hx.enable_x64(True):
        assert hnp.argpartition(np.arange(3), 1).dtype == "int32"


def test_a_percentile_between_two_elements_is_the_even_one_as_numpys():
    x = np.arange(6, dtype=np.float32)
    for q in (10, 30, 50, 70, 90):
        want = np.percentile(x, q, method="nearest")
        assert hnp.percentile(x, q, method="nearest") == want
    halves = np.asarray([0.125, 0.375, 0.625, 0.875], np.float32)  # of 5 elements all are ties
    want = np.quantile(x[:5], halves, method="nearest")
    for f in (hnp.quantile, hx.jit(hnp.quantile, static_argnames="method")):
        np.testing.assert_array_equal(f(x[:5], halves, method="nearest"), want)


COMPLEX = np.array([[1 + 2j, 3 - 1j, 2, 2 + 1j], [0, np.nan, 5j, 1]], np.complex64)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_of_complex_numbers_are_numpys(name, axis):
    z = COMPLEX if name == "nanmedian" else np.nan_to_num(COMPLEX)
    wanted = getattr(np, name)(z, axis)
    for f in (getattr(hnp, name), hx.jit(getattr(hnp, name), static_argnames="axis")):
        close(f(z, axis=axis), wanted)


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
@pytest.mark.parametrize("method", ["linear", "lower", "inverted_cdf"])
def test_quantiles_of_complex_numbers_are_refused_by_their_names(name, method):
    with pytest.raises(DTypeMismatch, match=rf"^{name}: complex numbers"):
        getattr(hnp, name)(COMPLEX, 0.5, method=method)


def test_interp_takes_complex_values_but_no_complex_points():
    close(hnp.interp(np.array([0.5]), np.array([0.0, 1.0]), np.array([1j, 3j])), np.array([2j]))
    for x, xp in ((1j, np.array([0.0, 1.0])), (0.5, np.array([0j, 1.0]))):
        with pytest.raises(DTypeMismatch, match=r"^interp: x and xp must be real"):
            hnp.interp(x, xp, np.array([0.0, 1.0]))
