"""Elementwise functions give NumPy's values, in the dtypes of the promotion lattice; derivatives are right at kinks."""

import importlib

import numpy as np
import pytest

import handlax as hx
import handlax.numpy as hnp
from handlax import errors
from handlax.scipy import special

UNARY = [
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arctan",
    "arcsinh",
    "exp",
    "expm1",
    "exp2",
    "cbrt",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "abs",
    "negative",
    "positive",
    "square",
    "sign",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "deg2rad",
    "rad2deg",
    "logical_not",
    "isneginf",
    "isposinf",
    "sinc",
    "i0",
    "fabs",
    "nan_to_num",
]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "reciprocal"]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "arctan2",
    "hypot",
    "logaddexp",
    "logaddexp2",
    "copysign",
    "heaviside",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "divide",
    "floor_divide",
    "remainder",
    "fmod",
]
INTEGER = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "gcd",
    "lcm",
    "floor_divide",
    "remainder",
    "fmod",
    "add",
    "multiply",
    "maximum",
]
SHAPES = [((3,), (3,)), ((), (2, 3)), ((4, 1), (1, 5)), ((2, 1, 3), (4, 1)), ((0, 3), (3,)), ((), ())]


def close(found, wanted, rtol=2e-6):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=1e-6)
    assert np.shape(found) == np.shape(wanted)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(), (3, 4), (0, 2)])
def test_functions_of_one_number_are_those_of_numpy(name, shape, rng):
    x = rng.normal(size=shape).astype("float32") * 3
    with np.errstate(all="ignore"):
        close(getattr(hnp, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("name", POSITIVE)
def test_functions_of_a_positive_number_are_those_of_numpy(name, rng):
    x = rng.uniform(0.1, 9, size=(3, 4))
    close(getattr(hnp, name)(x), getattr(np, name)(x), 1e-13)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_functions_of_two_numbers_are_those_of_numpy(name, left, right, rng):
    x, y = (rng.normal(size=shape).astype("float32") * 2 for shape in (left, right))
    with np.errstate(all="ignore"):
        close(getattr(hnp, name)(x, y), getattr(np, name)(x, y), 1e-5)


@pytest.mark.each_choice
@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_functions_of_two_integers_are_those_of_numpy(name, dtype, rng):
    low = 0 if dtype[0] == "u" else -9
    x, y = (rng.integers(low, 9, size=(3, 5)).astype(dtype) for _ in range(2))
    y[y == 0] = 3
    found = getattr(hnp, name)(x, y)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(found), getattr(np, name)(x, y))
    if dtype == "int32":
        np.testing.assert_array_equal(np.asarray(hx.jit(getattr(hnp, name))(x, y)), np.asarray(found))


def test_mantissa_and_exponent_give_the_number_back(rng):
    x = np.array([6.0, -0.1, 0.0, 1e-40, 3e38, np.inf, np.nan], "float32")
    m, e = hnp.frexp(x)
    wanted, exponent = np.frexp(x)
    np.testing.assert_array_equal(np.asarray(m), wanted)
    np.testing.assert_array_equal(np.asarray(e)[:5], exponent[:5])
    np.testing.assert_array_equal(np.asarray(hnp.ldexp(m, e)), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_ldexp_reaches_both_ends_of_the_exponent(dtype):
    tiny = hnp.finfo(dtype).smallest_normal
    up = int(hnp.finfo(dtype).maxexp) - 1
    down = int(hnp.finfo(dtype).minexp)
    assert float(hnp.ldexp(hnp.ones((), dtype), up)) == 2.0**up
    assert float(hnp.ldexp(hnp.ones((), dtype), down)) == float(tiny)
    assert not np.isfinite(float(hnp.ldexp(hnp.ones((), dtype), up + 1)))


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (lambda x: hnp.logaddexp(x, 0.0), 0.0, 0.5),
        (lambda x: hnp.logaddexp(x, 1.0), np.inf, 1.0),
        (hnp.sinc, 0.0, 0.0),
        (hx.grad(hnp.sinc), 0.0, -(np.pi**2) / 3),
        (hx.grad(hnp.sinc), 1e-6, -(np.pi**2) / 3),
        (hx.grad(hx.grad(hnp.sinc)), 1e-3, np.pi**4 / 5 * 1e-3),
        (hnp.sinc, np.inf, 0.0),
        (hnp.i0, 0.0, 0.0),
        (hx.grad(hnp.i0), 0.0, 0.5),
        (hx.grad(hx.grad(hnp.i0)), 1e-3, 0.375e-3),
        (hnp.i0, 88.0, 6.99393882e36),
        (hnp.i0, 100.0, np.inf),
        (hnp.i0, -1e20, -np.inf),
        (hx.grad(hnp.i0), -np.inf, np.inf),
        (lambda x: hnp.hypot(x, 3.0), -np.inf, -1.0),
        (lambda x: hnp.hypot(x, np.nan), np.inf, 1.0),
        (lambda x: hnp.hypot(np.inf, x), 3.0, 0.0),
        (lambda x: hnp.logaddexp(x, -np.inf), -np.inf, 0.5),
        (lambda x: hnp.logaddexp(np.inf, x), np.inf, 0.5),
        (lambda x: hnp.arctan2(x, 1e20), 1e20, 5e-21),
        (lambda x: hnp.arctan2(x, 1e-30), 1e-30, 5e29),
        (hnp.arcsinh, 1e30, 1e-30),
        (hnp.expm1, -30.0, float(np.exp(-30.0))),
        (hx.nn.elu, -30.0, float(np.exp(-30.0))),
        (hx.nn.celu, -30.0, float(np.exp(-30.0))),
        (lambda x: hnp.frexp(x)[0], 6.0, 0.125),
        (lambda x: hnp.ldexp(x, 3), 2.0, 8.0),
        (lambda x: hnp.where(x > 0, hnp.sqrt(hnp.where(x > 0, x, 1.0)), 0.0), 0.0, 0.0),
        (lambda x: hnp.clip(x, 0.0, 1.0), 0.0, 0.5),
    ],
)
def test_derivatives_at_special_points(f, x, slope):
    np.testing.assert_allclose(float(hx.grad(f)(x)), slope, rtol=1e-5)


@pytest.mark.parametrize(("f", "base"), [(hnp.log2, 2), (hnp.log10, 10)])
def test_logarithms_of_complex_zeros_and_infinities(f, base):
    z = np.array([0, complex(np.inf, 1), complex(-np.inf, 1), complex(0, -np.inf), 8j], "complex64")
    with np.errstate(divide="ignore"):
        exact = np.log(z)
    for way in (f, hx.jit(f)):
        found = np.asarray(way(z))
        np.testing.assert_allclose(found.real, np.real(exact) / np.log(base), rtol=1e-6)
        np.testing.assert_allclose(found.imag, np.imag(exact) / np.log(base), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("decimals", [2, 39, 320, -2, -39, -320])
def test_rounding_to_more_decimals_than_there_are(decimals, dtype):
    x = np.array([1.5, -0.0, 3e4, np.inf, np.nan], dtype)
    exact = np.round(x.astype(np.longdouble), decimals).astype(dtype) if abs(decimals) == 2 else x
    exact = np.where(np.isfinite(x), 0.0, x) if decimals < -2 else exact
    for f in (hnp.round, hx.jit(hnp.round, static_argnums=1)):
        found = np.asarray(f(x, decimals))
        np.testing.assert_allclose(found[[0, 1, 2, 4]], exact[[0, 1, 2, 4]], rtol=1e-15)
        assert decimals < 0 or found[3] == np.inf


@pytest.mark.parametrize("f", [hnp.sinc, hx.jit(hnp.sinc)])
def test_sinc_of_infinities_is_zero(f):
    np.testing.assert_array_equal(f(np.array([np.inf, -np.inf], "float32")), [0.0, 0.0])


def test_a_universal_function_folds(rng):
    x = rng.integers(1, 9, size=(4, 3))
    assert int(hnp.subtract.reduce(x[:, 0])) == np.subtract.reduce(x[:, 0])
    for name in ("add", "multiply", "maximum", "logical_and", "bitwise_xor"):
        ours, theirs = getattr(hnp, name), getattr(np, name)
        np.testing.assert_array_equal(np.asarray(ours.reduce(x, 1)), theirs.reduce(x, 1))
        np.testing.assert_array_equal(np.asarray(ours.accumulate(x)), theirs.accumulate(x))
        np.testing.assert_array_equal(np.asarray(ours.outer(x, x[0])), theirs.outer(x, x[0]))
    np.testing.assert_array_equal(np.asarray(hnp.add.at(np.zeros(3), np.array([1, 1]), 5.0, inplace=False)), [0, 10, 0])


def test_a_universal_function_writes_into_nothing():
    with pytest.raises(hx.errors.BadArgument, match="immutable"):
        hnp.add(1, 2, out=np.zeros(()))
    with pytest.raises(hx.errors.BadArgument, match="inplace=False"):
        hnp.add.at(np.zeros(3), 0, 1.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("decimals", [38, 40, 308, 400])
def test_rounding_to_more_decimals_than_there_are_changes_nothing(dtype, decimals):
    x = np.array([1.5, -0.0, np.inf, -np.inf, np.nan, 15.0], dtype)
    for f in (hnp.round, hx.jit(hnp.round, static_argnums=1)):
        assert np.array_equal(f(x, decimals), x, equal_nan=True)
    whole = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.0], dtype)
    assert np.array_equal(hnp.round(x, -decimals), whole, equal_nan=True)


def test_a_number_is_rounded_once():
    x = np.ones(2)
    assert float(hnp.where(np.array([True, False]), x, 0.1)[1]) == 0.1
    assert float(hnp.add(x, 0.1)[0]) == 1.1
    assert float(hnp.maximum(0.1, np.zeros(2))[0]) == 0.1


@pytest.mark.parametrize("options", [{}, {"posinf": 1.0}, {"nan": 2.0, "neginf": -3.0}])
def test_nan_to_num_replaces_what_is_named(options):
    x = np.array([np.nan, np.inf, -np.inf, 1.5], "float32")
    np.testing.assert_array_equal(np.asarray(hnp.nan_to_num(x, **options)), np.nan_to_num(x, **options))


def test_heaviside_of_nan():
    x = np.array([-1.0, -0.0, 0.0, 2.0, np.nan, np.inf], "float32")
    for f in hnp.heaviside, hx.jit(hnp.heaviside):
        np.testing.assert_array_equal(f(x, np.float32(0.5)), np.heaviside(x, np.float32(0.5)))


@pytest.mark.parametrize(("a", "b"), [(6, 10), ([6, -6, 0], [10, -10, 1]), (True, False), (2.0, 3), (250, 3)])
@pytest.mark.parametrize("how", [{}, {"rtol": 0.5}, {"atol": 4}, {"rtol": 0.1, "atol": 3.2}])
def test_integers_are_close_as_floats_are(a, b, how):
    assert hnp.isclose(np.array(a), np.array(b), **how).tolist() == np.isclose(a, b, **how).tolist()
    assert bool(hnp.allclose(np.array(a), np.array(b), **how)) == np.allclose(a, b, **how)


def test_logaddexp2_of_complex_numbers(rng):
    x, y = rng.normal(size=(2, 5)) + 1j * rng.normal(size=(2, 5))
    np.testing.assert_allclose(hnp.logaddexp2(x, y), np.log2(2**x + 2**y), rtol=1e-13)
    assert np.isfinite(hnp.logaddexp2(2000 + 1j, 2001 - 1j))


@pytest.mark.parametrize("equal", [hnp.equal, hnp.isclose, lambda a, b: ~hnp.not_equal(a, b)])
def test_random_keys_are_compared_by_their_data(equal):
    key, others = hx.random.key(1), hx.random.split(hx.random.key(0), 2)
    mixed = hnp.stack([key, others[1]])
    for call in (equal, hx.jit(equal)):
        assert np.asarray(call(key, hx.random.key(1))).tolist() is True
        assert np.asarray(call(mixed, others)).tolist() == [False, True]
    assert bool(hnp.array_equal(mixed, mixed)) and not bool(hnp.array_equal(mixed, others))
    assert not bool(hnp.array_equal(key, mixed))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_sinc_is_zero_at_integers_and_exact_between_them(way, dtype):
    k = np.array([1, 2, 3, -1, 100, -1001, 2**11], dtype)
    np.testing.assert_array_equal(np.asarray(way(hnp.sinc)(k)), 0)
    x = np.array([0.001, 0.3, 1.25, 2.5, -7.75, 100.5], dtype)
    np.testing.assert_allclose(np.asarray(way(hnp.sinc)(x)), np.sinc(x.astype(float)), rtol=16 * np.finfo(dtype).eps)


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_the_angle_of_complex_operands_is_that_whose_tangent_is_the_quotient(way):
    x, y = np.array([1 + 2j, 0.5 - 1j], "complex128"), np.array([2 + 1j, 3 + 0.5j], "complex128")
    np.testing.assert_allclose(np.tan(np.asarray(way(hnp.arctan2)(x, y))), x / y, rtol=1e-13)


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "compiled"])
def test_the_fraction_of_an_infinite_number_is_zero(way):
    x = np.array([np.inf, -np.inf, 2.5, -3.0, np.nan], "float32")
    for got, wanted in zip(way(hnp.modf)(x), np.modf(x)):
        np.testing.assert_array_equal(got, wanted)
    assert np.signbit(np.asarray(way(hnp.modf)(x)[0])[:2]).tolist() == [False, True]


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract"])
def test_reduceat_reduces_between_indices(name):
    x, at = np.arange(12.0).reshape(3, 4), np.array([3, 0, 1, 1])
    f, expected = getattr(hnp, name).reduceat, getattr(np, name).reduceat(x, at, axis=1)
    for call in (f, hx.jit(f, static_argnames="axis")):
        assert np.array_equal(call(x, at, axis=1), expected)
    assert np.array_equal(f(x, at[1:3]), getattr(np, name).reduceat(x, at[1:3]))
    with pytest.raises(errors.BadIndex, match="between 0 and 3"):
        f(x, np.array([0, 4]), axis=1)


ALWAYS_STRONG = {
    "numpy": "angle spacing nan_to_num diagflat ediff1d poly",
    "scipy.special": "dawsn erfcinv erfcx exp1 expi fresnel gamma ndtr ndtri log_ndtr sici spence",
}
BESIDE_STRONG = {
    "numpy": "heaviside logaddexp2 power", "scipy.special": "kl_div rel_entr",
}


def module(name):
    return importlib.import_module(f"handlax.{name}")


@pytest.mark.parametrize(("where", "name"), [(m, n) for m, names in ALWAYS_STRONG.items() for n in names.split()])
def test_functions_that_are_strong_in_jax_are_strong_of_python_numbers(where, name):
    f = getattr(module(where), name)
    for y in hx.tree.leaves([f(0.5), hx.jit(f)(0.5), hx.eval_shape(f, 0.5)]):
        assert not y.weak_type and y.dtype == "float32"


@pytest.mark.parametrize(("where", "name"), [(m, n) for m, names in BESIDE_STRONG.items() for n in names.split()])
def test_a_result_is_weak_where_all_operands_are(where, name):
    f = getattr(module(where), name)
    y = f(0.5, hnp.array([1, 2], "int32"))
    assert f(0.5, 0.25).weak_type and not y.weak_type and y.dtype == "float32"


@pytest.mark.parametrize("x", [np.array([True, False]), np.array([1, 2], "int8")])
def test_a_numpy_integer_as_exponent_is_a_number(x):
    kept = (hnp.array(x) ** 3).dtype
    assert np.array_equal(hnp.power(x, np.int16(3)), x.astype(int) ** 3) and hnp.power(x, np.int16(3)).dtype == kept
    with pytest.raises(errors.DTypeMismatch, match="no negative powers"):
        hnp.power(x, np.int16(-3))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_exponents_of_every_width_scale_as_numpys(dtype):
    info = np.iinfo(dtype)
    exponents = [n for n in (info.min, -200, -3, 0, 5, 100, 200, info.max) if info.min <= n <= info.max]
    with hx.configure(enable_x64=True), np.errstate(over="ignore", under="ignore"):
        for n in exponents:
            want = np.ldexp(np.float32(0.75), int(np.clip(n, -1000, 1000)))
            assert hnp.ldexp(np.float32(0.75), np.asarray(n, dtype)) == want


def test_lists_are_compared_as_numpy_compares_them():
    assert not hnp.array_equal([1, 2], [1, 2, 3]) and hnp.array_equal([1.0, 2], [1, 2]) and hnp.array_equal([], [])
    assert hnp.array_equal([[1], [2]], np.array([[1], [2]])) and hnp.array_equiv([1, 1], [[1], [1]])


def test_quotients_of_infinities_and_by_zero_are_numpys():
    values = np.asarray([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.5], np.float32)
    x, y = np.meshgrid(values, values)
    with np.errstate(all="ignore"):
        want = np.floor_divide(x, y)
    for f in (hnp.floor_divide, hx.jit(hnp.floor_divide)):
        np.testing.assert_array_equal(f(x, y), want)


VALUES = np.array([-7.3, -2, -1, -0.51, -0.1, -1e-3, 0, 1e-3, 0.1, 0.37, 0.5, 0.99, 1, 1.01, 2, 3.7, 9, 30])
IN_STEPS = {"unwrap", "celu", "polygamma"}  # composed of operations that round each, or that underflow


def _elementwise_functions():
    """The functions of numpy, scipy.special and nn that take one or two arrays of floats to one of their shape."""
    for module in (hnp, special, hx.nn):
        for name in sorted(set(module.__all__) - IN_STEPS):
            f = getattr(module, name)
            for count in (1, 2) if callable(f) and not isinstance(f, type) else ():
                try:
                    same = hx.eval_shape(f, *[hx.ShapeDtypeStruct((5,), "float16")] * count)
                except (AttributeError, TypeError, ValueError, LookupError):
                    continue
                if getattr(same, "shape", None) == (5,) and same.dtype == "float16":
                    yield name, f, count


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_eager_and_compiled_values_of_16_bits_are_neighbours(dtype):
    apart = {name: pair for name, f, count in _elementwise_functions() if (pair := _apart(f, count, dtype))}
    assert not apart


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("f", [hnp.logaddexp, hnp.logaddexp2, special.comb])
def test_values_of_16_bits_are_rounded_once(f, dtype):
    assert not _apart(f, 2, dtype)


def _apart(f, count, dtype):
    """The first arguments at which the eager and the compiled value differ by more than a step, and these values."""
    xs = [hnp.asarray(x.ravel(), dtype) for x in np.meshgrid(*[VALUES] * count)]
    a, b = [np.asarray(y, np.float64) for y in (f(*xs), hx.jit(f)(*xs))]
    info = hx.dtypes.finfo(dtype)
    step = float(info.eps) * np.maximum(np.fmax(abs(a), abs(b)), float(info.tiny))
    finite = np.isfinite(a) & np.isfinite(b)
    distance = abs(np.where(finite, a, 0) - np.where(finite, b, 0))
    close = (finite & (distance <= step)) | (a == b) | (np.isnan(a) & np.isnan(b))
    return () if close.all() else (*[float(x[~close][0]) for x in xs], a[~close][0], b[~close][0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_square_roots_as_powers_are_those_of_c(dtype):
    x = np.array([-np.inf, -0.0, 0.0, 4.0, -4.0], dtype)
    half = np.asarray(0.5, dtype)
    ways = (
        lambda x: x**0.5, lambda x: hx.lax.pow(x, half), lambda x: hnp.power(x, np.full(5, half)),
        lambda x: hnp.power(x[None], np.full((2, 1), half))[1], lambda x: hnp.stack([v**0.5 for v in x]),
    )
    for f in ways:
        for g in (f, hx.jit(f)):
            y = np.asarray(g(hnp.asarray(x))).astype("float64")
            np.testing.assert_array_equal(y, [np.inf, 0, 0, 2, np.nan])
            assert not np.signbit(y[1:4]).any()
    assert hx.grad(hx.grad(lambda x: x**2.5))(np.asarray(-np.inf, dtype)) == np.inf
