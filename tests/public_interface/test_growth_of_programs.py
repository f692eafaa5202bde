"""Programs do not grow with the size of an axis, with how many places are known, or with a static number."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.scipy import special

SIZES = 40, 120
Z = np.linspace(1.0, 2.0, 3, dtype="float32")


def vector(n):
    return hnp.linspace(0.5, 1.5, n)


CASES = {  # of a number n: a function, and its argument
    "quantile": lambda n: (lambda x: hnp.quantile(x, np.linspace(0, 1, n)), vector(9)),
    "percentile, the nearest": lambda n: (lambda x: hnp.percentile(x, np.arange(n) % 100, method="nearest"), vector(9)),
    "nanquantile": lambda n: (lambda x: hnp.nanquantile(x, np.linspace(0, 1, n)), vector(9)),
    "insert": lambda n: (lambda x: hnp.insert(x, np.arange(n), 1.0), vector(n)),
    "delete": lambda n: (lambda x: hnp.delete(x, np.arange(0, n, 2)), vector(n)),
    "subtract.reduce": lambda n: (hnp.subtract.reduce, vector(n)),
    "subtract.accumulate": lambda n: (hnp.subtract.accumulate, vector(n)),
    "frompyfunc.accumulate": lambda n: (hnp.frompyfunc(lambda x, y: x * y + 1, 2, 1).accumulate, vector(n)),
    "polyval": lambda n: (lambda p: hnp.polyval(p, Z), vector(n)),
    "polynomial": lambda n: (lambda x: hx.lax.polynomial(x, [0.5] * n), Z),
    "polyder": lambda n: (hnp.polyder, vector(n)),
    "polyint": lambda n: (hnp.polyint, vector(n)),
    "multigammaln": lambda n: (lambda a: special.multigammaln(a, n), 100 * Z),
    "bessel_jn, the order": lambda n: (lambda z: special.bessel_jn(z, v=n), Z),
    "bessel_jn, the beginning": lambda n: (lambda z: special.bessel_jn(z, v=2, n_iter=n), Z),
    "rows of an array": lambda n: (lambda x: x[np.random.default_rng(0).permutation(n)], vector(n)),
    "repeat": lambda n: (lambda x: hnp.repeat(x, np.arange(n), total_repeat_length=n), vector(n)),
    "bincount": lambda n: (lambda x: hnp.bincount(x, length=n), np.arange(5)),
    "pad": lambda n: (lambda x: hnp.pad(x, n, mode="edge"), vector(3)),
    "tile": lambda n: (lambda x: hnp.tile(x, n), vector(3)),
    "vander": lambda n: (hnp.vander, vector(n)),
    "convolve": lambda n: (lambda x: hnp.convolve(x, x), vector(n)),
    "dct": lambda n: (hx.scipy.fft.dct, vector(n)),
    "toeplitz": lambda n: (hx.scipy.linalg.toeplitz, vector(n)),
    "cholesky_update": lambda n: (lambda x: hx.lax.linalg.cholesky_update(hnp.eye(n), x), vector(n)),
    "tridiagonal_solve": lambda n: (lambda d: hx.lax.linalg.tridiagonal_solve(d, d, d, d[:, None]), vector(n)),
    "categorical": lambda n: (lambda x: hx.random.categorical(hx.random.key(0), x), vector(n)),
    "multinomial": lambda n: (lambda x: hx.random.multinomial(hx.random.key(0), n, x), Z / 9),
    "permutation": lambda n: (lambda x: hx.random.permutation(hx.random.key(0), x), vector(n)),
    "dirichlet": lambda n: (lambda x: hx.random.dirichlet(hx.random.key(0), x), vector(n)),
    "segment_sum": lambda n: (lambda x: hx.ops.segment_sum(x, np.arange(n), n), vector(n)),
    "softmax": lambda n: (hx.nn.softmax, vector(n)),
}


def equations(program):
    return len(program.ops) + sum([equations(body) for op in program.ops if op.bodied for body in op.bodies])


@pytest.mark.parametrize("name", CASES)
def test_as_many_equations_for_a_larger_number(name):
    counts = []
    for n in SIZES:
        f, x = CASES[name](n)
        counts.append(equations(hx.make_program(f)(x)))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("name", ["quantile", "percentile, the nearest", "insert", "delete", "subtract.reduce",
                                  "subtract.accumulate", "frompyfunc.accumulate", "polyval", "polynomial", "polyder",
                                  "polyint"])
def test_compiled_and_eager_values_agree(name):
    f, x = CASES[name](20)
    np.testing.assert_allclose(hx.jit(lambda x: f(x))(x), f(x), rtol=1e-5)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_known_levels_read_infinite_and_missing_ones(method):
    x, q = np.array([-np.inf, 1.0, 2.0, 4.0, np.inf]), np.array([0.0, 0.25, 0.3, 0.5, 1.0, 0.6])
    found = np.asarray(hx.jit(lambda x: hnp.quantile(x, np.append(q, np.nan), method=method))(x))
    np.testing.assert_array_equal(found[[0, 1, 3, 4]], x[[0, 1, 2, 4]])  # no multiple of an infinite neighbour
    np.testing.assert_allclose(found[[2, 5]], np.quantile(x, q[[2, 5]], method=method), rtol=1e-12)
    assert np.isnan(found[-1])


def test_insert_and_delete_at_many_places_are_those_of_numpy():
    x, places = np.arange(60.0).reshape(30, 2), np.arange(0, 30, 2)
    inserted = hx.jit(lambda x: hnp.insert(x, places, x[places] + 0.5, 0))(x)
    np.testing.assert_array_equal(inserted, np.insert(x, places, x[places] + 0.5, 0))
    np.testing.assert_array_equal(hx.jit(lambda x: hnp.delete(x, places, 0))(x), np.delete(x, places, 0))


def test_a_fold_whose_first_step_changes_the_dtype():
    below = hnp.frompyfunc(lambda x, y: x < y, 2, 1)
    x = np.random.default_rng(0).random(30)
    assert below.reduce(x) == np.frompyfunc(lambda x, y: x < y, 2, 1).reduce(x)
    quotients = hnp.frompyfunc(lambda x, y: x / y, 2, 1).reduce(np.arange(1, 12, dtype="int32"))
    np.testing.assert_allclose(quotients, np.divide.reduce(np.arange(1.0, 12.0)), rtol=1e-6)
