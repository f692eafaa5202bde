"""The table of differences from JAX in docs/explanation/numbers.md: each row as it is said, here and in JAX."""

import pathlib
import re

import numpy as np
import pytest

import handlax

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "explanation" / "numbers.md"
NAN, INF = np.nan, np.inf
MANY = np.where(np.arange(10_000) == 1, NAN, np.arange(10_000) % 7).astype(np.float32)


def f32(*values):
    return np.array(values, np.float32)


def slope(m, f, x):
    """The derivative along (1, ..., 1), forwards."""
    return m.jvp(f, (x,), (m.numpy.ones_like(x),))[1]


def bend(m, f, x):
    """Its second derivative."""
    return slope(m, lambda x: slope(m, f, x), x)


def pull(m, f, x):
    """The gradient of a reduction."""
    return m.vjp(f, x)[1](m.numpy.ones((), x.dtype))[0]


def compiled(m, name, z):
    return m.jit(getattr(m.lax, name))(np.array([z], np.complex64))[0]


def weakness(name, *args):
    return lambda m: m.eval_shape(getattr(m.numpy, name), *args).weak_type


# the first words of a row: calls with what they give here, and in JAX
ROWS = {
    "`x[i]` of an `i` outside": [(lambda m: pull(m, lambda x: x[np.array([5, 1])].sum(), f32(1, 2)), [0, 2], [0, 1])],
    "`relu`, `relu6`, `hard_sigmoid` at NaN": [
        (lambda m: slope(m, m.nn.relu, f32(NAN))[0], 1.0, 0.0),
        (lambda m: slope(m, m.nn.relu6, f32(NAN))[0], 1.0, 0.0),
        (lambda m: slope(m, m.nn.hard_sigmoid, f32(NAN))[0], 1 / 6, 0.0),
    ],
    "`cummax`, `cummin` at NaN": [(lambda m: slope(m, lambda x: m.lax.cummax(x), f32(NAN, 1)), [1, 1], [1, 0])],
    "`logsumexp`, `logmeanexp` of -inf alone": [
        (lambda m: pull(m, m.nn.logsumexp, f32(-INF, -INF)), [0, 0], [NAN, NAN])
    ],
    "`logaddexp`, `cumlogsumexp` of infinities": [
        (lambda m: slope(m, lambda x: m.lax.cumlogsumexp(x), f32(INF, 1))[1], 1.0, 1 + np.e),
        (lambda m: slope(m, lambda x: m.lax.cumlogsumexp(x), f32(-INF, -INF))[1], 1.0, NAN),
        (lambda m: slope(m, lambda x: m.numpy.logaddexp(x, x), f32(-INF, INF)), [1.0, 1.0], [NAN, 2.0]),
        (lambda m: m.numpy.logaddexp(np.array([INF + 1j], np.complex64), 5.0)[0].real, INF, NAN),
    ],
    "`hypot` with an infinite operand": [
        (lambda m: slope(m, lambda x: m.numpy.hypot(x, f32(3, 3)), f32(INF, -INF)), [1.0, -1.0], [NAN, NAN]),
        (lambda m: m.grad(lambda x: m.numpy.hypot(f32(3)[0], x))(f32(INF)[0]), 1.0, NAN),
    ],
    "The quotient by 0": [
        (lambda m: m.jvp(m.numpy.divide, (f32(1), f32(0)), (f32(1), f32(1)))[1], -INF, NAN)
    ],
    "`zeta` at poles and infinity": [
        (lambda m: m.jit(m.lax.zeta)(f32(2, INF, 2, 2), f32(-1, 0, INF, -INF)),
         [INF, INF, 0, NAN], [INF, NAN, NAN, INF]),
        (lambda m: m.lax.zeta(f32(1, 1, 1, 1), f32(-1.5, 0, INF, -INF)), [INF] * 4, [INF] * 4),
    ],
    "`power` of `uint8` with exponents from 128 on": [
        (lambda m: m.numpy.power(np.array([2], np.uint8), np.array([128], np.uint8))[0], 0, 1)
    ],
    "`max`, `min`, norms of order inf at NaN": [
        (lambda m: slope(m, m.numpy.max, f32(NAN, 1)), 0.0, NAN),
        (lambda m: slope(m, lambda x: m.numpy.linalg.norm(x, np.inf), f32(NAN, 1)), 0.0, NAN),
    ],
    "`max`, `min`, windows of many floats with NaN, compiled on a CPU": [
        (lambda m: m.jit(m.numpy.max)(MANY), NAN, 6.0),
        (lambda m: m.jit(m.numpy.min)(MANY), NAN, 0.0),
        (lambda m: m.jit(lambda x: m.lax.reduce_window(x, -INF, m.lax.max, (2,), (2,), "VALID"))(MANY)[0], NAN, 0.0),
    ],
    "Sums of `maximum`, `minimum` of many floats with NaN, compiled on a CPU": [
        (lambda m: m.jit(lambda x: m.numpy.maximum(x, 0.0).sum())(MANY), NAN, 29993.0)
    ],
    "`quantile`, `median` at NaN": [(lambda m: slope(m, m.numpy.median, f32(NAN, 1, 2)), 1.0, 0.0)],
    "`quantile` and `trapezoid` next to infinities": [
        (lambda m: m.numpy.quantile(f32(INF, 1, 2), 1.0), INF, NAN),
        (lambda m: m.numpy.trapezoid(f32(INF, 1, 2)), INF, NAN),
    ],
    "`linalg.vector_norm` of integers": [
        (lambda m: m.numpy.linalg.vector_norm(np.array([2**16], np.int32)), 65536.0, 0.0)
    ],
    "`asinh`, `atan`, twice, at infinity": [
        (lambda m: bend(m, m.lax.asinh, f32(INF))[0], 0.0, NAN),
        (lambda m: bend(m, m.lax.atan, f32(-INF))[0], 0.0, NAN),
    ],
    "`digamma`, `polygamma` at inf": [
        (lambda m: slope(m, m.lax.digamma, f32(INF))[0], 0.0, NAN),
        (lambda m: m.lax.polygamma(f32(2.0), f32(INF))[0], 0.0, NAN),
    ],
    "`polygamma` at -inf": [
        (lambda m: slope(m, m.lax.digamma, f32(-INF))[0], NAN, INF),
        (lambda m: m.lax.polygamma(f32(1.0), f32(-INF))[0], NAN, INF),
    ],
    "`igamma`, `igammac` of a = 0 and of huge a": [
        (lambda m: m.lax.igamma(f32(0.0), f32(0.5))[0], 1.0, NAN),
        (lambda m: m.lax.igamma(f32(1e30), f32(1e30))[0], 0.5, 8.388608e-24),
        (lambda m: m.lax.random_gamma_grad(f32(0.0), f32(0.5))[0], 0.0, NAN),
    ],
    "`bessel_i1e` at NaN": [(lambda m: slope(m, m.lax.bessel_i1e, f32(NAN))[0], NAN, 0.5)],
    "`atan2` with an infinite operand": [
        (lambda m: slope(m, lambda x: m.lax.atan2(x, f32(INF)), f32(2.0))[0], 0.0, NAN)
    ],
    "`pow(0, 0)` by the base": [(lambda m: slope(m, lambda x: m.lax.pow(x, f32(0.0)), f32(0.0))[0], 0.0, NAN)],
    "`pow(0, 0)` by the exponent, and x^x at 0": [
        (lambda m: slope(m, lambda y: m.lax.pow(f32(0.0), y), f32(0.0))[0], -INF, 0.0),
        (lambda m: slope(m, lambda x: m.lax.pow(x, x), f32(0.0))[0], -INF, NAN),
        (lambda m: bend(m, lambda x: m.lax.pow(x, x), f32(0.0))[0], INF, NAN),
    ],
    "`pow` by the exponent, where it is 0 at infinity": [
        (lambda m: slope(m, lambda y: m.lax.pow(f32(INF), y), f32(-1.0))[0], 0.0, NAN)
    ],
    "`betainc` at 0 and 1": [
        (lambda m: slope(m, lambda x: m.lax.betainc(f32(1.0), f32(2.0), x), f32(0.0))[0], 2.0, NAN),
        (lambda m: bend(m, lambda x: m.lax.betainc(f32(2.0), f32(3.0), x), f32(0.0))[0], 12.0, NAN),
    ],
    "`median`, `quantile` of no elements": [
        (lambda m: m.numpy.median(f32()), NAN, ValueError),
        (lambda m: m.numpy.quantile(f32(), 0.5), NAN, TypeError),
    ],
    "`jvp` along a number of another kind": [
        (lambda m: m.jvp(m.numpy.sin, (0.0,), (1,))[1], 1.0, TypeError),
        (lambda m: m.jvp(m.numpy.sin, (0j,), (1.0,))[1], 1 + 0j, TypeError),
    ],
    "Comparisons of complex numbers with NaN": [
        (lambda m: m.numpy.greater(np.complex64(complex(1, NAN)), np.complex64(0)), False, True)
    ],
    "The fraction of an infinite number in `modf`": [(lambda m: m.numpy.modf(f32(INF))[0][0], 0.0, NAN)],
    "The ends of `geomspace`": [(lambda m: m.numpy.geomspace(f32(-1), 2.0, 5)[0, 0], -1.0, NAN)],
    "`log1mexp` below its domain": [(lambda m: slope(m, m.nn.log1mexp, f32(-INF))[0], NAN, -1.0)],
    "Complex branch cuts with a part -0": [
        (lambda m: compiled(m, "sqrt", complex(-1, -0.0)), -1j, 1j),
        (lambda m: compiled(m, "asin", complex(2, -0.0)).imag, -1.3169578, 1.3169578),
    ],
    "Complex functions of NaN and infinities": [
        (lambda m: compiled(m, "acos", complex(0, NAN)).real, np.pi / 2, NAN),
        (lambda m: compiled(m, "atanh", complex(0, NAN)).real, 0.0, NAN),
        (lambda m: compiled(m, "sqrt", complex(INF, NAN)).real, INF, NAN),
        (lambda m: compiled(m, "exp", complex(-INF, NAN)), 0j, complex(NAN, NAN)),
        (lambda m: m.numpy.power(np.array([complex(INF, 1)], np.complex64), 2.0 + 0j)[0].real, INF, NAN),
    ],
    "Complex functions near overflow and cancellation": [
        (lambda m: compiled(m, "sin", 89j), 2.2448064e38j, complex(0, INF)),
        (lambda m: compiled(m, "log1p", complex(-1, 1e-30)).real, -69.07755, -INF),
        (lambda m: compiled(m, "sinh", 1e-30).real, 1e-30, 0.0),
    ],
    "`sign` of an infinite complex number": [(lambda m: compiled(m, "sign", complex(INF, 1)), 1 + 0j, complex(NAN, 0))],
    "`max` and `min` of complex numbers with NaN": [
        (lambda m: m.lax.cummax(np.array([complex(1, NAN), 2], np.complex64))[1].imag, NAN, 0.0),
        (lambda m: compiled(m, "cummax", complex(1, NAN)).real, NAN, 1.0),
    ],
    "Convolutions of vectors with infinite or NaN weights, eager": [
        (lambda m: m.numpy.convolve(f32(1, 2, 3, 4, 5), f32(1, INF, 1))[0], 1.0, NAN),
    ],
    "Sums and products of 16-bit floats": [
        (lambda m: m.jit(m.lax.cumsum)(np.full(2000, 0.1, np.float16))[-1], 200.0, 199.4)
    ],
}
CASES = [(words, *row) for words, rows in ROWS.items() for row in rows]


def agree(got, wanted):
    wanted = np.asarray(wanted)
    got = np.asarray(got).astype(complex if wanted.dtype.kind == "c" else float)
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(got, part), getattr(wanted, part), rtol=3e-4)


@pytest.mark.parametrize(("words", "call", "ours", "theirs"), CASES)
def test_handlax_gives_what_the_table_says(words, call, ours, theirs):
    agree(call(handlax), ours)


@pytest.mark.peer
@pytest.mark.parametrize(("words", "call", "ours", "theirs"), CASES)
def test_jax_gives_what_the_table_says(words, call, ours, theirs):
    jax = pytest.importorskip("jax")
    if isinstance(theirs, type):
        with pytest.raises(theirs):
            call(jax)
    else:
        agree(call(jax), theirs)


def test_the_table_has_these_rows():
    table = PAGE.read_text().split("### Kinks, limits and rounding")[1]
    said = [match[1] for match in re.finditer(r"^\| (.+?) \|", table, re.M)][2:]
    assert said == list(ROWS)
