"""Arrays on devices: put there, copied back, awaited; of the eight that the tests have."""

from types import SimpleNamespace

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax import numpy as hnp

TREE = {"a": np.arange(3.0, dtype="float32"), "b": [np.float32(2.0), 1]}


def test_the_tests_have_eight_devices_of_one_process():
    assert len(hx.devices()) == hx.device_count() == hx.local_device_count() == 8
    assert (hx.process_index(), hx.process_count(), hx.default_backend()) == (0, 1, "cpu")


def test_what_is_put_on_a_device_stays_there_and_is_the_same():
    device = hx.devices()[3]
    there = hx.device_put(TREE, device)
    assert all(x.devices() == {device} for x in hx.tree.leaves(there))
    assert (there["a"] * 2).devices() == hx.jit(lambda t: t["a"] + t["b"][0])(there).devices() == {device}
    back = hx.device_get({**there, "n": 7})
    assert back["n"] == 7
    assert type(back["a"]) is np.ndarray and back["a"].tolist() == [0, 1, 2] and back["b"][1].dtype == "int32"


def test_a_donated_array_may_not_be_read_again():
    x = hx.jit(lambda x: x + 1)(np.ones(3, "float32"))
    y = hx.device_put(x, hx.devices()[1], donate=True)
    assert y.tolist() == [2, 2, 2]
    with pytest.raises(errors.DeletedArray):
        x.tolist()


def test_awaiting_and_copying_give_the_tree():
    waited = []
    others = [1, SimpleNamespace(block_until_ready=lambda: waited.append(True))]
    made = [hx.jit(lambda x: {"y": x + 1})(1.0), *others]
    assert hx.block_until_ready(made) is made and waited
    assert hx.copy_to_host_async([hnp.ones(2), 3])[1] == 3


def test_awaiting_a_deleted_array_says_so():
    x = hx.jit(lambda x: x + 1)(1.0)
    x.delete()
    with pytest.raises(errors.DeletedArray, match="block_until_ready"):
        hx.block_until_ready([1, x])


def test_new_arrays_go_to_the_default_device():
    device = hx.devices()[5]
    with hx.default_device(device):
        assert hx.jit(lambda x: x + 1)(1.0).devices() == {device}
    with hx.default_device("cpu"), hx.default_device(None):
        assert hx.jit(lambda x: x + 1)(1.0).devices() == {hx.devices()[0]}


@pytest.mark.parametrize("call", [lambda: hx.device_put(1.0, "cpu:0"), lambda: hx.default_device(3).__enter__()])
def test_what_is_no_device_is_refused(call):
    with pytest.raises(errors.BadArgument, match="device"):
        call()


def test_keys_stay_keys_and_compare():
    key = hx.random.key(1)
    tree = hx.device_get({"key": key, "x": hx.numpy.ones(2)})
    assert tree["key"] is key and type(tree["x"]) is np.ndarray
    keys = hx.random.split(key, 3)
    assert (keys == keys).tolist() == [True] * 3 and (keys != keys[0]).tolist() == [False, True, True]
    assert not hx.jit(lambda a, b: a == b)(key, keys[1])
    assert hx.vmap(lambda a: a == key)(keys).tolist() == [False] * 3
    with pytest.raises(TypeError):
        assert key == 1


def test_an_array_tells_the_address_of_its_data():
    x = hx.device_put(np.arange(3.0))
    assert lax.convert_element_type(x, x.dtype).unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert (x + 1).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


@pytest.mark.parametrize("ask", [
    hx.devices, hx.device_count, hx.process_index, hx.process_count, hx.process_indices, hx.local_device_count,
    lambda backend: hx.local_devices(backend=backend),
])
def test_each_question_about_devices_is_one_about_a_platform(ask):
    with hx.configure(platforms="cpu"):
        assert ask(None) == ask("cpu")
    with pytest.raises(errors.PlatformUnavailable, match="'tpu'"):
        ask("tpu")


@pytest.mark.parametrize("name", ["process_index", "host_id"])
def test_the_devices_of_a_process_are_found_by_its_number(name):
    assert hx.local_devices(**{name: 0}) == hx.local_devices() == hx.devices()
    with pytest.raises(errors.BadArgument, match="process must be below 1, got 1"):
        hx.local_devices(**{name: 1})


def test_a_call_finds_the_plan_of_its_argument_wherever_arrays_of_one_type_lie():
    f, (first, second, *_) = hx.jit(lambda x: x + 1.0), hx.devices()
    here, there = [hx.device_put(np.ones(3, "f"), device) for device in (first, second)]
    free = hnp.ones(3)
    for x in (here, there, free, here, free, there, here):
        y = f(x)
        assert (y.devices(), y.committed) == (x.devices(), x.committed) and y.tolist() == [2.0] * 3
    assert there.sharding is f(there).sharding and there.sharding != here.sharding
