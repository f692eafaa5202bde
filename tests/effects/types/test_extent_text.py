"""Extents in the text of programs."""

import pytest

from handlax.effects.programs.lexer import Tokens
from handlax.effects.types.array_type import array_type
from handlax.effects.types.extent import floor_divided, length, positive
from handlax.effects.types.extent_text import parse_extent

n, m = length(0), length(1)


@pytest.mark.parametrize(("text", "size"), [
    ("3", 3), ("2*n0+1", 2 * n + 1), ("max(n0-1,0)", positive(n - 1)), ("-n0+4", 4 - n),
    ("floordiv(max(n0+n1-5,0)+1,2)*n1-3", floor_divided(positive(n + m - 5) + 1, 2) * m - 3),
])
def test_texts_of_extents(text, size):
    assert parse_extent(text) is size or parse_extent(text) == size


def test_types_with_parts_of_axes():
    t = array_type((positive(n - 1), 3, floor_divided(n + 1, 2)), "float32")
    assert str(t) == "f32[max(n0-1,0),3,floordiv(n0+1,2)]"
    assert Tokens(str(t)).type() is t
