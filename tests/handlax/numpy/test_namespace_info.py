"""What ``handlax.numpy`` says of itself by the inspection functions of the array API standard."""

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import BadArgument

INFO = hnp.__array_namespace_info__()


def test_dtypes_are_those_of_the_kinds():
    assert list(INFO.dtypes(kind=("bool", "complex floating"))) == ["bool", "complex64", "complex128"]
    assert set(INFO.dtypes()) == {"bool", *INFO.dtypes(kind="numeric")}
    assert INFO.dtypes(kind="integral") == INFO.dtypes(kind=("signed integer", "unsigned integer"))
    with pytest.raises(BadArgument, match="kind must be one of"):
        INFO.dtypes(kind="decimal")


def test_defaults_are_the_dtypes_of_new_arrays():
    defaults = INFO.default_dtypes()
    assert [hnp.asarray(x).dtype for x in (1, 1.0, 1j)] == [
        defaults[kind] for kind in ("integral", "real floating", "complex floating")
    ]
    assert hnp.zeros(1).device == INFO.default_device()
    assert INFO.devices() == hx.devices()


def test_arrays_lead_to_the_namespace():
    assert hnp.zeros(1).__array_namespace__() is hnp
    assert hnp.__array_api_version__ == "2024.12"
