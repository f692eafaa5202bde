"""``pmap`` by several processes, of which one process alone has all lanes."""

from types import SimpleNamespace

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax.effects.base import config
from handlax.lowering.maps import process_lanes

X, Y = np.arange(12, dtype="float32").reshape(4, 3), np.arange(1, 5, dtype="float32")


@pytest.fixture(autouse=True)
def joined(monkeypatch):
    monkeypatch.setattr(config.PROCESS, "joined", 2)


def f(x, y):
    return x - lax.pmean(x, "i"), {"sum": y * x.sum()}


@pytest.mark.parametrize(("in_axes", "size"), [((0, 0), 4), ((1, None), 3), ((None, 0), 4)])
@pytest.mark.parametrize("axis_size", [False, True])
def test_the_lanes_are_those_of_vmap_each_on_its_device(in_axes, size, axis_size):
    y = Y if in_axes[1] == 0 else Y[0]
    expected = hx.vmap(f, in_axes, axis_name="i")(X, y)
    found = hx.pmap(f, axis_name="i", in_axes=in_axes, axis_size=size if axis_size else None)(X, y)
    for a, b in zip(hx.tree.leaves(found), hx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        assert a.is_fully_addressable and a.devices() == {*hx.devices()[:size]}


def test_static_arguments_and_keywords_stay_what_they_are():
    power = hx.pmap(lambda x, n, *, scale: scale * x**n, static_broadcasted_argnums=1)
    assert power(Y, 2, scale=Y).tolist() == (Y**3).tolist()


def test_lanes_of_another_number_are_refused():
    with pytest.raises(errors.HandlaxError, match="mapped argument 0"):
        hx.pmap(f, axis_name="i")(X, Y[:3])


@pytest.mark.parametrize("transform", [hx.jit, hx.grad])
def test_within_a_transformation_it_is_refused(transform):
    with pytest.raises(errors.CannotCross, match="with several processes each gives the lanes of its devices"):
        transform(lambda y: hx.pmap(lambda y: y)(y).sum())(Y)


def test_as_many_devices_of_each_process_are_taken(monkeypatch):
    every = [SimpleNamespace(process_index=number, id=i) for i, number in enumerate((1, 0, 1, 0, 0))]
    monkeypatch.setattr(process_lanes, "devices", lambda backend: every)
    assert [device.id for device in process_lanes.devices_of_all(2, None)] == [1, 3, 0, 2]
    assert [device.id for device in process_lanes.devices_of_all(1, None)] == [1, 0]
