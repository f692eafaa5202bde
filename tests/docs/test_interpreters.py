"""The interpreters of examples/interpreters, each against a computation that shares nothing with it."""

from __future__ import annotations

import contextlib
import importlib
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from helpers.interpreter_examples import FOLDER, example, folder

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp

__all__ = ["folder"]    # a fixture, which pytest finds here


FAMILIES = sorted(path.stem for path in FOLDER.parents[1].glob("tests/laws/inputs_*.py"))


def drawn(family, dtypes, seed=0):
    """The operations for which the laws have inputs, and a draw of operands of each of these dtypes."""
    rng = np.random.default_rng(seed)
    for case in importlib.import_module(f"laws.{family}").CASES:
        for dtype in map(np.dtype, dtypes):
            if dtype in case.dtypes and not case.op.effects:
                shapes = case.shapes[min(1, len(case.shapes) - 1)]
                yield case.op, [np.asarray(x) for x in case.draw(dtype, shapes, rng)]


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_an_interpreter_is_short_and_uses_public_names_alone(file):
    text = file.read_text()
    assert sum(bool(line.strip()) for line in text.splitlines()) < 120
    for layer in ("effects", "interpreters", "lowering"):
        assert f"handlax.{layer}" not in text
    assert not re.search(r"import _|\._[a-z]", text)


@pytest.mark.parametrize("page", ["tutorial/interpreter.md", "explanation/how-it-works.md"])
def test_a_page_about_interpreters_imports_public_names_alone(page):
    imports = re.findall(r"^(?:>>> )?from (\S+) import", (FOLDER.parents[1] / "docs" / page).read_text(), re.MULTILINE)
    assert imports
    assert not [name for name in imports if re.match(r"handlax\.(effects|interpreters|lowering)\b", name)]


# Random programs, as functions of handlax's arrays and of mpmath's numbers.

UNARY = {
    "exp": (hnp.exp, mpmath.exp), "sin": (hnp.sin, mpmath.sin), "cos": (hnp.cos, mpmath.cos),
    "tanh": (hnp.tanh, mpmath.tanh), "arctan": (hnp.arctan, mpmath.atan), "square": (hnp.square, lambda x: x * x),
    "log": (lambda x: hnp.log(1 + abs(x)), lambda x: mpmath.log(1 + abs(x))),
    "sqrt": (lambda x: hnp.sqrt(1 + x * x), lambda x: mpmath.sqrt(1 + x * x)),
    "cube": (lambda x: x**3, lambda x: x**3), "power": (lambda x: x**20, lambda x: x**20),
    "inverse": (lambda x: (1 + x * x) ** -2, lambda x: (1 + x * x) ** -2),
    "logistic": (nn.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))), "neg": (lambda x: -x, lambda x: -x),
    "log1p": (lambda x: hnp.log1p(x * x), lambda x: mpmath.log1p(x * x)), "expm1": (hnp.expm1, mpmath.expm1),
    "erf": (lax.erf, mpmath.erf), "rsqrt": (lambda x: lax.rsqrt(1 + abs(x)), lambda x: 1 / mpmath.sqrt(1 + abs(x))),
    "cosh": (hnp.cosh, mpmath.cosh), "sinh": (hnp.sinh, mpmath.sinh),
    "where": (lambda x: hnp.where(x > 0.25, x, 2 * x), lambda x: x if x > 0.25 else 2 * x),
}
BINARY = {
    "add": (lambda x, y: x + y, lambda x, y: x + y), "sub": (lambda x, y: x - y, lambda x, y: x - y),
    "mul": (lambda x, y: x * y, lambda x, y: x * y), "max": (hnp.maximum, max),
    "div": (lambda x, y: x / (2 + y * y), lambda x, y: x / (2 + y * y)),
    "logaddexp": (hnp.logaddexp, lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y))),
}


def random_program(rng, length):
    """Lines (name, operands) of a program of two arguments, each of which reads earlier values."""
    names = [*UNARY, *BINARY]
    return [(names[rng.integers(len(names))], rng.integers(i + 2, size=2)) for i in range(length)]


def run(program, side, x, y):
    values = [x, y]
    for name, operands in program:
        f = (UNARY.get(name) or BINARY[name])[side]
        values.append(f(*[values[i] for i in operands[: 1 if name in UNARY else 2]]))
    return values[-1]


def certify(seed, length):
    """The bounds of a random program, eager and compiled, hold for exact values at points of a box."""
    rng = np.random.default_rng(seed)
    program = random_program(rng, length)
    dtype = [np.float32, np.float64][seed % 2]
    lo = rng.uniform(-2, 2, 2).astype(dtype)
    hi = (lo + rng.choice([0, 1e-6, 0.1, 1]) * rng.uniform(0, 1, 2)).astype(dtype)
    bounded = example("interval_bounds").bounds(lambda x: run(program, 0, *x))
    box = [[hnp.array(end, dtype) for end in ends] for ends in (lo, hi)]
    found = [[float(end) for end in f(*box)] for f in (bounded, hx.jit(bounded))]
    for _ in range(5):
        point = [min(max(dtype(rng.uniform(a, b)), a), b) for a, b in zip(lo, hi)]
        exact = run(program, 1, *[mpmath.mpf(float(v)) for v in point])
        for least, largest in found:
            assert mpmath.mpf(least) <= exact <= mpmath.mpf(largest), (program, point, least, exact, largest)


@pytest.mark.parametrize("seed", range(8))
def test_interval_bounds_hold_in_exact_arithmetic(seed):
    with mpmath.workdps(60):
        certify(seed, 6)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 300))
def test_interval_bounds_of_long_programs_hold_in_exact_arithmetic(seed):
    with mpmath.workdps(60):
        certify(seed, 12)


@pytest.mark.parametrize("name", UNARY)
def test_the_bounds_of_one_function_at_a_point_are_narrow(name):
    bounds, x = example("interval_bounds").bounds, hnp.linspace(-2.0, 2.0, 9)
    lo, hi = bounds(UNARY[name][0])(x, x)
    y = UNARY[name][0](x)
    assert ((lo <= y) & (y <= hi)).all()
    assert (hi - lo <= 1e-4 * hnp.maximum(abs(y), 1)).all() or name == "where"


def test_interval_bounds_of_products_and_sums_hold_in_exact_arithmetic():
    rng, bounds = np.random.default_rng(0), example("interval_bounds").bounds
    a, w = rng.normal(size=(3, 50)).astype("float32"), rng.normal(size=(50, 2)).astype("float32")
    r = np.float32(1e-3)
    lo, hi = map(np.asarray, bounds(lambda a: a @ w)(a - r, a + r))
    low, high = map(np.asarray, bounds(lambda a: a.sum(1))(a - r, a + r))
    for _ in range(20):
        point = np.clip(rng.uniform(a - r, a + r).astype("float32"), a - r, a + r)
        for i in range(3):
            row = [Fraction(float(v)) for v in point[i]]
            assert Fraction(float(low[i])) <= sum(row) <= Fraction(float(high[i]))
            for j in range(2):
                exact = sum(x * Fraction(float(v)) for x, v in zip(row, w[:, j]))
                assert Fraction(float(lo[i, j])) <= exact <= Fraction(float(hi[i, j]))
    assert (hi - lo <= 2 * r * abs(w).sum(0) * 1.05).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.sweep) for seed in range(1, 10)]])
def test_interval_bounds_of_each_operation_hold_at_points_between(family, seed):
    """Operations that are monotone in pieces, as conversion to bool is, fail between the ends of their operands."""
    bounds, rules = example("interval_bounds").bounds, example("interval_rules").BOUNDS
    for draws in zip(*[drawn(family, ("float32", "int32", "bool", "uint8"), 3 * seed + i) for i in range(3)]):
        (op, *_), points = zip(*draws)
        wraps = any([x.dtype == np.uint8 for x in points[0]]) and op.name != "convert_element_type"
        if not points[0] or wraps or not rules.has(type(op)):  # arithmetic that wraps around has no bounds
            continue
        f = lambda xs: op.as_results(hx.perform(op, *xs))[0]
        ends = [[np.stack(xs).min(0) for xs in zip(*points)], [np.stack(xs).max(0) for xs in zip(*points)]]
        try:
            lo, hi = bounds(f)(*ends)
        except hx.errors.MissingRule:  # it has bounds for some dtypes alone
            continue
        for xs in (*points, *ends):
            y = np.asarray(f(xs))
            assert ((lo <= y) & (y <= hi) | (y != y)).all(), (op, ends, xs)


def test_interval_bounds_of_conversions_see_the_zero_and_what_wraps_around():
    bounds = example("interval_bounds").bounds
    assert [bool(y) for y in bounds(lambda x: x.astype(bool))(-1.0, 1.0)] == [False, True]
    assert [bool(y) for y in bounds(lambda x: x.astype(bool))(0.5, 1.0)] == [True, True]
    assert np.allclose(bounds(lambda x: x.astype(bool).astype("float32"))(-1.0, 1.0), (0.0, 1.0))
    assert [int(y) for y in bounds(lambda n: n.astype("uint8"))(hnp.int32(-1), hnp.int32(1))] == [0, 255]
    assert [int(y) for y in bounds(lambda n: n.astype("uint8"))(hnp.int32(2), hnp.int32(9))] == [2, 9]
    for refused in (lambda n: n & 3, lambda n: n @ n, lambda n: n.astype("complex64")):
        with pytest.raises(hx.errors.MissingRule, match="alone"):
            bounds(refused)(hnp.arange(3), hnp.arange(3) + 1)


def test_interval_bounds_cross_loops_branches_and_transformations():
    bounds = example("interval_bounds").bounds

    def f(x):
        x = lax.fori_loop(0, 3, lambda i, c: hnp.sin(c) + c / 2, x)
        x = lax.cond(x > 0.5, lambda x: x * x, lambda x: 1 - x, x)
        return nn.softmax(hnp.stack([x, -x, 2 * x])).max() + nn.logsumexp(hnp.stack([x, 1 - x]))

    lo, hi = hnp.float32(-0.2), hnp.float32(1.0)
    points = hnp.linspace(lo, hi, 50)
    values, slopes = hx.vmap(f)(points), hx.vmap(hx.grad(f))(points)
    least, largest = bounds(f)(lo, hi)
    assert (least <= values).all() and (values <= largest).all()
    for g in (hx.jit(bounds(f)), bounds(hx.jit(f)), lambda a, b: [y[0] for y in hx.vmap(bounds(f))(a[None], b[None])]):
        assert np.allclose(g(lo, hi), (least, largest), rtol=1e-5)
    below, above = bounds(hx.grad(f))(lo, hi)
    assert (below <= slopes).all() and (slopes <= above).all()
    assert np.isfinite(hx.grad(lambda hi: bounds(f)(lo, hi)[1])(hi))
    with pytest.raises(hx.errors.CannotCross):
        bounds(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, x))(lo, hi)
    with pytest.raises(hx.errors.MissingRule, match="dynamic_slice"):
        bounds(lambda x: hnp.arange(5.0)[x])(0, 1)


# Units of measure: the result of a function of quantities scales as its unit says when the base units change.

def rescaled(f, units, xs, scales):
    """The result of ``f`` in other base units, and the factor that the unit of the result predicts."""
    measured = example("units_of_measure").measured
    factor = lambda unit: float(np.prod([scales[name] ** float(n) for name, n in unit]))
    (y, unit), (z, again) = measured(f, *units)(*xs), measured(f, *units)(
        *[x * factor(u) for x, u in zip(xs, units)])
    assert unit == again
    return z, y * factor(unit)


def orbit(mass, distance, speed, gravity):
    """A period by Kepler's third law, after some steps that change the distance."""
    def step(state, _):
        r, v = state
        v = v - gravity * mass / r**2 * (r / v) / 100
        return (r + v * (r / v) / 100, v), v**2 / r

    (r, v), forces = lax.scan(step, (distance, speed), None, 5)
    r = lax.cond(v * v * r > gravity * mass, lambda: r, lambda: 2 * r)
    return hnp.sqrt(r**3 / (gravity * mass)) * hnp.sin(r / distance) + r / hnp.sqrt(hnp.max(forces)) / hnp.sqrt(r)


FUNCTIONS = {
    "orbit": orbit,
    "jit": hx.jit(orbit),
    "energy": lambda m, r, v, g: 0.0 + m * v**2 / 2 - g * m * m / r + hnp.where(r > r / 2, m * v * v, 0.0),
    "vmap": lambda m, r, v, g: hx.vmap(lambda k: k * r + hnp.stack([r, r]) @ hnp.ones(2))(hnp.arange(3.0)).sum(),
    "sum": lambda m, r, v, g: lax.fori_loop(0, 4, lambda i, total: total + i * r, 0.0),
    "grad": lambda m, r, v, g: hx.grad(lambda r: m * v**2 * hnp.exp(-(r / r)) / r)(r),
    "grad of a loop": hx.grad(lambda m, r, v, g: lax.fori_loop(0, 4, lambda i, e: e + m * v**2 / (i + 1), m * v**2), 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_scale_as_their_units_say(name):
    unit = example("units_of_measure").Unit
    units = [unit(kg=1), unit(m=1), unit(m=1, s=-1), unit(kg=-1, m=3, s=-2)]
    xs, scales = [hnp.float32(x) for x in (2.0, 3.0, 1.5, 0.7)], {"kg": 2.0, "m": 0.5, "s": 4.0}
    found, predicted = rescaled(FUNCTIONS[name], units, xs, scales)
    assert np.allclose(found, predicted, rtol=1e-5)


def test_units_that_differ_are_refused():
    module = example("units_of_measure")
    metre, second = module.Unit(m=1), module.Unit(s=1)
    wrong = {
        "add": lambda x, t: x + t, "number": lambda x, t: x + 1.0, "exp": lambda x, t: hnp.exp(x),
        "softmax": lambda x, t: nn.softmax(hnp.stack([x, x])), "less": lambda x, t: x < t,
        "loop": lambda x, t: lax.fori_loop(0, 3, lambda i, c: c * x, x),
        "branch": lambda x, t: lax.cond(t > 2 * t, lambda: x, lambda: x * x), "stack": lambda x, t: hnp.stack([x, t]),
    }
    for f in wrong.values():
        for g in (f, hx.jit(f)):
            with pytest.raises(hx.errors.BadArgument, match="differ"):
                module.measured(g, metre, second)(3.0, 2.0)


# Sparse Jacobians: the pattern holds the entries that are not zero at random points, and the compressed one is dense's.

def stencil(x):
    return hnp.roll(x, 1) * x - 2 * hnp.sin(x)


@hx.custom_jvp
def straight_through(x):
    return hnp.round(x)


straight_through.defjvp(lambda primals, tangents: (straight_through(*primals), tangents[0]))
WEIGHTS = np.kron(np.eye(4), np.ones((3, 3)))
SPARSE = {
    "stencil": stencil,
    "loop": lambda x: lax.fori_loop(0, 2, lambda i, x: stencil(x), x),
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y[0]), hnp.zeros(3), x.reshape(4, 3))[1],
    "blocks": lambda x: hnp.tanh(hnp.asarray(WEIGHTS, x.dtype) @ x),
    "quadratic": lambda x: x.reshape(4, 3) @ x.reshape(3, 4),
    "conv": lambda x: hnp.convolve(x, hnp.array([1.0, 0.0, -1.0]), mode="same"),
    "branch": lambda x: lax.cond(x[0] > 0, lambda x: x[::-1], lambda x: 2 * x, x),
    "select": lambda x: hnp.where(x > 0, x**2, hnp.roll(x, 3)),
    "softmax": lambda x: nn.softmax(x.reshape(3, 4), 1),
    "max": lambda x: x.reshape(3, 4).max(1),
    "relu": lambda x: nn.relu(x)[2:7],
    "sort": lambda x: hnp.sort(x.reshape(3, 4), 1),
    "index": lambda x: x[hnp.argmax(x)] + x[3:5],
    "scatter": lambda x: hnp.zeros(5).at[hnp.array([0, 2, 2])].add(x[:3]),
    "cumulative": lambda x: hnp.cumsum(x.reshape(3, 4), 1) * hnp.cumprod(x[:4]),
    "inside": lambda x: hx.vmap(hx.grad(lambda y: hnp.sum(y**3)))(x.reshape(6, 2)),
    "jit": hx.jit(stencil),
    "mask": lambda x: hnp.where((x[:6] > 0)[:, None], x.reshape(6, 2), 0.0),
    "straight through": lambda x: straight_through(x)[:4],
    "fft": lambda x: hnp.abs(hnp.fft.rfft(x.reshape(2, 6), axis=1)),
    "constant": lambda x: hnp.ones(3),
    "there and back": lambda x: hnp.fft.irfft(hnp.fft.rfft(x)),
    "filter": lambda x: hnp.fft.irfftn(hnp.fft.rfftn(x.reshape(3, 2, 2), axes=(1, 2))[:, :, :1], (2, 2), axes=(1, 2)),
    "subtract": lambda x: x[:5].at[hnp.array([0, 2])].subtract(x[:2]),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparsity_pattern_has_every_entry_of_the_jacobian(name):
    f, x = SPARSE[name], hnp.zeros(12)
    found, sparse = example("jacobian_sparsity").pattern(f, x), example("compressed_jacobian").sparse_jacobian(f, x)
    for seed in range(2):
        z = hnp.array(np.random.default_rng(seed).normal(size=12).astype("float32"))
        dense = np.asarray(hx.jacfwd(f)(z)).reshape(found.shape)
        assert not (dense != 0)[~found].any()
        assert np.allclose(sparse(z).todense(), dense, atol=1e-5)
    assert np.allclose(hx.jit(sparse)(z).todense(), dense, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sparsity_pattern_has_every_entry_of_the_jacobian_of_each_operation(family):
    """All operands depend on the argument, so that what they contribute may cancel."""
    pattern, z = example("jacobian_sparsity").pattern, hnp.zeros(5)
    for op, xs in drawn(family, ("float32", "complex64")):
        if not hx.columns.JVP.has(type(op)):
            continue
        shifted = lambda x, z: x + (z * (1 + 1j if x.dtype.kind == "c" else 1))[np.arange(x.size) % 5].reshape(x.shape)
        f = lambda z: op.as_results(hx.perform(op, *[shifted(x, z) if x.dtype.kind in "fc" else x for x in xs]))
        for n, y in enumerate(f(z)):
            if y.size and y.dtype.kind in "fc":
                real = lambda z: hnp.abs(f(z)[n]) if y.dtype.kind == "c" else f(z)[n]
                with contextlib.suppress(hx.errors.NotDifferentiable):
                    dense = np.asarray(hx.jacfwd(real)(z))
                    found = pattern(real, z)
                    assert not (dense.reshape(found.shape) != 0)[~found].any(), (op, n)


def test_a_sparsity_pattern_has_few_other_entries_and_holds_at_every_point():
    pattern, x = example("jacobian_sparsity").pattern, hnp.zeros(12)
    counts = {"stencil": 24, "loop": 36, "blocks": 36, "conv": 22, "branch": 24, "select": 24, "softmax": 48, "max": 12,
              "relu": 5, "scatter": 3, "inside": 12, "jit": 24, "constant": 0, "mask": 23, "straight through": 4}
    assert {name: int(pattern(SPARSE[name], x).sum()) for name in counts} == counts
    with pytest.raises(hx.errors.CannotCross):
        pattern(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x), x)


def test_columns_of_one_colour_have_no_common_row():
    rng = np.random.default_rng(0)
    for density in (0.0, 0.05, 0.3, 1.0):
        depends = rng.uniform(size=(30, 40)) < density
        colour = example("compressed_jacobian").colours(depends)
        for c in range(colour.max() + 1):
            assert (depends[:, colour == c].sum(1) <= 1).all()


# Inverses, and their determinants by the Jacobian.

MATRIX = np.eye(6) + 0.2 * np.sin(np.arange(36.0)).reshape(6, 6)


def coupled(x, scale):
    a, b = hnp.split(x, 2)
    return hnp.concatenate([b * hnp.exp(hnp.tanh(scale * a)) + hnp.cos(a), a])


INVERTIBLE = {
    "elementwise": lambda x: hnp.sinh(2 * hnp.arcsinh(x) - 1) / -3,
    "matrix": lambda x: MATRIX.astype("float32") @ hnp.exp(x),
    "row": lambda x: (x - 0.5) @ MATRIX.astype("float32"),
    "matrices": lambda x: (x.reshape(3, 2).T @ MATRIX[:3, :3].astype("float32")).reshape(6)[::-1],
    "left": lambda x: (MATRIX[:3, :3].astype("float32") @ x.reshape(3, 2)).ravel(),
    "coupling": lambda x: coupled(x, 0.7),
    "jit": hx.jit(lambda x: hx.jit(coupled)(x, 0.2) + 1),
    "scan": lambda x: lax.scan(lambda x, s: (coupled(x, s), None), x, hnp.array([0.5, -1.0, 2.0]))[0],
    "backwards": lambda x: lax.scan(lambda x, s: (coupled(x, s), None), x, hnp.array([0.5, -1.0]), reverse=True)[0],
    "branch": lambda x: lax.cond(MATRIX[0, 0] > 0, hnp.arctan, lambda x: -x, x),
    "vmap": lambda x: hx.vmap(lambda y: coupled(y, 0.4))(x.reshape(3, 2)).ravel(),
}


@pytest.mark.parametrize("name", INVERTIBLE)
def test_an_inverse_has_the_determinant_of_the_jacobian(name):
    f, inverse = INVERTIBLE[name], example("inverse_log_det").inverse
    x = hnp.array(np.random.default_rng(3).uniform(-1, 1, 6).astype("float32"))
    y, expected = f(x), hnp.linalg.slogdet(hx.jacfwd(f)(x))[1]
    for g in (inverse(f, x), hx.jit(inverse(f, x)), lambda y: [z[0] for z in hx.vmap(inverse(f, x))(y[None])]):
        found, log_det = g(y)
        assert np.allclose(found, x, atol=2e-4) and np.allclose(log_det, expected, atol=2e-4)


def test_the_density_of_a_flow_has_a_gradient():
    inverse, x = example("inverse_log_det").inverse, hnp.array([0.3, -0.2, 0.5, 0.1])

    def by_solving(scale):
        z, log_det = inverse(lambda x: coupled(x, scale), x)(x)
        return (z**2).sum() / 2 + log_det

    def by_hand(scale):
        y, a = hnp.split(x, 2)
        z = (y - hnp.cos(a)) / hnp.exp(hnp.tanh(scale * a))
        return (a**2).sum() / 2 + (z**2).sum() / 2 + hnp.tanh(scale * a).sum()

    assert np.allclose(hx.grad(by_solving)(0.7), hx.grad(by_hand)(0.7), rtol=1e-4)


def test_what_cannot_be_solved_is_refused():
    inverse, x = example("inverse_log_det").inverse, hnp.ones(3)
    looped = lambda x: lax.fori_loop(0, 2, lambda i, c: 2 * c, x)  # the index is a carry that is known
    for f in (lambda x: x * x, lambda x: x[0] + x, hnp.sin, looped):
        with pytest.raises(hx.errors.MissingRule):
            inverse(f, x)(f(x))
    for f in (hnp.sum, lambda x: (hnp.sinh(x), hnp.exp(x))):
        with pytest.raises(hx.errors.ShapeMismatch, match="no bijection"):
            inverse(f, x)


# Rooflines: what XLA counts, and counts by hand for loops.

def test_a_roofline_counts_what_xla_counts():
    def f(x, w):
        y = x @ w
        y = y + y * 2.0
        return (y @ w) - x

    x, w = hnp.ones((32, 64)), hnp.ones((64, 64))
    module = example("roofline_by_line")
    lines = module.roofline(f, x, w, device=module.Device(1e12, 1e12))
    counted = hx.jit(f).lower(x, w).compile().cost_analysis()
    assert sum(c.flops for c in lines.values()) == counted["flops"]
    first = f.__code__.co_firstlineno
    by_line = {line - first: c for (_, line), c in lines.items()}
    assert [by_line[i].flops for i in (1, 2, 3)] == [2 * 32 * 64 * 64, 2 * 32 * 64, (2 * 64 + 1) * 32 * 64]
    assert by_line[1].bytes == 4 * (32 * 64 + 64 * 64 + 32 * 64)
    assert np.isclose(by_line[1].seconds, 2 * 32 * 64 * 64 / 1e12)


def test_a_roofline_counts_iterations_lanes_and_the_longer_branch():
    module = example("roofline_by_line")

    def total(f, *args):
        return sum(c.flops for c in module.roofline(f, *args, device=module.Device(1.0, 1.0)).values())

    x, w = hnp.ones((8, 8)), hnp.ones((8, 8))
    product = 2 * 8**3
    assert total(lambda x, w: lax.scan(lambda c, _: (c @ w, None), x, None, 5)[0], x, w) == 5 * product
    assert total(hx.jit(lambda x, w: lax.cond(True, lambda: x @ w @ w, lambda: x @ w)), x, w) == 2 * product
    assert total(hx.vmap(lambda x, w: x @ w, (0, None)), hnp.ones((3, 8, 8)), w) == 3 * product
    assert total(hx.grad(lambda x, w: lax.scan(lambda c, _: (c @ w, None), x, None, 5)[0].sum()), x, w) >= 5 * product


# Quantisation: the same integers by NumPy.

def in_bytes(x, w, largest):
    """A product of matrices in integers, with the scales of their largest operands."""
    scales = [np.float32(np.maximum(m, np.float32(1e-30)) / np.float32(127)) for m in largest]
    a, b = [np.clip(np.round(v / s), -127, 127).astype(np.int64) for v, s in zip((x, w), scales)]
    return (a @ b).astype(np.float32) * (scales[0] * scales[1])


def layers_in_numpy(x, ws, product):
    for i, w in enumerate(ws):
        x = np.tanh(product(i, x, w)) + x
    return product(len(ws), x, ws[0])


@pytest.mark.parametrize("around", ["loop", "jit", "branch", "vmap"])
def test_quantised_products_are_those_of_integers(around):
    def layers(x, ws):
        x, _ = lax.scan(lambda x, w: (hnp.tanh(x @ w) + x, None), x, ws)
        return x @ ws[0]

    f = {
        "loop": layers, "jit": hx.jit(layers),
        "branch": lambda x, ws: lax.cond(x[0, 0] > -99, layers, lambda x, ws: x, x, ws),
        "vmap": lambda x, ws: hx.vmap(layers, (0, None))(x[:, None], ws)[:, 0],
    }[around]
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.normal(size=shape).astype("float32")
    samples = [(draw(4, 6), draw(3, 6, 6) / 2) for _ in range(2)]
    largest = np.zeros((2, 2), np.float32)  # of the product in the loop, and of the one after it

    def watched(i, x, w):
        largest[i // 3] = np.maximum(largest[i // 3], [abs(x).max(), abs(w).max()])
        return x @ w

    for sample in samples:
        layers_in_numpy(*sample, watched)
    x, ws = samples[0]
    expected = layers_in_numpy(x, ws, lambda i, x, w: in_bytes(x, w, largest[i // 3]))
    simulated = example("int8_simulation").quantised(f, samples)
    for g in (simulated, hx.jit(simulated), lambda x, ws: hx.vmap(simulated, (0, None))(x[None], ws)[0]):
        assert np.allclose(g(x, ws), expected, atol=1e-5)
    assert 1e-4 < abs(expected - layers_in_numpy(x, ws, lambda i, x, w: x @ w)).max() < 0.1


def test_derivatives_pass_the_rounding():
    x, w = np.float32([[1.0, -2.0]]), np.float32([[0.3, 0.7], [-0.2, 1.0]])
    simulated = example("int8_simulation").quantised(lambda x, w: x @ w, [(x, w)])
    assert np.allclose(hx.grad(lambda x: simulated(x, w).sum())(x), w.sum(1))
