"""An index means the same in every integer dtype, however long the axis is: ``f(x, i) == f(x, i as int64)``."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
# the sizes of an axis, and the dtypes that are checked there: about the largest number of one, those that may differ
SIZES = {
    **dict.fromkeys((127, 128, 129), ("int8", "uint8")),
    **dict.fromkeys((255, 256, 257), ("int8", "uint8", "int16")),
    **dict.fromkeys((32767, 32768), ("int16", "uint16")),
    65535: ("uint16", "int32"),
    300: ("int8", "uint8", "int64"),
    65536: DTYPES,
}
COMPILED = (129, 65536)


def arange(n):
    return hnp.arange(n, dtype="float32")


TAKES = {
    "x[i]": lambda i, n: arange(n)[i],
    "x.at[i].get": lambda i, n: arange(n).at[i].get(mode="clip"),
    "x.at[i].set": lambda i, n: arange(n).at[i].set(-1.0),
    "x.at[i].add": lambda i, n: arange(n).at[i].add(0.5),
    "take": lambda i, n: hnp.take(arange(n), i),
    "take wrap": lambda i, n: hnp.take(arange(n), i, mode="wrap"),
    "take clip": lambda i, n: hnp.take(arange(n), i, mode="clip"),
    "take fill": lambda i, n: hnp.take(arange(n), i, mode="fill"),
    "take_along_axis": lambda i, n: hnp.take_along_axis(arange(n), i, 0),
    "put_along_axis": lambda i, n: hnp.put_along_axis(arange(n), i, -1.0, 0, inplace=False),
    "put": lambda i, n: hnp.put(arange(n), i, -1.0, inplace=False),
    "choose": lambda i, n: hnp.choose(i % 3, [arange(len(i)), -arange(len(i)), 2 * arange(len(i))]),
    "index_take": lambda i, n: lax.index_take(arange(n), (i,), (0,)),
    "dynamic_index_in_dim": lambda i, n: lax.dynamic_index_in_dim(arange(n), i[0]),
    "dynamic_slice": lambda i, n: lax.dynamic_slice(arange(n), (i[0],), (2,)),
    "dynamic_update_slice": lambda i, n: lax.dynamic_update_slice(arange(n), -hnp.ones(2), (i[0],)),
    "roll": lambda i, n: hnp.roll(arange(n), i[0]),
    "delete": lambda i, n: hnp.delete(arange(n), i[:1], assume_unique_indices=True),
    "one_hot": lambda i, n: hx.nn.one_hot(i[:2], n),
    "segment_sum": lambda i, n: hx.ops.segment_sum(hnp.ones(len(i)), i, n),
    "bincount": lambda i, n: hnp.bincount(i, length=n),
    "unravel_index": lambda i, n: hnp.unravel_index(i, (n // 3 + 1, 3))[0],
    "ravel_multi_index": lambda i, n: hnp.ravel_multi_index((i, i), (n, 11), mode="clip"),
    "fori_loop": lambda i, n: lax.fori_loop(0, 3, lambda k, x: x.at[i[0] - k].add(1.0), arange(n)),
}
ON_HOST = {"choose", "delete", "ravel_multi_index"}  # their sizes or checks need known indices


@pytest.mark.parametrize("name", TAKES)
def test_an_index_means_the_same_in_every_dtype(name):
    f = TAKES[name]
    cases = [(n, dtype, min(n - 1, int(np.iinfo(dtype).max))) for n, dtypes in SIZES.items() for dtype in dtypes]
    index = lambda last, dtype: hnp.asarray([last, 0, last // 2, 5], dtype)
    wanted = {(n, last): np.asarray(f(index(last, "int32"), n)) for n, _, last in cases}
    found = [(n, dtype, last, f(index(last, dtype), n)) for n, dtype, last in cases]
    if name not in ON_HOST:
        some = [case for case in cases if case[0] in COMPILED]
        compiled = hx.jit(lambda indices: [f(i, n) for i, (n, _, _) in zip(indices, some)])
        found += [(*case, y) for case, y in zip(some, compiled([index(last, dtype) for _, dtype, last in some]))]
    for n, dtype, last, y in found:
        np.testing.assert_array_equal(y, wanted[n, last], err_msg=f"{name} {dtype} {n}")


def test_gradients_reach_the_element_that_was_taken():
    for n in (128, 300, 65536):
        for dtype in DTYPES:
            at = min(n - 1, int(np.iinfo(dtype).max))
            index = np.asarray([at], dtype)
            pulled = hx.grad(lambda x: lax.index_take(x, (index,), (0,)).sum())(arange(n))
            assert np.flatnonzero(pulled).tolist() == [at]
