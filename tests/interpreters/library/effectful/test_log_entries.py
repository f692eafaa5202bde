"""What is reaped in random nests, in every mode, against the same nests in plain Python; and planted again."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.log_nests import AROUND, BRANCHES, STACKING, Last, Results, Rows, counting, jit, random_nest, until

import handlax as hx
from handlax import numpy as hnp
from handlax.library import plant, reap, sow

ARGUMENTS = np.float32(1.25), np.float32(1.0)
READINGS = {"append": Rows(), "clobber": Last()}
KINDS = {
    "append": (STACKING, STACKING, BRANCHES, AROUND),
    "clobber": (STACKING, STACKING, BRANCHES, (jit, counting), (until,)),
}


def sowing(mode):
    return lambda name, x: sow(x, name, mode=mode)


def both_parts(found):
    """The value of a name, and whether it is there."""
    if isinstance(found, hx.When):
        return np.asarray(found.value), np.asarray(found.taken)
    return np.asarray(found), np.asarray(True)


def check(seed, mode, depth):
    """One name for all values within the same lanes."""
    plain, f = random_nest(seed, READINGS[mode], sowing(mode), depth, KINDS[mode], name="in {lanes} lanes")
    expected = plain(*ARGUMENTS)
    for g in (f, hx.jit(f)):
        found = reap(g)(*map(hnp.asarray, ARGUMENTS))
        for name, (value, there, *_) in expected.items():
            reaped, taken = both_parts(found[name])
            assert reaped.shape == value.shape
            assert np.broadcast_to(taken, value.shape).tolist() == there.tolist(), name
            np.testing.assert_allclose(np.where(there, reaped, 0), np.where(there, value, 0), rtol=1e-5, err_msg=name)


def planted_twice_as_large(seed, depth):
    """What is reaped, doubled and planted comes out where it was sown."""
    plain, f = random_nest(seed, Results(), lambda name, x: sow(x, name), depth)
    expected = plain(*ARGUMENTS)
    for g in (hx.jit(f), hx.checkpoint(hx.jit(f))):
        args = [*map(hnp.asarray, ARGUMENTS)]
        doubled = hx.tree.map(lambda x: x if x.dtype == bool else 2 * x, reap(g)(*args))
        for name, y in plant(g)(doubled, *args).items():
            np.testing.assert_allclose(np.asarray(y), 2 * expected[name], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("seed", range(20, 26))
def test_what_is_planted_stands_where_it_was_sown(seed):
    planted_twice_as_large(seed, 3)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(300, 500, 10))
def test_what_is_planted_in_deep_nests_stands_where_it_was_sown(first):
    for seed in range(first, first + 10):
        planted_twice_as_large(seed, 4)


@pytest.mark.each_choice
@pytest.mark.parametrize("mode", READINGS)
@pytest.mark.parametrize("seed", range(8))
def test_every_mode_reads_a_nest_as_it_says(mode, seed):
    check(seed, mode, 3)


@pytest.mark.sweep
@pytest.mark.parametrize("mode", READINGS)
@pytest.mark.parametrize("first", range(100, 300, 10))
def test_every_mode_reads_deep_nests_as_it_says(mode, first):
    for seed in range(first, first + 10):
        check(seed, mode, 4)
