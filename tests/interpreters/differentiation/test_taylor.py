"""Taylor mode against nested forward mode, and what it costs."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp
from handlax.experimental.jet import jet

RNG = np.random.default_rng(2)
ORDER = 4


def nested(f, primals, series):
    """The derivatives of ``f`` along the curves with these derivatives at 0, by ``jvp`` of ``jvp``."""

    def along(t):
        return f(*[x + sum(t**k * term / math.factorial(k) for k, term in enumerate(terms, 1))
                   for x, terms in zip(primals, series)])

    found, zero, one = [along], np.float64(0), np.float64(1)
    for _ in series[0]:
        found.append(partial(lambda g, t: hx.jvp(g, (t,), (one,))[1], found[-1]))
    return [g(zero) for g in found]


def inputs(count, order=ORDER):
    primals = [RNG.uniform(0.3, 0.9, (2, 3)) for _ in range(count)]
    return primals, [[RNG.normal(size=(2, 3)) for _ in range(order)] for _ in primals]


ONE = (
    "abs arcsin arctan cbrt cos cumprod cumsum exp floor log log1p negative reciprocal sign sin sqrt square tan tanh"
)
TWO = "add arctan2 divide hypot logaddexp maximum multiply power subtract"
FUNCTIONS = {
    **{name: (getattr(hnp, name), 1) for name in ONE.split()},
    **{name: (getattr(lax, name), 1) for name in ["bessel_i0e", "digamma", "erf_inv", "erfc", "logistic", "rsqrt"]},
    **{name: (getattr(hnp, name), 2) for name in TWO.split()},
    "a product of matrices": (lambda x, y: x @ y.T, 2),
    "a cholesky factor": (lambda x: lax.linalg.cholesky(x @ x.T + hnp.eye(2)), 1),
    "powers": (lambda x: x**5 + x**-3, 1),
    "choices": (lambda x, y: hnp.where(x > 0.5, x, y * x), 2),
    "parts": (lambda x: x[1:, :2] * 2 + x[0, 1] - x.max(1, keepdims=True) + hnp.sort(x, 1)[1:, :1], 1),
    "softmax": (hx.nn.softmax, 1),
    "a jitted function": (hx.jit(lambda x: hnp.sin(x) * x), 1),
    "a scan": (lambda x: lax.scan(lambda c, y: (hnp.sin(c) * y, c + y), x[0], x)[1], 1),
    "a carry that becomes a series": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * c + x, hnp.ones_like(x)), 1),
    "a while loop": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * c + c + x, x), 1),
    "a branch": (lambda x: lax.cond(x.sum() > 0, lambda x: x * x, lambda x: 0 * x + 1, x), 1),
    "a custom rule": (hx.scipy.special.ndtri, 1),
    "a gradient": (hx.grad(lambda x: (hnp.sin(x) * x).sum()), 1),
    "lanes": (hx.vmap(lambda row: row * row.sum()), 1),
    "rematerialisation": (hx.checkpoint(lambda x: hnp.sin(hnp.exp(x))), 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_nested_forward_mode(name):
    f, count = FUNCTIONS[name]
    primals, series = inputs(count)
    y, terms = jet(f, primals, series)
    for found, expected in zip([y, *terms], nested(f, primals, series), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_trees_constants_and_integers():
    y, terms = jet(lambda a: {"y": a["x"] * 2, "n": hnp.arange(2), "c": 3.0}, ({"x": 1.0},), ({"x": [1.0, 5.0]},))
    assert y["y"] == 2 and [float(t) for t in terms["y"]] == [2, 10]
    assert y["n"].dtype == "int32" and [t.tolist() for t in terms["c"]] == [0, 0]


def test_coefficients_instead_of_derivatives():
    _, terms = jet(hnp.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    np.testing.assert_allclose(np.stack(terms), [1, 1 / 2, 1 / 6], rtol=1e-6)


def test_other_transformations_of_a_jet():
    third = lambda x: jet(lambda x: hnp.exp(hnp.sin(x)), (x,), ([1.0, 0.0, 0.0],))[1][2]
    x = np.linspace(0, 1, 4)
    value = lambda x: np.exp(np.sin(x)) * np.cos(x) * (np.cos(x) ** 2 - 3 * np.sin(x) - 1)
    np.testing.assert_allclose(hx.vmap(third)(x), value(x), rtol=1e-12)
    np.testing.assert_allclose(hx.jit(hx.vmap(third))(x), value(x), rtol=1e-12)
    slope = (value(x + 1e-6) - value(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(hx.vmap(hx.grad(third))(x), slope, rtol=1e-7, atol=1e-7)


def test_the_number_of_operations_grows_as_a_power_of_the_order():
    def count(order):
        f = lambda x: hnp.exp(hnp.sin(x)) / (1 + hnp.tanh(x))
        return len(hx.make_program(lambda x: jet(f, (x,), ([1.0] * order,))[1])(1.0).ops)

    assert count(8) < 9 * count(4) and count(16) < 9 * count(8)


def test_effects_are_performed_once_and_refused_where_they_have_a_derivative():
    @hx.effect(vmap="once", diff="stop")
    class Seen:
        def result_type(op, x):
            return x

    seen = hx.handler({Seen: lambda n, op, x: (n + 1, x)})
    n, (y, terms) = hx.handle(seen, 0)(lambda: jet(lambda x: x * hx.perform(Seen(), x), (2.0,), ([1.0, 0.0, 0.0],)))()
    assert n == 1 and y == 4 and [float(t) for t in terms] == [2, 0, 0]

    @hx.effect
    class Strict:
        def result_type(op, x):
            return x

    strict = hx.handle(hx.handler({Strict: lambda op, x: x}))
    with pytest.raises(errors.NotDifferentiable):
        strict(lambda: jet(lambda x: hx.perform(Strict(), x), (2.0,), ([1.0],)))()


@pytest.mark.parametrize(("series", "error", "words"), [
    (([1.0], [1.0, 2.0]), errors.BadCall, "as many terms"), (([1.0],), errors.TreeMismatch, "the structure of primals"),
    (([np.ones(2)], [1.0]), errors.ShapeMismatch, "must have its shape"),
])
def test_series_that_do_not_fit_are_refused(series, error, words):
    with pytest.raises(error, match=words):
        jet(lambda x, y: x * y, (1.0, 2.0), series)


def test_an_unknown_keyword_is_refused():
    with pytest.raises(TypeError, match="factorial_scale"):
        jet(np.sin, (1.0,), ([1.0],), factorial_scale=False)
