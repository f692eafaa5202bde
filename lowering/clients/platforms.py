"""The platforms: one XLA client for each, created at first use.

The CPU client is part of jaxlib. The CUDA client is a plug-in in the wheels ``jax_cuda13_plugin`` or
``jax_cuda12_plugin``. Their Python package ``jax_plugins.xla_cudaNN`` imports jax: it is never imported, its shared
library is loaded by path.
"""

import atexit
import ctypes
import functools
import importlib
import importlib.util
import os
import pathlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...effects.base import config
from ...effects.base.caches import per_process, process_lock
from ...effects.base.errors import BadArgument, ConfigurationError, PlatformUnavailable
from ...effects.base.jax_settings import from_environment
from ...effects.operations.foundations.foreign_call import PARTITIONED_CALL
from .genuine_jax import jax_is_loaded
from .gpu_driver import gpu_is_present
from .jaxlib_modules import Client, Device, _jax, _profiler, xc
from .open_sockets import listening
from .processes import Connection, connection
from .runtime_access import check_access, empty_in_children, end_threads_at_exit

PLATFORMS_VARIABLE = "HANDLAX_PLATFORMS"
CPU_COUNT_VARIABLE = "HANDLAX_NUM_CPU_DEVICES"
_CPU_COUNT_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\S*)")

# In order of dependence: a library needs those before it to be loaded.
_NVIDIA_LIBRARIES = {
    "cu13": ("libcudart.so.13", "libnvrtc.so.13", "libnvJitLink.so.13", "libcublasLt.so.13", "libcublas.so.13",
             "libcupti.so.13", "libcusparse.so.12", "libcusolver.so.12", "libcufft.so.12"),
    "cuda_runtime": ("libcudart.so.12",),
    "cuda_nvrtc": ("libnvrtc.so.12",),
    "nvjitlink": ("libnvJitLink.so.12",),
    "cublas": ("libcublasLt.so.12", "libcublas.so.12"),
    "cuda_cupti": ("libcupti.so.12",),
    "cusparse": ("libcusparse.so.12",),
    "cusolver": ("libcusolver.so.11",),
    "cufft": ("libcufft.so.11",),
    "nccl": ("libnccl.so.2",),
    "cudnn": ("libcudnn.so.9",),
    "nvshmem": ("libnvshmem_host.so.3",),
}
_CUDA_PLUGIN = "oneapi"
"""The name under which the plug-in is loaded: that of a GPU, since jaxlib from 0.11 on looks for a plug-in called cuda,
rocm or oneapi to load a serialized program, and one that jax has no plug-in for, since jax needs its own to be free.
"""
_CUDA_TARGET_MODULES = ("_solver", "_linalg", "_sparse", "_prng", "_hybrid", "_rnn", "_triton")

COUNTS: Counter[str] = Counter()
"""Counts of costly operations: "client" (created), "compile", "deserialize"."""


@dataclass(frozen=True, slots=True, eq=False)
class PlatformClient:
    """One platform's client and its devices."""

    client: Client
    platform: str
    devices: tuple[Device, ...]
    local_devices: tuple[Device, ...]
    default_device: Device


_backends: dict[str | None, PlatformClient] = {}
empty_in_children(_backends)
_lock = process_lock()


def is_used() -> bool:
    """Whether a client exists, after which this process can no longer be joined with others."""
    return bool(_backends)


def backend(platform: str | None = None) -> PlatformClient:
    """The client of ``platform`` and its devices, created at the first call; later calls return the same object.

        backend(p) is backend(p)

    By default: the first name in the environment variable ``HANDLAX_PLATFORMS`` ("cpu" or "cuda,cpu"), or else in
    ``JAX_PLATFORMS``; where both are unset, "cuda" if a CUDA plug-in is installed and a GPU is present, else "cpu".
    "gpu" means "cuda".

    Raises: PlatformUnavailable: the platform is unknown, or not in ``HANDLAX_PLATFORMS``, or does not start.

    >>> backend("cpu").platform
    'cpu'
    """
    try:
        known = _backends.get(platform)
    except TypeError:  # not hashable
        known = None
    if known is not None:
        return known
    if not isinstance(platform, str | None):
        raise BadArgument(f"backend: a platform is needed, such as 'cpu', got {platform!r}.")
    check_access()
    with _lock:
        name = _resolve(platform)
        if name not in _backends:
            _backends[name] = _make_backend(name)
        return _backends.setdefault(platform, _backends[name])


def _resolve(platform: str | None) -> str:
    variable, text = from_environment("platforms")
    allowed = tuple(_canonical(p) for p in text.split(",") if p.strip())
    if platform is None:
        if allowed:
            return allowed[0]
        return "cuda" if _cuda_plugin() is not None and gpu_is_present() else "cpu"
    name = _canonical(platform)
    if allowed and name not in allowed:
        raise PlatformUnavailable(
            f"the platform must be among {variable}={','.join(allowed)}, got {platform!r}",
            hint=f"add {name!r} to {variable}",
        )
    return name


def _canonical(platform: str) -> str:
    name = platform.strip().lower()
    return "cuda" if name == "gpu" else name


def _make_backend(name: str) -> PlatformClient:
    if name == "cpu":
        count = _cpu_device_count()
        client = _make_cpu_client(count, connection())
        config.PROCESS.cpu_devices = count
    elif name == "cuda":
        client = _make_cuda_client(connection())
    else:
        raise PlatformUnavailable(f"the platform must be 'cpu' or 'cuda', got {name!r}", hint="choose one of them")
    COUNTS["client"] += 1
    if not _backends:
        end_threads_at_exit()
    local = tuple(client.local_devices())
    return PlatformClient(client, name, tuple(client.devices()), local, local[0])


def _make_cpu_client(count: int, joined: Connection | None) -> Client:
    """The CPU client with ``count`` devices; joined with other processes, it waits for their clients."""
    if joined is None:
        return xc.make_cpu_client(asynchronous=True, num_devices=count)
    joined.meet("the CPU", joined.membership.start_timeout)
    return xc.make_cpu_client(
        asynchronous=True, num_devices=count, distributed_client=joined.client, node_id=joined.index,
        num_nodes=joined.count, collectives=_cpu_collectives(joined),
    )


def _cpu_collectives(joined: Connection) -> Any:
    """The implementation of collectives between processes that the setting ``cpu_collectives_implementation`` names."""
    chosen = config.current().cpu_collectives_implementation
    if chosen == "mpi":
        collectives = _jax.make_mpi_collectives()
        collectives.Init()
        atexit.register(collectives.Finalize)
        return collectives
    if chosen is None:
        return None
    before = listening()
    collectives = _jax.make_gloo_tcp_collectives(distributed_client=joined.client, hostname=joined.local_host())
    joined.note_listener(next(iter(listening() - before), None))
    return collectives


def _cpu_device_count() -> int:
    """The number of CPU devices: the setting ``num_cpu_devices``, else the environment variable, else XLA's own flag.
    """
    chosen = config.current().num_cpu_devices
    if chosen is not None:
        return chosen
    flag = _CPU_COUNT_FLAG.search(os.environ.get("XLA_FLAGS", ""))
    text = from_environment("num_cpu_devices")[1] or (flag[1] if flag else "1")
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(
            f"the number of CPU devices must be a positive integer, got {text!r}", hint=f"set {CPU_COUNT_VARIABLE}=1"
        )
    return int(text)


def _cuda_plugin() -> tuple[str, pathlib.Path] | None:
    """The major CUDA version and the path of the plug-in library, newest first, without importing the package."""
    for version in ("13", "12"):
        folder = _package_folder("jax_plugins.xla_cuda" + version)
        if folder is not None and (folder / "xla_cuda_plugin.so").exists():
            return version, folder / "xla_cuda_plugin.so"
    return None


def _package_folder(name: str) -> pathlib.Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # the parent package is absent
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return pathlib.Path(next(iter(spec.submodule_search_locations)))


def _make_cuda_client(joined: Connection | None) -> Client:
    plugin = _cuda_plugin()
    if plugin is None:
        raise PlatformUnavailable(
            "platform 'cuda' needs a CUDA plug-in, none is installed",
            hint=f'pip install "jax-cuda13-plugin[with-cuda]" of the version of jaxlib, or {PLATFORMS_VARIABLE}=cpu',
        )
    version, library = plugin
    try:
        _load_cuda_plugin(version, library)
        options = xc.generate_pjrt_gpu_plugin_options()
        if jax_is_loaded():  # two clients cannot both reserve most of the device's memory
            options["preallocate"] = False
        if joined is None:
            return xc.make_c_api_client(_CUDA_PLUGIN, options, None)
        joined.on_failure = joined.end_process
        joined.meet("the GPUs", joined.membership.start_timeout)
        return xc.make_c_api_client(_CUDA_PLUGIN, {**options, **joined.gpu_options()}, joined.client)
    except (xc.XlaRuntimeError, ImportError) as error:
        raise PlatformUnavailable(
            f"the CUDA plug-in at {library} does not start: {error}",
            hint=f"match the plug-in's version to jaxlib's, check the driver, or set {PLATFORMS_VARIABLE}=cpu",
        ) from error


def _load_cuda_plugin(version: str, library: pathlib.Path) -> None:
    """Load the library under a name that jax does not load one by: it refuses to start where that is taken.

    Both register the same handlers, of which XLA keeps one.
    """
    if xc.pjrt_plugin_loaded(_CUDA_PLUGIN):  # by a call that then found no GPU
        return
    _preload_nvidia_libraries()
    api = xc.load_pjrt_plugin_dynamically(_CUDA_PLUGIN, str(library))
    if not xc.pjrt_plugin_loaded("cuda"):  # by jax, which then has registered the profiler
        _profiler.register_plugin_profiler(api)
    xc.initialize_pjrt_plugin(_CUDA_PLUGIN)
    _register_cuda_targets(f"jax_cuda{version}_plugin", api)


def _preload_nvidia_libraries() -> None:
    for package, names in _NVIDIA_LIBRARIES.items():
        folder = _package_folder("nvidia." + package)
        for name in names:
            if folder is not None and (folder / "lib" / name).exists():
                ctypes.CDLL(str(folder / "lib" / name))


def _register_cuda_targets(package: str, api: Any) -> None:
    extension = importlib.import_module(package + ".cuda_plugin_extension")
    xc.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, api))
    xc.register_custom_call_handler("CUDA", functools.partial(extension.register_custom_call_target, api))
    _answer(api)
    for name, value in extension.ffi_types().items():
        xc.register_custom_type(name, value, platform="CUDA")
    targets = dict(extension.ffi_handlers())
    for module in _CUDA_TARGET_MODULES:
        targets.update(importlib.import_module(f"{package}.{module}").registrations())
    for name, value in targets.items():
        xc.register_custom_call_target(name, value, platform="CUDA", api_version=1)


@per_process
def register_lapack() -> None:
    """Register the ``lapack_*_ffi`` custom calls of the CPU, once per process: it imports SciPy, which takes 0.3 s."""
    lapack = importlib.import_module("jaxlib.lapack")
    for platform, targets in lapack.registrations().items():
        for name, value, version in targets:
            xc.register_custom_call_target(name, value, platform=platform, api_version=version)
            xc.register_custom_call_as_batch_partitionable(name)
    # The BLAS pointers come from SciPy and must be set before the first execution.
    importlib.import_module("jaxlib.cpu._lapack").initialize()


ANSWERS: dict[bytes, Callable[..., Any]] = {}
"""What answers for the partitioned calls of programs that are being compiled, by their configuration."""
empty_in_children(ANSWERS)


@per_process
def answer_xla() -> None:
    """Have XLA on the CPU ask, while it compiles, what devices execute in the place of partitioned calls."""
    _answer()


def _answer(plugin: Any = None) -> None:
    """``answer_xla``, of jaxlib's own compiler or that of a plug-in."""
    # three functions are required; Shardy, which chooses shardings by rules of factors, calls the second alone
    xc.register_custom_call_partitioner(PARTITIONED_CALL, _part, _part, _part, c_api=plugin)


def _part(types: Any, operands: Any, type: Any, result: Any, configuration: bytes) -> Any:
    return ANSWERS[configuration](operands, type, result)
