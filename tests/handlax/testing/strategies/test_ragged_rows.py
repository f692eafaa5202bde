"""Ragged arrays: of static lengths and of others, with rows after the last lane that nothing sees."""

import numpy as np
from helpers.drawn_kinds import equal_to, missing
from hypothesis import given

import handlax as hx
from handlax import numpy as hnp
from handlax.testing.strategies import ragged_arrays, ragged_lengths


def test_lengths_and_ragged_arrays_of_every_kind_are_drawn():
    assert not missing(ragged_lengths(), equal_to([(), (0,), (0, 0), (3, 0, 1), (4, 4)]))
    known = lambda x: isinstance(x.segment_lengths, tuple)
    assert not missing(ragged_arrays(), {
        "static": known, "bound": lambda x: not known(x) and x.longest,
        "no bound": lambda x: not known(x) and x.longest is None and x.count == 2,
        "more rows": lambda x: len(x.data) == sum(map(int, x.segment_lengths)) + 2})


@given(ragged_arrays(row=(2,), lengths=ragged_lengths(min_lanes=1)))
def test_every_ragged_array_is_mapped_lane_by_lane(x):
    sums = hx.vmap(lambda rows: hnp.where(hnp.abs(rows) > 1e3, 1.0, rows).sum(0), hx.ragged_axis)(x)
    for lane, found in zip(x.to_list(), sums, strict=True):
        rows = np.asarray(lane)
        np.testing.assert_allclose(found, np.where(np.abs(rows) > 1e3, 1, rows).sum(0), rtol=1e-6)


@given(ragged_arrays("int8"))
def test_rows_of_integers_have_ones_after_the_last_lane(x):
    assert (np.asarray(x.data)[sum(map(int, x.segment_lengths)) :] == 1).all()
