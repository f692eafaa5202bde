"""Slices of an axis whose size is an extent are those of Python, for every length."""

from itertools import product

import pytest

import handlax as hx
from handlax.effects.types.extent import Extent, length
from handlax.effects.types.parts_of_axes import ceiling_divided, part_of, smaller

n = length(0)


def test_slices_are_those_of_python():
    ends = [None, -3, -1, 0, 1, 4]
    for start, stop, step in product(ends, ends, [1, 2, -1, -2]):
        first, behind = part_of(n, start, stop, step)
        for k in range(8):
            a, b = [size.at({0: k}) if type(size) is Extent else size for size in (first, behind)]
            wanted = list(range(k))[start:stop:step]
            assert list(range(a, b)[::step]) == wanted
            count = ceiling_divided(behind - first, abs(step))
            assert (count.at({0: k}) if type(count) is Extent else count) == len(wanted)


def test_bounds_that_are_extents():
    assert part_of(n, None, n // 2) == (0, n // 2)
    assert smaller(n, 3) is smaller(3, n)
    with pytest.raises(hx.errors.BadIndex, match="from one end"):
        part_of(n, None, n - 3)
