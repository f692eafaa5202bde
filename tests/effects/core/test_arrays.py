"""What an array is to Python, to NumPy and to the array API standard."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors, random
from handlax import numpy as hnp
from handlax.effects.core.arrays import as_arrays, concrete
from handlax.effects.types.array_type import array_type

x = hnp.arange(6.0, dtype="float32").reshape(2, 3)
DTYPES = ["bool", "int8", "uint8", "int32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "int4"]


def arrays():
    for dtype in DTYPES:
        for shape in ((), (3,), (2, 0), (2, 3)):
            yield pytest.param(hnp.ones(shape, dtype), id=f"{dtype}{list(shape)}")


def test_it_cannot_be_changed():
    y = hnp.arange(3.0)
    with pytest.raises(errors.Immutable):
        y[0] = 7.0
    with pytest.raises(AttributeError):
        y.type = None
    with pytest.raises(AttributeError):
        del y.type
    view = np.asarray(y)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 7.0
    z = y
    z += 1
    np.testing.assert_array_equal(y, [0, 1, 2])
    np.testing.assert_array_equal(z, [1, 2, 3])


def test_results_of_compiled_programs_cannot_be_changed():
    pair = hx.jit(lambda x: (x + 1, {"a": x}))(x)
    for y in (hx.jit(lambda x: x + 1)(x), pair[0], pair[1]["a"]):
        for name in ("type", "_value", "_buffer", "new"):
            with pytest.raises(errors.Immutable):
                setattr(y, name, None)
            with pytest.raises(errors.Immutable):
                delattr(y, name)


MADE = (lambda: x + 1, lambda: hx.jit(lambda x: x + 1)(x), lambda: hnp.asarray(np.ones((2, 3))))


@pytest.mark.parametrize("made", MADE)
def test_numpy_reads_it_without_a_copy(made):
    y = made()
    assert np.shares_memory(np.asarray(y), np.asarray(y))
    assert not np.asarray(y).flags.writeable
    assert np.array(y).flags.writeable
    np.array(y)[:] = 9
    np.asarray(y, copy=True)[:] = 9
    y.__array__(np.float16)[:] = 9
    assert not bool((y == 9).any())
    with pytest.raises(ValueError, match="copy"):
        np.asarray(y, dtype=np.float16, copy=False)


def test_dlpack_gives_numpy_no_way_to_change_it():
    y = x + 0
    other = np.from_dlpack(y)
    if other.flags.writeable:
        other[:] = 9
    else:
        assert np.shares_memory(other, np.asarray(y))
    np.testing.assert_array_equal(y, x)
    assert y.__dlpack_device__() == (1, 0)
    assert not np.shares_memory(np.from_dlpack(_Old(y)), np.asarray(y))
    with pytest.raises(BufferError):
        y.__dlpack__(copy=False)


class _Old:
    """A consumer of DLPack before version 1, which cannot say that memory is read-only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_of_numpy_is_shared_on_request_alone():
    source = np.arange(3.0)
    shared, copied = hnp.from_dlpack(source), hnp.array(source)
    np.testing.assert_array_equal(shared, source)
    source[0] = 9
    assert float(copied[0]) == 0.0
    same = hnp.from_dlpack(x)
    np.testing.assert_array_equal(same, x)


def test_numpy_arguments_are_copied_in_unless_sharing_is_asked_for():
    source = np.arange(3.0)
    assert not np.shares_memory(np.asarray(hnp.asarray(source)), source)
    assert not np.shares_memory(np.asarray(hnp.array(source)), source)
    assert np.shares_memory(np.asarray(hnp.asarray(source, copy=False)), source)


@pytest.mark.parametrize("taken", [lambda y, view: y, lambda y, view: view], ids=["owner", "view"])
def test_a_change_of_memory_that_was_read_only_for_a_time_is_not_seen(taken):
    source = np.arange(3.0)
    view = source[:]
    read_only = taken(source, view)
    read_only.flags.writeable = False
    y = hnp.asarray(read_only)
    writeable = view if read_only is source else source
    writeable[0] = 9
    assert float(y[0]) == 0.0


@pytest.mark.parametrize("y", list(arrays()))
def test_pickle_and_copy_keep_everything(y):
    for other in (pickle.loads(pickle.dumps(y)), copy.copy(y), copy.deepcopy(y)):
        assert other.type is y.type
        assert isinstance(other, hx.Array)
        np.testing.assert_array_equal(np.asarray(other), np.asarray(y))
    assert pickle.loads(pickle.dumps(hnp.asarray(1))).weak_type


def test_keys_pickle_copy_and_print():
    key = random.key(7)
    for other in (pickle.loads(pickle.dumps(key)), copy.copy(key), copy.deepcopy(key)):
        assert other.type is key.type
        np.testing.assert_array_equal(random.key_data(other), random.key_data(key))
    assert (key.shape, key.ndim, key.size, key.nbytes, key.itemsize) == ((), 0, 1, 8, 8)
    assert str(key) == repr(key) == f"{key}" == "Array((), dtype=key<fry>) overlaying:\n[0 7]"
    assert [k.shape for k in random.split(key)] == [(), ()]
    for wrong in (float, int, bool, np.asarray, lambda k: 1 in random.split(k), lambda k: k + 1):
        with pytest.raises(errors.DTypeMismatch):
            wrong(key)


SIGNED = [complex(a, b) for a in (0.0, -0.0, 2.0, -2.0) for b in (0.0, -0.0, 2.0, -2.0)]


@pytest.mark.parametrize("kind", [complex, np.complex64, np.complex128])
def test_complex_numbers_keep_the_signs_of_both_zeros(kind):
    for z in [*SIGNED, *SIGNED[::-1]]:  # whatever equal numbers there were before
        jitted = lambda z: hx.jit(lambda: hnp.asarray(z))()
        for made in (hnp.asarray, hnp.array, jitted, lambda z: hnp.where(True, z, z)):
            for _ in range(3):
                assert str(np.complex64(made(kind(z)))) == str(np.complex64(z))
        assert np.sign(np.imag(hnp.sqrt(kind(z)))) == np.sign(np.sqrt(np.complex64(z)).imag), z
        assert hnp.asarray(kind(z)) is hnp.asarray(kind(z))


def test_python_numbers():
    assert [int(hnp.asarray(3, "int4")), int(hnp.float32(2.5)), float(hnp.asarray(1.5, "bfloat16"))] == [3, 2, 1.5]
    assert complex(hnp.asarray(1j)) == 1j
    assert bool(hnp.asarray(True)) and not bool(hnp.zeros((1, 1)))
    assert ["a", "b"][hnp.int8(1)] == "b"
    assert list(range(hnp.asarray(2, "int4"))) == [0, 1]
    assert hex(hnp.int32(20)) == "0x14"
    assert [round(hnp.float32(2.6)).item(), math.floor(hnp.float32(2.6)), math.ceil(hnp.float32(2.2))] == [3, 2, 3]
    assert [type(v.item()) for v in (hnp.int32(1), hnp.float32(1), hnp.asarray(True), hnp.asarray(1j))] == [
        int, float, bool, complex,
    ]
    with pytest.raises(TypeError):
        ["a", "b"][hnp.asarray(True)]
    with pytest.raises(TypeError):
        float(hnp.asarray(1j))


def test_rows_length_and_membership():
    rows = list(x)
    assert len(x) == len(rows) == 2
    assert all(isinstance(row, hx.Array) and row.shape == (3,) for row in rows)
    np.testing.assert_array_equal(rows[1], [3, 4, 5])
    assert [float(v) for v in reversed(x[0])] == [2, 1, 0]
    a, b = x
    np.testing.assert_array_equal(b - a, [3, 3, 3])
    assert 5.0 in x[1]
    assert 7.0 not in x[1]
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_text():
    assert repr(hnp.asarray(1)) == "Array(1, dtype=int32, weak_type=True)"
    assert repr(x[0]) == "Array([0., 1., 2.], dtype=float32)"
    assert str(x[0]) == f"{x[0]}" == "[0. 1. 2.]"
    assert f"{x[0, 1]} {x[0, 1]:.2f} {hnp.int32(3):03d} {x[0, 1]:>5}" == "1.0 1.00 003   1.0"


@pytest.mark.parametrize("y", list(arrays()))
def test_attributes(y):
    z = np.asarray(y)
    assert (y.shape, y.ndim, y.size, y.dtype) == (z.shape, z.ndim, z.size, z.dtype)
    assert (y.nbytes, y.itemsize) == (z.nbytes, z.itemsize) or y.dtype.name == "int4"
    assert y.weak_type is False
    assert y.devices() == {hx.devices()[0]} == {y.device}
    assert y.block_until_ready() is y
    assert y.is_ready() and not y.is_deleted()
    assert y.is_fully_addressable and y.is_fully_replicated
    assert y.tolist() == z.tolist()
    assert y.tobytes() == z.tobytes()
    assert y.aval is y.type


def test_a_deleted_array_keeps_its_type_and_refuses_its_values():
    for y in (x + 1, hx.jit(lambda x: x + 1)(x)):
        y.delete()
        y.delete()
        assert y.is_deleted()
        assert (y.shape, y.dtype) == ((2, 3), np.float32)
        uses = (
            np.asarray, repr, list, lambda y: y + 1, hx.jit(lambda y: y + 1), lambda y: y.block_until_ready(),
            lambda y: hx.block_until_ready({"a": x, "b": [y]}),
        )
        for use in uses:
            with pytest.raises(errors.DeletedArray):
                use(y)


def test_numpy_functions_give_numpy_and_operators_give_ours():
    a, y = np.ones(3), hnp.ones(3)
    assert type(np.sin(y)) is type(np.add(a, y)) is type(np.where(y > 0, y, 0)) is np.ndarray
    for made in (a + y, y + a, a - y, a * y, a / y, a**y, a // y, a % y, a @ y, a == y, a < y):
        assert isinstance(made, hx.Array)
    for made in (np.float64(2) + y, y * np.int8(2)):
        assert isinstance(made, hx.Array)
    assert (np.float64(2) * y).dtype == np.float32  # NumPy's scalars of 64 bits are weak
    assert (a * y).dtype == np.float64  # its arrays are not
    a += y
    assert isinstance(a, hx.Array)
    np.testing.assert_array_equal(a, [2, 2, 2])
    for other in ([1.0] * 3, "a", None):
        with pytest.raises(TypeError):
            y + other
    assert (y == None) is False  # noqa: E711
    assert (y != "a") is True


def test_python_integers_that_meet_a_narrower_array_wrap_as_in_jax():
    y = hnp.ones(2, "uint8")
    cases = {-2: [255, 255], 300: [45, 45]}
    for number, expected in cases.items():
        adding = (lambda v: v + number, lambda v: number + v, lambda v: hnp.add(v, number))
        for f in (*adding, *map(hx.jit, adding)):
            made = f(y)
            assert made.dtype == np.uint8
            np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(hnp.where(y > 0, y, -1), [1, 1])
    np.testing.assert_array_equal(y.at[0].set(-1), [255, 1])
    assert (hnp.ones(2, "int64") + 2**40).tolist() == [2**40 + 1] * 2
    for wrong in (lambda: y + 2**40, lambda: hnp.ones(2, "int32") * 2**40, lambda: hnp.array(300, "uint8")):
        with pytest.raises(OverflowError):
            wrong()


def standard(a, b):
    """A program in the words of the array API standard."""
    xp = a.__array_namespace__(api_version="2024.12")
    centred = a - xp.mean(a, axis=0, keepdims=True)
    scaled = centred / xp.sqrt(xp.sum(centred * centred, axis=0, keepdims=True) + 1e-6)
    gram = xp.matmul(xp.matrix_transpose(scaled), scaled)
    order = xp.argsort(-xp.sum(xp.abs(gram), axis=1))
    picked = xp.take(gram, order, axis=0)
    both = xp.concat([picked, xp.astype(b, picked.dtype)], axis=0)
    both = xp.permute_dims(xp.expand_dims(both, axis=0), (0, 2, 1))
    low, high = xp.min(both), xp.max(both)
    assert xp.isdtype(both.dtype, "real floating")
    assert xp.finfo(both.dtype).bits == xp.result_type(a, both).itemsize * 8
    zero = xp.asarray(0.0, dtype=both.dtype)
    return xp.where(xp.isfinite(both), xp.clip(both, low, high), zero), xp.sort(xp.unique_values(b))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_a_program_of_the_array_api_standard(name):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 3)).astype(name), np.arange(6).reshape(2, 3) % 4
    expected = standard(a, b)
    found = standard(hnp.asarray(a), hnp.asarray(b))
    assert x.__array_namespace__() is hnp
    for mine, other in zip(found, expected, strict=True):
        assert isinstance(mine, hx.Array)
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["item", "tolist", "tobytes", "sum", "astype", "T", "at"])
def test_the_class_of_arrays_has_their_methods(name):
    x = hnp.float32([2.5])
    assert hasattr(hx.Array, name)
    if name in ("item", "tolist", "tobytes"):
        assert getattr(hx.Array, name)(x) == getattr(np.asarray(x), name)()
        with pytest.raises(hx.errors.ConcretizationTypeError, match=name):
            hx.jit(lambda x: getattr(x, name)())(x)


class Forwarding:
    """A container that is an array by JAX's protocol, and has all attributes of what it holds."""

    def __init__(self, held):
        self.held = held

    def __getattr__(self, name):
        return getattr(self.held, name)

    def __jax_array__(self):
        return self.held


@pytest.mark.parametrize("transform", [hx.jit, hx.vmap, hx.checkpoint, lambda f: lambda x: hx.jvp(f, (x,), (x,))[0]])
def test_a_container_that_forwards_the_attributes_of_a_traced_value_is_an_array(transform):
    np.testing.assert_allclose(transform(lambda a: hnp.exp(Forwarding(a)) * a)(x), np.exp(x) * x, rtol=1e-6)


@pytest.mark.parametrize(("others", "dtype", "weak"), [
    (["float16", "float32"], "float16", False), (["float32~", "float16"], "float16", False),
    (["float16", "float32~"], "float16", False), (["float32~", "float64~"], "float32", True), ([], "float32", True),
])
def test_a_number_takes_the_dtype_of_the_first_strong_array_else_of_the_first_weak_one(others, dtype, weak):
    types = [array_type((), np.dtype(name.strip("~")), "~" in name) for name in others]
    arrays = [concrete(t, np.ones((), t.dtype)) for t in types]
    for at in range(len(arrays) + 1):
        made = as_arrays(*arrays[:at], 2.0, *arrays[at:])
        assert (made[at].type.dtype, made[at].type.weak) == (dtype, weak)
