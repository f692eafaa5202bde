"""Memory that arguments pass through: never written while a program may read it."""

import numpy as np
import pytest

import handlax as hx
from handlax.lowering.xla import jaxlib_runtime
from handlax.lowering.xla.pinned_buffers import stage


class Result:
    """A result that is ready when its attribute says so."""

    def __init__(self, ready, deleted=False):
        self.ready = ready
        self.deleted = deleted

    def is_ready(self):
        return self.ready

    def is_deleted(self):
        return self.deleted


def test_a_stage_holds_the_elements_in_aligned_memory():
    x = np.arange(7, dtype="float64")
    held = stage(x)
    assert held.memory.ctypes.data % 64 == 0
    assert jaxlib_runtime.to_numpy(held.buffer, x.dtype, x.shape).tolist() == x.tolist()


def test_a_function_of_no_elements_and_one_of_many_arguments_that_are_alike(nothing_placed):
    empty, many = np.zeros((0, 3), "float32"), [np.full(3, i, "float32") for i in range(20)]
    double, add = hx.jit(lambda x: x * 2), hx.jit(lambda *xs: sum(xs))
    for _ in range(3):
        assert double(empty).shape == (0, 3) and add(*many).tolist() == [190] * 3


def test_a_stage_is_used_again_once_its_reader_is_ready_and_not_before():
    x = np.zeros(131, "int16")  # a shape of this test alone
    held, reader = stage(x), Result(False)
    held.release([reader])
    assert stage(x) is None
    reader.ready = True
    assert stage(x + 1) is held and held.memory.tolist() == [1] * 131


def test_a_stage_whose_reader_was_deleted_is_not_used_again():
    x = np.zeros(133, "int16")
    held = stage(x)
    held.release([Result(ready=True, deleted=True)])
    assert stage(x) is not held


@pytest.mark.parametrize("end", [
    lambda y: y.delete(), lambda y: hx.jit(lambda y: y * 2, donate_argnums=0)(y),
], ids=["deleted", "donated"])
def test_results_may_be_deleted_and_donated_between_calls_with_numpy_arrays(end):
    f = hx.jit(lambda x: (x + 1, x * 2))
    for i in range(6):
        y, z = f(np.full(3, i, np.float32))
        end(y)
        assert z.tolist() == [2.0 * i] * 3


def test_nothing_passes_through_where_there_is_nothing():
    assert stage(np.zeros((0, 137), "float32")) is None


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_elements_that_devices_pack_are_transferred_at_every_call(dtype):
    f = hx.jit(lambda x: x.astype("float32"))
    for x in (np.array(numbers, "float32").astype(dtype) for numbers in ([1, 0, 1], [0, 1, 0], [1, 1, 0])):
        np.testing.assert_array_equal(f(x), x.astype("float32"))


def test_arguments_that_change_between_calls_are_never_seen_in_earlier_results():
    x = np.zeros(16, "float32")
    f = hx.jit(lambda x: x * 2)
    made = []
    for i in range(50):
        x[...] = i
        made.append(f(x))
    assert [y.tolist() for y in made] == [[2.0 * i] * 16 for i in range(50)]
