"""Buffers, compiled programs and pytrees, straight on jaxlib."""

import collections
import os
import pickle
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from handlax.effects.errors import CompileError, ConfigurationError, DeletedArray, DTypeMismatch
from handlax.lowering import platforms, runtime

DTYPES = sorted(runtime._NATIVE | runtime._EXTENDED, key=str)
SHAPES = [(), (0,), (5,), (2, 3), (3, 0, 2)]


@pytest.fixture(scope="module")
def device():
    return runtime.backend("cpu").default_device


def samples(shape, dtype):
    bits = np.random.default_rng(len(shape)).integers(0, 2, shape)
    return np.asarray(bits).astype(dtype)


def read(buffer):
    return runtime.to_numpy(buffer, buffer.aval.dtype, buffer.aval.shape)


def add_text(size=8, body="%0 = stablehlo.add %a, %b"):
    t = f"tensor<{size}xf32>"
    return f"func.func public @main(%a: {t}, %b: {t}) -> {t} {{\n  {body} : {t}\n  return %0 : {t}\n}}"


def compile_add(device, size=8, **options):
    results = [((size,), np.float32)]
    return runtime.compile(add_text(size), devices=[device], results=results, options=options)


# Backend


def test_a_backend_is_made_once_by_however_many_threads(device):
    made = platforms.COUNTS["client"]
    found = []
    threads = [threading.Thread(target=lambda: found.append(runtime.backend("cpu"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(b) for b in found}) == 1 and found[0].default_device == device
    assert platforms.COUNTS["client"] == made


def test_an_unknown_platform_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="'cpu' or 'cuda', asked for 'tpu'"):
        runtime.backend("tpu")


def test_the_cpu_device_count_is_fixed_at_first_use(device):
    count = len(runtime.backend("cpu").local_devices)
    runtime.set_cpu_device_count(count)
    with pytest.raises(ConfigurationError, match="fixed at first use"):
        runtime.set_cpu_device_count(count + 1)


def in_new_process(code, **environment):
    # Names that a test run sets for itself would decide what is tested here.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("HANDLAX_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_environment_chooses_platform_and_device_count():
    code = "from handlax.lowering.runtime import backend as b; print(b().platform, len(b().devices), b() is b('cpu'))"
    assert in_new_process(code, HANDLAX_PLATFORMS="cpu", HANDLAX_NUM_CPU_DEVICES="3") == "cpu 3 True"


def test_a_platform_outside_the_environment_s_list_is_refused():
    code = """
from handlax.lowering.runtime import backend
from handlax.effects.errors import ConfigurationError
try: backend('cuda')
except ConfigurationError as error: print(error.what)
"""
    assert in_new_process(code, HANDLAX_PLATFORMS="cpu").startswith("the platform must be among HANDLAX_PLATFORMS=cpu")


def test_an_installed_plugin_without_a_gpu_is_not_chosen(monkeypatch, tmp_path):
    monkeypatch.delenv(platforms.PLATFORMS_VARIABLE, raising=False)
    monkeypatch.setattr(platforms, "_cuda_plugin", lambda: ("13", tmp_path / "xla_cuda_plugin.so"))
    monkeypatch.setattr(platforms, "_gpu_present", lambda: False)
    assert platforms._resolve(None) == "cpu"
    monkeypatch.setattr(platforms, "_gpu_present", lambda: True)
    assert platforms._resolve(None) == "cuda"
    monkeypatch.setenv(platforms.PLATFORMS_VARIABLE, "cpu")
    assert platforms._resolve(None) == "cpu"


def test_the_cuda_plugin_is_found_by_path_without_running_its_package(monkeypatch, tmp_path):
    package = tmp_path / "jax_plugins" / "xla_cuda13"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "xla_cuda_plugin.so").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jax_plugins", raising=False)
    assert platforms._cuda_plugin() == ("13", package / "xla_cuda_plugin.so")


# Avals and transfer


def test_avals_are_interned_by_shape_and_dtype():
    assert runtime.aval([2, 3], "float32") is runtime.aval((2, 3), np.float32)
    assert runtime.aval((2,), "float32") is not runtime.aval((2,), "float64")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("copy", [True, False], ids=["copy", "alias"])
def test_reading_gives_back_what_was_put(device, dtype, shape, copy):
    x = samples(shape, dtype)
    y = read(runtime.put(x, device, copy=copy))
    assert (y.dtype, y.shape, y.tobytes()) == (x.dtype, x.shape, x.tobytes())
    assert not y.flags.writeable


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn, ml_dtypes.bfloat16])
def test_extreme_values_of_small_dtypes_survive(device, dtype):
    x = np.asarray([15, 8, 0, 1, 7] if dtype is ml_dtypes.uint4 else [-8, 7, 3, -1, 0]).astype(dtype)
    assert read(runtime.put(x, device)).tolist() == x.tolist()


@pytest.mark.parametrize("size", [1, 8, 1000, 1 << 20])
def test_a_change_of_the_array_after_put_is_not_seen(device, size):
    x = np.ones(size, np.float32)
    buffer = runtime.put(x, device)
    x[:] = 7
    assert (read(buffer) == 1).all()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float64, bool])
def test_a_change_after_put_is_not_seen_whatever_the_dtype(device, dtype):
    x = np.ones(4096, dtype)
    buffer = runtime.put(x, device)
    x[:] = 0
    assert (read(buffer).astype(np.float64) == 1).all()


def test_put_without_copy_shares_aligned_memory(device):
    memory = np.zeros(4096 + 64, np.uint8)
    x = memory[-memory.ctypes.data % 64 :][:4096].view(np.float32)
    assert runtime.pointer(runtime.put(x, device, copy=False)) == x.ctypes.data
    assert runtime.pointer(runtime.put(x, device)) != x.ctypes.data


@pytest.mark.parametrize(
    "array", [np.arange(12.0).reshape(3, 4).T, np.arange(12)[::-2], np.arange(3, dtype=">f4"), np.float32(2.5), 3, True]
)
def test_any_strides_byte_order_and_scalar_can_be_put(device, array):
    for _ in range(2):  # the second call takes the path of the interned type
        y = read(runtime.put(array, device))
        assert y.tolist() == np.asarray(array).tolist() and y.dtype == np.asarray(array).dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([None]), np.array([1], "M8[s]"), np.zeros(1, np.longdouble)]
)
def test_an_array_that_no_device_holds_is_refused(device, array):
    with pytest.raises(DTypeMismatch, match="a device holds booleans and numbers"):
        runtime.put(array, device)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_an_array_read_from_a_buffer_outlives_it(device, dtype):
    buffer = runtime.put(np.ones(1000, dtype), device)
    x = read(buffer)
    del buffer
    assert (x == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_deleted_buffer_cannot_be_read(device, dtype):
    buffer = runtime.put(np.ones(4, dtype), device)
    assert not runtime.is_deleted(buffer)
    runtime.delete(buffer)
    assert runtime.is_deleted(buffer)
    with pytest.raises(DeletedArray):
        read(buffer)


def test_a_cpu_does_not_count_its_memory(device):
    assert runtime.memory_stats(device) is None


def test_a_copy_to_another_device_lies_there_and_equals_the_source():
    code = """
import numpy as np
from handlax.lowering import runtime as r
r.set_cpu_device_count(2)
a, b = r.backend('cpu').devices
x = r.put(np.arange(5), a)
y = r.copy_to_device(x, b)
r.delete(x)
print(r.device_of(y) == b, r.copy_to_device(y, b) is y, r.to_numpy(y, y.aval.dtype, y.aval.shape).tolist())
"""
    assert in_new_process(code) == "True True [0, 1, 2, 3, 4]"


# Programs


def test_a_program_computes_on_buffers(device):
    x = np.arange(8, dtype=np.float32)
    (out,) = compile_add(device).execute([runtime.put(x, device), runtime.put(2 * x, device)])
    runtime.block_until_ready(out)
    assert read(out).tolist() == (3 * x).tolist()
    assert out.aval is runtime.aval((8,), np.float32) and runtime.device_of(out) == device


class Wrapper:
    __slots__ = ("buffer",)

    def __init__(self, buffer):
        self.buffer = buffer


def test_results_come_out_in_the_caller_s_class(device):
    executable = compile_add(device)
    x = runtime.put(np.ones(8, np.float32), device)
    (out,) = executable.bind(Wrapper)([x, x])
    assert type(out) is Wrapper and (read(out.buffer) == 2).all()
    (plain,) = executable.execute([x, x])
    assert type(plain) is type(x)


def test_outputs_come_in_order_with_their_own_types(device):
    text = """func.func public @main(%a: tensor<2xf32>) -> (tensor<2xi4>, tensor<2x1xbf16>, tensor<i1>) {
      %0 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xi4>
      %1 = stablehlo.reshape %a : (tensor<2xf32>) -> tensor<2x1xf32>
      %2 = stablehlo.convert %1 : (tensor<2x1xf32>) -> tensor<2x1xbf16>
      %3 = stablehlo.constant dense<true> : tensor<i1>
      return %0, %2, %3 : tensor<2xi4>, tensor<2x1xbf16>, tensor<i1>
    }"""
    results = [((2,), ml_dtypes.int4), ((2, 1), ml_dtypes.bfloat16), ((), bool)]
    outs = runtime.compile(text, devices=[device], results=results).execute([runtime.put(np.float32([-3, 5]), device)])
    assert [(read(o).dtype, read(o).tolist()) for o in outs] == [
        (np.dtype(ml_dtypes.int4), [-3, 5]),
        (np.dtype(ml_dtypes.bfloat16), [[-3], [5]]),
        (np.dtype(bool), True),
    ]


def test_a_donated_argument_is_deleted_and_its_memory_used_again(device):
    donated = add_text().replace("%a: tensor<8xf32>", "%a: tensor<8xf32> {tf.aliasing_output = 0 : i32}")
    executable = runtime.compile(donated, devices=[device], results=[((8,), np.float32)])
    a, b = (runtime.put(np.ones(8, np.float32), device) for _ in range(2))
    where = runtime.pointer(a)
    (out,) = executable.execute([a, b])
    assert runtime.is_deleted(a) and not runtime.is_deleted(b)
    assert (read(out) == 2).all() and runtime.pointer(out) == where
    with pytest.raises(runtime.RuntimeFailure):
        executable.execute([a, b])


def test_a_wrong_text_is_refused_with_its_line(device):
    text = add_text(body="%0 = stablehlo.add %a, %q")
    with pytest.raises(CompileError, match=r"undeclared SSA value name in line 2: %0 = stablehlo.add %a, %q"):
        runtime.compile(text, devices=[device], results=[((8,), np.float32)])


def test_an_unknown_compiler_option_is_refused_by_name(device):
    with pytest.raises(CompileError, match="compiler options must be XLA's, got 'no_such_option'"):
        compile_add(device, no_such_option=True)


def test_a_known_compiler_option_is_taken(device):
    x = runtime.put(np.ones(8, np.float32), device)
    (out,) = compile_add(device, xla_cpu_enable_fast_math=True).execute([x, x])
    assert (read(out) == 2).all()


def test_an_unknown_custom_call_is_a_compile_error(device):
    call = "%0 = stablehlo.custom_call @nowhere(%a) {api_version = 4 : i32} : (tensor<8xf32>) ->"
    text = add_text(body=call).replace("-> :", "->")
    with pytest.raises(CompileError, match="nowhere"):
        runtime.compile(text, devices=[device], results=[((8,), np.float32)])


def test_a_missing_argument_is_a_runtime_failure(device):
    with pytest.raises(runtime.RuntimeFailure):
        compile_add(device).execute([runtime.put(np.ones(8, np.float32), device)])


def test_analyses_describe_the_program(device):
    executable = compile_add(device, size=16)
    assert executable.cost_analysis()["flops"] == 16
    assert executable.memory_analysis().argument_size_in_bytes == 2 * 16 * 4
    assert "HloModule" in executable.hlo_text() and "f32[16]" in executable.hlo_text()


def test_a_serialized_program_computes_the_same(device):
    compiled = platforms.COUNTS["compile"]
    executable = compile_add(device)
    again = runtime.deserialize(executable.serialize(), devices=[device], results=[((8,), np.float32)])
    x = runtime.put(np.arange(8, dtype=np.float32), device)
    assert read(again.execute([x, x])[0]).tolist() == read(executable.execute([x, x])[0]).tolist()
    assert platforms.COUNTS["compile"] == compiled + 1


def test_bytes_that_are_no_program_are_refused(device):
    with pytest.raises(CompileError, match="must be a serialized program"):
        runtime.deserialize(b"nonsense", devices=[device], results=[])


def test_key_facts_follow_options_and_nothing_else(device):
    facts = runtime.cache_key_facts([device])
    assert facts == runtime.cache_key_facts([device], {})
    assert facts != runtime.cache_key_facts([device], {"xla_cpu_enable_fast_math": True})
    assert runtime.JAXLIB_VERSION.encode() in facts


def test_threads_may_compile_and_execute_at_once(device):
    wrong = []

    def work(size):
        executable = compile_add(device, size)
        x = np.full(size, size, np.float32)
        for _ in range(200):
            (out,) = executable.execute([runtime.put(x, device), runtime.put(x, device)])
            if read(out).tolist() != [2.0 * size] * size:
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(size,)) for size in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_lapack_is_callable_once_registered(device):
    runtime.register_lapack()
    text = """func.func public @main(%a: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>) {
      %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4 : i32, backend_config = {uplo = 76 : ui8},
        operand_layouts = [dense<[0,1]> : tensor<2xindex>],
        result_layouts = [dense<[0,1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
        : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
      return %0#0, %0#1 : tensor<2x2xf32>, tensor<i32>
    }"""
    executable = runtime.compile(text, devices=[device], results=[((2, 2), np.float32), ((), np.int32)])
    factor, info = executable.execute([runtime.put(np.float32([[4, 2], [2, 5]]), device)])
    assert np.tril(read(factor)).tolist() == [[2, 0], [1, 2]] and read(info) == 0


# DLPack


class Exporter:
    """An array of another library, as DLPack sees it."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return runtime.to_dlpack(self.buffer, stream=stream)

    def __dlpack_device__(self):
        return runtime.dlpack_device(self.buffer)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, np.complex64, ml_dtypes.bfloat16], ids=str)
def test_dlpack_there_and_back_is_the_same_array(device, dtype):
    x = samples((2, 3), dtype)
    back = runtime.from_dlpack(Exporter(runtime.put(x, device)), device)
    assert back.aval is runtime.aval((2, 3), dtype)
    assert read(back).tolist() == x.tolist()


def test_numpy_reads_a_buffer_by_dlpack_without_a_copy(device):
    buffer = runtime.put(np.arange(16, dtype=np.float32), device)
    assert np.from_dlpack(Exporter(buffer)).ctypes.data == runtime.pointer(buffer)


def test_nothing_here_looks_for_jax():
    code = """
import sys, numpy as np, ml_dtypes
class Watch:
    seen = []
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition('.')[0] == 'jax': cls.seen.append(name)
sys.meta_path.insert(0, Watch)
from handlax.lowering import runtime as r
class Exporter:
    def __dlpack__(self, **_): return r.to_dlpack(x)
    def __dlpack_device__(self): return r.dlpack_device(x)
r.set_cpu_device_count(2)
d, d2 = r.backend('cpu').devices
t = 'tensor<8xf32>'
text = f'func.func public @main(%a: {t}) -> {t} {{ %0 = stablehlo.add %a, %a : {t}\\n return %0 : {t} }}'
e = r.compile(text, devices=[d], results=[((8,), np.float32)])
e = r.deserialize(e.serialize(), devices=[d], results=[((8,), np.float32)])
e.cost_analysis(), e.memory_analysis(), e.hlo_text(), r.cache_key_facts([d]), r.memory_stats(d), r.register_lapack()
y = e.execute([r.put(np.ones(8, np.float32), d)])[0]
for dtype in sorted(r._NATIVE | r._EXTENDED, key=str):
    x = r.put(np.ones(8, dtype), d)
    r.to_numpy(x, x.aval.dtype, x.aval.shape), r.pointer(x), r.copy_to_device(x, d2), r.block_until_ready(x)
    if dtype not in r._PACKED and dtype.itemsize > 1: r.from_dlpack(Exporter(), d)
r.delete(x)
print(Watch.seen)
"""
    assert in_new_process(code) == "[]"


COEXIST = """
import sys, numpy as np, ml_dtypes
from handlax.lowering import runtime as r
class Exporter:
    def __init__(self, x): self.x = x
    def __dlpack__(self, **_): return r.to_dlpack(self.x)
    def __dlpack_device__(self): return r.dlpack_device(self.x)
def ours():
    d = r.backend('cpu').default_device
    t = 'tensor<2xf64>'
    e = r.compile(f'func.func public @main(%a: {t}) -> {t} {{ %0 = stablehlo.add %a, %a : {t}\\n return %0 : {t} }}',
                  devices=[d], results=[((2,), np.float64)])
    (y,) = e.execute([r.put(np.array([1.0, 2.0]), d)])
    assert r.to_numpy(y, y.aval.dtype, (2,)).tolist() == [2.0, 4.0] and y.aval is r.aval((2,), np.float64)
    b = r.put(np.ones(3, ml_dtypes.bfloat16), d)
    c = r.from_dlpack(Exporter(b), d)
    assert r.to_numpy(c, c.aval.dtype, c.aval.shape).tolist() == [1, 1, 1] and c.aval is b.aval
    return Exporter(y)
def theirs(x=None):
    import jax, jax.numpy as jnp
    assert jax.jit(lambda a: jnp.sin(a) + a)(jnp.arange(8.0)).dtype == np.float32
    assert jax.grad(lambda a: (a ** 2).sum())(jnp.ones(3)).tolist() == [2, 2, 2]
    if x is not None: assert jax.dlpack.from_dlpack(x).tolist() == [2.0, 4.0]
"""


@pytest.mark.peer
@pytest.mark.parametrize("order", ["theirs(); theirs(ours()); theirs()", "x = ours(); theirs(x); theirs(ours())"])
def test_we_and_jax_work_in_one_process_in_either_order(order):
    pytest.importorskip("jax")
    assert in_new_process(COEXIST + order + "\nprint('done')", JAX_PLATFORMS="cpu") == "done"


# Pytrees


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (1, [1]),
        (None, []),
        ({"b": 1, "a": (2, [None, 3])}, [2, 3, 1]),
        (Point(1, {"z": 2}), [1, 2]),
        (collections.OrderedDict(z=1, a=2), [1, 2]),
        (collections.defaultdict(int, {"m": 1}), [1]),
    ],
    ids=str,
)
def test_unflattening_undoes_flattening(tree, leaves):
    found, treedef = runtime.flatten(tree)
    assert found == leaves
    again = treedef.unflatten(found)
    assert again == tree and type(again) is type(tree)
    assert runtime.flatten(tree)[1] == treedef and hash(runtime.flatten(tree)[1]) == hash(treedef)


def test_a_registered_class_is_a_node():
    class Pair:
        def __init__(self, left, right, name):
            self.left, self.right, self.name = left, right, name

    runtime.register_node(Pair, lambda p: ((p.left, p.right), p.name), lambda name, both: Pair(*both, name))
    leaves, treedef = runtime.flatten([Pair(1, (2, 3), "p")])
    assert leaves == [1, 2, 3]
    assert treedef.unflatten([4, 5, 6])[0].right == (5, 6)
    assert treedef != runtime.flatten([Pair(1, (2, 3), "q")])[1]


def test_a_predicate_stops_the_descent():
    assert runtime.flatten([Point(1, 2), 3], lambda x: isinstance(x, Point))[0] == [Point(1, 2), 3]


def test_paths_name_each_leaf():
    paths = runtime.flatten_with_path({"a": [1, 2]})[0]
    assert ["".join(map(str, path)) for path, _ in paths] == ["['a'][0]", "['a'][1]"]


def test_a_treedef_can_be_pickled():
    treedef = runtime.flatten({"a": (1, None)})[1]
    assert pickle.loads(pickle.dumps(treedef)) == treedef
