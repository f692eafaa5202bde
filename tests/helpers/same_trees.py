"""Trees of numbers that agree leaf by leaf, up to rounding in float32."""

import numpy as np

import handlax as hx


def leaves(tree):
    """The leaves of a tree as NumPy arrays."""
    return [np.asarray(x) for x in hx.tree.leaves(tree)]


def same(a, b):
    """Assert that two trees agree."""
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
