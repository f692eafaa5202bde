"""Arrays of other libraries and ours: the DLPack protocol by hand, PyTorch, the array API's questions."""

import copy
import ctypes
import itertools
import sys

import ml_dtypes
import numpy as np
import pytest
from helpers.device_buffers import Exporter

import handlax as hx
from handlax import dlpack, errors
from handlax import numpy as hnp

X = np.arange(12, dtype="float32").reshape(3, 4)
NUMPY_KNOWS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64",
               "complex64", "complex128"]
NUMPY_LACKS = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
READ_ONLY, COPIED = 1, 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks classes written in Python for buffers since 3.12")
def test_python_reads_an_array_as_a_buffer():
    for dtype in NUMPY_KNOWS:
        for x in (X.astype(dtype), X[0, 1:2].reshape(()).astype(dtype), X[:0].astype(dtype)):
            for y in (hnp.asarray(x), hx.device_put(x, hx.devices()[1])):
                view = memoryview(y)
                assert view.readonly and view.tobytes() == x.tobytes() and view.shape == x.shape
    cut = hx.device_put(X.T, hx.NamedSharding(hx.make_mesh((4,), ("a",)), hx.P("a")))
    assert bytes(cut) == X.T.tobytes()
    y, kept = hnp.asarray(X) * 1, memoryview(hnp.asarray(X) * 1)
    view = memoryview(y)
    assert hx.jit(lambda x: x + 1, donate_argnums=0)(y).tolist() == (X + 1).tolist()
    assert view.tobytes() == kept.tobytes() == X.tobytes()
    for dtype in NUMPY_LACKS:
        with pytest.raises(BufferError, match=f"must have the dtype, got {dtype}"):
            memoryview(hnp.asarray(X, dtype))
        assert np.asarray(hnp.asarray(X, dtype)).dtype == dtype
    with pytest.raises(errors.DTypeMismatch, match="random keys"):
        memoryview(hx.random.key(0))


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]


def opened(capsule):
    """The version, flags and tensor of a capsule; flags are None before version 1."""
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, name)
    versioned = name == b"dltensor_versioned"
    whole = (Versioned if versioned else DLTensor).from_address(pointer)
    whole.capsule = capsule  # which owns the memory
    return (whole.major, whole.flags, whole.tensor) if versioned else (0, None, whole)


def elements(tensor, dtype):
    """What a tensor holds, read from its memory."""
    shape, size = tensor.shape[: tensor.ndim], np.dtype(dtype).itemsize
    made = np.empty(shape, dtype)
    steps = [n // size for n in made.strides] if not tensor.strides else tensor.strides[: tensor.ndim]
    for index in np.ndindex(*shape):
        offset = tensor.byte_offset + size * sum(i * step for i, step in zip(index, steps))
        made[index] = np.frombuffer(ctypes.string_at(tensor.data + offset, size), dtype)[0]
    return made


SHAPES = {
    "matrix": lambda x: x, "transposed": lambda x: x.T, "scalar": lambda x: x[0, 0], "empty": lambda x: x[:0],
    "steps": lambda x: x[::2, 1::2], "reversed": lambda x: x[::-1],
}


# what is given


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [*NUMPY_KNOWS, *NUMPY_LACKS])
@pytest.mark.parametrize("made", ["by NumPy", "compiled"])
def test_a_capsule_holds_the_elements(dtype, made):
    shaped = [shape(hnp.asarray(X.astype(dtype))) for shape in SHAPES.values()]
    shaped = hx.jit(lambda xs: [x.copy() for x in xs])(shaped) if made == "compiled" else shaped
    for (shape, x), version in itertools.product(zip(SHAPES.values(), shaped), [None, (0, 8), (1, 3)]):
        expected = shape(X).astype(dtype)
        major, flags, tensor = opened(x.__dlpack__(max_version=version))
        assert (tensor.device_type, tensor.device_id) == x.__dlpack_device__() == (1, 0)
        np.testing.assert_array_equal(elements(tensor, expected.dtype), expected)
        if dtype in NUMPY_KNOWS:
            assert major == (1 if version and version[0] >= 1 else 0)
        assert flags is None or flags & READ_ONLY


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_memory_is_shared_only_where_it_is_flagged_as_read_only(dtype):
    x = hx.jit(lambda x: x + 1)(hnp.asarray(X.astype(dtype)))
    address = lambda **asked: opened(x.__dlpack__(**asked))[2].data
    assert address() != x.unsafe_buffer_pointer()
    assert address(max_version=(1, 0), copy=True) != x.unsafe_buffer_pointer()
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(copy=False)
    if dtype == "float32":
        assert address(max_version=(1, 0), copy=False) == x.unsafe_buffer_pointer()
        assert opened(x.__dlpack__(max_version=(1, 0), copy=True))[1] == COPIED
        np.from_dlpack(x, copy=True)[:] = 0
        assert x[0, 0] == 1


def test_memory_lives_as_long_as_it_is_used():
    x = hnp.asarray(X)
    view = np.from_dlpack(x)
    del x
    np.testing.assert_array_equal(view, X)
    assert not view.flags.writeable


def test_a_device_that_is_not_there_a_deleted_array_keys_and_narrow_integers_are_refused():
    x = hnp.asarray(X)
    assert opened(x.__dlpack__(dl_device=(1, 0)))[2].device_type == 1
    for dtype in ("float32", "bfloat16"):
        with pytest.raises((BufferError, ValueError)):  # of NumPy 2.3, whose error it is for float32
            x.astype(dtype).__dlpack__(dl_device=(2, 0), max_version=(1, 0))
    with pytest.raises(BufferError, match="int4"):
        x.astype(ml_dtypes.int4).__dlpack__()
    with pytest.raises(errors.DTypeMismatch, match=r"random\.key_data"):
        hx.random.key(0).__dlpack__()
    for dtype in ("float32", "bfloat16"):
        gone = hx.jit(lambda x: x + 1)(x.astype(dtype))
        gone.delete()
        with pytest.raises(errors.DeletedArray):
            gone.__dlpack__()


def test_an_array_over_devices_is_given_as_a_whole():
    mesh = hx.make_mesh((2,), ("i",), devices=hx.devices()[:2])
    x = hx.device_put(np.arange(4.0), hx.NamedSharding(mesh, hx.P("i")))
    assert np.from_dlpack(x).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_on_a_cpu_there_is_no_interface_of_cuda():
    assert not hasattr(hnp.asarray(X), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="must be on a GPU"):
        _ = hnp.asarray(X).__cuda_array_interface__


# what is taken


class Foreign:
    """An array of a library whose dtype NumPy lacks."""

    def __init__(self, x):
        self.exporter = Exporter(hnp.asarray(x).buffer)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("unsupported dtype")

    def __dlpack__(self, **asked):
        return self.exporter.__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.exporter.__dlpack_device__()


@pytest.mark.parametrize("dtype", NUMPY_LACKS)
def test_an_array_whose_dtype_numpy_lacks_is_an_operand(dtype):
    x = X.astype(dtype)
    for y in (hnp.asarray(Foreign(x)), hx.jit(lambda x: x)(Foreign(x))):
        assert y.dtype == dtype
        np.testing.assert_array_equal(np.asarray(y), x)


def test_an_array_that_is_not_aligned_is_copied_and_a_writeable_one_too():
    base = np.zeros(4 * 12 + 1, "uint8")
    odd = base[1:].view("float32")
    assert odd.ctypes.data % 4
    for take in (hnp.from_dlpack, lambda x: dlpack.from_dlpack(x, copy=False), hnp.asarray):
        assert hx.jit(lambda x: x + 1)(take(odd)).tolist() == [1.0] * 12


# traced values


def test_what_only_arrays_with_data_have_is_refused_by_traced_ones():
    calls = [
        lambda x: x.is_fully_addressable, lambda x: x.is_fully_replicated, lambda x: x.addressable_shards,
        lambda x: x.global_shards, lambda x: x.committed, lambda x: x.devices(), lambda x: x.is_deleted(),
        lambda x: x.copy_to_host_async(), lambda x: x.on_device_size_in_bytes(), lambda x: x.unsafe_buffer_pointer(),
        lambda x: x.__dlpack__(), lambda x: x.__dlpack_device__(), lambda x: x.addressable_data(0),
        lambda x: x.delete(),
    ]

    def f(x):
        for call in calls:
            with pytest.raises(errors.ConcretizationTypeError, match="whose values are known"):
                call(x)
        assert not hasattr(x, "sharding") and not hasattr(x, "device")
        return (x * 1.0).sum()

    x = hnp.asarray(X)
    for transform in (hx.jit, hx.grad, hx.vmap, hx.make_program):
        transform(f)(x)
    assert x.on_device_size_in_bytes() == x.nbytes
    for call in calls:
        call(x)


def test_a_copy_of_a_traced_value_is_the_value():
    def f(x):
        assert copy.copy(x) is x and copy.deepcopy({"x": [x]})["x"][0] is x
        return x.sum()

    assert hx.jit(hx.grad(f))(hnp.asarray(X)).sum() == 12


# other libraries


def test_pytorch_gives_and_takes():
    torch = pytest.importorskip("torch")
    for dtype in [*NUMPY_KNOWS, *NUMPY_LACKS]:
        x = hnp.asarray(X.astype(dtype))
        y = torch.from_dlpack(x)
        assert str(y.dtype) == f"torch.{dtype}" and tuple(y.shape) == x.shape
        for back in (hnp.from_dlpack(y), hnp.asarray(y), hnp.from_dlpack(y.T).T):
            assert back.dtype == dtype
            np.testing.assert_array_equal(np.asarray(back), X.astype(dtype))
    shared = torch.zeros(16)
    x = dlpack.from_dlpack(shared, copy=False)
    shared += 1
    assert x.tolist() == [1.0] * 16
    with pytest.raises(BufferError, match="gradient"):
        hnp.from_dlpack(torch.ones(3, requires_grad=True))


def test_array_api_compat_finds_our_namespace():
    compat = pytest.importorskip("array_api_compat")
    x = hnp.asarray(X)
    assert compat.array_namespace(x, 3.0) is hnp and compat.is_array_api_obj(x)
    assert not (compat.is_jax_array(x) or compat.is_numpy_array(x) or compat.is_torch_array(x))
    assert compat.size(x) == 12 and compat.device(x) == hx.devices()[0]
    assert compat.to_device(x, compat.device(x)).tolist() == X.tolist()
    hx.jit(lambda x: [compat.array_namespace(x).sum(x)] * compat.size(x))(x)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_jax_gives_and_takes():
    jax = pytest.importorskip("jax")
    for dtype in [*NUMPY_KNOWS, *NUMPY_LACKS]:
        with jax.enable_x64(True):
            x, theirs = hnp.asarray(X.astype(dtype)), jax.numpy.asarray(X.astype(dtype))
            for y in (jax.numpy.from_dlpack(x), jax.numpy.asarray(x), hnp.from_dlpack(theirs), hnp.asarray(theirs)):
                assert y.dtype == dtype
                np.testing.assert_array_equal(np.asarray(y), X.astype(dtype))
    assert hnp.asarray(X).__dlpack_device__() == jax.numpy.asarray(X).__dlpack_device__()


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_arrays_and_traced_values_have_what_those_of_jax_have():
    jax = pytest.importorskip("jax")
    # names of JAX that are its own matters, or that it only refuses
    without = {"device_buffer", "device_buffers", "flat", "layout", "platform", "traceback",
               "unsafe_raw_buffer", "dimension_as_value", "full_lower", "get_const", "get_referent", "memory_space",
               "parent", "to_concrete_value", "val", "vma"}
    public = lambda x: {name for name in dir(x) if name[0] != "_"}
    names = []
    for package in (hx, jax):
        found = []
        package.jit(lambda x: found.append(public(x)))(X)
        names.append(found + [public(package.numpy.asarray(X))])
    for ours, theirs in zip(*names):
        assert theirs - ours <= without | {"sharding", "device"} and theirs
    assert {"sharding", "device"} <= names[0][1]
