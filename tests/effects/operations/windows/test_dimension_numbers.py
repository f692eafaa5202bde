"""Dimension numbers of convolutions in all their forms, and the shapes that follow."""

import numpy as np
import pytest

from handlax import lax
from handlax.errors import BadArgument, ShapeMismatch

SHAPES = (2, 3, 9, 8), (5, 3, 4, 2)


@pytest.mark.parametrize(
    ("words", "specs"),
    [
        (("NCHW", "OIHW", "NCHW"), ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))),
        (("NHWC", "HWIO", "NHWC"), ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))),
        (("HNCW", "WOIH", "CWNH"), ((1, 2, 3, 0), (1, 2, 0, 3), (2, 0, 1, 3))),
    ],
)
def test_spatial_dimensions_are_in_the_order_of_rhs(words, specs):
    assert lax.conv_general_permutations(words) == specs
    numbers = lax.conv_dimension_numbers(*SHAPES, words)
    assert numbers == specs and lax.conv_dimension_numbers(*SHAPES, numbers) is numbers
    assert lax.conv_dimension_numbers(*SHAPES, list(words)) == specs


def test_numbers_that_are_not_given_are_in_the_order_of_roles():
    assert lax.conv_dimension_numbers(*SHAPES, None) == ((0, 1, 2, 3),) * 3


@pytest.mark.parametrize(
    ("error", "said", "numbers"),
    [
        (BadArgument, "exactly once", ("NNHW", "OIHW", "NCHW")),
        (BadArgument, "exactly once", ("NCHH", "OIHW", "NCHW")),
        (BadArgument, "same set of spatial letters", ("NCHW", "OIHW", "NCHD")),
        (BadArgument, "one letter for each of 4", ("NCW", "OIW", "NCW")),
        (BadArgument, "None or three words", ("NCHW", "OIHW")),
        (BadArgument, "permutation of 4", lax.ConvDimensionNumbers((0, 1, 2, 2), (0, 1, 2, 3), (0, 1, 2, 3))),
    ],
)
def test_other_numbers_are_refused(error, said, numbers):
    with pytest.raises(error, match=said):
        lax.conv_general_dilated(*map(np.ones, SHAPES), (1, 1), "SAME", dimension_numbers=numbers)


def test_ranks_agree():
    with pytest.raises(ShapeMismatch, match="one rank"):
        lax.conv_dimension_numbers((1, 2), (1, 2, 3), None)


def test_shapes_are_those_of_the_results():
    words = ("NHWC", "HWIO", "NHWC")
    lhs, rhs = (2, 9, 8, 3), (4, 2, 3, 5)
    for padding in ("SAME", "VALID", "SAME_LOWER", ((1, 2), (-1, 3))):
        shape = lax.conv_general_dilated(np.ones(lhs), np.ones(rhs), (2, 3), padding, dimension_numbers=words).shape
        assert lax.conv_general_shape_tuple(lhs, rhs, (2, 3), padding, words) == shape
    for padding in ("SAME", "VALID"):
        shape = lax.conv_transpose(np.ones(lhs), np.ones(rhs), (2, 3), padding, dimension_numbers=words).shape
        features_last = lax.conv_transpose_shape_tuple(lhs, rhs, (2, 3), padding, words)
        assert features_last == shape
    assert lax.conv_shape_tuple((4, 3, 9), (6, 3, 2), (1,), "VALID", 2) == (2, 6, 8)
