"""Functions of complex numbers, eager and compiled, against mpmath and C99's Annex G: values, derivatives, cuts."""

import itertools

import mpmath
import numpy as np
import pytest

import handlax as hx
from handlax import lax

pytestmark = pytest.mark.optimised

DTYPES = ("complex64", "complex128")
QUICK = (0.0, -0.0, 1.0, -2.0, 1e-5, 89.0, 1e25)
ALL = (*QUICK, -1.0, 0.5, -0.5, 2.0, -1e-5, 1e-30, -1e-30, -89.0, 800.0, -800.0, -1e25, 1e200, -1e200, float(np.pi))
EXTENTS = [
    pytest.param("complex64", QUICK, id="quick"),
    *[pytest.param(dtype, ALL, id=f"sweep-{dtype}", marks=pytest.mark.sweep) for dtype in DTYPES],
]
SPECIAL = (0.0, -0.0, 1.0, -2.5, 30.0, -200.0, np.inf, -np.inf, np.nan)


def power(n):
    return lambda z: lax.integer_pow(z, n)


def root(z):
    return mpmath.sqrt(1 - z) * mpmath.sqrt(1 + z)


def logistic_slope(z):
    return mpmath.exp(-z) / (1 + mpmath.exp(-z)) ** 2


# name: (function, mpmath's, mpmath's derivative)
FUNCTIONS = {
    "exp": (lax.exp, mpmath.exp, mpmath.exp),
    "exp2": (lax.exp2, lambda z: 2**z, lambda z: mpmath.log(2) * 2**z),
    "expm1": (lax.expm1, lambda z: mpmath.exp(z) - 1, mpmath.exp),
    "log": (lax.log, mpmath.log, lambda z: 1 / z),
    "log1p": (lax.log1p, lambda z: mpmath.log(1 + z), lambda z: 1 / (1 + z)),
    "logistic": (lax.logistic, lambda z: 1 / (1 + mpmath.exp(-z)), logistic_slope),
    "sin": (lax.sin, mpmath.sin, mpmath.cos),
    "cos": (lax.cos, mpmath.cos, lambda z: -mpmath.sin(z)),
    "tan": (lax.tan, mpmath.tan, lambda z: 1 / mpmath.cos(z) ** 2),
    "asin": (lax.asin, mpmath.asin, lambda z: 1 / root(z)),
    "acos": (lax.acos, mpmath.acos, lambda z: -1 / root(z)),
    "atan": (lax.atan, mpmath.atan, lambda z: 1 / ((1 + 1j * z) * (1 - 1j * z))),
    "sinh": (lax.sinh, mpmath.sinh, mpmath.cosh),
    "cosh": (lax.cosh, mpmath.cosh, mpmath.sinh),
    "tanh": (lax.tanh, mpmath.tanh, lambda z: 1 / mpmath.cosh(z) ** 2),
    "asinh": (lax.asinh, mpmath.asinh, lambda z: 1 / root(1j * z)),
    "acosh": (lax.acosh, mpmath.acosh, lambda z: 1 / (mpmath.sqrt(z - 1) * mpmath.sqrt(z + 1))),
    "atanh": (lax.atanh, mpmath.atanh, lambda z: 1 / ((1 + z) * (1 - z))),
    "sqrt": (lax.sqrt, mpmath.sqrt, lambda z: 0.5 / mpmath.sqrt(z)),
    "rsqrt": (lax.rsqrt, lambda z: 1 / mpmath.sqrt(z), lambda z: -0.5 / (z * mpmath.sqrt(z))),
    "square": (lax.square, lambda z: z * z, lambda z: 2 * z),
    "abs": (lax.abs, abs, None),
    "sign": (lax.sign, lambda z: z / abs(z), None),
    "integer_pow(-2)": (power(-2), lambda z: z**-2, lambda z: -2 * z**-3),
}
PERIODIC = ("exp", "exp2", "expm1", "logistic", "sin", "cos", "tan", "sinh", "cosh", "tanh")
# expm1 and logistic have curves of points at which one part is the small difference of large terms; expm1's is not
# resolved. Inverse powers of an even number have zero parts whose sign products do not keep.
BY_SIZE = ("expm1", "logistic", "integer_pow(-2)")


def points(parts, dtype):
    """All numbers x + iy of these parts."""
    real = np.finfo(dtype).dtype
    held = [x for x in parts if not np.isfinite(x) or abs(x) < float(np.finfo(real).max)]
    z = np.empty(len(held) ** 2, dtype)
    for i, (x, y) in enumerate(itertools.product(held, held)):
        z.real[i], z.imag[i] = x, y
    return z


def rounded(w, real):
    """The parts of mpmath's number as floats; what is too small is a zero with its sign."""
    def part(x):
        if abs(x) < mpmath.mpf(2) ** -1080:
            return -0.0 if x < 0 else 0.0
        return float(np.sign(float(mpmath.sign(x))) * np.inf) if abs(x) > mpmath.mpf(2) ** 1030 else float(x)

    return np.array([part(mpmath.re(w)), part(mpmath.im(w))]).astype(real)


def exact(name, f, z):
    """The parts of f(z), None at poles and for angles that are not worth their reduction."""
    x, y = float(z.real), float(z.imag)
    if (x == 0 and y == 0) or (name in PERIODIC and max(abs(x), abs(y)) > 1e4):
        return None
    poles = {"log1p": ((-1, 0),), "atanh": ((1, 0), (-1, 0)), "atan": ((0, 1), (0, -1))}
    branches = {"asin": ((1, 0), (-1, 0)), "asinh": ((0, 1), (0, -1))}
    branches = {**branches, "acos": branches["asin"], "acosh": branches["asin"]}
    if (x, y) in poles.get(name, ()) or (f is FUNCTIONS[name][2] and (x, y) in branches.get(name, ())):
        return None
    with mpmath.workdps(1500):
        tiny = mpmath.mpf(10) ** -700  # for zero: the limit from the side that its sign says
        value = [tiny * (-1 if np.signbit(v) else 1) if v == 0 else mpmath.mpf(v) for v in (x, y)]
        return rounded(f(mpmath.mpc(*value)), np.finfo(z.dtype).dtype)


def close(got, wanted, tolerance, tiny, by_size):
    """Whether parts agree to a relative error, zeros with their sign; below the least normal float 0 is as good."""
    if by_size:
        if np.isinf(wanted).any():  # products of infinite parts may be NaN
            return not np.isfinite(got).all()
        size = max(abs(float(v)) for v in wanted)
        return all(g == w or abs(float(g) - float(w)) <= tolerance * size + tiny for g, w in zip(got, wanted))
    return all(
        np.signbit(g) == np.signbit(w) if g == w == 0 else g == w
        or abs(float(g) - float(w)) <= (2 * tiny if abs(w) < tiny else tolerance * abs(float(w)))
        for g, w in zip(got, wanted)
    )


def assert_values(name, f, oracle, z, by_size, ulps=64):
    info = np.finfo(z.dtype)
    results = [np.asarray(g(z)) for g in (f, hx.jit(f))]
    for i, value in enumerate(z):
        with np.errstate(all="ignore"):
            wanted = exact(name, oracle, value)
        if wanted is not None:
            for way, y in zip(("eager", "compiled"), results):
                got = np.array([y[i].real, y[i].imag])
                assert close(got, wanted, ulps * info.eps, 4 * info.tiny, by_size), (
                    f"{name} {way} at {value!r}: {y[i]!r}, not {wanted}")


@pytest.mark.parametrize(("dtype", "parts"), EXTENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_sides_of_cuts(name, dtype, parts):
    f, oracle, _ = FUNCTIONS[name]
    z = points(parts, dtype)
    if name == "exp2":  # beyond, the rounding of z log 2 alone makes more than the bound
        z = z[abs(z.imag) < 100]
    assert_values(name, f, oracle, z, name in BY_SIZE)


@pytest.mark.parametrize(("dtype", "parts"), EXTENTS)
@pytest.mark.parametrize("name", [name for name, row in FUNCTIONS.items() if row[2] is not None])
def test_derivatives(name, dtype, parts):
    f, _, oracle = FUNCTIONS[name]
    z = points(parts, dtype)

    def slope(z):
        return hx.jvp(f, (z,), (np.ones(z.shape, z.dtype),))[1]

    assert_values(name, slope, oracle, z, True, ulps=200)


SECOND = {
    "tan": (lax.tan, lambda z: 2 * mpmath.tan(z) / mpmath.cos(z) ** 2),
    "tanh": (lax.tanh, lambda z: -2 * mpmath.tanh(z) / mpmath.cosh(z) ** 2),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_far_from_the_axes(name, dtype):
    f, oracle = SECOND[name]
    slope = lambda f: lambda z: hx.jvp(f, (z,), (np.ones(z.shape, z.dtype),))[1]
    z = points((0.3, -0.9, 1.1, -2.0, 20.0, -50.0, 300.0, 1e5), dtype)
    eps = float(np.finfo(dtype).eps)
    for got in (np.asarray(slope(slope(f))(z)), np.asarray(hx.jit(slope(slope(f)))(z))):
        for value, y in zip(z, got):
            with mpmath.workdps(40):
                wanted = complex(oracle(mpmath.mpc(complex(value))))
            near = abs(wanted) * (1 + abs(value)) * 100 * eps
            assert abs(complex(y) - wanted) <= near + 4 * np.finfo(dtype).tiny, (value, y, wanted)
    bent = np.asarray(slope(slope(hx.nn.gelu))(np.array([-1e5, 1e5 + 80j], dtype)))
    np.testing.assert_array_equal(bent, [0, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sinc_of_complex_numbers_by_the_distance_from_an_integer(dtype):
    z = np.array([1e5 + 2j, -1e5, 3.5 + 1j, 7, 100.25 - 0.5j, 1e-3j], dtype)
    with mpmath.workdps(40):
        wanted = [complex(mpmath.sinc(mpmath.pi * mpmath.mpc(complex(w)))) for w in z]
    for got in (np.asarray(hx.numpy.sinc(z)), np.asarray(hx.jit(hx.numpy.sinc)(z))):
        assert np.abs(got - wanted).max() <= 20 * np.finfo(dtype).eps
        assert np.abs(got[0] - wanted[0]) <= 20 * np.finfo(dtype).eps * abs(wanted[0])


def pattern(y):
    """Parts by kind: a finite number, zero, infinity, NaN; with signs, unless beside a NaN."""
    parts = np.array([y.real, y.imag]) if np.iscomplexobj(y) else np.array([y])
    parts = np.abs(parts) if np.isnan(parts).any() else parts
    return [str(p) if p == 0 or not np.isfinite(p) else "finite" for p in parts]


# C99, G.6, and by the relations sin z = -i sinh iz, cos z = cosh iz, tan z = -i tanh iz
ANNEX_G = {
    "exp": {(np.inf, 0): np.inf, (-np.inf, np.inf): 0, (np.inf, np.inf): complex(np.inf, np.nan)},
    "log": {(-np.inf, np.inf): complex(np.inf, 0.75 * np.pi), (np.nan, np.inf): complex(np.inf, np.nan)},
    "sqrt": {(np.nan, np.inf): complex(np.inf, np.inf), (-np.inf, 1): complex(0, np.inf)},
    "acos": {(-np.inf, 1): complex(np.pi, -np.inf), (np.nan, np.inf): complex(np.nan, -np.inf)},
    "acosh": {(np.inf, np.inf): complex(np.inf, 0.25 * np.pi), (np.nan, np.inf): complex(np.inf, np.nan)},
    "asinh": {(np.inf, np.inf): complex(np.inf, 0.25 * np.pi), (np.nan, 0): complex(np.nan, 0)},
    "atanh": {(1, 0): complex(np.inf, 0), (np.inf, 1): complex(0, 0.5 * np.pi), (1, np.inf): complex(0, 0.5 * np.pi)},
    "sinh": {(0, np.inf): complex(0, np.nan), (np.inf, 0): complex(np.inf, 0)},
    "cosh": {(0, np.inf): complex(np.nan, 0), (np.inf, 0): complex(np.inf, 0)},
    "tanh": {(np.inf, np.inf): complex(1, 0), (0, np.inf): complex(0, np.nan)},
    "abs": {(np.nan, np.inf): np.inf},
}


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_and_nan(name, dtype):
    f, _, _ = FUNCTIONS[name]
    z = points(SPECIAL, dtype)
    eager, compiled = np.asarray(f(z)), np.asarray(hx.jit(f)(z))
    for value, y, w in zip(z, eager, compiled):
        assert pattern(y) == pattern(w), f"{name} at {value!r}: eager {y!r}, compiled {w!r}"
        if np.isfinite(y):
            assert abs(w - y) <= 64 * np.finfo(dtype).eps * abs(y)
    for (x, y), wanted in ANNEX_G.get(name, {}).items():
        got = f(np.array([complex(x, y)], dtype))[0]
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted, got.dtype), rtol=1e-6)


BINARY = {"div": (lax.div, lambda x, y: x / y), "pow": (lax.pow, lambda x, y: mpmath.exp(y * mpmath.log(x)))}
COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
               "ne": np.not_equal}


@pytest.mark.parametrize("name", COMPARISONS)
def test_complex_numbers_are_compared_as_in_numpy_also_with_nan(name):
    z = points(SPECIAL, "complex64")
    x, y = np.repeat(z, len(z)), np.tile(z, len(z))
    with np.errstate(invalid="ignore"):
        wanted = COMPARISONS[name](x, y)
    np.testing.assert_array_equal(getattr(lax, name)(x, y), wanted)
    np.testing.assert_array_equal(hx.jit(getattr(lax, name))(x, y), wanted)
    eager, compiled = (np.asarray(f(z)) for f in (hx.nn.elu, hx.jit(hx.nn.elu)))  # which chooses by one
    np.testing.assert_array_equal(np.isnan(eager), np.isnan(compiled))


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_logarithms_of_sums(dtype, way):
    z = points((0.0, 1.0, -2.5, 1e-5, 20.0), dtype)
    x, y = np.repeat(z, len(z)), np.tile(z, len(z))
    got = np.asarray(way(hx.numpy.logaddexp)(x, y))
    for a, b, value in zip(x, y, got):
        total = mpmath.exp(mpmath.mpc(complex(a))) + mpmath.exp(mpmath.mpc(complex(b)))
        if abs(total) > 1e-3 * abs(mpmath.exp(mpmath.mpc(complex(a)))):
            error = mpmath.expm1(mpmath.mpc(complex(value)) - mpmath.log(total))
            assert abs(error) <= 2000 * np.finfo(dtype).eps, (a, b, value)
        assert -3.1416 <= value.imag <= 3.1416
    edge = np.array([complex(80, -3.1415925), complex(80, 3.1415925)], dtype)  # just within the range of an angle
    np.testing.assert_array_equal(way(hx.numpy.logaddexp)(edge, np.zeros_like(edge)), edge)
    inf = np.inf
    x = np.array([complex(inf, 1), complex(-inf, 1), complex(inf, 1), complex(-inf, 0)], dtype)
    y = np.array([complex(5, 2), complex(5, 2), complex(-inf, 2), complex(-inf, 0)], dtype)
    np.testing.assert_allclose(way(hx.numpy.logaddexp)(x, y), [x[0], y[1], x[2], x[3]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_quotients_and_powers(name, dtype):
    f, oracle = BINARY[name]
    z = points((1.0, -2.5, 1e-5, 20.0, *[1e-15, 1e15] * (name == "div")), dtype)
    x, y = np.repeat(z, len(z)), np.tile(z, len(z))
    if name == "pow":
        x, y = x[np.abs(y) < 4], y[np.abs(y) < 4]
    for got in (np.asarray(f(x, y)), np.asarray(hx.jit(f)(x, y))):
        for a, b, value in zip(x, y, got):
            wanted = complex(oracle(mpmath.mpc(complex(a)), mpmath.mpc(complex(b))))
            assert abs(complex(value) - wanted) <= 500 * np.finfo(dtype).eps * abs(wanted), (a, b, value, wanted)


@pytest.mark.parametrize("f", [lambda x, y: lax.div(x, y), lambda x, y: hx.jit(lax.div)(x, y)], ids=["eager", "jit"])
def test_quotients_of_infinities_and_by_zero_are_those_of_annex_g(f):
    x = np.array([1 + 1j, complex(np.inf, 1), complex(np.inf, np.inf), 2 - 1j, -1j], "complex64")
    y = np.array([complex(np.inf, -np.inf), 2.0, 1 + 1j, 0.0, complex(-0.0, 0.0)], "complex64")
    got = np.asarray(f(x, y))
    assert got[0] == 0 and np.isinf(got[1:]).all()
    assert got[3].real == np.inf and got[3].imag == -np.inf and got[4].imag == np.inf


@pytest.mark.parametrize("f", [lax.pow, hx.jit(lax.pow)], ids=["eager", "jit"])
def test_powers_of_zero(f):
    zero = np.zeros((), "complex64")
    assert f(zero, np.complex64(2 + 1j)) == 0 and f(zero, np.complex64(0)) == 1
    assert np.isinf(f(zero, np.complex64(-1)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_roots_and_directions_at_both_ends_of_the_range(dtype, way):
    info = np.finfo(dtype)
    top, low = float(info.max), float(info.tiny)
    large, small = [(top, top), (top, -top / 2), (-top, 1), (0, top)], [(1, 0), (0, 1), (-1, 0), (1, 1), (4, -1)]
    parts = [*large, *[(x * low, y * low) for x, y in small]]
    z = np.array([complex(*pair) for pair in parts], dtype)
    with mpmath.workdps(40):
        for f, oracle in ((lax.sqrt, mpmath.sqrt), (lax.rsqrt, lambda z: 1 / mpmath.sqrt(z)), (lax.sign, mpmath.sign)):
            for value, got in zip(z, np.asarray(way(f)(z))):
                wanted = oracle(mpmath.mpc(complex(value)))
                error = abs(mpmath.mpc(complex(got)) - wanted)
                assert error <= 4 * float(info.eps) * abs(wanted), (f, value, got)


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_the_angle_of_a_sum_of_exponentials_is_exact_for_large_angles(way):
    x = 1j * np.array([7.0, 100.0, 1e6, 1e10, 1e300, -1e15]) + np.array([0.0, 1.0, -2.0, 0.5, 3.0, 0.0])
    for a, got in zip(x, np.asarray(way(hx.nn.softplus)(x))):
        with mpmath.workdps(400):
            wanted = complex(mpmath.log(1 + mpmath.exp(mpmath.mpc(complex(a)))))
        assert abs(got - wanted) <= 1e-14, (a, got, wanted)


@pytest.mark.parametrize("way", [lambda f: f, hx.jit], ids=["eager", "jit"])
def test_binary_logarithms_of_complex_zeros_and_infinities(way):
    z = np.array([0, complex(1, -0.0), complex(0.5, -0.0), complex(np.inf, np.nan), complex(-np.inf, 1)], "complex64")
    wanted = [complex(-np.inf, 0), complex(0, -0.0), complex(-1, -0.0), complex(np.inf, np.nan),
              complex(np.inf, np.pi / np.log(2))]
    got = np.asarray(way(lax.log2)(z))
    np.testing.assert_allclose(got.real, np.real(wanted), rtol=1e-6)
    np.testing.assert_allclose(got.imag, np.imag(wanted), rtol=1e-6)
    assert np.signbit(got.imag[1:3]).all()
