"""Folds of the rows of lanes, and values of lanes repeated along their rows, against NumPy."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.stack import perform
from handlax.effects.operations.reductions.row_folds import (
    AndRows,
    MaxRows,
    MinRows,
    OrRows,
    RepeatRows,
    SumRows,
    XorRows,
    row_index,
)
from handlax.effects.types.array_type import array_type

LENGTHS = {
    "none": (), "empty": (0, 0), "short": (3, 0, 1), "one": (700,), "blocks": (0, 130, 0, 3, 1, 4, 500, 0),
    "long": (5000, 1, 7), "even": (512, 512, 512), "many": (*range(64), 31),
}
FOLDS = {SumRows: (np.add, 0.0), MaxRows: (np.maximum, -np.inf), MinRows: (np.minimum, np.inf)}


def rows(lengths, spare, shape, seed=0):
    """Rows of lanes, and spare ones of NaN."""
    x = np.random.default_rng(seed).standard_normal((sum(lengths) + spare, *shape))
    x[sum(lengths):] = np.nan
    return x


def folded(f, unit, x, lengths):
    ends = np.cumsum(lengths, dtype=int)
    return np.array([f.reduce(x[e - n : e], axis=0, initial=unit) for n, e in zip(lengths, ends)])


def on_rows(op, x, lengths, total):
    ends = hnp.cumsum(hnp.asarray(lengths, "int32"), dtype="int32")
    return perform(op, hnp.asarray(x), *row_index(ends, total))


@pytest.mark.each_choice
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("fold", FOLDS)
def test_fold_of_the_rows_of_each_lane(fold, lengths):
    x = rows(lengths, 9, (2,))
    wanted = folded(*FOLDS[fold], x, lengths).reshape(-1, 2)
    f = lambda x, n: on_rows(fold(), x, n, len(x))
    for apply in (f, hx.jit(f)):
        np.testing.assert_allclose(apply(x, np.array(lengths, "int32")), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fold", FOLDS)
def test_lanes_of_other_lengths_in_every_outer_lane(fold):
    lengths = np.array([[70, 0, 130], [5, 300, 2], [0, 0, 0]], "int32")
    x = np.random.default_rng(0).standard_normal((3, 320))
    f = lambda x, n: hnp.where(n > 0, on_rows(fold(), x, n, 320), 0)
    for g in (f, hx.grad(lambda x, n: (f(x, n) ** 2).sum())):
        alone = [g(row, n) for row, n in zip(x, lengths)]
        np.testing.assert_allclose(hx.jit(hx.vmap(g))(x, lengths), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fold", FOLDS)
def test_what_is_not_finite_stays_in_its_lane(fold):
    x = rows((200, 100, 300), 0, ())
    x[[3, 250]] = np.nan, np.inf
    y = hx.jit(lambda x: on_rows(fold(), x, (200, 100, 300), 600))(x)
    np.testing.assert_allclose(y, folded(*FOLDS[fold], x, (200, 100, 300)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float16", "bfloat16", "int4"])
def test_units_and_rounding_by_dtype(dtype):
    lengths, x = (300, 0, 4), (np.arange(304) % 5 - 2 * (dtype[0] != "u")).astype(hx.numpy.dtype(dtype))
    for fold in FOLDS if dtype != "bool" else (MaxRows, MinRows):
        f = lambda x, fold=fold: on_rows(fold(), x, lengths, 304)
        assert np.array_equal(np.asarray(hx.jit(f)(x)), np.asarray(f(hnp.asarray(x)))), fold


BITS = {AndRows: (np.bitwise_and, -1), OrRows: (np.bitwise_or, 0), XorRows: (np.bitwise_xor, 0)}


@pytest.mark.parametrize("lengths", [LENGTHS["short"], LENGTHS["blocks"]], ids=["short", "blocks"])
@pytest.mark.parametrize("fold", BITS)
def test_bits_of_the_rows_of_each_lane(fold, lengths):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, sum(lengths) + 9)
    f = lambda x, n: on_rows(fold(), x, n, len(x))
    for apply in (f, hx.jit(f)):
        assert apply(x, np.array(lengths, "int32")).tolist() == folded(*BITS[fold], x, lengths).tolist()


@pytest.mark.parametrize(("fold", "f"), [(MaxRows, max), (MinRows, min)])
def test_complex_extremes_are_ordered_by_real_then_imaginary_part(fold, f):
    rng, lengths = np.random.default_rng(0), (1, 130, 7, 300)
    x = rng.integers(-3, 4, 438) + 1j * rng.integers(-9, 9, 438)
    wanted = [f(x[e - n : e], key=lambda z: (z.real, z.imag)) for n, e in zip(lengths, np.cumsum(lengths))]
    x[5] = complex(0, np.nan)
    wanted[1] = complex(np.nan, np.nan)
    for apply in (lambda x: on_rows(fold(), x, lengths, 438), hx.jit(lambda x: on_rows(fold(), x, lengths, 438))):
        np.testing.assert_array_equal(apply(x), wanted)


def test_sum_and_repetition_are_adjoint():
    lengths, x = (0, 130, 7, 300), rows((0, 130, 7, 300), 0, (2,))
    y = rows(lengths, 0, (2,), 1)[:4]
    f = lambda x: on_rows(SumRows(), x, lengths, 437)
    g = lambda y: on_rows(RepeatRows(True), y, lengths, 437)
    np.testing.assert_allclose(hx.vjp(f, x)[1](y)[0], np.repeat(y, lengths, 0))
    np.testing.assert_allclose(g(y), np.repeat(y, lengths, 0))
    np.testing.assert_allclose(hx.vjp(g, y)[1](x)[0], f(x), rtol=1e-12)


def test_derivative_of_an_extreme_is_shared_by_equal_rows():
    x = np.array([1.0, 3, 3, 2, 5, 7])
    f = lambda x: (on_rows(MaxRows(), x, (4, 1, 1), 6) * np.array([1.0, 10, 100])).sum()
    assert hx.grad(f)(x).tolist() == [0, 0.5, 0.5, 0, 10, 100]


@pytest.mark.parametrize("op", [SumRows(), MaxRows(), RepeatRows(False)], ids=str)
def test_there_is_one_value_for_each_row_or_lane(op):
    i32 = lambda *shape: array_type(shape, np.dtype("int32"))
    with pytest.raises(hx.errors.ShapeMismatch, match="there must be one value for each"):
        op.result_type(i32(7, 2), i32(3), i32(3, 5), i32(4))
