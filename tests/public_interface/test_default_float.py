"""Integers of Python become floats of the default width, in every function that takes them in place of arrays."""

import warnings

import numpy as np
import pytest

import handlax as hx
from handlax import nn
from handlax import numpy as hnp
from handlax.scipy import special, stats

# of files, text, functions and the limits of dtypes; those that name a dtype of 32 bits or take it from elsewhere
OTHERS = """save savez savez_compressed load fromfile frombuffer fromfunction fromiter fromstring from_dlpack
printoptions set_printoptions get_printoptions array_repr array_str array2string vectorize ufunc frompyfunc finfo iinfo
issubdtype isdtype bfloat16 float16 float32 float64 complex64 complex128 single double csingle cdouble"""
MODULES = {"numpy": hnp, "special": special, "nn": nn, "norm": stats.norm, "gamma": stats.gamma, "t": stats.t,
           "expon": stats.expon, "poisson": stats.poisson, "laplace": stats.laplace}
ARGUMENTS = (1,), (1, 2), (1, 2, 3)
SETTINGS = {"floats": ({"default_float": "float64"}, 8), "integers": ({"default_int": "int64"}, 4)}


def widths(setting):
    """The calls with integers that give floats, and the widths of their parts."""
    found = {}
    for home, module in MODULES.items():
        for name in dir(module):
            f = getattr(module, name)
            if name[0] == "_" or name in OTHERS.split() or isinstance(f, type) or not callable(f):
                continue
            for row in ARGUMENTS:
                try:
                    with hx.configure(**setting), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        results = hx.tree.leaves(hx.eval_shape(lambda: f(*row)))
                except Exception:
                    continue
                kinds = [np.dtype(y.dtype) for y in results if np.dtype(y.dtype).kind in "fc"]
                if kinds:
                    found[home, name, row] = {kind.itemsize >> (kind.kind == "c") for kind in kinds}
    return found


def test_bounds_and_points_that_are_integers():
    with hx.configure(default_float="float64"):
        np.testing.assert_array_equal(hnp.linspace(0, 1, 4), np.linspace(0, 1, 4))
        np.testing.assert_allclose(hnp.geomspace(1, 2, 5), np.geomspace(1, 2, 5), rtol=1e-15)
        assert float(hnp.sqrt(2)) == 2**0.5 and hnp.sqrt(2).weak_type
        assert hnp.interp(1, hnp.arange(3), hnp.arange(3.0)).dtype == "float64"
        assert hnp.sqrt(hnp.arange(3, dtype="int32")).dtype == "float32"  # whose width was chosen


@pytest.mark.parametrize("setting", SETTINGS)
def test_floats_of_integers_have_the_default_width(setting):
    settings, width = SETTINGS[setting]
    found = widths(settings)
    assert len(found) > 200
    assert {call: sizes for call, sizes in found.items() if sizes != {width}} == {}
