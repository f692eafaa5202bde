"""Arrays of other libraries by DLPack: values, dtypes that NumPy lacks, sharing."""

import ml_dtypes
import numpy as np
import pytest
from helpers.device_buffers import Exporter

import handlax as hx
from handlax import dlpack, errors
from handlax import numpy as hnp
from handlax.lowering.xla import jaxlib_runtime


@pytest.mark.parametrize("copy", [None, True, False])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex64", "bfloat16"])
@pytest.mark.parametrize("take", [dlpack.from_dlpack, hnp.from_dlpack], ids=["dlpack", "numpy"])
def test_an_imported_array_has_the_values_and_the_dtype(take, dtype, copy):
    assert dlpack.is_supported_dtype(dtype)
    x = np.array([[1, 0, 3], [0, 5, 6]]).astype(dtype)
    y = take(Exporter(jaxlib_runtime.put(x, hx.devices()[0])), copy=copy)
    assert y.dtype == x.dtype and (np.asarray(y) == x).all() and not y.weak_type
    assert (np.asarray(y + y) == x + x).all()


def test_an_imported_array_goes_to_the_device():
    device = hx.devices()[-1]
    y = dlpack.from_dlpack(np.arange(3), device)
    assert y.devices() == {device} and y.committed and y.tolist() == [0, 1, 2]


def test_a_later_change_is_seen_by_what_is_shared_alone():
    source = np.arange(16.0)
    shared, copied, safe = (dlpack.from_dlpack(source, copy=copy) for copy in (False, True, None))
    source[0] = 7.0
    assert (shared[0], copied[0], safe[0]) == (7.0, 0.0, 0.0)


def test_an_array_is_imported_as_it_is_and_others_are_refused():
    x = hnp.ones(2)
    assert dlpack.from_dlpack(x) is x
    with pytest.raises(errors.NotAnArray, match="__dlpack__ is needed, got int"):
        dlpack.from_dlpack(3)


def test_dtypes_that_dlpack_does_not_exchange():
    refused = [np.dtype(t) for t in (ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]
    assert not any(map(dlpack.is_supported_dtype, [*refused, hx.random.key(0).dtype]))
