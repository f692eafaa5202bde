"""Leaves of trees that are saved and restored, compared by their bits."""

import numpy as np

import handlax as hx


def bits(x):
    """All that a leaf is: its class, its type, its bytes, and, of an array on chosen devices, its sharding."""
    if isinstance(x, hx.Array):
        sharding = x.sharding if x.committed else None
        data = hx.random.key_data(x) if hx.dtypes.issubdtype(x.dtype, hx.dtypes.prng_key) else x
        return "array", hx.typeof(x), np.asarray(data).tobytes(), sharding
    if isinstance(x, np.ndarray | np.generic):
        return type(x), x.dtype, x.shape, x.tobytes()
    return type(x), np.asarray(x).tobytes() if isinstance(x, float | complex) else x


def same(one, other):
    """Assert that two trees have one structure, and leaves of the same bits."""
    leaves, tree = hx.tree.flatten(one)
    others, other_tree = hx.tree.flatten(other)
    assert tree == other_tree
    for x, y in zip(leaves, others):
        assert bits(x) == bits(y)
