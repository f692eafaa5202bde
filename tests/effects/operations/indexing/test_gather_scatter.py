"""What a caller promises about indices, and where the text of the program has it."""

import numpy as np
import pytest

import handlax as hx
from handlax import lax

X, INDICES, UPDATES = np.zeros((4, 3), "float32"), np.array([[0], [2]], "int32"), np.ones((2, 3), "float32")
GATHER, SCATTER = lax.GatherDimensionNumbers((1,), (0,), (0,)), lax.ScatterDimensionNumbers((1,), (0,), (0,))
CALLS = {
    "gather": lambda x, i, u, **promises: lax.gather(x, i, GATHER, (1, 3), **promises),
    "scatter": lambda x, i, u, **promises: lax.scatter(x, i, u, SCATTER, **promises),
    "scatter_add": lambda x, i, u, **promises: lax.scatter_add(x, i, u, SCATTER, **promises),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("unique", [False, True])
def test_promises_stand_in_the_text(call, ordered, unique):
    f = hx.jit(lambda *xs: CALLS[call](*xs, indices_are_sorted=ordered, unique_indices=unique))
    text = f.lower(X, INDICES, UPDATES).as_text()
    assert f"indices_are_sorted = {str(ordered).lower()}" in text
    assert call == "gather" or f"unique_indices = {str(unique).lower()}" in text
