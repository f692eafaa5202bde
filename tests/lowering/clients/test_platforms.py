"""Platforms: which there are, how one is chosen, and how many devices it has."""

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.new_process import in_new_process
from helpers.other_threads import together

import handlax as hx
from handlax.effects.base.errors import ConfigurationError, PlatformUnavailable
from handlax.effects.operations.foundations.foreign_call import PARTITIONED_CALL
from handlax.lowering.clients import platforms
from handlax.lowering.xla import jaxlib_runtime


@pytest.fixture(scope="module")
def device():
    return jaxlib_runtime.backend("cpu").default_device


def read(buffer):
    return jaxlib_runtime.to_numpy(buffer, buffer.aval.dtype, buffer.aval.shape)


def test_a_backend_is_made_once_by_however_many_threads(device):
    made = platforms.COUNTS["client"]
    found = together(8, lambda _: jaxlib_runtime.backend("cpu"))
    assert len({id(b) for b in found}) == 1 and found[0].default_device == device
    assert platforms.COUNTS["client"] == made


def test_an_unknown_platform_is_refused_by_name():
    with pytest.raises(PlatformUnavailable, match="'cpu' or 'cuda', got 'tpu'"):
        jaxlib_runtime.backend("tpu")


def test_a_platform_that_is_not_there_is_a_runtime_error_for_programs_that_try_it():
    with pytest.raises(RuntimeError, match="'tpu'"):
        hx.devices("tpu")
    with pytest.raises(RuntimeError, match="'tpu'"):
        hx.device_count("tpu")


def test_the_cpu_device_count_is_fixed_at_first_use(device):
    count = len(jaxlib_runtime.backend("cpu").local_devices)
    with hx.configure(num_cpu_devices=count):
        assert len(hx.devices("cpu")) == count
    with pytest.raises(ConfigurationError, match="fixed at the first use"):
        hx.config.update("jax_num_cpu_devices", count + 1)


COUNT = """
from handlax.lowering.xla.jaxlib_runtime import backend
print(backend().platform, len(backend().devices), backend() is backend("cpu"))
"""


def test_the_environment_chooses_platform_and_device_count():
    flag = "--xla_dump_to= --xla_force_host_platform_device_count=2"
    assert in_new_process(COUNT, HANDLAX_PLATFORMS="cpu", HANDLAX_NUM_CPU_DEVICES="3") == "cpu 3 True"
    assert in_new_process(COUNT, HANDLAX_PLATFORMS="cpu", XLA_FLAGS=flag) == "cpu 2 True"
    setting = "import handlax as hx; hx.config.update('jax_num_cpu_devices', 4)"
    assert in_new_process(setting + COUNT, HANDLAX_PLATFORMS="cpu", XLA_FLAGS=flag) == "cpu 4 True"


@pytest.mark.parametrize("count", [0, -2, 1.5, True])
def test_a_number_of_devices_is_positive(count):
    with pytest.raises(ConfigurationError, match="positive integer"):
        hx.config.update("num_cpu_devices", count)


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("2", 2), ("0", None), ("-1", None), ("two", None)])
def test_the_environment_s_number_of_devices_is_positive(text, count, monkeypatch):
    monkeypatch.setenv("HANDLAX_NUM_CPU_DEVICES", text)
    with hx.configure(num_cpu_devices=None):  # pages of the documentation set it
        if count is None:
            with pytest.raises(ConfigurationError, match=f"positive integer, got '{text}'"):
                platforms._cpu_device_count()
        else:
            assert platforms._cpu_device_count() == count


def test_a_platform_outside_the_environment_s_list_is_refused():
    code = """
from handlax.lowering.xla.jaxlib_runtime import backend
try: backend('cuda')
except RuntimeError as error: print(error.what)
"""
    assert in_new_process(code, HANDLAX_PLATFORMS="cpu").startswith("the platform must be among HANDLAX_PLATFORMS=cpu")


def test_an_installed_plugin_without_a_gpu_is_not_chosen(monkeypatch, tmp_path):
    monkeypatch.delenv(platforms.PLATFORMS_VARIABLE, raising=False)
    monkeypatch.setattr(platforms, "_cuda_plugin", lambda: ("13", tmp_path / "xla_cuda_plugin.so"))
    monkeypatch.setattr(platforms, "gpu_is_present", lambda: False)
    assert platforms._resolve(None) == "cpu"
    monkeypatch.setattr(platforms, "gpu_is_present", lambda: True)
    assert platforms._resolve(None) == "cuda"
    monkeypatch.setenv(platforms.PLATFORMS_VARIABLE, "cpu")
    assert platforms._resolve(None) == "cpu"
    monkeypatch.setenv(platforms.PLATFORMS_VARIABLE, "gpu,cpu")
    assert [platforms._resolve(name) for name in (None, "GPU", "cpu")] == ["cuda", "cuda", "cpu"]


def test_the_cuda_plugin_is_found_by_path_without_running_its_package(monkeypatch, tmp_path):
    package = tmp_path / "jax_plugins" / "xla_cuda13"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (tmp_path / "jax_plugins" / "xla_cuda12.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jax_plugins", raising=False)
    assert platforms._cuda_plugin() is None
    (package / "xla_cuda_plugin.so").touch()
    assert platforms._cuda_plugin() == ("13", package / "xla_cuda_plugin.so")


def test_libraries_of_nvidia_are_loaded_where_they_are_installed(monkeypatch, tmp_path):
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    library = shutil.copy(sys.modules["_ctypes"].__file__, folder / "libcudart.so.13")
    loaded = lambda: ctypes.CDLL(str(library), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    with pytest.raises(OSError, match=r"libcudart|dlopen"):
        loaded()
    platforms._preload_nvidia_libraries()
    assert loaded()


@pytest.mark.parametrize(("library", "message"), [
    ("xla_cuda_plugin.so", "xla_cuda_plugin.so does not start"), (None, "needs a CUDA plug-in, none is installed"),
])
def test_a_plugin_that_is_none_is_named(monkeypatch, tmp_path, library, message):
    if library:
        (tmp_path / library).write_bytes(b"no library")
    monkeypatch.setattr(platforms, "_cuda_plugin", lambda: library and ("13", tmp_path / library))
    with pytest.raises(PlatformUnavailable, match=message):
        platforms._make_backend("cuda")


def test_types_and_handlers_of_the_plugin_are_registered_for_cuda(monkeypatch, tmp_path):
    package, done = tmp_path / "other_cuda_plugin", []
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cuda_plugin_extension.py").write_text(
        "register_custom_type = register_custom_call_target = print\n"
        "def ffi_types(): return {'state': 1}\ndef ffi_handlers(): return {'call': 2}\n")
    for module in platforms._CUDA_TARGET_MODULES:
        (package / f"{module}.py").write_text(f"def registrations(): return {{'{module}': 3}}")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("type_handler", "call_handler"):
        monkeypatch.setattr(platforms.xc, f"register_custom_{name}", lambda platform, call: done.append(platform))
    for name in ("type", "call_target"):
        monkeypatch.setattr(platforms.xc, f"register_custom_{name}",
                            lambda name, value, platform, api_version=None: done.append((name, value, platform)))
    monkeypatch.setattr(platforms.xc, "register_custom_call_partitioner",
                        lambda name, *functions, c_api: done.append((name, c_api)))
    platforms._register_cuda_targets("other_cuda_plugin", "api")
    asked = (PARTITIONED_CALL, "api")
    of_modules = [(module, 3, "CUDA") for module in platforms._CUDA_TARGET_MODULES]
    assert done == ["CUDA", "CUDA", asked, ("state", 1, "CUDA"), ("call", 2, "CUDA"), *of_modules]


@pytest.mark.parametrize("by_jax", [{"cuda"}, set()], ids=["by jax too", "alone"])
def test_the_plugin_is_loaded_once_under_a_name_of_its_own(monkeypatch, tmp_path, by_jax):
    done, loaded = [], {*by_jax}
    for name, call in {
        "pjrt_plugin_loaded": loaded.__contains__, "initialize_pjrt_plugin": lambda name: done.append(name),
        "load_pjrt_plugin_dynamically": lambda name, library: (loaded.add(name), "api")[1],
    }.items():
        monkeypatch.setattr(platforms.xc, name, call)
    monkeypatch.setattr(platforms._profiler, "register_plugin_profiler", lambda api: done.append("profiler"))
    monkeypatch.setattr(platforms, "_register_cuda_targets", lambda package, api: done.append((package, api)))
    for _ in range(2):
        platforms._load_cuda_plugin("13", tmp_path / "xla_cuda_plugin.so")
    profiler = [] if by_jax else ["profiler"]
    assert done == [*profiler, "oneapi", ("jax_cuda13_plugin", "api")] and loaded == by_jax | {"oneapi"}


def test_processes_meet_before_they_make_clients_of_gpus_and_end_with_one_that_fails(monkeypatch, tmp_path):
    done = []
    joined = SimpleNamespace(
        membership=SimpleNamespace(start_timeout=7), meet=lambda name, timeout: done.append((name, timeout)),
        client="the runtime's", gpu_options=lambda: {"node_id": 1}, end_process="ends")
    monkeypatch.setattr(platforms, "_cuda_plugin", lambda: ("13", tmp_path))
    monkeypatch.setattr(platforms, "_load_cuda_plugin", lambda version, library: None)
    monkeypatch.setattr(platforms, "jax_is_loaded", lambda: False)
    monkeypatch.setattr(platforms.xc, "generate_pjrt_gpu_plugin_options", lambda: {"memory_fraction": 0.5})
    monkeypatch.setattr(platforms.xc, "make_c_api_client", lambda *facts: done.append(facts))
    platforms._make_cuda_client(joined)
    options = {"memory_fraction": 0.5, "node_id": 1}
    assert done == [("the GPUs", 7), ("oneapi", options, "the runtime's")] and joined.on_failure == "ends"
    monkeypatch.setattr(platforms, "jax_is_loaded", lambda: True)
    platforms._make_cuda_client(None)
    assert done[2:] == [("oneapi", {"memory_fraction": 0.5, "preallocate": False}, None)]


def test_collectives_of_mpi_are_begun_and_ended(monkeypatch):
    done = []
    made = SimpleNamespace(Init=lambda: done.append("begun"), Finalize=lambda: done.append("ended"))
    monkeypatch.setattr(platforms._jax, "make_mpi_collectives", lambda: made)
    monkeypatch.setattr(platforms.atexit, "register", lambda call: done.append(call))
    with hx.configure(cpu_collectives_implementation="mpi"):
        assert platforms._cpu_collectives(None) is made
    assert done == ["begun", made.Finalize]


def test_the_port_told_is_that_of_the_collectives_alone(monkeypatch):
    told = []
    joined = SimpleNamespace(client="the runtime's", local_host=lambda: "127.0.0.1", note_listener=told.append)
    with ExitStack() as stack:
        listen = lambda: stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        others = {listen().getsockname()[1] for _ in range(20)}
        monkeypatch.setattr(platforms._jax, "make_gloo_tcp_collectives", lambda **facts: (listen(), facts))
        with hx.configure(cpu_collectives_implementation=None):
            assert platforms._cpu_collectives(joined) is None and not told
        with hx.configure(cpu_collectives_implementation="gloo"):
            listener, facts = platforms._cpu_collectives(joined)
        assert facts == {"distributed_client": "the runtime's", "hostname": "127.0.0.1"}
        assert told == [listener.getsockname()] and told[0][1] not in others


def test_lapack_is_callable_once_registered(device):
    jaxlib_runtime.register_lapack()
    text = """func.func public @main(%a: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>) {
      %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4 : i32, backend_config = {uplo = 76 : ui8},
        operand_layouts = [dense<[0,1]> : tensor<2xindex>],
        result_layouts = [dense<[0,1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
        : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
      return %0#0, %0#1 : tensor<2x2xf32>, tensor<i32>
    }"""
    executable = jaxlib_runtime.compile(text, devices=[device], results=[((2, 2), np.float32), ((), np.int32)])
    factor, info = executable.execute([jaxlib_runtime.put(np.float32([[4, 2], [2, 5]]), device)])
    assert np.tril(read(factor)).tolist() == [[2, 0], [1, 2]] and read(info) == 0


def test_spawned_processes_compute(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing\nimport handlax.numpy as hnp\ndef total(n):\n    return float(hnp.ones(n).sum())\n"
        "if __name__ == '__main__':\n    total(1)\n    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print(pool.map(total, [2, 3]))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[2.0, 3.0]", done.stderr
