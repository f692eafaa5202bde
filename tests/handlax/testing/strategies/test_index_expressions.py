"""Index expressions: NumPy accepts each, handlax gives the same, and those of every kind are drawn."""

import numpy as np
from helpers.drawn_kinds import missing
from hypothesis import given
from hypothesis import strategies as st

from handlax import numpy as hnp
from handlax.testing.strategies import arrays, index_expressions, shapes

ENTRIES = lambda index: index if isinstance(index, tuple) else (index,)
IS_ARRAY = lambda entry: isinstance(entry, np.ndarray) and entry.dtype != bool
IS_MASK = lambda entry: isinstance(entry, np.ndarray) and entry.dtype == bool
# what an entry can be
KINDS = {
    "integer": lambda entry: type(entry) is int and entry > 0,
    "negative integer": lambda entry: type(entry) is int and entry < 0,
    "slice": lambda entry: isinstance(entry, slice) and entry.start is not None,
    "slice backwards": lambda entry: isinstance(entry, slice) and (entry.step or 1) < 0,
    "ellipsis": lambda entry: entry is ...,
    "new axis": lambda entry: entry is None,
    "True": lambda entry: entry is True,
    "integer array": lambda entry: IS_ARRAY(entry) and entry.ndim == 2,
    "integer array without elements": lambda entry: IS_ARRAY(entry) and not entry.size,
    "integer array without dimensions": lambda entry: IS_ARRAY(entry) and not entry.ndim,
    "unsigned array": lambda entry: IS_ARRAY(entry) and entry.dtype == "uint8",
    "mask": lambda entry: IS_MASK(entry) and entry.ndim == 1 and entry.sum() == 2,
    "mask of two axes": lambda entry: IS_MASK(entry) and entry.ndim == 2 and entry.sum() == 2,
}
MIXTURES = {
    "mask and array": lambda index: any(map(IS_MASK, index)) and any(map(IS_ARRAY, index)),
    "arrays that broadcast": lambda index: len({entry.shape for entry in index if IS_ARRAY(entry)}) > 1,
    "arrays apart": lambda index: any([IS_ARRAY(a) and isinstance(b, slice) and IS_ARRAY(c)
                                       for a, b, c in zip(index, index[1:], index[2:])]),
    "ellipsis before an entry": lambda index: any([entry is ... for entry in index[:-1]]),
    "ellipsis of no axes": lambda index: len(index) == 4 and any([entry is ... for entry in index])
    and all([entry is ... or type(entry) is int for entry in index]),
}


def test_entries_and_mixtures_of_every_kind_are_drawn():
    entries = {name: lambda index, kind=kind: any(map(kind, ENTRIES(index))) for name, kind in KINDS.items()}
    mixtures = {name: lambda index, kind=kind: kind(ENTRIES(index)) for name, kind in MIXTURES.items()}
    assert not missing(index_expressions((3, 4, 2)), entries | mixtures)


@given(arrays("int32", shapes()), st.data())
def test_every_index_expression_means_what_it_means_in_numpy(x, data):
    index = data.draw(index_expressions(x.shape))
    part, found = x[index], hnp.asarray(x)[index]
    assert found.shape == part.shape and np.array_equal(found, part)


@given(shapes().flatmap(lambda shape: index_expressions(shape, arrays=False, new_axes=False)))
def test_basic_index_expressions_have_neither_arrays_nor_new_axes(index):
    assert {*map(type, ENTRIES(index))} <= {int, slice, type(...)}
