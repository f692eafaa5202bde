"""Every function that NumPy has too gives NumPy's values, of every kind of array; the differences have reasons."""

import numpy as np
import pytest
from helpers.numpy_calls import ALL, ARRAYS, ONE, QUICK, arguments, difference, found_differences, results, shared_names

import handlax as hx
from handlax import numpy as hnp

NAMES = shared_names(np)
NARROW = ("i8", "u8", "bool")
# reasons: the functions, and the arrays with which they differ
EXPLAINED = {
    "the order of complex NaN, which of them remains, and the parts that it spoils": (
        """amax amin max min ptp cumprod cumulative_prod argsort sort sort_complex expm1 gradient geomspace linspace
        logspace histogram nanmean polyint reciprocal sign sinc setdiff1d setxor1d union1d unique
        unique_all unique_counts unique_inverse unique_values vander""", ("c64 special",)),
    "limits, where NumPy has NaN": ("i0 linspace logspace nanpercentile sinc", ("special",)),
    "zero times infinity is NaN": ("dot inner interp", ("special",)),
    "a quotient by the complex zero": ("pow power float_power reciprocal", ("c64",)),
    "8 bits: sums and powers keep them, floats are those of 32 bits": (
        "cumsum nancumsum vander float_power i0 logspace trapezoid unwrap convolve correlate polymul bincount", NARROW),
    "integers become floats": ("reciprocal correlate polyder unwrap", ("i32", "i64", "matrix", *NARROW)),
    "powers in the width of the array": ("vander", ("i32", "f16")),
    "the quotient of an integer by 0 is that of XLA": ("divmod floor_divide", tuple(ARRAYS)),
    "any order of the rest": ("partition argpartition unique_values", tuple(ARRAYS)),
    "leading zeros are kept, as the size is known before": ("polydiv polymul", tuple(ARRAYS)),
    "the sequence is not sorted": ("searchsorted", tuple(ARRAYS)),
    "integers have the spacing of float32, and 16 bits a sign": ("spacing", ("f16", "i32", *NARROW, "matrix")),
    "exact at integers": ("sinc", ("f16", "one", "matrix")),
    "counts have the dtype of complex samples, of which only the real part is sorted in": ("histogram", ("c64",)),
    "elements declared unique that are not": ("intersect1d setxor1d", ("f32",)),
    "no probabilities give none": ("nanpercentile nanquantile", ("none",)),
    "arrays of no dimensions are scalars": ("isscalar", ("scalar",)),
}


# quotients of complex infinities by constants; edges of bins that are rounded otherwise
VARIABLE = (("gradient", "c64 special"), ("polyint", "c64 special"), ("histogram", "f64"))


def is_explained(name, row):
    return any(name in names.split() and set(row) & set(arrays) for names, arrays in EXPLAINED.values())


def unexplained(name, rows):
    return {row: words for row, words in found_differences(name, np, rows).items() if not is_explained(name, row)}


@pytest.mark.parametrize("initial", sorted({name[0] for name in NAMES}))
def test_values_are_those_of_numpy(initial):
    found = {name: unexplained(name, QUICK) for name in NAMES if name[0] == initial}
    assert {name: rows for name, rows in found.items() if rows} == {}


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_numpy_for_all_arguments(name):
    assert unexplained(name, ALL) == {}


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_compiled_values_are_those_of_eager_calls(name):
    f = getattr(hnp, name)
    for row in ONE:
        eager, compiled = results(f, arguments(row)), results(hx.jit(f), arguments(row))
        if eager is not None and compiled is not None:  # some results have shapes that only values tell
            types = all(isinstance(leaf, hx.Array) for leaf in eager)
            assert difference(compiled, eager, types) is None or (name, *row) in VARIABLE, row


@pytest.mark.sweep
@pytest.mark.parametrize("reason", EXPLAINED)
def test_each_reason_explains_a_difference(reason):
    names, arrays = EXPLAINED[reason]
    for name in names.split():
        found = found_differences(name, np, [row for row in ALL if set(row) & set(arrays)])
        assert found, name
