"""Padding by name, and how many windows there are."""

import numpy as np
import pytest

from handlax import lax
from handlax.errors import BadArgument


@pytest.mark.parametrize("size", [0, 1, 5, 6])
@pytest.mark.parametrize("window", [1, 2, 3, 7])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_padding_that_is_called_same_gives_a_window_for_each_stride(size, window, stride):
    for name, longer in (("SAME", 1), ("SAME_LOWER", 0), ("same", 1)):
        (pads,) = lax.padtype_to_pads((size,), (window,), (stride,), name)
        assert lax.reduce_window_shape_tuple((size,), (window,), (stride,), name) == (-(-size // stride),)
        assert pads[longer] - pads[1 - longer] in (0, 1) and min(pads) >= 0
        fewer = (pads[0] - 1, pads[1]) if pads[0] > pads[1] else (pads[0], pads[1] - 1)
        if max(pads) and size:
            assert lax.reduce_window_shape_tuple((size,), (window,), (stride,), [fewer]) < (-(-size // stride),)


def test_pairs_are_integers_of_python():
    sizes = np.array([5, 6])
    for low, high in lax.padtype_to_pads(sizes, (2, 3), (1, 1), "SAME"):
        assert type(low) is type(high) is int


def test_valid_padding_is_none():
    assert lax.padtype_to_pads((5, 6), (2, 3), (1, 1), "VALID") == [(0, 0), (0, 0)]
    with pytest.raises(BadArgument, match="'SAME', 'SAME_LOWER' or 'VALID'"):
        lax.padtype_to_pads((5,), (2,), (1,), "FULL")


def test_dilation_counts():
    assert lax.reduce_window_shape_tuple((4,), (3,), (2,), [(1, 0)], (2,), (3,)) == (1,)
    assert lax.reduce_window_shape_tuple((4,), (3,), (1,), [(1, 0)], (2,), (3,)) == (2,)
