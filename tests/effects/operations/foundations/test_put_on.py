"""Transfers to one device under transformations: values and tangents are moved, cotangents are moved back."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.sharding import SingleDeviceSharding

HERE, THERE = hx.devices()[1:3]


def moved(x):
    return hx.device_put(hnp.sin(x), THERE)


def test_a_gradient_lies_where_its_argument_does():
    x = hx.device_put(2.0, HERE)
    y, slope = hx.value_and_grad(moved)(x)
    assert y.devices() == {THERE} and slope.devices() == {HERE}
    assert np.allclose([y, slope], [np.sin(2), np.cos(2)])
    y, tangent = hx.jvp(moved, (x,), (x,))
    assert y.devices() == tangent.devices() == {THERE}
    assert hx.grad(hx.grad(lambda x: moved(x) * moved(x)))(x).devices() == {HERE}
    xs = hx.device_put(np.arange(3.0), HERE)
    assert hx.grad(lambda xs: hx.vmap(moved)(xs).sum())(xs).tolist() == hnp.cos(xs).tolist()


@pytest.mark.parametrize("kind", ["pinned_host", "device"])
def test_a_memory_of_the_device_is_one_to_put_it_in(kind):
    x, where = hx.device_put(2.0, HERE), SingleDeviceSharding(THERE, memory_kind=kind)
    y, slope = hx.value_and_grad(lambda x: hx.device_put(x, where))(x)
    assert y.sharding == where and slope.sharding == SingleDeviceSharding(HERE) and slope == 1


def test_a_program_stays_on_its_devices():
    y, slope = hx.jit(hx.value_and_grad(moved))(hx.device_put(2.0, HERE))
    assert y.devices() == slope.devices() == {HERE} and np.allclose([y, slope], [np.sin(2), np.cos(2)])
    assert [op.name for op in hx.make_program(moved)(2.0).ops] == ["sin"]
