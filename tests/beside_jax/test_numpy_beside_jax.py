"""Every function of ``numpy`` gives JAX's values, dtypes and weak types, of every kind of array, but for these.

With JAX's default widths. Reasons stand in docs/explanation/numbers.md, or beside the names.
"""

import pytest
from helpers.numpy_calls import ARRAYS, QUICK, found_differences, shared_names

import handlax as hx
from handlax import numpy as hnp

pytestmark = pytest.mark.peer
EXPLAINED = {
    "complex NaN and infinities: C99, and the parts that are known": (
        """amax amin max min minmax ptp arcsinh arctan arctanh asinh atan atanh cos cosh exp exp2 expm1 gradient
        histogram_bin_edges histogram sign sin sinh sinc tan tanh vander poly reciprocal log log10 log1p log2 sqrt
        nanmean nanmax nanmin acos acosh arccos arccosh power pow float_power abs absolute square unwrap
        unique_all unique_counts unique_inverse unique_values""", ("c64 special",)),
    "the side of the cut that -0 says": ("arcsinh asinh", ("c64",)),
    "limits": ("i0 modf poly", ("special",)),
    "exact ends": ("geomspace", tuple(ARRAYS)),
    "edges as NumPy rounds them": ("histogram histogram2d histogramdd", tuple(ARRAYS)),
    "the sequence is not sorted": ("searchsorted digitize", tuple(ARRAYS)),
    "any order of the rest": ("partition argpartition", tuple(ARRAYS)),
    "negative powers of integers": ("pow power", ("i32",)),
    "a sign, as of wider floats": ("spacing", ("f16",)),
    "the default width, as the array API standard says": ("cumulative_prod", ("i8", "u8")),
    "the imaginary part of no number": ("roots", ("special", "c64 special")),
    "sizes that are no integers": ("bartlett blackman hamming hanning", ("scalar",)),
}


def is_explained(name, row):
    return any(name in names.split() and set(row) & set(arrays) for names, arrays in EXPLAINED.values())


@pytest.mark.parametrize("name", shared_names(hnp))
def test_values_and_types_are_those_of_jax(name):
    jnp = pytest.importorskip("jax.numpy")
    if not hasattr(jnp, name):
        pytest.skip("JAX has no such function")
    with hx.enable_x64(False):
        found = found_differences(name, jnp, QUICK, types=True)
    assert {row: words for row, words in found.items() if not is_explained(name, row)} == {}
