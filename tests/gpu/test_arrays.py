"""Arrays on a GPU: where they are and move, what shares and frees their memory, and that nothing leaves it unasked."""

import gc

import numpy as np
import pytest
from helpers.other_threads import together

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding, make_mesh

pytestmark = pytest.mark.gpu

X = np.linspace(0.5, 1.5, 1000, dtype=np.float32)


@pytest.fixture
def gpu():
    return hx.devices("gpu")[0]


@pytest.fixture
def cpu():
    return hx.devices("cpu")[0]


EAGER = [
    lambda x: x + x, lambda x: hnp.sin(x), lambda x: x.sum(), lambda x: x.reshape(10, 100).T, lambda x: x[3:7],
    lambda x: x.at[3].set(0.0), lambda x: hnp.sort(x), lambda x: x.astype("int32"), lambda x: hnp.concatenate([x, x]),
    lambda x: x.reshape(10, 100) @ x.reshape(100, 10), lambda x: hx.grad(lambda x: (x * x).sum())(x),
    lambda x: hx.vmap(lambda x: x * 2)(x), lambda x: lax.scan(lambda c, x: (c + x, c), 0.0, x)[1],
    lambda x: lax.cond(x.sum() > 0, hnp.sin, hnp.cos, x), lambda x: hnp.fft.rfft(x), lambda x: hnp.cumsum(x),
    lambda x: hx.jvp(hnp.exp, (x,), (x,))[1], lambda x: hx.random.normal(hx.random.key(0), x.shape) + x, hnp.zeros_like,
]


@pytest.mark.parametrize("f", EAGER, ids=range(len(EAGER)))
def test_eager_operations_stay_on_the_gpu(f, gpu):
    x = hx.device_put(X, gpu).block_until_ready()
    f(x)  # constants of the program are moved once
    with hx.transfer_guard_device_to_host("disallow"):
        y = f(x).block_until_ready()
    assert y.devices() == {gpu}
    with hx.default_device(hx.devices("cpu")[0]):
        np.testing.assert_allclose(y, f(hnp.asarray(X)), rtol=2e-3, atol=2e-3)


def test_what_is_made_without_a_device_is_on_the_gpu(gpu):
    made = [hnp.ones(3), hnp.arange(4), hnp.asarray(X), hx.random.key(0), hx.jit(lambda: hnp.eye(2))()]
    made += [hx.device_put(X), hx.jit(lambda x: x + 1)(X), hnp.asarray(X) + 1, hx.random.bits(hx.random.key(0), (3,))]
    assert [x.devices() for x in made] == [{gpu}] * len(made)


def test_arrays_move_between_the_platforms_by_name_alone(gpu, cpu):
    x = hx.device_put(X, gpu)
    y = hx.device_put(x, cpu)
    assert x.devices() == {gpu} and y.devices() == {cpu} and (y + 1).devices() == {cpu}
    np.testing.assert_array_equal(hx.device_put(y * 2, gpu), X * 2)
    with pytest.raises(hx.errors.HandlaxError, match=r"(?i)device"):
        x + y
    with pytest.raises(hx.errors.HandlaxError, match=r"(?i)device"):
        hx.jit(lambda x, y: x + y)(x, y)
    assert (x + X).devices() == {gpu} and (y + X).devices() == {cpu}
    assert (y + hnp.ones(1000)).devices() == {cpu}  # what nobody placed moves


def test_a_function_for_the_cpu_and_a_default_device_that_is_the_cpu(gpu, cpu):
    assert hx.jit(lambda x: x + 1, device=cpu)(X).devices() == {cpu}
    with hx.default_device(cpu):
        assert {d for x in (hnp.ones(3), hx.jit(hnp.sin)(X), hnp.asarray(X) * 2) for d in x.devices()} == {cpu}
    assert hnp.ones(3).devices() == {gpu}


def test_a_branch_for_each_platform(cpu):
    f = lambda x: hx.lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x + 2)
    assert float(hx.jit(f)(0.0)) == 2.0
    with hx.default_device(cpu):
        assert float(hx.jit(f)(0.0)) == 1.0


def test_a_donated_argument_is_deleted_and_its_memory_used_again(gpu):
    x = hx.device_put(np.ones(1 << 20, np.float32), gpu).block_until_ready()
    address = x.unsafe_buffer_pointer()
    y = hx.jit(lambda x: x + 1, donate_argnums=0)(x).block_until_ready()
    assert x.is_deleted() and y.unsafe_buffer_pointer() == address
    with pytest.raises(hx.errors.DeletedArray):
        np.asarray(x)


def test_memory_of_arrays_is_counted_and_freed(gpu):
    size = 1 << 26
    gc.collect()
    before = gpu.memory_stats()["bytes_in_use"]
    x = hx.device_put(np.ones(size // 4, np.float32), gpu).block_until_ready()
    assert gpu.memory_stats()["bytes_in_use"] - before >= size
    assert gpu.memory_stats()["peak_bytes_in_use"] >= size
    x.delete()
    assert gpu.memory_stats()["bytes_in_use"] - before < size


def test_what_does_not_fit_is_an_error_and_the_next_program_runs(gpu):
    with pytest.raises(hx.errors.OutOfMemory):
        hx.jit(lambda: hnp.ones((1 << 20, 1 << 20)) + hnp.arange(1 << 20))().block_until_ready()
    assert float(hx.jit(hnp.sum)(X)) == pytest.approx(X.sum(), rel=1e-5)


@pytest.mark.parametrize("kind", ["pinned_host", "device"])
def test_arrays_lie_in_either_memory_and_programs_move_them(gpu, kind):
    assert {m.kind for m in gpu.addressable_memories()} >= {"device", "pinned_host"}
    for where in (SingleDeviceSharding(gpu, memory_kind=kind),
                  NamedSharding(make_mesh((1,), ("x",), devices=[gpu]), PartitionSpec(), memory_kind=kind)):
        x = hx.device_put(X, where)
        assert x.sharding.memory_kind == kind and x.devices() == {gpu}
        np.testing.assert_array_equal(x, X)
        for y in (x * 2, hx.jit(lambda x: x * 2)(x), hx.jit(lambda x: x * 2)(hx.device_put(x, gpu))):
            assert y.sharding.memory_kind == "device"
            np.testing.assert_array_equal(y, X * 2)


def test_an_array_of_more_than_two_thousand_million_elements():
    n = (1 << 31) + 5
    x = hnp.zeros(n, "int8").at[n - 2].set(3)
    assert int(x[n - 2]) == 3 and int(hx.jit(lambda x: x[-5:].sum())(x)) == 3
    assert int(hx.jit(lambda x: x.astype("int32").sum())(x)) == 3


def test_threads_compute_at_once(gpu):
    f = hx.jit(lambda x, n: lax.fori_loop(0, n, lambda i, x: x * 1.5 - x * 0.5, x).sum())

    def computed(i):
        return float(f(X + i, 20)), float((hnp.asarray(X) + i).sum()), float(hx.jit(lambda x: x * i)(X)[3])

    for i, (looped, eager, own) in enumerate(together(8, computed)):
        assert looped == pytest.approx((X + i).sum(), rel=1e-4) and eager == pytest.approx((X + i).sum(), rel=1e-5)
        assert own == pytest.approx(X[3] * i, rel=1e-6)


# memory shared with other libraries

@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "bool", "complex64"])
def test_torch_shares_the_memory_both_ways(gpu, dtype):
    torch = pytest.importorskip("torch")
    x = hx.device_put(hnp.asarray(X[:6]).astype(dtype), gpu)
    t = torch.from_dlpack(x)
    assert t.is_cuda and t.data_ptr() == x.unsafe_buffer_pointer()
    u = torch.arange(6, device="cuda").to(getattr(torch, dtype))
    y, copied = hnp.from_dlpack(u, copy=False), hnp.from_dlpack(u)
    assert y.devices() == copied.devices() == {gpu} and y.dtype == copied.dtype == dtype
    assert y.unsafe_buffer_pointer() == u.data_ptr() != copied.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(y).astype("complex64"), u.to(torch.complex64).cpu().numpy())
    np.testing.assert_array_equal(np.asarray(y + y).astype("complex64"), (u + u).to(torch.complex64).cpu().numpy())


@pytest.mark.filterwarnings("ignore")
def test_cupy_shares_the_memory_both_ways(gpu):
    cupy = pytest.importorskip("cupy")
    x = hx.device_put(X, gpu)
    assert cupy.asarray(x).data.ptr == cupy.from_dlpack(x).data.ptr == x.unsafe_buffer_pointer()
    c = cupy.arange(5, dtype="float32") * 2
    y, copied = hnp.from_dlpack(c, copy=False), hnp.from_dlpack(c)
    assert y.devices() == {gpu} and y.unsafe_buffer_pointer() == c.data.ptr
    c *= 2
    np.testing.assert_array_equal(copied, [0, 2, 4, 6, 8])


# precision

def test_products_of_float32_have_the_precision_that_is_asked_for():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 512, 512)).astype("float32")
    exact = x.astype("float64") @ y.astype("float64")
    error = lambda z: abs(np.asarray(z, "float64") - exact).max() / abs(exact).max()
    f = hx.jit(lambda x, y, precision: hnp.matmul(x, y, precision=precision), static_argnums=2)
    assert error(f(x, y, "highest")) < 2e-6 and error(f(x, y, None)) < 2e-3
    with hx.default_matmul_precision("highest"):
        assert error(f(x, y, None)) < 2e-6 and error(hnp.asarray(x) @ y) < 2e-6


@pytest.mark.parametrize(("dtype", "made"), [
    ("bfloat16", "bfloat16"), ("bfloat16", "float32"), ("float16", "float32"), ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "bfloat16"), ("int8", "int32"), ("int4", "int32"),
])
def test_products_of_narrow_numbers(dtype, made):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-4, 4, (2, 64, 64))
    narrow = [hnp.asarray(z).astype(dtype) for z in (x, y)]
    z = hx.jit(lambda x, y: lax.dot(x, y, preferred_element_type=made))(*narrow)
    assert z.dtype == made and z.devices() == {hx.devices()[0]}
    np.testing.assert_allclose(np.asarray(z).astype("float64"), x @ y, rtol=1e-2 if made == "bfloat16" else 0)
