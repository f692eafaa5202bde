"""Eager operations give the same, whoever computes them; where they lie follows from their operands."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
import scipy.stats
from helpers.other_threads import together
from laws.inputs_elementwise import CASES

import handlax as hx
from handlax import lax, random
from handlax.effects.operations.foundations.elementwise_factory import Elementwise
from handlax.effects.operations.foundations.shapes import ReduceSum
from handlax.effects.operations.random_bits import RandomBits
from handlax.errors import ShapeMismatch
from handlax.interpreters.core import evaluate
from handlax.interpreters.core.eager_programs import eager_program
from handlax.lowering.compile import eager_compilation
from handlax.lowering.compile.eager_compilation import _compiled_here
from handlax.lowering.compile.estimate import estimate
from handlax.operations import Cos


def device(x, dtype):
    return hx.device_put(np.asarray(x).astype(dtype))


def compiled(y):
    return y._value is None


def settled(f, *xs, **fields):
    """The result of a function that was called so often that it is compiled if it ever is."""
    for _ in range(300):
        y = f(*xs, **fields)
        if compiled(y):
            break
    return y


@pytest.mark.parametrize(("dtype", "faster"), [(np.float16, True), (ml_dtypes.bfloat16, True), (np.float32, False)])
def test_the_estimate_decides_by_size(dtype, faster):
    small, large = device(np.ones(100), dtype), device(np.ones(200_000), dtype)
    assert not compiled(settled(hx.lax.add, small, small))
    assert compiled(settled(hx.lax.add, large, large)) == faster


@pytest.mark.parametrize("dtype", ["complex64", "float32", "int8"])
def test_operations_on_no_elements_are_not_compiled(dtype):
    x = device(np.zeros((0, 3)), dtype)
    assert not compiled(settled(hx.numpy.exp, x)) and not compiled(settled(hx.numpy.var, x))


def test_functions_that_numpy_has_not_are_compiled():
    x = device(np.linspace(-2, 2, 1000), np.float32)
    y = settled(hx.lax.erf, x)
    assert compiled(y)
    few = settled(hx.lax.erf, device(np.linspace(-2, 2, 10), np.float32))
    assert not compiled(few)
    np.testing.assert_allclose(np.asarray(y)[[0, -1]], np.asarray(few)[[0, -1]], rtol=1e-6)


@pytest.mark.parametrize("name", ["sqrt", "logistic", "sign", "erf_inv"])
def test_what_xla_computes_faster_is_compiled_from_a_size_on(name):
    f = getattr(hx.lax, name)
    x = np.random.default_rng(0).normal(size=600_000).astype(np.float32)
    x[:9] = 0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5
    many, few = settled(f, device(x, np.float32)), f(device(x[:900], np.float32))
    assert compiled(many) and not compiled(few)
    np.testing.assert_allclose(np.asarray(many)[:900], np.asarray(few), rtol=1e-6)


COMPLEX = {
    case.op.name: case for case in CASES
    if isinstance(case.op, Elementwise) and len(case.domains) == 1 and np.dtype("complex64") in case.dtypes
}


@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_complex_numbers_are_the_same_compiled(name):
    """Within the rounding of a complex number as a whole; NaN, infinities and the signs of zeros are the same."""
    case = COMPLEX[name]
    (x,) = case.draw(np.dtype("complex64"), ((40, 50),), np.random.default_rng(0), extremes=True)
    program = evaluate.program_of(case.op, (device(x, x.dtype).type,))
    y, z = [np.asarray(f(device(x, x.dtype))[0]) for f in (evaluate.chosen(program, None), _compiled_here(program))]
    if y.dtype.kind != "c":
        np.testing.assert_array_equal(*[np.isnan(v) for v in (y, z)])
        return
    for part in (np.real, np.imag):
        u, v = part(y), part(z)
        np.testing.assert_array_equal(np.isnan(u), np.isnan(v))
        np.testing.assert_array_equal(np.where(np.isinf(u), u, 0), np.where(np.isinf(v), v, 0))
        known = (u == 0) & ~np.isnan(y)
        np.testing.assert_array_equal(np.signbit(u)[known], np.signbit(v)[known])
    y, z = y[np.isfinite(y)], z[np.isfinite(y)]
    assert np.all(np.abs(y - z) <= 8 * np.finfo(np.float32).eps * np.abs(y))


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "exp", "tanh"])
def test_functions_of_many_complex_numbers_are_compiled(name):
    f = getattr(hx.lax, name)
    assert compiled(settled(f, device(np.ones(600_000), np.complex64)))
    assert not compiled(settled(f, device(np.ones(6), np.complex64)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_large_mask_is_read_where_it_is_used(dtype):
    x, y = device(np.arange(60_000) % 300, dtype), device(np.arange(60_000) % 7, dtype)
    mask = settled(hx.lax.lt, x, y)
    assert compiled(mask) == (dtype == np.float16)
    chosen = settled(hx.numpy.where, mask, x, y)
    assert compiled(chosen)
    np.testing.assert_array_equal(np.asarray(chosen), np.minimum(np.asarray(x), np.asarray(y)))


@pytest.mark.parametrize(("name", "size"), [("nextafter", 50_000), ("logaddexp", 50_000), ("floor_divide", 200_000)])
def test_functions_of_zeros_and_infinities_are_the_same_compiled(name, size):
    f, rng = getattr(hx.numpy, name), np.random.default_rng(0)
    x, y = [rng.choice(np.array([0.0, -0.0, 3.0, -7.5, np.inf], np.float32), size) for _ in range(2)]
    many, few = [settled(f, device(x[:n], np.float32), device(y[:n], np.float32)) for n in (size, 9)]
    assert compiled(many) and not compiled(few)
    found = np.asarray(many)[:9]
    np.testing.assert_array_equal(found, np.asarray(few))
    if name != "floor_divide":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(np.asarray(few)))


def test_products_of_integers_are_compiled_from_a_size_on():
    x = device(np.arange(64 * 64).reshape(64, 64) % 7, np.int32)
    y = settled(hx.lax.dot, x, x)
    assert compiled(y)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x) @ np.asarray(x))
    small = device(np.ones((4, 4)), np.int32)
    assert not compiled(settled(hx.lax.dot, small, small))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_products_that_blas_shares_among_threads_are_compiled(dtype):
    x = np.random.default_rng(0).normal(size=(128, 128)).astype(dtype)
    small = x[:64, :64].copy()
    assert not compiled(settled(hx.lax.dot, small, small))
    for left, right in [(x, x), (np.tile(x, (6, 6)), np.tile(x[0], 6)), (x[:, :10], np.tile(x[:10], (1, 6)))]:
        y = hx.lax.dot(left, right)
        assert compiled(y) == (left.shape[0] * left.shape[1] * right.size // right.shape[0] > 460_000)
        np.testing.assert_allclose(np.asarray(y), left @ right, rtol=1e-3, atol=1e-3)


def test_what_only_moves_elements_is_never_compiled():
    x = device(np.ones((300, 300)), np.float16)
    assert not compiled(settled(hx.lax.transpose, x, (1, 0))) and not compiled(settled(hx.lax.reshape, x, (90_000,)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["sort", "cumlogsumexp", "cbrt"])
def test_what_goes_from_element_to_element_is_numpys_in_16_bits_too(dtype, name):
    data = np.random.default_rng(0).uniform(0.5, 1, 5_000).astype(dtype)
    f = getattr(hx.lax, name)
    y = settled(f, device(data, dtype))
    assert not compiled(y) and y.dtype == dtype
    np.testing.assert_allclose(*[np.asarray(z, np.float32) for z in (y, hx.jit(f)(data))], rtol=0.02)


def test_a_compiled_result_has_the_promised_type():
    x = device(np.ones(50_000), np.float16)
    for y in (x * 2, x < x, x * np.ones((), np.float32).reshape(1), -x):
        assert y.type.shape == (50_000,)
        assert np.asarray(y).dtype == y.dtype


def test_on_two_devices():
    code = """
import numpy as np, handlax as hx
first, second = hx.devices()
y = hx.numpy.ones(3)
assert ((y + y) + (y + y))._buffer is None  # NumPy's, and settled
x = hx.device_put(np.arange(3, dtype=np.float32), second)
assert (x + x).devices() == (x + 1.0).devices() == {second}
assert (hx.device_put(np.ones(70_001, np.float16), second) * 2).devices() == {second}  # a type met first now
assert hx.jit(lambda x: x * 2)(x).devices() == {second}
assert hx.jit(lambda x, y: x * y)(x, np.float32(2)).devices() == {second}
try:
    hx.jit(lambda x, y: x + y)(x, hx.device_put(np.ones(3, np.float32), first))
except hx.errors.HandlaxError as error:
    assert "x on" in str(error) and "y on" in str(error), error
else:
    raise SystemExit("two devices were mixed")
with hx.default_device(second):
    assert hx.jit(lambda x: x + 1)(np.ones(3)).devices() == {second}
assert hx.jit(lambda x: x + 1)(np.ones(3)).devices() == {first}
assert hx.device_put(x, first).devices() == {first}
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={"HANDLAX_NUM_CPU_DEVICES": "2", "HANDLAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("n", [500, 50_000])
def test_sums_of_16_bits_are_rounded_once(dtype, n):
    x = device(np.arange(n) % 3 / 2, dtype)
    expected = (np.arange(n) % 3 / 2).sum().astype(dtype)
    for f in (hx.numpy.sum, lambda x: hx.lax.reduce_sum(x, (0,)), hx.jit(hx.numpy.sum)):
        assert f(x).dtype == expected.dtype and np.asarray(f(x)) == expected
    assert compiled(settled(hx.numpy.sum, x)) == (n > 500 and dtype == np.float16)


def test_choices_are_compiled_from_a_size_on():
    for dtype in (np.float16, np.float32, np.int32):
        x, y = device(np.random.default_rng(0).integers(0, 100, 100_000), dtype), device(np.ones(100_000), dtype)
        z = settled(hx.numpy.where, x > 50, x, y)
        assert compiled(z) and not compiled(hx.numpy.where(x[:50] > 50, x[:50], y[:50]))
        np.testing.assert_array_equal(np.asarray(z), np.where(np.asarray(x) > 50, np.asarray(x), np.asarray(y)))


def test_waiting_for_what_numpy_made_loads_no_runtime():
    code = (
        "import sys, handlax as hx; y = hx.numpy.ones(8) + 1; assert hx.block_until_ready({'a': [y]})['a'][0] is y; "
        "print('handlax.lowering.xla.jaxlib_runtime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"


PROGRAMS = {
    "var": ("hnp.var(x)", lambda x: np.var(x), True),
    "mean": ("hnp.mean(x)", lambda x: np.mean(x), False),
    "hypot": ("hnp.hypot(x, x)", lambda x: np.hypot(x, x), True),
    "nan_to_num": ("hnp.nan_to_num(x / 0)", lambda x: np.full_like(x, np.finfo(np.float32).max), True),
    "diff": ("hnp.diff(x)", lambda x: np.diff(x), False),
    "cbrt": ("hnp.cbrt(x)", lambda x: np.cbrt(x), False),
    "median": ("hnp.median(x)", lambda x: np.median(x), False),
    "bincount": ("hnp.bincount((x * 4).astype(int), length=4)", lambda x: np.bincount((x * 4).astype(int)), True),
    "t.logpdf": ("hx.scipy.stats.t.logpdf(x, 3.0)", lambda x: scipy.stats.t.logpdf(x, 3.0), True),
}


def test_a_program_of_operations_that_can_be_fused_is_compiled_when_it_is_called_again_and_again():
    """In a process of its own: once an array was placed on a second device, each operation is answered by itself."""
    calls = "".join([f"found.append(any(({text})._value is None for _ in range(80)))\n" for text, *_ in
                     PROGRAMS.values()])
    code = f"""
import numpy as np, handlax as hx
from handlax import numpy as hnp
x = hx.device_put(np.random.default_rng(0).uniform(0.5, 1, 600_000).astype(np.float32))
found = []
{calls}
print(found)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str([whole for *_, whole in PROGRAMS.values()])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_that_is_called_again_and_again_gives_the_same(name):
    text, numpy, _ = PROGRAMS[name]
    f = eval(f"lambda x: {text}", {"hnp": hx.numpy, "hx": hx})
    data = np.random.default_rng(0).uniform(0.5, 1, 600_000).astype(np.float32)
    x = device(data, np.float32)
    found = [f(x) for _ in range(8)]
    assert len({y.type for y in found}) == 1
    for y in (found[0], found[-1]):
        np.testing.assert_allclose(np.asarray(y), numpy(data), rtol=1e-5)
    with hx.configure(debug_nans=True), pytest.raises(FloatingPointError, match="NaN"):
        hx.numpy.var(device(np.where(data > 0.7, np.nan, data), np.float32))


def test_how_equal_operations_are_executed_is_decided_once_for_each_type():
    xs = [hx.numpy.ones(n, "float32") for n in (3, 4, 3)]
    hx.clear_caches()
    made = hx.cache_info()["executors"].misses
    for x in xs:
        hx.perform(ReduceSum((0,)), x)
    assert hx.cache_info()["executors"].misses == made + 2


def test_random_words_are_compiled_and_draws_stay_the_same():
    key = hx.random.key(3)
    found = estimate(evaluate.program_of(RandomBits(32, (100_000,)), (key.type,)))
    assert found.numpy > 4 * found.xla
    for draw in (hx.random.bits, hx.random.uniform, hx.random.exponential):
        first, *others = [np.asarray(draw(key, (100_000,))) for _ in range(8)]
        assert all([np.array_equal(first, y) for y in others])


def test_threads_that_count_the_same_call_compile_it_all_the_same():
    """Eight threads execute each line of the counting function together."""
    plan = evaluate.Plan(1.0, 3 * evaluate.PATIENCE, lambda: lambda x: (x + 1,))
    evaluated = evaluate._compiled_in_time(lambda x: (x + 1,), plan)
    x, barrier = device(np.ones(3), np.float32), threading.Barrier(8, timeout=0.2)

    def step(frame, event, argument):
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait()
        return step

    def work(_):
        sys.settrace(lambda frame, *_: step if frame.f_code is evaluated.__code__ else None)
        return evaluated(x)[0].tolist()

    evaluated(x), evaluated(x)
    found = together(8, work) + [evaluated(x)[0].tolist() for _ in range(3)]
    assert found == [[2.0, 2.0, 2.0]] * 11


@pytest.mark.parametrize("f", [hx.numpy.exp, lambda x: hx.numpy.hypot(x, x), hx.numpy.var, hx.nn.softmax])
@pytest.mark.parametrize("donated", [False, True])
def test_a_deleted_operand_is_named_before_and_after_a_function_is_compiled(f, donated):
    for calls in (0, 6):
        x = hx.numpy.ones(1_000_000)
        for _ in range(calls):
            f(x)
        hx.jit(lambda x: x + 1, donate_argnums=0)(x) if donated else x.delete()
        with pytest.raises(hx.errors.DeletedArray, match="deleted or donated"):
            f(x)


def _twice(rule):
    """A function of a rule of its own, which is one operation of a program."""
    f = rule(lambda x: 2 * x)
    if rule is hx.custom_jvp:
        f.defjvp(lambda x, dx: (2 * x[0], 2 * dx[0]))
    elif rule is hx.custom_vjp:
        f.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))
    else:
        f.def_vmap(lambda size, mapped, x: (2 * x, mapped[0]))
    return f


@pytest.mark.parametrize("f", [
    eager_program(_twice(hx.custom_jvp)), eager_program(_twice(hx.custom_vjp)),
    eager_program(_twice(hx.custom_batching.custom_vmap)),
    lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b * 1, (0,)),
    lambda x: lax.reduce_window(x, np.float32(0), lambda a, b: a + b * 1, (2,), (1,), "VALID"),
    lambda x: random.gamma(random.key(0), x), lambda x: lax.fori_loop(0, 3, lambda i, x: 2 * x, x),
])
def test_operations_with_bodies_are_executed_where_their_operands_lie(f):
    """Also those that NumPy could evaluate, when the call is a cached program."""
    device = hx.devices()[1]
    x = hx.device_put(np.arange(1, 5, dtype=np.float32), device)
    for _ in range(4):
        y = f(x)
        assert y.devices() == {device}
        np.testing.assert_allclose(y, f(np.asarray(x)), rtol=1e-6)


CAPTURING = {
    "scan": lambda z: lax.scan(lambda c, t: (c + t * z.sum(), None), 0.0, np.ones(2, np.float32))[0],
    "fori_loop": lambda z: lax.fori_loop(0, 2, lambda i, c: c + z.sum(), 0.0),
    "cond": lambda z: lax.cond(True, lambda s: z * s, lambda s: z, 2.0),
    "checkpoint": lambda z: hx.checkpoint(lambda s: z * s)(2.0),
}


@pytest.mark.parametrize("name", CAPTURING)
@pytest.mark.parametrize("kind", [None, hx.sharding.AxisType.Auto, hx.sharding.AxisType.Explicit])
def test_operations_with_bodies_are_executed_where_captured_arrays_lie(name, kind):
    if kind is None:
        where = hx.sharding.SingleDeviceSharding(hx.devices()[3])
    else:
        where = hx.NamedSharding(hx.make_mesh((4,), ("m",), axis_types=(kind,)), hx.P("m"))
    z = hx.device_put(np.ones((4, 3), np.float32), where)
    for _ in range(3):
        y = CAPTURING[name](z)
        assert y.devices() == where.device_set and y.committed and y.sum() == 24.0


def test_a_compiled_function_runs_on_the_mesh_of_a_captured_array_whose_type_states_it():
    cut = hx.NamedSharding(hx.make_mesh((4,), ("m",)), hx.P("m"))
    z = hx.device_put(np.ones((4, 3), np.float32), cut)
    f = hx.jit(lambda s: z * s)
    for _ in range(3):
        assert f(2.0).sharding.is_equivalent_to(cut, 2) and f(2.0).sum() == 24.0
    assert hx.jit(hx.grad(lambda s: (z * s).sum()))(1.0) == 12.0
    assert hx.jit(lambda: z + 1.0)().sum() == 24.0


def executables():
    return hx.cache_info()["eager"].size


def test_a_loop_is_compiled_when_it_first_runs(nothing_placed):
    f = lambda x: lax.while_loop(lambda c: hx.numpy.any(c > 3), lambda c: c - 1, x)
    for start in (np.arange(3, dtype=np.float32), np.ones((), np.float32)):
        x, before = hx.device_put(start), executables()
        y = f(x)
        assert executables() == before and y.type == x.type and y is not x
        np.testing.assert_array_equal(y, start)
        np.testing.assert_array_equal(f(x + 5), start - start.max() + 3)
        assert executables() == before + 1
        np.testing.assert_array_equal(f(x), start)
    assert not hx.jit(f)(x).is_deleted()


@pytest.fixture
def accelerated(nothing_placed, monkeypatch):
    monkeypatch.setattr(eager_compilation, "_accelerated", lambda: True)
    evaluate.forget_executors()


def test_an_accelerator_executes_a_function_of_several_operations_by_one_program(accelerated):
    sizes = []
    for _ in range(3):
        drawn = random.normal(random.key(0), (5,))
        sizes.append(executables())
    assert sizes[1] == sizes[2] == sizes[0] + 1
    np.testing.assert_allclose(drawn, hx.jit(lambda key: random.normal(key, (5,)))(random.key(0)), rtol=1e-6)


def test_an_accelerator_executes_operations_where_the_settings_of_the_call_say(accelerated):
    first, second = hx.devices()[:2]
    x = hx.numpy.asarray(np.ones(5, np.float32))
    assert (x + x).devices() == (x + x).devices() == {first}
    with hx.default_device(second):
        assert (x + x).devices() == {second}
    assert (x + x).devices() == {first}


@pytest.mark.parametrize("draw", [lambda lam: random.poisson(random.key(0), lam, (30,)),
                                  lambda p: random.binomial(random.key(0), 30.0, p / 100, (30,))])
def test_small_means_compile_no_sampler_of_large_ones(nothing_placed, draw):
    hx.clear_caches()
    draw(3.0)
    assert executables() == 1
    draw(80.0)
    assert executables() == 2


def test_eager_arrays_of_more_axes_than_numpys_are_computed_as_compiled_ones():
    def widened(x):
        return (hx.numpy.ones((1,) * 65) + x.reshape((1,) * 65)).sum(), hx.numpy.broadcast_to(x, (1,) * 200).reshape(())

    x = hx.numpy.float32(2.0)
    assert widened(x) == hx.jit(widened)(x) == (3.0, 2.0)
    wide = x.reshape((1,) * 65)
    assert (wide + 1).shape == wide.shape
    assert random.wrap_key_data(hx.numpy.zeros((1,) * 64 + (2,), "uint32")).reshape(()).dtype == random.key(0).dtype
    for read in (repr, np.asarray, lambda x: x.tolist()):
        with pytest.raises(ShapeMismatch, match="an array of NumPy has at most 64 axes, got 65"):
            read(wide)


def test_an_operation_without_evaluate_is_compiled_alone_and_in_eager_programs():
    @hx.operation
    class CompiledSine:
        def result_type(op, x):
            return x

        def batch(op, dims, x):
            return hx.perform(op, x), dims[0]

        def jvp(op, primals, tangents):
            (x,), (dx,) = primals, tangents
            return hx.perform(op, x), dx * lax.cos(x)

        lower = "sine"

    f = lambda x: hx.perform(CompiledSine(), x)
    xs = np.linspace(0, 1, 5, dtype="float32")
    for g, expected in ((f, np.sin), (hx.vmap(hx.grad(f)), np.cos), (hx.vmap(f), np.sin)):
        np.testing.assert_allclose(g(xs), expected(xs), rtol=1e-6)
    composed = hx.numpy.vectorize(lambda x: f(x) + f(2 * x))
    np.testing.assert_allclose(composed(xs), np.sin(xs) + np.sin(2 * xs), rtol=1e-6)
    with hx.rules(evaluate={CompiledSine: lambda op, x: x}):
        assert f(3.0) == 3.0


@pytest.mark.parametrize(("others", "made"), [
    ({}, ["sin", "cos", "cos"]), ({"lower": {Cos: "sine"}}, ["sin", "cos"] * 2),
], ids=["of cos alone", "of another column too"])
def test_a_scope_of_evaluate_rules_leaves_other_operations_their_executors(others, made, monkeypatch):
    seen, make, x = [], evaluate.executor, hx.numpy.ones(3)
    monkeypatch.setattr(evaluate, "executor", lambda program, bare: seen.append(program.name) or make(program, bare))
    evaluate.forget_executors()
    with hx.rules(evaluate={Cos: lambda op, x: 3 * x}, **others):
        for _ in range(2):
            np.testing.assert_allclose([lax.sin(x), lax.cos(x)], [np.sin(x), 3 * x], rtol=1e-6)
    assert [name for name in seen if name in made] == made
    np.testing.assert_allclose(lax.cos(x), np.cos(x), rtol=1e-6)
