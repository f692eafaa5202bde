"""Compiled extremes keep NaN as NumPy's do: reductions, windows, and elementwise ones next to sums."""

import zlib
from itertools import combinations

import numpy as np
import pytest

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp
from handlax.effects.core.columns import LOWER, ElementwiseLowering
from handlax.effects.core.operation import OPERATIONS
from handlax.errors import HandlaxError
from handlax.interpreters.core.record import record
from handlax.lowering.compile.stablehlo_modules import lower_program

# NumPy's own reductions of bfloat16 warn of NaN in some versions
pytestmark = [
    pytest.mark.optimised, pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning"),
]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
SHAPES = [(5000,), (80, 60), pytest.param((5, 40, 30), marks=pytest.mark.sweep)]
NANS = np.nan, -np.nan


def rng_of(*words):
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def numbers(shape, dtype, *words):
    return rng_of(shape, dtype, *words).integers(-50, 50, shape).astype(dtype)


def holed(x, nan, places):
    """``x`` with NaN at one place after the other."""
    for i in places:
        y = x.copy()
        y.flat[i] = nan
        yield y


def same(got, wanted):
    """Equal numbers, and NaN in the same places."""
    got, wanted = (np.asarray(x).astype(np.float64) for x in (got, wanted))
    np.testing.assert_array_equal(got, wanted)


def every_axes(rank):
    return [axes for n in range(1, rank + 1) for axes in combinations(range(rank), n)]


def extremes(m, x):
    return [f(x, axis=axes) for f in (m.max, m.min) for axes in every_axes(x.ndim)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_along_all_axes_are_those_of_numpy(shape, dtype):
    x = numbers(shape, dtype)
    compiled = hx.jit(lambda x: extremes(hnp, x))
    for nan in NANS:
        for y in (x, *holed(x, nan, [0, x.size - 1, *rng_of(shape).integers(0, x.size, 6)])):
            for got, wanted in zip(compiled(y), extremes(np, y), strict=True):
                same(got, wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_eager_reductions_of_16_bits_keep_nan(dtype):
    for nan in NANS:
        for y in holed(numbers((5000,), dtype), nan, [1]):
            assert np.isnan([np.float32(hnp.max(y)), np.float32(hnp.min(y))]).all()


# name: a function of an array in the words of the module m
NEAR_SUMS = {
    "relu, then the sum": lambda m, x: m.maximum(x, 0).sum(),
    "the least with another, then the mean": lambda m, x: m.minimum(x, x[::-1]).mean(0),
    "sums, and the larger of each and a number": lambda m, x: m.maximum(x.sum(1), 1),
    "sums, and a number and the smaller": lambda m, x: m.minimum(1, x.sum(1)),
    "the exponential between": lambda m, x: m.exp(m.minimum(x, 0) / 8).sum(1),
    "the largest of a chain": lambda m, x: m.max(m.maximum(x, 0) * 2 + x, axis=0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NEAR_SUMS)
def test_elementwise_extremes_next_to_sums_keep_nan(name, dtype):
    f = NEAR_SUMS[name]
    x = numbers((4500, 2), dtype)
    compiled = hx.jit(lambda x: f(hnp, x))
    for y in (x, *holed(x, np.nan, [0, 7, 4500, 8999])):
        np.testing.assert_allclose(compiled(y), f(np, y), rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_windows_side_by_side_keep_nan(dtype):
    """Each the extreme of two by two elements."""
    x = numbers((128, 64), dtype)
    for combine, unit, fold in ((lax.max, -np.inf, np.max), (lax.min, np.inf, np.min)):
        pool = hx.jit(lambda x: lax.reduce_window(x, np.asarray(unit, dtype), combine, (2, 2), (2, 2), "VALID"))
        for y in (x, *holed(x, np.nan, [0, 65, 8191])):
            same(pool(y), fold(y.reshape(64, 2, 32, 2), axis=(1, 3)))


@pytest.mark.parametrize(
    "f",
    [nn.softmax, nn.log_softmax, nn.logsumexp, lambda x: nn.log_softmax(x, where=np.ones(2, bool)[0])],
    ids=["softmax", "log_softmax", "logsumexp", "log_softmax(where=)"],
)
def test_what_is_nan_by_its_sum_needs_no_other_witness(f):
    """Rows with NaN are NaN, compiled and not; nothing is emitted for it."""
    x = numbers((64, 80), "float32") / 10
    x[3, 5] = np.nan
    for g in (f, hx.jit(f)):
        y = np.asarray(g(x))
        assert np.isnan(y[3] if y.ndim else y).all()
        assert y.ndim == 0 or np.isfinite(np.delete(y, 3, 0)).all()
    assert not watched(hx.jit(f).lower(x).as_text())


def watched(text):
    """Whether an extreme reduction has a witness of NaN: flags of its own, or a sum of sizes."""
    return "stablehlo.abs" in text or "stablehlo.or" in text


def text(f, x, platform="cpu"):
    return lower_program(record(lambda x: [f(x)], [hnp.asarray(x).type]), "f", platform=platform).text


def test_the_price_is_paid_only_where_xla_is_wrong():
    """On a CPU, and by reductions only of as many floats as XLA gives to its library."""
    few, many = np.ones(4095, "float32"), np.ones(4096, "float32")
    rows = many.reshape(64, 64)
    assert "stablehlo.or" in text(hnp.max, many) and "stablehlo.or" in text(lambda x: hnp.max(x, 1), rows)
    assert "stablehlo.abs" in text(lambda x: hnp.max(x, 0), rows)
    assert "stablehlo.abs" in text(hnp.max, hnp.asarray(many, "bfloat16"))
    assert not watched(text(hnp.max, few) + text(hnp.max, many.astype("int32")))
    positive = lambda x: hnp.maximum(x, 0)
    assert "stablehlo.clamp" in text(positive, many)
    assert "stablehlo.clamp" not in text(positive, many.astype("int32"))
    elsewhere = text(lambda x: hnp.max(positive(x)), many, "cuda")
    assert not watched(elsewhere)
    assert "stablehlo.clamp" not in elsewhere
    assert elsewhere.count("stablehlo.maximum") == 2


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 100, 4095, 4096, 4097, 10_000, 100_000])
def test_reductions_of_every_size_keep_nan_from_every_place(size, dtype):
    rng = rng_of(size, dtype)
    columns = max(size // 64, 1)
    for shape in [(size,), (columns, 64), (64, columns), (2, columns, 32)]:
        x = numbers(shape, dtype)
        compiled = hx.jit(lambda x: (extremes(hnp, x), hnp.ptp(x), hnp.exp(x * 0).max(), (x * 2 - 1).min(0)))
        for nan in NANS:
            for y in (x, *holed(x, nan, {0, x.size - 1, *rng.integers(0, x.size, 40)})):
                reductions, *others = compiled(y)
                for got, wanted in zip(reductions, extremes(np, y), strict=True):
                    same(got, wanted)
                for got, wanted in zip(others, (np.ptp(y), np.exp(y * 0).max(), (y * 2 - 1).min(0)), strict=True):
                    same(got, wanted)


SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 20.0, -20.0, 100.0, 6e4, -6e4]


def elementwise_names():
    """The operations on floats that are one of StableHLO's, which XLA fuses with reductions, and their arities."""
    one = hnp.ones(2, "float32").type
    for name, kind in OPERATIONS.items():
        for arity in (1, 2):
            try:
                rule, made = LOWER.find(kind), kind().result_type(*[one] * arity)
            except (HandlaxError, TypeError):
                continue
            direct = type(rule) is ElementwiseLowering and rule.is_stablehlo
            if made == one and (direct or name in ("max", "min")):
                yield name, arity


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_every_elementwise_operation_next_to_a_reduction_is_nan_where_it_is_alone(dtype):
    """In front of a sum and of extremes of two equal columns, which change nothing of it."""
    names = list(elementwise_names())
    assert {("exp", 1), ("tanh", 1), ("max", 2), ("div", 2)} <= set(names)
    special = np.array(SPECIAL).astype(dtype)
    for name, arity in names:
        op = OPERATIONS[name]()
        xs = [np.stack([np.resize(x.ravel(), 8192)] * 2, 1) for x in np.meshgrid(*[special] * arity)]
        alone = np.asarray(hx.jit(lambda *xs: hx.perform(op, *xs))(*xs)).astype(np.float64)[:, 0]
        for f in (hnp.max, hnp.sum):
            got = np.asarray(hx.jit(lambda *xs: f(hx.perform(op, *xs), axis=1))(*xs)).astype(np.float64)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(alone), f"{name} {f}")
