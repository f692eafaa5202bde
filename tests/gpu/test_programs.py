"""Programs on a GPU: loops, effects, calls of the host, random numbers, errors, and what is compiled once."""

import warnings

import numpy as np
import pytest
from helpers.new_process import in_new_process

import handlax as hx
from handlax import debug, lax
from handlax import numpy as hnp
from handlax.experimental import checkify, io_callback
from handlax.experimental.serialize_executable import deserialize_and_load, serialize
from handlax.export import deserialize, export

pytestmark = pytest.mark.gpu

X = np.linspace(0.5, 1.5, 12, dtype=np.float32)


def on_both(f, *xs):
    """The results of ``f`` compiled for the default device and for the CPU."""
    found = hx.jit(f)(*xs)
    assert all(y.devices() == {hx.devices()[0]} for y in hx.tree.leaves(found))
    with hx.default_device(hx.devices("cpu")[0]):
        expected = hx.jit(f)(*xs)
    return map(np.asarray, hx.tree.leaves(found)), map(np.asarray, hx.tree.leaves(expected))


LOOPS = {
    "scan": lambda x: lax.scan(lambda c, x: (hnp.sin(c) + x, c * x), 0.0, x),
    "while": lambda x: lax.while_loop(lambda c: c[0].sum() < 50, lambda c: (c[0] * 1.5, c[1] + 1), (x, 0)),
    "cond": lambda x: hx.vmap(lambda x: lax.cond(x > 1, hnp.sin, hnp.cos, x))(x),
    "switch": lambda x: lax.switch((x[0] * 2).astype(int), [hnp.sin, hnp.cos, hnp.tan], x),
    "associative_scan": lambda x: lax.associative_scan(hnp.multiply, x),
    "gradient of scan": hx.grad(lambda x: lax.scan(lambda c, x: (hnp.sin(c) * x, c), 1.0, x)[0]),
    "checkpoint": hx.grad(lambda x: hx.checkpoint(lambda x: hnp.sin(hnp.sin(x)))(x).sum()),
    "sort": lambda x: (hnp.sort(-x), hnp.argsort(-x), lax.top_k(x, 3), hnp.unique(x.astype(int), size=3)),
    "scatter": lambda x: x.at[hnp.array([1, 3, 1])].add(hnp.array([1.0, 2.0, 4.0])),
    "segments": lambda x: hx.ops.segment_sum(x, hnp.arange(12) // 5, 3),
    "windows": lambda x: lax.reduce_window(x, -np.inf, lax.max, (3,), (1,), "SAME"),
    "fft": lambda x: (hnp.fft.fft(x), hnp.fft.irfft(hnp.fft.rfft(x)), hnp.fft.fft2(x.reshape(3, 4))),
    "convolution": lambda x: lax.conv(x.reshape(1, 1, 3, 4), x[:4].reshape(1, 1, 2, 2), (1, 1), "SAME"),
    "jacobian": hx.jacfwd(hx.grad(lambda x: hnp.prod(hnp.sin(x)))),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_program_gives_what_it_gives_on_the_cpu(name):
    with hx.default_matmul_precision("highest"):
        for y, z in zip(*on_both(LOOPS[name], X), strict=True):
            assert y.dtype == z.dtype
            np.testing.assert_allclose(y, z, rtol=2e-5, atol=2e-6)


# random numbers

@pytest.mark.parametrize("draw", [
    lambda k: hx.random.bits(k, (1001,)), lambda k: hx.random.bits(k, (33,), "uint8"),
    lambda k: hx.random.uniform(k, (7, 9)),
    lambda k: hx.random.key_data(hx.random.split(k, 5)), lambda k: hx.random.key_data(hx.random.fold_in(k, 3)),
    lambda k: hx.random.permutation(k, 50), lambda k: hx.random.randint(k, (20,), 0, 1000),
    lambda k: hx.vmap(lambda k: hx.random.bits(k, (3,)))(hx.random.split(k, 4)),
], ids=["bits", "bytes", "uniform", "split", "fold_in", "permutation", "randint", "lanes"])
@pytest.mark.parametrize("kind", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_bits_are_those_of_the_cpu(draw, kind):
    for y, z in zip(*on_both(lambda: draw(hx.random.key(7, impl=kind))), strict=True):
        np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("name", ["normal", "exponential", "gumbel", "laplace", "truncated_normal"])
def test_draws_are_those_of_the_cpu_up_to_rounding(name):
    parameters = (-1.0, 2.0) if name == "truncated_normal" else ()
    draw = lambda: getattr(hx.random, name)(hx.random.key(3), *parameters, shape=(500,))
    for y, z in zip(*on_both(draw), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


# effects

@hx.effect(vmap="per_lane")
class Drip:
    by: int = 1

    def result_type(op):
        return None


dripped = hx.handler({Drip: lambda n, op: (n + op.by, None)})


def dripping(x):
    def step(c, x):
        hx.perform(Drip())
        lax.cond(x > 1, lambda: hx.perform(Drip(10)), lambda: None)
        return lax.while_loop(lambda c: c < 1, lambda c: (hx.perform(Drip(100)), c + 1)[1], c) + x, hnp.sin(c)

    return lax.scan(step, 0.0, x)[0]


@pytest.mark.parametrize("f", [
    lambda x: hx.handle(dripped, 0)(dripping)(x), lambda x: hx.handle(dripped, 0)(hx.grad(dripping))(x),
    lambda x: hx.handle(dripped, 0)(hx.vmap(dripping))(hnp.stack([x, 2 * x])),
    lambda x: hx.vmap(hx.handle(dripped, 0)(dripping))(hnp.stack([x, 2 * x])),
    lambda x: hx.handle(hx.library.state, {"n": 0})(lambda: (hx.put("n", hx.get("n") + 2), dripped_alone(x)))(),
], ids=["loops", "grad", "lanes", "own-in-lanes", "library"])
def test_a_user_s_effect_with_state_gives_what_it_gives_on_the_cpu(f):
    for y, z in zip(*on_both(f, X), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-5)


def dripped_alone(x):
    return hx.handle(dripped, 0)(dripping)(x)


# calls of the host

def test_pure_callbacks_are_called_with_the_values_of_the_gpu():
    like = hx.ShapeDtypeStruct((), "float32")
    f = lambda x: hx.pure_callback(np.sqrt, like, x, vmap_method="sequential")
    np.testing.assert_allclose(hx.jit(hx.vmap(f))(X), np.sqrt(X), rtol=1e-6)
    found = hx.jit(lambda x: lax.scan(lambda c, x: (c + f(x), c), 0.0, x)[0])(X)
    assert float(found) == pytest.approx(np.sqrt(X).sum(), rel=1e-5) and found.devices() == {hx.devices()[0]}


@pytest.mark.parametrize("ordered", [True, False])
def test_io_callbacks_are_called_once_each_and_ordered_ones_in_order(ordered):
    seen = []

    def note(i, x):
        seen.append(int(i))
        return np.float32(x * 2)

    def step(c, i):
        return c + io_callback(note, hx.ShapeDtypeStruct((), "float32"), i, c, ordered=ordered), None

    y = hx.jit(lambda x: lax.scan(step, x, hnp.arange(6))[0])(1.0)
    assert float(y) == 3.0**6
    hx.effects_barrier()
    assert sorted(seen) == list(range(6)) and (seen == sorted(seen) or not ordered)


def test_prints_of_compiled_programs(capsys):
    hx.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: (debug.print("{} at {}", x, i, ordered=True), x + 1)[1], x))(5)
    hx.effects_barrier()
    assert capsys.readouterr().out.splitlines() == ["5 at 0", "6 at 1", "7 at 2"]


def test_an_error_of_the_host_is_the_programs_and_the_next_one_runs():
    def broken(x):
        raise ZeroDivisionError("by the host")

    with pytest.raises(hx.errors.CallbackError, match="by the host"):
        hx.jit(lambda x: hx.pure_callback(broken, x, x))(hnp.asarray(X)).block_until_ready()
    assert float(hx.jit(lambda x: x.sum())(X)) == pytest.approx(12, rel=1e-6)


# errors

def test_debug_nans_names_the_operation():
    f = hx.jit(lambda x: lax.log(x) + 1)
    with hx.debug_nans(), pytest.raises(hx.errors.FoundNaN, match=r"log.*NaN"):
        f(-1.0)


def test_a_check_inside_a_compiled_program_is_an_error_as_a_value():
    f = checkify.checkify(lambda x: (checkify.check(x.sum() < 0, "sum {}", x.sum()), x)[1])
    error, _ = hx.jit(f)(X)
    assert "sum 12" in error.get()


# exported, on disk, compiled before

EXPORT = """
import handlax as hx
from pathlib import Path
from handlax.export import export

def f(x):
    return hx.numpy.linalg.cholesky(x @ x.T + 3 * hx.numpy.eye(3)), hx.lax.scan(lambda c, x: (c + x, c), x[0], x)[0]

for platforms in (["cuda"], ["cpu", "cuda"]):
    made = export(hx.jit(f), platforms=platforms)(hx.ShapeDtypeStruct((3, 3), "float32"))
    Path(FOLDER, "-".join(platforms)).write_bytes(made.serialize())
print(hx.default_backend())
"""


def test_what_a_process_without_a_gpu_exports_for_one_is_executed_on_it(tmp_path):
    code = f"FOLDER = {str(tmp_path)!r}\n{EXPORT}"
    assert in_new_process(code, HANDLAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="") == "cpu"
    x = np.random.default_rng(0).standard_normal((3, 3)).astype("float32")
    for name in ("cuda", "cpu-cuda"):
        found = deserialize((tmp_path / name).read_bytes())
        l, total = hx.jit(found.call)(x)
        assert l.devices() == {hx.devices("gpu")[0]}
        np.testing.assert_allclose(l @ l.T, x @ x.T + 3 * np.eye(3), rtol=2e-2, atol=2e-2)
        np.testing.assert_allclose(total, x[0] + x.sum(0), rtol=1e-5)


def test_what_the_gpu_exports_for_both_is_executed_by_either():
    made = export(hx.jit(lambda x: hnp.sin(x) + 1), platforms=["cpu", "cuda"])(hx.ShapeDtypeStruct(X.shape, X.dtype))
    for platform in ("gpu", "cpu"):
        device = hx.devices(platform)[0]
        y = hx.jit(made.call, device=device)(X)
        assert y.devices() == {device}
        np.testing.assert_allclose(y, np.sin(X) + 1, rtol=1e-6)


def test_a_compiled_function_is_loaded_without_compiling():
    compiled = hx.jit(lambda x: hnp.linalg.inv(hnp.outer(x, x) + hnp.eye(12))).lower(X).compile()
    again = deserialize_and_load(*serialize(compiled))
    np.testing.assert_array_equal(again(X), compiled(X))
    assert compiled.memory_analysis().temp_size_in_bytes >= 0 and compiled.cost_analysis()["flops"] > 0


def test_the_next_process_takes_compiled_programs_from_the_disk(tmp_path):
    code = """
import handlax as hx, numpy as np, warnings
from handlax.lowering.clients.platforms import COUNTS
warnings.simplefilter("error")  # as that of an entry that cannot be loaded
y = hx.jit(lambda x: hx.numpy.linalg.cholesky(x @ x.T + hx.numpy.eye(4)))(np.ones((4, 4), "float32"))
print(y.device.platform, COUNTS["compile"], COUNTS["deserialize"], float(y[0, 0]))
"""
    settings = {"HANDLAX_COMPILATION_CACHE_DIR": str(tmp_path / "programs")}
    first, second = (in_new_process(code, **settings).split() for _ in range(2))
    assert first[0] == second[0] == "gpu" and first[-1] == second[-1]
    assert int(first[2]) == 0 and int(second[1]) == 0 and int(second[2]) == int(first[1]) > 0


def test_a_trace_of_the_profiler_is_written(tmp_path):
    with warnings.catch_warnings(), hx.profiler.trace(str(tmp_path)):
        hx.jit(lambda x: hnp.sin(x) @ x)(X).block_until_ready()
    assert any(file.stat().st_size for file in tmp_path.rglob("*.xplane.pb"))
