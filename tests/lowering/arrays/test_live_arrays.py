"""live_arrays finds what is referred to, and nothing else."""

import gc

import handlax as hx
from handlax import numpy as hnp


def lives(x):
    return any(y is x for y in hx.live_arrays())


def test_an_array_lives_until_it_is_deleted():
    x, y = hx.jit(lambda x: x + 1)(hnp.ones(3)), hnp.arange(4)
    assert lives(x) and lives(y) and any(z is x for z in hx.live_arrays("cpu"))
    x.delete()
    assert not lives(x) and lives(y)


def test_what_nothing_refers_to_is_gone():
    x = hnp.full(7, 12345.5)
    count = lambda: sum(y.shape == (7,) and not y.is_deleted() and y[0] == 12345.5 for y in hx.live_arrays())
    assert count() == 1
    del x
    gc.collect()
    assert count() == 0
