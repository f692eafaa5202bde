"""Of crossed parameters each value is in a case that always runs; all combinations are in the sweep."""

import pytest
from helpers.chosen_cases import chosen


@pytest.mark.parametrize(("counts", "cases"), [
    ((2, 3), {(0, 0), (1, 1), (0, 2)}),
    ((4, 2, 1), {(0, 0, 0), (1, 1, 0), (2, 0, 0), (3, 1, 0)}),
])
def test_each_value_is_in_a_case(counts, cases):
    assert chosen(counts) == cases
    assert all({case[i] for case in cases} == {*range(count)} for i, count in enumerate(counts))


@pytest.mark.each_choice
@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("second", ["x", "y", "z"])
def test_a_case_that_is_not_chosen_is_in_the_sweep(first, second, request):
    always = request.node.get_closest_marker("sweep") is None
    assert always == (first + second in ("ax", "by", "az"))
