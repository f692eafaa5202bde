"""Indices out of bounds and negative ones, in every mode, eagerly, compiled and in lanes, beside a loop in Python."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

SIZE = 5
SIGNED, UNSIGNED = [0, 4, 2, 7, 5, -1, -5, -6, -9, 100], [0, 4, 2, 7, 5, 200, 255, 100]
MODES = ("clip", "fill", "drop", None)
UPDATES = {
    "set": lambda old, new: new, "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum,
    "max": np.maximum,
}


def place(i, mode, negative=True):
    """The position that an index means; None where there is none."""
    i = i + SIZE if negative and i < 0 else i
    if mode == "clip":
        return min(max(i, 0), SIZE - 1)
    return i % SIZE if mode == "wrap" else i if 0 <= i < SIZE else None


def filler(dtype):
    """What is read where there is no element: NaN, the least signed integer, the largest unsigned one, True."""
    if dtype.kind in "fb":
        return np.nan if dtype.kind == "f" else True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


def read(x, places, fill=None):
    fill = filler(x.dtype) if fill is None else fill
    return np.array([fill if p is None else x[p] for p in places], x.dtype)


def written(x, places, values, way):
    y = x.copy()
    with np.errstate(all="ignore"):
        for p, v in zip(places, values):
            if p is not None:
                y[p] = UPDATES[way](y[p], v)
    return y


def check(calls, *xs):
    """Each call gives the array beside it, under each transformation; ``calls``: name -> (function, result)."""
    every = lambda *xs: [f(*xs) for f, _ in calls.values()]
    lanes = hx.vmap(every)(*[np.stack([x, x]) for x in xs])
    for results in (every(*xs), hx.jit(every)(*xs), [y[1] for y in lanes]):
        for (name, (_, right)), found in zip(calls.items(), results):
            assert found.dtype == right.dtype, name
            np.testing.assert_array_equal(np.asarray(found), right, err_msg=name)


def array(dtype):
    return np.array([True, False, True, False, True]) if dtype == "bool" else np.arange(1, SIZE + 1).astype(dtype)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float32", "int64"])
@pytest.mark.parametrize("index", ["int32", "int8", "uint8", "int64"])
def test_reading(dtype, index):
    x, i = array(dtype), np.array(SIGNED if index[0] == "i" else UNSIGNED, index)
    calls = {}
    for mode in MODES:
        for negative in (True, False):
            get = lambda x, i, m=mode, n=negative: hnp.asarray(x).at[i].get(mode=m, wrap_negative_indices=n)
            calls[f"get {mode} {negative}"] = get, read(x, [place(int(k), mode or "clip", negative) for k in i])
    right = read(x, [place(int(k), "fill") for k in i], 1)
    calls["get value"] = lambda x, i: hnp.asarray(x).at[i].get(mode="fill", fill_value=1), right
    calls["take value"] = lambda x, i: hnp.take(x, i, mode="fill", fill_value=1), right
    for mode in ("fill", None, "wrap", "clip"):
        # NumPy's clip counts no index from the end
        calls[f"take {mode}"] = (
            lambda x, i, m=mode: hnp.take(x, i, mode=m),
            read(x, [place(int(k), mode or "fill", mode != "clip") for k in i]),
        )
    for mode in ("fill", "clip", None):
        along = read(x, [place(int(k), mode or "fill") for k in i])
        calls[f"take_along_axis {mode}"] = lambda x, i, m=mode: hnp.take_along_axis(x, i, 0, mode=m), along
    check(calls, x, i)


@pytest.mark.each_choice
@pytest.mark.parametrize("way", UPDATES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("index", ["int32", "uint8"])
def test_writing(way, dtype, index):
    x, calls = array(dtype), {}
    given = np.array(SIGNED if index[0] == "i" else UNSIGNED, index)
    for mode in MODES:
        places = [place(int(k), mode or "drop") for k in given]
        # of several values for one element any may be set
        kept = [n for n, p in enumerate(places) if way != "set" or p not in places[:n]]
        values = np.arange(1, len(kept) + 1).astype(dtype)
        calls[f"{way} {mode}"] = (
            lambda x, m=mode, i=given[kept], v=values: getattr(hnp.asarray(x).at[i], way)(v, mode=m),
            written(x, [places[n] for n in kept], values, way),
        )
    check(calls, x)


@pytest.mark.parametrize("i", [0, 4, -1, -5, -6, 5, 9, -100])
def test_one_index_known_or_traced(i):
    x, calls = array("float32"), {}
    for mode in MODES:
        right = read(x, [place(i, mode or "clip")])[0]
        calls[f"get {mode}"] = lambda x, k, m=mode: hnp.asarray(x).at[i].get(mode=m), right
        calls[f"get traced {mode}"] = lambda x, k, m=mode: hnp.asarray(x).at[k].get(mode=m), right
        spot = [place(i, mode or "drop")]
        new = written(x, spot, [9.0], "set")
        calls[f"set {mode}"] = lambda x, k, m=mode: hnp.asarray(x).at[i].set(9.0, mode=m), new
        calls[f"set traced {mode}"] = lambda x, k, m=mode: hnp.asarray(x).at[k].set(9.0, mode=m), new
        twice = lambda x, k, m=mode: hnp.asarray(x).at[k].apply(lambda v: v * 2, mode=m)
        calls[f"apply {mode}"] = twice, written(x, spot, [2.0], "multiply")
    check(calls, x, np.array(i))


@pytest.mark.each_choice
@pytest.mark.parametrize("i", [0, 2, 3, 4, -1, -5, -6, 9])
@pytest.mark.parametrize("n", [1, 3, SIZE])
def test_windows(i, n):
    x, last = array("float32"), SIZE - n
    start = min(max(i + SIZE if i < 0 else i, 0), last)
    new = x.copy()
    new[start : start + n] = -1
    calls = {
        "dynamic_slice": (lambda x, k: lax.dynamic_slice(x, (k,), (n,)), x[start : start + n]),
        "update": (lambda x, k: lax.dynamic_update_slice(x, np.full(n, -1, "float32"), (k,)), new),
    }
    for mode in ("clip", "fill"):  # gather and scatter count no index from the end
        inside, first = 0 <= i <= last, min(max(i, 0), last)
        found = x[first : first + n] if inside or mode == "clip" else np.full(n, np.nan, "float32")
        sums = x.copy()
        sums[first : first + n] += 2 if inside or mode == "clip" else 0
        numbers = lax.GatherDimensionNumbers((0,), (), (0,))
        calls[f"gather {mode}"] = lambda x, k, m=mode: lax.gather(x, k[None], numbers, (n,), mode=m), found
        calls[f"scatter {mode}"] = (
            lambda x, k, m=mode: lax.scatter_add(
                x, k[None], np.full(n, 2, "float32"), lax.ScatterDimensionNumbers((0,), (), (0,)), mode=m
            ),
            sums,
        )
    check(calls, x, np.array(i))


@pytest.mark.parametrize("mode", ["wrap", "raise"])
def test_at_has_no_mode_that_wraps_or_raises(mode):
    with pytest.raises(hx.errors.BadArgument, match="mode: must be one of"):
        hnp.ones(2).at[0].get(mode=mode)
