"""Classes of other libraries as arrays, by registration."""

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.core import pytype_aval_mappings
from handlax.extend.xla import canonicalize_dtype_handlers


@pytest.fixture
def variable():
    """A class of a library, of which neither values nor types are known."""
    class Variable:
        def __init__(self, data):
            self.data = data

    yield Variable
    canonicalize_dtype_handlers.pop(Variable, None)
    pytype_aval_mappings.pop(Variable, None)


def test_instances_of_a_registered_class_are_arrays(variable):
    x = variable(np.arange(3.0, dtype=np.float32))
    with pytest.raises(errors.NotAnArray):
        hnp.sin(x)
    canonicalize_dtype_handlers[variable] = lambda x: x.data
    expected = hnp.sin(x.data)
    assert hnp.array_equal(hnp.sin(x), expected) and hnp.allclose(hx.jit(hnp.sin)(x), expected)
    assert hx.typeof(x) == hx.typeof(x.data) and hnp.array_equal(hnp.asarray(x), x.data)


def test_the_type_of_a_registered_class_is_known_without_its_values(variable):
    pytype_aval_mappings[variable] = lambda x: hx.core.ShapedArray((2, 3), "int8")
    assert str(hx.typeof(variable(None))) == "i8[2,3]"


def test_what_numpy_s_arrays_have_is_there_for_others(variable):
    class Shown(np.ndarray):
        pass

    canonicalize_dtype_handlers[Shown] = canonicalize_dtype_handlers[np.ndarray]
    pytype_aval_mappings[Shown] = pytype_aval_mappings[np.ndarray]
    x = np.ones(3, "float32").view(Shown)
    assert hx.typeof(x) == hx.typeof(hnp.ones(3)) and hnp.sin(x).shape == (3,)
    del canonicalize_dtype_handlers[Shown], pytype_aval_mappings[Shown]
    assert hx.typeof(x) == hx.typeof(hnp.ones(3)) and hnp.sin(x).shape == (3,)
