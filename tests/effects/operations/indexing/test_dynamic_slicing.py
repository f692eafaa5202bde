"""Slices whose starts are operands."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.operations.indexing.dynamic_slicing import DynamicSlice, DynamicUpdateSlice

X = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize(("op", "operands"), [(DynamicSlice((1, 2)), (X,)), (DynamicUpdateSlice(), (X, X[:1, :2]))])
@pytest.mark.parametrize("starts", [
    (np.zeros((), "int32"), np.zeros((), "int64")), (np.zeros((), "float32"),) * 2, (np.zeros(1, "int32"),) * 2,
])
def test_starts_are_integer_scalars_of_one_dtype(op, operands, starts):
    with pytest.raises(errors.DTypeMismatch, match="starts must be integer scalars of one dtype"):
        hx.perform(op, *map(hnp.asarray, (*operands, *starts)))
