"""Functions exported for symbolic sizes, compared with themselves."""

import numpy as np

import handlax as hx
from handlax import export, random
from handlax import numpy as hnp


def exported(f, *shapes, dtype="float32", scope=None, vjp_order=0):
    """The function, exported for these symbolic shapes, written and read."""
    scope = export.SymbolicScope() if scope is None else scope
    types = [hx.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype) for shape in shapes]
    return export.deserialize(export.export(hx.jit(f))(*types).serialize(vjp_order))


def array(*shape):
    return np.random.default_rng(0).uniform(0.1, 1.0, shape).astype(np.float32)


def agree(f, call, *examples):
    """``call`` and ``f`` give the same for the arguments of each example, in one program."""
    both = hx.jit(lambda examples: ([call(*xs) for xs in examples], [f(*xs) for xs in examples]))(examples)
    for found, expected in zip(*map(hx.tree.leaves, both), strict=True):
        assert found.dtype == expected.dtype
        keys = hnp.issubdtype(found.dtype, hx.dtypes.prng_key)
        found, expected = (random.key_data(found), random.key_data(expected)) if keys else (found, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
