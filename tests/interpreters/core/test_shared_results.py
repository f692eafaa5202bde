"""The results that the bodies of one operation share."""

import handlax as hx
from handlax.interpreters.core.shared_results import shared_results


def test_each_body_finds_its_values_among_as_few_results_as_one_body_needs_of_a_type():
    scalar, vector = hx.ArrayType((), "float32"), hx.ArrayType((3,), "float32")
    types, positions = shared_results([[scalar, scalar], [vector, scalar], []])
    assert types == [scalar, scalar, vector]
    assert positions == [(0, 1), (2, 0), ()]
