"""Buffers: transfer to and from a device, sharing of memory, deletion."""

import itertools
import re

import ml_dtypes
import numpy as np
import pytest
from helpers.device_buffers import cpu_device, read, samples
from helpers.many_processes import await_all, start

import handlax as hx
import handlax.numpy as hnp
from handlax import errors
from handlax.effects.base.errors import DTypeMismatch
from handlax.lowering.xla import buffers, jaxlib_runtime
from handlax.lowering.xla.buffer_types import EXTENDED, NATIVE
from handlax.lowering.xla.buffers import _to_numpy_by_copy

DTYPES = sorted(NATIVE | EXTENDED, key=str)
SHAPES = [(), (0,), (5,), (2, 3), (3, 0, 2)]


@pytest.fixture(scope="module")
def device():
    return cpu_device()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reading_gives_back_what_was_put(device, dtype):
    for shape, copy in itertools.product(SHAPES, (True, False)):
        x = samples(shape, dtype)
        y = read(jaxlib_runtime.put(x, device, copy=copy))
        assert (y.dtype, y.shape, y.tobytes()) == (x.dtype, x.shape, x.tobytes())
        assert not y.flags.writeable


class Older:
    """A buffer of jaxlib 0.10 or 0.11, which copies no parts of several devices together."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __getattr__(self, name):
        if name == "_to_np_array_did_copy":
            raise AttributeError(name)
        return getattr(self.buffer, name)


@pytest.mark.parametrize("make", [lambda buffer: buffer, Older], ids=["newest", "older"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_no_memory_shows_is_copied_alike_by_every_version(device, dtype, make):
    x = samples((4, 6), dtype)
    halves = hx.NamedSharding(hx.make_mesh((2,), ("i",)), hx.P("i"))
    for buffer in (jaxlib_runtime.put(x, device), hx.device_put(x, halves).buffer):
        y = _to_numpy_by_copy(make(buffer), x.dtype, x.shape)
        assert (y.dtype, y.tobytes(), y.flags.writeable) == (x.dtype, x.tobytes(), False)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn, ml_dtypes.bfloat16])
def test_extreme_values_of_small_dtypes_survive(device, dtype):
    x = np.asarray([15, 8, 0, 1, 7] if dtype is ml_dtypes.uint4 else [-8, 7, 3, -1, 0]).astype(dtype)
    assert read(jaxlib_runtime.put(x, device)).tolist() == x.tolist()


@pytest.mark.parametrize("size", [1, 8, 1000, 1 << 20])
def test_a_change_of_the_array_after_put_is_not_seen(device, size):
    x = np.ones(size, np.float32)
    buffer = jaxlib_runtime.put(x, device)
    x[:] = 7
    assert (read(buffer) == 1).all()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float64, bool])
def test_a_change_after_put_is_not_seen_whatever_the_dtype(device, dtype):
    x = np.ones(4096, dtype)
    buffer = jaxlib_runtime.put(x, device)
    x[:] = 0
    assert (read(buffer).astype(np.float64) == 1).all()


def test_put_without_copy_shares_aligned_memory(device):
    memory = np.zeros(4096 + 64, np.uint8)
    x = memory[-memory.ctypes.data % 64 :][:4096].view(np.float32)
    assert jaxlib_runtime.pointer(jaxlib_runtime.put(x, device, copy=False)) == x.ctypes.data
    assert jaxlib_runtime.pointer(jaxlib_runtime.put(x, device)) != x.ctypes.data


@pytest.mark.parametrize(
    "array", [np.arange(12.0).reshape(3, 4).T, np.arange(12)[::-2], np.arange(3, dtype=">f4"), np.float32(2.5), 3, True]
)
def test_any_strides_byte_order_and_scalar_can_be_put(device, array):
    for _ in range(2):  # the second call takes the path of the interned type
        y = read(jaxlib_runtime.put(array, device))
        assert y.tolist() == np.asarray(array).tolist() and y.dtype == np.asarray(array).dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([None]), np.array([1], "M8[s]"), np.zeros(1, np.longdouble)]
)
def test_an_array_that_no_device_holds_is_refused(device, array):
    with pytest.raises(DTypeMismatch, match="a device holds booleans and numbers"):
        jaxlib_runtime.put(array, device)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_an_array_read_from_a_buffer_outlives_it(device, dtype):
    buffer = jaxlib_runtime.put(np.ones(1000, dtype), device)
    x = read(buffer)
    del buffer
    assert (x == 1).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_duplicate_has_memory_of_its_own(device, dtype):
    x = samples((5,), dtype)
    buffer = jaxlib_runtime.put(x, device)
    copy = jaxlib_runtime.duplicate(buffer)
    assert jaxlib_runtime.device_of(copy) == device
    assert jaxlib_runtime.is_committed(copy) == jaxlib_runtime.is_committed(buffer)
    jaxlib_runtime.delete(buffer)
    assert read(copy).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_deleted_buffer_cannot_be_read(device, dtype):
    buffer = jaxlib_runtime.put(np.ones(4, dtype), device)
    assert not jaxlib_runtime.is_deleted(buffer)
    jaxlib_runtime.delete(buffer)
    assert jaxlib_runtime.is_deleted(buffer)
    with pytest.raises(jaxlib_runtime.RuntimeFailure):
        read(buffer)


def test_a_copy_to_other_devices_cut_alike_lies_there():
    whole = [hx.NamedSharding(hx.sharding.Mesh(hx.devices()[i : i + 2], ("i",)), hx.P("i")) for i in (0, 2, 1)]
    x = hx.device_put(np.arange(4.0), whole[0])
    lies = [buffers.lies_at(x.buffer, jaxlib_runtime.sharding_over(where, 1)) for where in whole]
    assert lies == [True, False, False]
    for where in whole:
        x = hx.device_put(x, where)
        assert x.devices() == {*where.device_set} and x.tolist() == [0, 1, 2, 3]
        assert [shard.device for shard in x.addressable_shards] == [*where._device_assignment]


def test_where_access_is_refused_what_is_computed_is_there(device, monkeypatch):
    done = [jaxlib_runtime.put(np.arange(3.0), device) for _ in range(2)]
    refused = []
    monkeypatch.setattr(buffers, "REFUSALS", [True])
    monkeypatch.setattr(buffers, "check_access", lambda: refused.append(True))
    buffers.block_until_ready(done[0])
    buffers.all_until_ready(done)
    assert not refused
    monkeypatch.setattr(buffers, "is_ready", lambda buffer: buffer is not done[1])
    buffers.all_until_ready(done)
    assert refused == [True]


READS = {
    "float": lambda x: float(x[0, 0]),
    "numpy": np.asarray,
    "device_put": lambda x: hx.device_put(x, hx.devices("cpu")[-1]).block_until_ready(),
    "sharded": lambda x: hx.device_put(x, hx.NamedSharding(hx.make_mesh((1,), ("i",)), hx.P())).block_until_ready(),
    "wait": lambda x: x.block_until_ready(),
    "wait for a tree": lambda x: hx.block_until_ready([x]),
    "dlpack": lambda x: x.__dlpack__(),
    "copy": lambda x: x.copy(),
    "repr": repr,
    "shards": lambda x: np.asarray(x.addressable_shards[0].data),
    "pointer": lambda x: x.unsafe_buffer_pointer(),
    "an eager operation": lambda x: (x + 1).block_until_ready(),
    "another program": lambda x: hx.jit(hnp.sum)(x).block_until_ready(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_the_result_of_a_program_without_memory_raises(read):
    too_large = hx.jit(lambda x: x[:, None] + x)(hnp.ones(2**24))  # 2**50 bytes, more than a process can address
    for _ in range(2):
        with pytest.raises(errors.OutOfMemory, match="must suffice"):
            read(too_large)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_a_deleted_array_says_so(read):
    x = hx.jit(lambda x: x + 1)(hnp.ones((3, 3)))
    x.delete()
    with pytest.raises(errors.DeletedArray):
        read(x)


# Arguments of programs over devices of several processes

UNLIKE = """
import numpy as np
from handlax import NamedSharding, P, lax, numpy as hnp
me, mode = hx.process_index(), sys.argv[1]
mesh = hx.make_mesh((2,), ("i",))
cut = NamedSharding(mesh, P("i"))
x = hx.make_array_from_process_local_data(cut, np.ones(1, np.float32))
total = hx.jit(hx.shard_map(lambda x, y: lax.psum(x * y, "i"), mesh=mesh, in_specs=(P("i"), P()), out_specs=P()))
print(total(x, 2.0).tolist())
value = np.float32(me)
try:
    if mode == "cut":
        hx.jit(lambda x: x.sum(), in_shardings=cut)(np.full(2, value))
    if mode == "captured":
        w = hnp.asarray(np.full(1000, value))
        hx.jit(lambda x: (x.sum() * w).sum())(x)
    while mode == "known":
        total(x, value).block_until_ready()
except hx.errors.ProcessesDiffer as error:
    print(error.what, flush=True)
    sys.exit(3)
"""


@pytest.mark.parametrize(("mode", "type"), [
    pytest.param("cut", "f32[2]", marks=pytest.mark.sweep),
    pytest.param("captured", "f32[1000]", marks=pytest.mark.sweep),
    ("known", "f32[]"),
])
def test_arguments_that_differ_between_processes_are_told_to_both(mode, type):
    statuses, lines = await_all(start(UNLIKE, 2, mode))
    assert statuses == [3, 3]
    for me in range(2):
        assert lines[me][0] == "[4.0]"
        put = rf"an argument {re.escape(type)} with digest \w{{8}}"
        assert re.search(f"got as number \\d+ {put} at .* here, and {put} at .* in process {1 - me}", lines[me][1])
