"""Random matrices, and how far a product is from a matrix."""

import numpy as np


def matrix(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def residual(x, y):
    """The largest error of a factorisation of matrices, in units of n eps ||x||."""
    n = max(x.shape[-2:])
    size = np.linalg.norm(x, axis=(-2, -1)) * n * np.finfo(x.dtype).eps
    return float((np.linalg.norm(x - y, axis=(-2, -1)) / size).max())
