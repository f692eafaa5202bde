"""Functions of lanes with few rows or none: each equals the loop over lanes, or is refused; sizes decide by value."""

import inspect

import numpy as np
import pytest

import handlax as hx
from handlax import nn
from handlax import numpy as hnp

R = hx.ragged_axis
LENGTHS = (3, 1, 4, 0, 2)
RNG = np.random.default_rng(0)
DATA = {
    "floats": RNG.standard_normal(10).astype("float32"),
    "rows": RNG.standard_normal((10, 3)).astype("float32"),
    "columns": RNG.standard_normal((10, 1)).astype("float32"),
    "integers": RNG.integers(0, 3, 10).astype("int32"),
    "bools": RNG.integers(0, 2, 10).astype(bool),
}


def leaves(tree):
    return [hnp.asarray(x) for x in hx.tree.leaves(tree)]


def in_lanes(f, x):
    """The results of each lane, whether they are ragged or of one shape."""
    try:
        ys = hx.vmap(lambda r: leaves(f(r)), in_axes=R)(x)
        return [[np.asarray(y[i]) for y in ys] for i in range(len(LENGTHS))]
    except hx.errors.HandlaxError:
        y = hx.vmap(lambda r: leaves(f(r)), in_axes=R, out_axes=R)(x)
        return [[np.asarray(part) for part in hx.tree.leaves(lane)] for lane in y.to_list()]


def check(f, data):
    """The law for every lane of which the loop has a result."""
    x = hx.Ragged(hnp.asarray(data), LENGTHS)
    results = in_lanes(f, x)
    compared = 0
    for lane, row in zip(results, x.to_list(), strict=True):
        try:
            wanted = leaves(f(row))
        except hx.errors.HandlaxError:
            continue
        for a, b in zip(lane, wanted, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, np.asarray(b), rtol=2e-3, atol=1e-4)
            compared += 1
    return compared


BY_VALUE = {
    "edges of bins": (lambda r: hnp.histogram_bin_edges(r, 4), "floats"),
    "histogram": (lambda r: hnp.histogram(r, 4), "floats"),
    "quantile of numbers": (lambda r: hnp.nanquantile(r, 0.3), "floats"),
    "median of columns": (lambda r: hnp.nanmedian(r, 0), "rows"),
    "product of polynomials": (lambda r: hnp.polymul(r, hnp.array([1.0, 2.0])), "floats"),
    "iterable": (lambda r: hnp.iterable(r), "floats"),
    "squeezed by name": (lambda r: hnp.squeeze(r, 1), "columns"),
    "an index in the lane's shape": (lambda r: hnp.unravel_index(hnp.array([0, 3, 5]), (r.shape[0], 2)), "floats"),
    "an index in a shape of two lengths": (lambda r: hnp.unravel_index(7, (r.shape[0], r.shape[0], 3)), "floats"),
    "a diagonal filled": (lambda r: hnp.fill_diagonal(r[:, None] * r, 7.0, inplace=False).sum(1), "floats"),
    "a diagonal filled by a vector": (lambda r: hnp.fill_diagonal(r[:, None] * r, r, inplace=False).sum(1), "floats"),
}


@pytest.mark.parametrize("name", BY_VALUE)
def test_what_depends_on_whether_a_lane_is_empty_is_decided_in_each_lane(name):
    f, kind = BY_VALUE[name]
    assert check(f, DATA[kind])


@pytest.mark.parametrize(("f", "kind", "words"), [
    (hnp.squeeze, "floats", "which axes have size 1 must be the same in all lanes"),
    (hnp.squeeze, "columns", "hint: name the axes that go"),
    (lambda r: hnp.cov(r, rowvar=False), "rows", "lanes may have one"),
    (lambda r: hnp.choose(r, [1.0, 2.0, 3.0]), "integers", "hint: mode='clip' or 'wrap'"),
])
def test_what_has_another_shape_in_a_lane_of_one_row_is_refused(f, kind, words):
    with pytest.raises(hx.errors.HandlaxError, match=words):
        hx.vmap(f, in_axes=R, out_axes=R)(hx.Ragged(DATA[kind], LENGTHS))


def functions():
    """The public functions that take one array."""
    for module in (hnp, hnp.linalg, nn):
        for name in sorted(dir(module)):
            f = getattr(module, name)
            if name.startswith("_") or inspect.isclass(f) or inspect.ismodule(f) or not callable(f):
                continue
            yield pytest.param(f, id=f"{module.__name__.removeprefix('handlax.')}.{name}")


@pytest.mark.sweep
@pytest.mark.parametrize("f", list(functions()))
def test_functions_of_one_array_equal_the_loop_or_are_refused(f):
    for options in ({}, {"axis": 0}, {"axis": 1}, {"axis": None}):
        for data in DATA.values():
            try:
                check(lambda r, options=options: f(r, **options), data)
            except (hx.errors.HandlaxError, TypeError):  # of arguments that it does not take
                continue
