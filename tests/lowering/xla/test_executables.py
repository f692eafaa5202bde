"""Executables: compiling, executing, serialising and analysing programs."""

import threading
import time
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from helpers.device_buffers import cpu_device, read
from helpers.new_process import in_new_process
from helpers.other_threads import in_thread, together

from handlax.effects.base.errors import BadCall, CompileError
from handlax.lowering.clients import platforms
from handlax.lowering.xla import executables, jaxlib_runtime, mlir_modules


@pytest.fixture(scope="module")
def device():
    return cpu_device()


def add_text(size=8, body="%0 = stablehlo.add %a, %b"):
    t = f"tensor<{size}xf32>"
    return f"func.func public @main(%a: {t}, %b: {t}) -> {t} {{\n  {body} : {t}\n  return %0 : {t}\n}}"


def compile_add(device, size=8, **options):
    results = [((size,), np.float32)]
    return jaxlib_runtime.compile(add_text(size), devices=[device], results=results, options=options)


def test_a_program_computes_on_buffers(device):
    x = np.arange(8, dtype=np.float32)
    (out,) = compile_add(device).execute([jaxlib_runtime.put(x, device), jaxlib_runtime.put(2 * x, device)])
    jaxlib_runtime.block_until_ready(out)
    assert read(out).tolist() == (3 * x).tolist()
    assert out.aval is jaxlib_runtime.aval((8,), np.float32) and jaxlib_runtime.device_of(out) == device


def test_outputs_come_in_order_with_their_own_types(device):
    text = """func.func public @main(%a: tensor<2xf32>) -> (tensor<2xi4>, tensor<2x1xbf16>, tensor<i1>) {
      %0 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xi4>
      %1 = stablehlo.reshape %a : (tensor<2xf32>) -> tensor<2x1xf32>
      %2 = stablehlo.convert %1 : (tensor<2x1xf32>) -> tensor<2x1xbf16>
      %3 = stablehlo.constant dense<true> : tensor<i1>
      return %0, %2, %3 : tensor<2xi4>, tensor<2x1xbf16>, tensor<i1>
    }"""
    results = [((2,), ml_dtypes.int4), ((2, 1), ml_dtypes.bfloat16), ((), bool)]
    executable = jaxlib_runtime.compile(text, devices=[device], results=results)
    outs = executable.execute([jaxlib_runtime.put(np.float32([-3, 5]), device)])
    assert [(read(o).dtype, read(o).tolist()) for o in outs] == [
        (np.dtype(ml_dtypes.int4), [-3, 5]),
        (np.dtype(ml_dtypes.bfloat16), [[-3], [5]]),
        (np.dtype(bool), True),
    ]


def test_a_donated_argument_is_deleted_and_its_memory_used_again(device):
    donated = add_text().replace("%a: tensor<8xf32>", "%a: tensor<8xf32> {tf.aliasing_output = 0 : i32}")
    executable = jaxlib_runtime.compile(donated, devices=[device], results=[((8,), np.float32)])
    a, b = (jaxlib_runtime.put(np.ones(8, np.float32), device) for _ in range(2))
    where = jaxlib_runtime.pointer(a)
    (out,) = executable.execute([a, b])
    assert jaxlib_runtime.is_deleted(a) and not jaxlib_runtime.is_deleted(b)
    assert (read(out) == 2).all() and jaxlib_runtime.pointer(out) == where
    with pytest.raises(jaxlib_runtime.RuntimeFailure):
        executable.execute([a, b])


def test_a_wrong_text_is_refused_with_its_line(device):
    text = add_text(body="%0 = stablehlo.add %a, %q")
    with pytest.raises(CompileError, match=r"undeclared SSA value name in line 2: %0 = stablehlo.add %a, %q"):
        jaxlib_runtime.compile(text, devices=[device], results=[((8,), np.float32)])


def test_a_wrong_program_of_bytes_has_no_lines(device):
    text = add_text(body="%0 = stablehlo.add %a, %q").encode()
    with pytest.raises(CompileError, match=r"XLA must be able to compile the program, got .*undeclared SSA value"):
        jaxlib_runtime.compile(text, devices=[device], results=[((8,), np.float32)])


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_the_host_is_called_by_what_the_platform_has_for_it(platform):
    call = "%0 = stablehlo.custom_call @handlax_host_call(%a) {api_version = 4 : i32} : (tensor<8xf32>) ->"
    module = executables._with_host_calls(add_text(body=call).replace("-> :", "->"), platform)
    assert mlir_modules.called_targets(module) == {f"xla_ffi_python_{platform}_callback"}


def test_an_unknown_compiler_option_is_refused_by_name(device):
    with pytest.raises(CompileError, match="compiler options must be XLA's, got 'no_such_option'"):
        compile_add(device, no_such_option=True)


def test_a_known_compiler_option_is_taken(device):
    x = jaxlib_runtime.put(np.ones(8, np.float32), device)
    (out,) = compile_add(device, xla_cpu_enable_fast_math=True).execute([x, x])
    assert (read(out) == 2).all()


def test_an_unknown_custom_call_is_a_compile_error(device):
    call = "%0 = stablehlo.custom_call @nowhere(%a) {api_version = 4 : i32} : (tensor<8xf32>) ->"
    text = add_text(body=call).replace("-> :", "->")
    with pytest.raises(CompileError, match="nowhere"):
        jaxlib_runtime.compile(text, devices=[device], results=[((8,), np.float32)])


def test_a_missing_argument_is_a_runtime_failure(device):
    with pytest.raises(jaxlib_runtime.RuntimeFailure):
        compile_add(device).execute([jaxlib_runtime.put(np.ones(8, np.float32), device)])


def test_analyses_describe_the_program(device):
    executable = compile_add(device, size=16)
    assert executable.cost_analysis()["flops"] == 16
    assert executable.memory_analysis().argument_size_in_bytes == 2 * 16 * 4
    assert "HloModule" in executable.hlo_text() and "f32[16]" in executable.hlo_text()


def test_a_serialized_program_computes_the_same(device):
    compiled = platforms.COUNTS["compile"]
    executable = compile_add(device)
    again = jaxlib_runtime.deserialize(executable.serialize(), devices=[device], results=[((8,), np.float32)])
    x = jaxlib_runtime.put(np.arange(8, dtype=np.float32), device)
    assert read(again.execute([x, x])[0]).tolist() == read(executable.execute([x, x])[0]).tolist()
    assert again.serialize() == executable.serialize()
    assert platforms.COUNTS["compile"] == compiled + 1


@pytest.mark.parametrize("text", [
    "stablehlo.custom_call @lapack_spotrf_ffi(%a)",
    '"stablehlo.custom_call"(%a) {call_target_name = "lapack_spotrf_ffi"}',
])
def test_lapack_is_loaded_for_programs_that_call_it_alone(monkeypatch, text):
    loaded = []
    monkeypatch.setattr(executables, "register_lapack", lambda: loaded.append(True))
    for calls in (False, True):
        for kind in (str, str.encode):
            executables._register_targets(kind(text if calls else add_text()))
        assert loaded == [True, True] * calls


@pytest.mark.parametrize("kind", [str, str.encode])
def test_quick_programs_have_the_older_emitter_of_jaxlib_0_10_where_it_can_read_them(monkeypatch, kind):
    def older(version, text, devices):
        monkeypatch.setattr(executables, "JAXLIB_VERSION", version)
        return executables.quick_options(kind(text), [None] * devices).get("xla_cpu_use_fusion_emitters") is False

    plain, narrow, pairs = "tensor<3xf32>", "tensor<3xf4E2M1FN>", "tensor<3xcomplex<f32>>"
    assert older("0.10.2", plain, 1) and older("0.10.2", plain, 2) and older("0.10.2", pairs, 1)
    assert not any([older("0.10.2", narrow, 1), older("0.10.2", narrow, 2), older("0.10.2", pairs, 2)])
    assert not any([older(version, plain, 1) for version in ("0.11.0", "0.12.0")])


def test_bytes_that_are_no_program_are_refused(device):
    with pytest.raises(CompileError, match="must be a serialized program"):
        jaxlib_runtime.deserialize(b"nonsense", devices=[device], results=[])


def test_key_facts_follow_options_and_nothing_else(device):
    facts = jaxlib_runtime.cache_key_facts([device])
    assert facts == jaxlib_runtime.cache_key_facts([device], {})
    assert facts != jaxlib_runtime.cache_key_facts([device], {"xla_cpu_enable_fast_math": True})
    assert jaxlib_runtime.JAXLIB_VERSION.encode() in facts


def test_key_facts_have_the_environment_that_xla_reads():
    code = "from handlax.lowering.xla import jaxlib_runtime as r; print(r.cache_key_facts(r.backend().devices))"
    assert "XLA_FLAGS=--xla_dump_to=" in in_new_process(code, XLA_FLAGS="--xla_dump_to=", HANDLAX_PLATFORMS="cpu")


def test_key_facts_of_a_gpu_have_its_kind_and_nothing_of_the_host_s_processor(device):
    gpu = SimpleNamespace(device_kind="NVIDIA H200")
    facts = executables._machine_facts(
        type("Client", (), {"platform": "cuda", "platform_version": "cuda 13", "local_devices": lambda: [gpu]}))
    assert b"NVIDIA H200" in facts and executables._cpu_features().encode() not in facts
    assert executables._cpu_features().encode() in executables._machine_facts(device.client)


@pytest.mark.parametrize(("text", "name"), [("module @jit_f {", "jit_f"), ("module {", "program")])
def test_a_launch_by_several_processes_is_known_by_its_program(text, name):
    def action(hlo, text):
        devices = [SimpleNamespace(process_index=index) for index in (0, 0, 2)]
        made = SimpleNamespace(hlo_text=lambda: hlo, text=text, devices=devices)
        return executables.Executable._joint_action(made)

    found = action("x = f32[2] all-reduce(y)", text)
    assert found[:2] == (frozenset([0, 2]), name) and found == action("z = f32[2] all-reduce(y)", text.encode())
    assert found[2] != action("x = f32[2] all-reduce(y)", text + " ")[2]
    assert action("x = f32[2] add(y, y)", text)[0] == frozenset()


def test_threads_may_compile_and_execute_at_once(device):
    def work(i):
        size = i + 1
        executable = compile_add(device, size)
        x = np.full(size, size, np.float32)
        for _ in range(200):
            (out,) = executable.execute([jaxlib_runtime.put(x, device), jaxlib_runtime.put(x, device)])
            assert read(out).tolist() == [2.0 * size] * size

    together(6, work)


class Launched:
    """What a launch over several devices gives; it notes when others wait for its end."""

    def __init__(self, ended):
        self.ended = ended

    def consume_token(self):
        return self

    def block_until_ready(self):
        self.ended.append(self)


@pytest.mark.usefixtures("no_last_program")
def test_programs_over_several_devices_are_launched_one_after_the_other_by_threads_too():
    launching, most, ended = [], [], []

    def execute(buffers, with_tokens):
        launching.append(buffers)
        most.append((len(launching), len(most) - len(ended)))
        time.sleep(0.01)  # others launch meanwhile
        launching.pop()
        return Launched(ended)

    launch = executables._one_after_the_other(execute)
    together(6, lambda i: launch([i]))
    assert most == [(1, 0)] * 6 and len(ended) == 5


def test_programs_over_several_devices_are_enqueued_in_one_order_by_threads():
    queues = [[], []]

    def execute(buffers):
        for queue in queues:
            queue.append(buffers)
            time.sleep(0.01)  # others launch meanwhile

    launch = executables._in_one_order(execute)

    together(2, lambda i: [launch([i, step]) for step in range(5)])
    assert queues[0] == queues[1] and len(queues[0]) == 10


def test_a_callback_launches_programs_while_one_is_launched():
    waiting = threading.Event()

    def execute(buffers):
        if buffers == ["first"]:
            in_thread(called)
        return buffers

    def called():
        token = executables.CURRENT_HOST_CALL.set(SimpleNamespace())
        assert launch(["within"]) == ["within"]
        executables.CURRENT_HOST_CALL.reset(token)
        waiting.set()

    launch = executables._in_one_order(execute)
    launch(["first"])
    assert waiting.is_set()


@pytest.mark.usefixtures("no_last_program")
def test_a_callback_launches_no_program_whose_devices_wait_for_it():
    launch = executables._one_after_the_other(lambda buffers, with_tokens: Launched([]))
    for types in (None, ()):
        token = executables.CURRENT_HOST_CALL.set(SimpleNamespace(types=types))
        try:
            if types is None:  # of a program on one device
                assert isinstance(launch([]), Launched)
            else:
                with pytest.raises(BadCall, match="a callback of a program over several devices must"):
                    launch([])
        finally:
            executables.CURRENT_HOST_CALL.reset(token)


@pytest.fixture
def no_last_program():
    while executables._LAST:
        executables._LAST.pop().block_until_ready()
    yield
    executables._LAST.clear()
