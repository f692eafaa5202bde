"""Reductions of segments are those of their elements, one after the other."""

import numpy as np
import pytest

import handlax as hx
from handlax import ops

FOLDS = {
    "sum": (ops.segment_sum, np.add, lambda dtype: 0),
    "prod": (ops.segment_prod, np.multiply, lambda dtype: 1),
    "max": (ops.segment_max, np.maximum, lambda dtype: np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf),
    "min": (ops.segment_min, np.minimum, lambda dtype: np.iinfo(dtype).max if dtype.kind in "iu" else np.inf),
}
IDS = np.array([0, 2, 2, -1, 7, 0])


def one_after_the_other(name, x, ids, count):
    _, join, unit = FOLDS[name]
    y = np.full((count, *x.shape[ids.ndim :]), unit(x.dtype), x.dtype)
    for index in np.ndindex(ids.shape):
        if 0 <= ids[index] < count:
            y[ids[index]] = join(y[ids[index]], x[index])
    return y


@pytest.mark.each_choice
@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32", "float64"])
def test_segments_are_reduced(name, dtype):
    x, fold = (np.arange(12).reshape(6, 2) * 5 % 7).astype(dtype), FOLDS[name][0]
    f = lambda x, i: [fold(x, i, count, bucket_size=size) for count in (0, 3, 9) for size in (None, 1, 2, 10)]
    found = f(x, IDS)
    wholes = [fold(x, IDS, bucket_size=size) for size in (None, 1, 2, 10)]
    for y, count in zip([*found, *wholes], np.repeat((0, 3, 9, 8), 4), strict=True):
        assert y.dtype == dtype
        np.testing.assert_allclose(y, one_after_the_other(name, x, IDS, count), rtol=1e-6)
    for y, lanes in zip(found, hx.vmap(f)(np.stack([x, x]), np.stack([IDS, IDS]))):
        np.testing.assert_array_equal(lanes[1], y)
    if dtype in ("int8", "float32"):
        for y, compiled in zip(found, hx.jit(f)(x, IDS)):
            np.testing.assert_array_equal(compiled, y)


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_derivatives_of_reduced_segments(name):
    f = lambda x: FOLDS[name][0](x, IDS, 3)
    hx.test_util.check_grads(f, (np.array([1.5, 2.0, -0.5, 3.0, 0.7, 0.9]),), order=1)


def test_segments_are_clipped_or_of_several_axes():
    x = np.arange(6.0)
    assert ops.segment_sum(x, IDS, 3, mode="clip").tolist() == [0 + 3 + 5, 0, 1 + 2 + 4]
    ids = np.array([[0, 1], [1, 0], [5, 1]])
    np.testing.assert_array_equal(
        ops.segment_sum(x.reshape(3, 2), ids, 2), one_after_the_other("sum", x.reshape(3, 2), ids, 2)
    )


@pytest.mark.parametrize("promise", ["indices_are_sorted", "unique_indices"])
@pytest.mark.parametrize("bucket_size", [None, 2])
@pytest.mark.parametrize("name", FOLDS)
def test_what_is_promised_of_ids_stands_in_the_program(name, bucket_size, promise):
    reduced = lambda promises: lambda x, ids: FOLDS[name][0](x, ids, 6, bucket_size=bucket_size, **promises)
    text = lambda **promises: hx.jit(reduced(promises)).lower(np.ones(6), np.arange(6)).as_text()
    assert f"{promise} = true" in text(**{promise: True}) and f"{promise} = true" not in text()


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (hx.errors.ConcretizationError, lambda: hx.jit(ops.segment_sum)(np.ones(6), IDS)),
        (hx.errors.BadArgument, lambda: ops.segment_sum(np.ones(6), IDS, -1)),
        (hx.errors.ShapeMismatch, lambda: ops.segment_sum(np.ones(5), IDS)),
    ],
)
def test_segments_that_are_none(error, call):
    with pytest.raises(error, match="segment"):
        call()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int64"])
def test_the_number_of_segments_follows_from_ids_of_any_dtype(dtype):
    x = np.arange(3.0, dtype=np.float32)
    assert ops.segment_sum(x, np.array([0, 1, 1], dtype)).tolist() == [0.0, 3.0]
    assert ops.segment_sum(x[:0], np.array([], dtype)).shape == (0,)
