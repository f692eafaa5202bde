"""Minimal cuts: none is less, and at every price the cheapest choice is found."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from handlax.interpreters.analysis.min_cut import Network


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=14))
def test_a_cut_is_the_least_of_all(edges):
    network = Network(6)
    for start, end, capacity in edges:
        if start != end:
            network.connect(start, end, capacity)
    side = network.least_cut(0, 5)
    across = lambda chosen: sum(c for a, b, c in edges if a != b and chosen[a] and not chosen[b])
    every = [(True, *middle, False) for middle in itertools.product((True, False), repeat=4)]
    assert side[0] and not side[5]
    assert across(side) == min(map(across, every))
