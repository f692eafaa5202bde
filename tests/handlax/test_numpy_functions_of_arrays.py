"""NumPy's own functions, given arrays of handlax, give what they give for NumPy's arrays."""

import inspect

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp

M = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.5]], np.float32)
V, I, B = np.array([3.0, 1.0, 2.0], np.float32), np.array([2, 0, 1], np.int32), np.array([True, False, True])
CALLS = [
    ((M,), {}), ((I,), {}), ((V, V[::-1].copy()), {}), ((M, M), {}), ((M, I), {}), ((V, I), {}), ((I, V), {}),
    ((B, V), {}), ((B, V, -V), {}), ((V, I, V), {}), ((I, [V, V, V]), {}), ((M, 1), {}), ((M, 0, 1), {}),
    (([V, V],), {}), (("ij,j", M, V), {}), ((V, (3, 1)), {}), ((M.T @ M,), {}), ((I, (3, 4)), {}), ((3,), {}),
    ((M,), {"axis": 0}), ((M,), {"axis": -1, "keepdims": True}), ((M, I), {"axis": 1, "mode": "clip"}),
    ((M, I), {"axis": 1}), ((V,), {"kind": "stable"}), ((V, V), {"side": "right"}), ((M,), {"ddof": 1}),
]
# they write into their argument, or read its memory; files, matrices; types; what is found where nothing is sorted
WITHOUT = {
    "asmatrix", "bmat", "copyto", "fill_diagonal", "frombuffer", "fromfile", "fromregex", "genfromtxt", "isfortran",
    "place", "put", "put_along_axis", "putmask", "searchsorted", "typename",
}
NAMES = sorted(
    name for name in set(np.__all__) - WITHOUT
    if callable(function := getattr(np, name)) and not inspect.isclass(function)
    and not name.startswith(("save", "set_", "set", "get_", "show", "info", "empty", "load", "test", "array_", "base_"))
)


def made(by, argument):
    if isinstance(argument, list):
        return [made(by, x) for x in argument]
    return by.array(argument) if isinstance(argument, np.ndarray) else argument


def outcome(by, name, args, options):
    try:
        return getattr(np, name)(*made(by, list(args)), **options)
    except Exception:  # whatever NumPy raises where the arguments are not for this function
        return None


def same(one, other):
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind in "USO":
        return True
    return one.shape == other.shape and np.allclose(one, other, 1e-5, equal_nan=True)


@pytest.mark.parametrize("initial", sorted({name[0] for name in NAMES}))
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_a_function_of_numpy_gives_the_values_that_it_gives_for_its_own_arrays(initial):
    for name in [name for name in NAMES if name[0] == initial]:
        expected = [outcome(np, name, args, options) for args, options in CALLS]
        found = [outcome(hnp, name, args, options) for args, options in CALLS]
        pairs = [(x, y) for x, y in zip(expected, found) if x is not None and y is not None]
        assert all(same(x, y) for x, y in pairs), name
        assert pairs or all(x is None for x in expected), name


def test_numpy_computes_where_a_parameter_has_no_meaning_here():
    x, i = hnp.array(V), hnp.array(I)
    assert np.take(x, i).tolist() == V[I].tolist()
    assert np.take(x, i, out=np.zeros(3, "f")).tolist() == V[I].tolist()
    assert np.argsort(x, kind="stable").tolist() == np.argsort(V).tolist()
    with pytest.raises(IndexError):
        np.take(x, i + 1)
    with pytest.raises(hx.errors.NotProvided, match="mode 'raise'"):
        x.take(i, mode="raise")


def test_bytes_of_an_array_are_its_data():
    assert bytes(hnp.array(V)) == V.tobytes()
